"""Compiled policies in a cluster follow the policies that the portal owns, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from engine.chain import CANARY_ANNOTATION, canary_message
from engine.compiled import KINDS, LABEL, MUTATING, VALIDATING
from policies import services
from sync.connect.permissions import grants_of, remark_on
from sync.errors import ForbiddenError
from sync.installation import compiled_canary as canary
from sync.installation import health
from sync.models import ClusterAlert, SyncRun
from sync.values import ObjectKey
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, own, sync
from tests.sync.pretended import PretendedCluster

if TYPE_CHECKING:
    from sync.values import Listing

pytestmark = pytest.mark.django_db

NAME = "gatehouse.team.limitrange.lr"
POLICY, BINDING = (ObjectKey(kind, "", NAME) for kind in VALIDATING)
METADATA_NAME = "gatehouse.team.metadatapolicy.mp"
SETTING, SETTING_BINDING = (ObjectKey(kind, "", METADATA_NAME) for kind in MUTATING)


def limit_range(mode: str = "enforce", *, most: str = "2", namespace: str = "team") -> Any:
    made = factories.manifest(
        "LimitRange",
        {"limits": [{"type": "Container", "max": {"cpu": most}}]},
        name="lr",
        namespace=namespace,
    )
    made["metadata"]["annotations"] = {"policy.gatehouse.dev/in-api-server": mode}
    return made


def metadata_policy(mode: str = "enforce", *, name: str = "mp", **action: Any) -> Any:
    rule = {
        "policyPredicate": {"labelSelector": {"matchLabels": {"a": "b"}}},
        "policyAction": action or {"updatedLabels": {"c": "d"}},
    }
    made = factories.manifest("MetadataPolicy", {"rules": [rule]}, name=name, namespace="team")
    made["metadata"]["annotations"] = {"policy.gatehouse.dev/in-api-server": mode}
    return made


def owned(*manifests: Any) -> Memory:
    """A cluster that the portal owns, after a pass."""
    memory = Memory("team", "gatehouse")
    own(connected())
    for manifest in manifests or (limit_range(),):
        factories.apply(manifest)
    sync(memory)
    return memory


def test_policy_and_binding_are_written_beside_the_policy() -> None:
    memory = owned()
    assert memory.objects[POLICY]["metadata"]["labels"][LABEL] == "limitrange"
    assert memory.objects[BINDING]["spec"]["validationActions"] == ["Deny"]
    compiled = [call for call in memory.done if NAME in call[1]]
    assert compiled == [("apply", str(POLICY)), ("apply", str(BINDING))]
    assert {ObjectKey(kind, "", canary.NAME) for kind in VALIDATING} <= set(memory.objects)


def test_second_pass_writes_nothing() -> None:
    memory = owned()
    before = len(memory.writes)
    run = sync(memory)
    assert len(memory.writes) == before
    assert run.counts["compiled"] == 2
    assert "compiled written" not in run.counts


def test_changed_policy_is_written_again() -> None:
    memory = owned()
    factories.apply(limit_range(most="3"))
    run = sync(memory)
    assert run.counts["compiled written"] == 1
    assert 'quantity("3")' in str(memory.objects[POLICY]["spec"])


@pytest.mark.parametrize("field", ["spec", "labels"])
def test_edits_by_others_are_put_right(field: str) -> None:
    memory = owned()
    changed = memory.objects[BINDING]
    if field == "spec":
        changed["spec"]["validationActions"] = ["Audit"]
    else:
        changed["metadata"]["labels"].pop("app.kubernetes.io/managed-by")
    memory.put(changed)
    assert sync(memory).counts["compiled written"] == 1
    assert memory.objects[BINDING]["spec"]["validationActions"] == ["Deny"]


def test_updates_are_written_policy_first_and_deleted_binding_first() -> None:
    memory = owned(metadata_policy())
    factories.apply(metadata_policy("off"))
    sync(memory)
    assert [call for call in memory.done if METADATA_NAME in call[1]] == [
        ("apply", str(SETTING)),
        ("apply", str(SETTING_BINDING)),
        ("delete", str(SETTING_BINDING)),
        ("delete", str(SETTING)),
    ]


def test_edits_of_updates_by_others_are_put_right() -> None:
    memory = owned(metadata_policy())
    changed = memory.objects[SETTING]
    changed["spec"]["reinvocationPolicy"] = "Never"
    memory.put(changed)
    assert sync(memory).counts["compiled written"] == 1
    assert memory.objects[SETTING]["spec"]["reinvocationPolicy"] == "IfNeeded"


def test_updates_go_where_another_policy_selects_what_they_set() -> None:
    memory = owned(metadata_policy())
    other = metadata_policy("off", name="other", updatedLabels={"a": "z"})
    factories.apply(other)
    sync(memory)
    assert SETTING not in memory.objects


def test_off_deletes_the_binding_before_the_policy() -> None:
    memory = owned()
    factories.apply(limit_range("off"))
    run = sync(memory)
    assert run.counts["compiled deleted"] == 4
    deleted = [call for call in memory.done if call[0] == "delete" and NAME in call[1]]
    assert deleted == [("delete", str(BINDING)), ("delete", str(POLICY))]
    assert [key for key in memory.objects if key.kind in KINDS] == []


def test_deleted_policy_takes_its_compiled_objects_along() -> None:
    memory = owned()
    found = services.find_object(connected(), kind="LimitRange", name="lr", namespace="team")
    services.delete_policy(policy=found, user="me")
    sync(memory)
    assert POLICY not in memory.objects
    assert BINDING not in memory.objects


def test_nothing_is_written_for_a_policy_that_is_not_owned() -> None:
    memory = Memory("team")
    factories.apply(limit_range())
    connected()
    sync(memory)
    assert memory.writes == []


def test_nothing_is_written_where_the_webhooks_are_never_asked() -> None:
    memory = owned(limit_range(namespace="gatehouse"))
    assert [key for key in memory.objects if key.kind in KINDS] == []


def test_excluded_namespace_loses_its_compiled_objects() -> None:
    memory = owned()
    assert POLICY in memory.objects
    services.set_excluded_namespaces(cluster=factories.cluster(), names=["team"], user="me")
    sync(memory)
    assert [key for key in memory.objects if key.kind in KINDS] == []


def test_preview_writes_nothing() -> None:
    memory = Memory("team")
    own(connected())
    factories.apply(limit_range())
    sync(memory, mode="preview")
    assert memory.writes == []


def test_objects_without_our_label_are_left_alone() -> None:
    memory = Memory("team", "gatehouse")
    foreign = {"apiVersion": "admissionregistration.k8s.io/v1", "spec": {"theirs": True}}
    for key in (POLICY, BINDING, ObjectKey(KINDS[0], "", "other")):
        memory.put({**foreign, "kind": key.kind, "metadata": {"name": key.name}})
    own(connected())
    factories.apply(limit_range())
    run = sync(memory)
    assert run.counts["compiled failed"] == 2
    assert all(memory.objects[key]["spec"] == {"theirs": True} for key in (POLICY, BINDING))
    factories.apply(limit_range("off"))
    sync(memory)
    assert POLICY in memory.objects
    assert not ClusterAlert.objects.filter(kind="compiled-policies", resolved=None).exists()


class _Closed(Memory):
    """A cluster in which the portal may not read compiled objects."""

    closed: tuple[str, ...] = KINDS

    def list(self, kind: str) -> Listing:
        if kind in self.closed:
            raise ForbiddenError("no right", code=403)
        return super().list(kind)


def test_missing_right_raises_an_alert_and_does_not_fail_the_pass() -> None:
    memory = _Closed("team")
    own(connected())
    assert "compiled failed" not in sync(memory).counts
    factories.apply(limit_range())
    run = sync(memory)
    assert (run.state, run.counts["compiled failed"]) == ("done", 1)
    assert "no right" in ClusterAlert.objects.get(kind="compiled-policies").message


def test_server_without_these_kinds_is_named_only_if_they_are_wanted() -> None:
    memory = Memory("team")
    memory.absent |= set(KINDS)
    own(connected())
    assert "compiled failed" not in sync(memory).counts
    factories.apply(limit_range())
    assert sync(memory).counts["compiled failed"] == 1


def test_server_without_mutating_policies_still_gets_the_validating_ones() -> None:
    memory = Memory("team")
    memory.absent |= set(MUTATING)
    own(connected())
    factories.apply(limit_range())
    assert "compiled failed" not in sync(memory).counts
    factories.apply(metadata_policy())
    factories.apply(metadata_policy(name="rejects", reject=True))
    run = sync(memory)
    assert run.counts["compiled failed"] == 1
    assert ObjectKey(VALIDATING[1], "", "gatehouse.team.metadatapolicy.rejects") in memory.objects
    assert "no MutatingAdmissionPolicies" in ClusterAlert.objects.get(resolved=None).message


def test_missing_right_to_set_metadata_does_not_stop_refusals() -> None:
    memory = _Closed("team")
    memory.closed = MUTATING
    own(connected())
    factories.apply(limit_range())
    factories.apply(metadata_policy())
    assert sync(memory).counts["compiled failed"] == 1
    assert BINDING in memory.objects
    assert "no right" in ClusterAlert.objects.get(kind="compiled-policies").message


def test_rights_are_asked_for_only_while_a_policy_is_compiled() -> None:
    cluster = connected()
    resources = {grant.resource for grant in grants_of(cluster)}
    factories.apply(limit_range("audit"))
    more = {grant.resource for grant in grants_of(cluster)} - resources
    assert more == {"validatingadmissionpolicies", "validatingadmissionpolicybindings"}


@pytest.mark.parametrize(
    ("mode", "action", "is_wanted"),
    [
        ("enforce", {"updatedLabels": {"a": "b"}}, True),
        ("enforce", {"updatedAnnotations": {"a": "b"}}, True),
        ("audit", {"updatedLabels": {"a": "b"}}, False),
        ("enforce", {"reject": True}, False),
    ],
)
def test_right_to_change_objects_is_asked_for_only_while_a_policy_sets_something(
    mode: str, action: dict[str, Any], *, is_wanted: bool
) -> None:
    cluster = connected()
    factories.apply(metadata_policy(mode, **action))
    grants = grants_of(cluster)
    mutating = {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
    assert (mutating <= {grant.resource for grant in grants}) is is_wanted
    assert ("MutatingAdmissionPolicies" in remark_on(grants)) is is_wanted
    assert "ValidatingAdmissionPolicies" in remark_on(grants)


DENIED = 'admission webhook "validate.gatehouse.dev" denied the request: '


def answering(*, by_server: bool, by_portal: bool) -> PretendedCluster:
    """A cluster that refuses each canary, or not, as these two enforce."""
    made = PretendedCluster()

    def answer(manifest: Any) -> Any:
        annotations = manifest["metadata"]["annotations"]
        word = annotations.get(canary.ANNOTATION)
        if by_server and word:
            text = f"canary {word} was refused by the API server, as it must be"
            raise ForbiddenError(text, code=403)
        if by_portal:
            message = canary_message(annotations[CANARY_ANNOTATION], mutated=True)
            raise ForbiddenError(DENIED + message, code=403)
        return manifest

    made.on_create = answer
    return made


@pytest.mark.parametrize(
    ("by_server", "by_portal", "words"),
    [
        (True, True, ""),
        (False, False, ""),
        (False, True, "only the portal enforces"),
        (True, False, "only the API server enforces"),
    ],
)
def test_canary_notices_that_only_one_enforces(
    *, by_server: bool, by_portal: bool, words: str
) -> None:
    owned()
    SyncRun.objects.update(state="done")
    there = answering(by_server=by_server, by_portal=by_portal)
    health.check(connected(), there)  # type: ignore[arg-type]
    found = ClusterAlert.objects.filter(kind="enforced-by-one", resolved=None).first()
    assert bool(found) is bool(words)
    assert words in (found.message if found else "")


def test_api_server_is_not_asked_where_nothing_is_compiled() -> None:
    there = answering(by_server=False, by_portal=True)
    health.check(connected(), there)  # type: ignore[arg-type]
    assert not ClusterAlert.objects.filter(kind="enforced-by-one").exists()
