"""The plan: every way in which base, ours and theirs can stand to each other, and its parts."""

from __future__ import annotations

from typing import Any

import pytest

from policies.managed_fields import normal
from policies.services.brake import brake
from sync.reconcile import (
    ResolutionError,
    differences,
    judge,
    managers,
    resolve,
    used_by_others,
)
from tests.builders import limit_range, metadata_policy, resource_quota

Manifest = dict[str, Any]


def quota(pods: str = "5", **hard: str) -> Manifest:
    return resource_quota({"pods": pods, **hard})


A, B, C = quota("5"), quota("6"), quota("7")
OWNED = [
    # base, ours, theirs, state, action
    (None, None, None, "in-sync", "none"),
    (None, A, A, "in-sync", "none"),
    (None, A, None, "pending", "create"),
    (None, None, A, "drifted", "import"),
    (None, A, B, "conflict", "conflict"),
    (A, None, None, "in-sync", "none"),
    (A, A, A, "in-sync", "none"),
    (A, B, B, "in-sync", "none"),
    (A, B, A, "pending", "update"),
    (A, None, A, "pending", "delete"),
    (A, A, B, "drifted", "import"),
    (A, A, None, "drifted", "forget"),
    (A, B, C, "conflict", "conflict"),
    (A, B, None, "conflict", "conflict"),
    (A, None, B, "conflict", "conflict"),
]
FOLLOWED = [
    (None, A, A, "unowned", "none"),
    (None, A, None, "unowned", "none"),
    (None, None, A, "unowned", "import"),
    (None, A, B, "conflict", "conflict"),
    (A, B, A, "unowned", "none"),
    (A, None, A, "unowned", "none"),
    (A, A, B, "unowned", "import"),
    (A, A, None, "unowned", "forget"),
    (A, B, C, "conflict", "conflict"),
    (A, B, None, "conflict", "conflict"),
    (A, None, B, "conflict", "conflict"),
]


@pytest.mark.parametrize(("base", "ours", "theirs", "state", "action"), OWNED)
def test_an_owned_object_is_judged(
    base: Manifest, ours: Manifest, theirs: Manifest, state: str, action: str
) -> None:
    verdict = judge(base, ours, theirs, owned=True)
    assert (verdict.state, verdict.action) == (state, action)
    assert bool(verdict.differences) is (state != "in-sync")


@pytest.mark.parametrize(("base", "ours", "theirs", "state", "action"), FOLLOWED)
def test_an_object_of_others_is_followed(
    base: Manifest, ours: Manifest, theirs: Manifest, state: str, action: str
) -> None:
    verdict = judge(base, ours, theirs, owned=False)
    assert (verdict.state, verdict.action) == (state, action)
    assert action not in {"create", "update", "delete"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (quota(cpu=".1"), quota(cpu="100m")),
        (quota(memory="1Gi"), quota(memory="1073741824")),
        (quota("1000"), quota("1k")),
        (quota(cpu="1n"), quota(cpu="1m")),
        (quota(), {**quota(), "status": {"hard": {"pods": "5"}, "used": {"pods": "3"}}}),
        (
            limit_range({"type": "Container", "max": {"cpu": "1"}}),
            limit_range(
                {
                    "type": "Container",
                    "max": {"cpu": "1"},
                    "default": {"cpu": "1000m"},
                    "defaultRequest": {"cpu": "1"},
                }
            ),
        ),
        (
            limit_range({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}),
            limit_range({"type": "Pod", "limitRequestRatio": {"cpu": "2"}}),
        ),
        (
            metadata_policy({"policyPredicate": {}, "PolicyAction": {"reject": True}}),
            metadata_policy({"policyPredicate": {}, "policyAction": {"reject": True}}),
        ),
        (
            resource_quota({}, scopes=["BestEffort", "NotTerminating"]),
            resource_quota({}, scopes=["NotTerminating", "BestEffort"]),
        ),
    ],
)
def test_what_means_the_same_is_no_difference(one: Manifest, other: Manifest) -> None:
    assert normal(one) == normal(other)


def test_what_servers_and_kubectl_note_does_not_count() -> None:
    noted = quota()
    noted["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{}],
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "policy.gatehouse.dev/enforcement": "enforce",
        },
    }
    assert normal(noted) == normal(quota())


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_other_labels_and_annotations_count(field: str) -> None:
    labelled = quota()
    labelled["metadata"] |= {field: {"team": "a"}}
    found = differences(normal(quota()), normal(labelled))
    assert [(one.field, one.a, one.b) for one in found] == [(f".metadata.{field}.team", None, "a")]


def test_a_spec_that_cannot_be_read_is_compared_as_it_stands() -> None:
    broken = {"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "x"}}}
    assert normal(broken)["spec"] == {"hard": {"pods": "x"}}
    assert judge(None, broken, quota(), owned=True).state == "conflict"


def test_differences_name_each_field_with_both_values() -> None:
    one = limit_range({"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}})
    other = limit_range({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}})
    found = [(one.field, one.a, one.b) for one in differences(normal(one), normal(other))]
    assert found == [
        (".spec.limits[0].max.cpu", "1", "2"),
        (".spec.limits[0].max.memory", "1Gi", None),
        (".spec.limits[0].min.cpu", None, "1"),
    ]


def test_lists_of_other_lengths_differ_as_a_whole() -> None:
    one, other = limit_range({"type": "Pod"}), limit_range({"type": "Pod"}, {"type": "Container"})
    assert [found.field for found in differences(normal(one), normal(other))] == [".spec.limits"]


def test_an_object_that_one_side_lacks_differs_as_a_whole() -> None:
    (found,) = differences(normal(quota()), None)
    assert (found.field, found.b) == ("", None)


def test_true_is_not_one() -> None:
    assert differences({"spec": {"a": True}}, {"spec": {"a": 1}})
    assert differences({"spec": [None, {"a": [0]}]}, {"spec": [None, {"a": [False]}]})


@pytest.mark.parametrize(
    ("deletes", "known", "held"),
    [
        (0, 0, False),
        (10, 10, False),
        (11, 11, True),
        (11, 55, False),
        (11, 54, True),
        (200, 1000, False),
        (201, 1000, True),
    ],
)
def test_a_pass_that_deletes_much_is_held(deletes: int, known: int, held: bool) -> None:  # noqa: FBT001
    assert brake(deletes, known) is held


MANAGED = [
    {
        "manager": "gatehouse",
        "operation": "Apply",
        "time": "2026-11-21T10:00:00Z",
        "fieldsV1": {"f:spec": {"f:hard": {"f:pods": {}, "f:requests.cpu": {}}}},
    },
    {
        "manager": "kubectl-edit",
        "time": "2026-11-21T11:00:00Z",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:team": {}}},
            "f:spec": {"f:limits": {}},
        },
    },
    {"manager": "controller", "subresource": "status", "fieldsV1": {"f:status": {"f:used": {}}}},
]


def test_managers_are_found_by_field() -> None:
    found = managers({"metadata": {"managedFields": MANAGED}})
    assert found[".spec.hard.requests.cpu"] == ("gatehouse", "2026-11-21T10:00:00Z")
    assert found[".metadata.labels.team"].manager == "kubectl-edit"
    assert found[".metadata.labels"].manager == "kubectl-edit"
    assert found[".spec.limits"].manager == "kubectl-edit"
    assert not any(field.startswith(".status") for field in found)


def test_the_latest_of_two_managers_counts() -> None:
    tree = {"f:spec": {"f:hard": {"f:pods": {}}}}
    entries = [
        {"manager": "b", "time": "2026-11-21T11:00:00Z", "fieldsV1": tree},
        {"manager": "a", "time": "2026-11-21T10:00:00Z", "fieldsV1": tree},
    ]
    assert managers({"metadata": {"managedFields": entries}})[".spec.hard.pods"].manager == "b"


@pytest.mark.parametrize("noted", [None, 7, [None], [{"fieldsV1": 3}], [{"fieldsV1": {"x": []}}]])
def test_odd_notes_of_managers_are_no_trouble(noted: Any) -> None:
    assert all(
        who.manager == "" for who in managers({"metadata": {"managedFields": noted}}).values()
    )


def test_a_conflict_is_resolved_field_by_field() -> None:
    ours, theirs = quota("5", cpu="1"), quota("7", memory="1Gi")
    choices = {
        ".spec.hard.pods": "theirs",
        ".spec.hard.cpu": "ours",
        ".spec.hard.memory": "theirs",
    }
    resolved = resolve(A, ours, theirs, choices)  # type: ignore[arg-type]
    assert resolved is not None
    assert resolved["spec"]["hard"] == {"cpu": "1", "memory": "1Gi", "pods": "7"}


def test_a_conflict_with_a_deletion_is_resolved_as_a_whole() -> None:
    assert resolve(A, B, None, {"": "theirs"}) is None
    assert resolve(A, B, None, {"": "ours"}) == normal(B)
    assert resolve(A, None, B, {"": "theirs"}) == normal(B)


def test_every_difference_has_to_be_decided_and_no_other() -> None:
    with pytest.raises(ResolutionError) as caught:
        resolve(
            A, quota("5", cpu="1"), quota("6", cpu="2"), {".spec.hard.pods": "ours", ".x": "ours"}
        )
    assert caught.value.missing == [".spec.hard.cpu"]
    assert caught.value.unknown == [".x"]


def test_scope_expressions_are_sets() -> None:
    def scoped(*values: str) -> Manifest:
        expression = {"scopeName": "PriorityClass", "operator": "In", "values": list(values)}
        return resource_quota({}, scopeSelector={"matchExpressions": [expression]})

    assert normal(scoped("high", "low")) == normal(scoped("low", "high", "low"))
    assert normal(scoped("high")) != normal(scoped("low"))


def test_an_empty_map_is_as_good_as_none_only_where_it_says_nothing() -> None:
    selector: Manifest = {
        "policyPredicate": {"labelSelector": {}},
        "policyAction": {"reject": True},
    }
    absent: Manifest = {"policyPredicate": {}, "policyAction": {"reject": True}}
    (found,) = differences(normal(metadata_policy(selector)), normal(metadata_policy(absent)))
    assert found.field == ".spec.rules[0].policyPredicate.labelSelector"


def test_a_label_can_be_taken_away_by_a_choice() -> None:
    ours, theirs = quota(), quota("6")
    ours["metadata"] |= {"labels": {"team": "a"}}
    choices: Any = {".metadata.labels.team": "theirs", ".spec.hard.pods": "ours"}
    assert resolve(A, ours, theirs, choices) == normal(quota())


def status_entry(manager: str, *names: str, time: str = "2026-11-21T10:00:00Z") -> Manifest:
    used = {f"f:{name}": {} for name in names}
    fields = {"f:status": {"f:used": {".": {}, **used}}}
    return {"manager": manager, "subresource": "status", "time": time, "fieldsV1": fields}


def test_used_amounts_that_we_wrote_last_are_left_out() -> None:
    entries = [
        status_entry("gatehouse", "pods", "requests.cpu", time="2026-11-21T10:00:00Z"),
        status_entry("kube-controller-manager", "requests.cpu", time="2026-11-21T11:00:00Z"),
    ]
    used = {"pods": "1", "requests.cpu": "2", "services": "3"}
    live = {"metadata": {"managedFields": entries}, "status": {"used": used}}
    assert used_by_others(live, "gatehouse") == {"requests.cpu": "2", "services": "3"}
    assert used_by_others({**live, "metadata": {}}, "gatehouse") == used


@pytest.mark.parametrize("status", [None, {}, 7, {"used": None}, {"used": 7}])
def test_a_quota_without_a_status_has_no_used_amounts(status: Any) -> None:
    assert used_by_others({"metadata": {}, "status": status}, "gatehouse") == {}


def test_a_manager_of_the_spec_is_none_of_the_status() -> None:
    entry = {**status_entry("gatehouse", "pods"), "subresource": ""}
    live = {"metadata": {"managedFields": [entry]}, "status": {"used": {"pods": "1"}}}
    assert used_by_others(live, "gatehouse") == {"pods": "1"}
    assert managers(live, subresource="status") == {}
