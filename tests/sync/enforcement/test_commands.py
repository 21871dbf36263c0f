"""``manage.py cluster_enforcement`` and ``cluster_ownership``: outputs and exit codes."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Self

import pytest
from django.core.management import CommandError, call_command

from policies.models import PolicyRevision
from sync.connect import connections
from sync.errors import UnreachableError
from sync.installation import manifests
from sync.models import SyncOwnership, SyncRun, WebhookHealth
from tests import factories, people
from tests.sync.enforcement import world
from tests.sync.installation.test_health import refuse
from tests.sync.pretended import PretendedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


def call(command: str, *words: str, code: int = 0) -> str:
    out = io.StringIO()
    if not code:
        call_command(command, *words, stdout=out)
        return out.getvalue()
    with pytest.raises(CommandError) as refused:
        call_command(command, *words, stdout=out)
    assert refused.value.returncode == code, refused.value
    return out.getvalue() + str(refused.value)


def enforcement(*words: str, code: int = 0) -> str:
    return call("cluster_enforcement", "prod", *words, code=code)


def ownership(*words: str, code: int = 0) -> str:
    return call("cluster_ownership", "prod", *words, code=code)


def test_a_table_of_namespaces_and_kinds() -> None:
    cluster = world.complete()
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    world.quota({"pods": "1"}, name="rq", namespace="other-team")
    world.native(cluster, ("LimitRange", "team", "lr"), ("ResourceQuota", "other-team", "rq"))
    lines = enforcement().splitlines()
    assert lines[1].split() == ["NAMESPACE", "LIMITRANGE", "RESOURCEQUOTA", "METADATAPOLICY"]
    assert lines[2].split("   ")[-2:] == ["native plugin", "-"]
    assert [line.index("native plugin") for line in lines[2:4]] == [
        lines[1].index("RESOURCEQUOTA"),
        lines[1].index("LIMITRANGE"),
    ]
    assert lines[-1] == "nothing is missing"


def test_what_is_missing_is_the_exit_code() -> None:
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    text = enforcement(code=1)
    assert "python manage.py connect_cluster prod --kubeconfig FILE" in text
    assert text.endswith("2 things are missing")
    told = json.loads(enforcement("-o", "json", code=1).rpartition("}")[0] + "}")
    assert [each["code"] for each in told["missing"]] == ["connection", "webhook"]
    assert (told["isComplete"], told["holdings"][0]["enforcer"]) == (False, "portal")


def test_one_namespace_is_shown_alone() -> None:
    world.complete()
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, namespace="kube-system")
    assert "nothing is missing" in enforcement("--namespace", "team")
    assert "kube-system" in enforcement("--namespace", "kube-system", code=1)
    assert "no policies here" in enforcement("--namespace", "elsewhere")


class Answering(PretendedCluster):
    """A cluster that grants all but what is ``denied``, and refuses canaries."""

    denied = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def version(self) -> dict[str, str]:
        return {"gitVersion": "v1.36.3"}

    def server_time(self) -> None:
        return None

    def can(self, _verb: str, _group: str, resource: str, *_: str, name: str) -> bool:
        del name
        return resource != self.denied


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    made = Answering()
    made.on_create = refuse
    made.put({"metadata": {"name": "kube-system", "uid": "1"}}, "Namespace")
    for configuration in manifests.webhooks(factories.cluster()):
        made.put(configuration, configuration["kind"])
    monkeypatch.setattr(connections, "open_client", lambda *_args, **_words: made)
    return made


def test_a_check_asks_the_cluster_first(answering: Answering) -> None:
    world.complete()
    WebhookHealth.objects.all().delete()
    assert "nothing is missing" in enforcement("--check")
    answering.denied = "services"
    assert "may not list, watch services" in enforcement("--check", code=1)


def test_a_check_that_reaches_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world.complete()

    def unreachable(*_args: Any, **_words: Any) -> None:
        raise UnreachableError("nobody answers", reason="Unreachable")

    monkeypatch.setattr(connections, "open_client", unreachable)
    assert "nobody answers" in enforcement("--check", code=1)


@pytest.mark.parametrize("fields", [{"is_paused": True}, None])
def test_a_check_needs_a_connection_in_use(fields: dict[str, Any] | None) -> None:
    cluster = factories.cluster()
    if fields:
        world.connected(cluster, **fields)
    assert "prod is" in enforcement("--check", code=1 if fields else 2)


def test_ownership_is_taken_once_and_released_on_record() -> None:
    world.both_sides(factories.cluster(), "unowned")
    people.person("ada")
    by_ada = ("--user", "ada")
    assert "namespace team of prod: owned from now on" in ownership(
        "take", "--namespace", "team", *by_ada
    )
    assert "already owned" in ownership("take", "--namespace", "team")
    held = SyncOwnership.objects.get()
    assert (held.namespace, held.kind, held.user) == ("team", "", "ada")
    assert SyncRun.objects.filter(mode="sync", state="waiting").count() == 1
    assert "not owned by itself" in ownership("release", code=1)
    assert "released" in ownership("release", "--namespace", "team")
    assert not SyncOwnership.objects.exists()
    actions = PolicyRevision.objects.filter(kind="SyncOwnership").order_by("id")
    assert list(actions.values_list("action", flat=True)) == ["create", "delete"]


def test_one_object_is_owned() -> None:
    world.both_sides(factories.cluster(), "unowned")
    ownership("take", "--namespace", "team", "--object", "ResourceQuota/rq")
    held = SyncOwnership.objects.get()
    assert (held.namespace, held.kind, held.name) == ("team", "ResourceQuota", "rq")


@pytest.mark.parametrize("action", ["preview", "take"])
@pytest.mark.parametrize(
    "words",
    [
        ("--namespace", "nowhere"),
        ("--object", "ResourceQuota/rq"),
        ("--namespace", "team", "--object", "rq"),
        ("--namespace", "team", "--object", "Namespace/team"),
    ],
)
def test_a_place_that_nobody_can_own_is_refused(action: str, words: tuple[str, ...]) -> None:
    world.both_sides(factories.cluster(), "unowned")
    assert ownership(action, *words, code=2)
    assert not SyncOwnership.objects.exists()


def test_a_preview_shows_what_would_be_written() -> None:
    world.quota({"pods": "5"})
    text = ownership("preview")
    assert "ResourceQuota team/rq: would be created in the cluster" in text
    assert "all of prod: 1 of 1 objects would change; nothing was written" in text
    told = json.loads(ownership("preview", "-o", "json"))
    assert [(each["name"], each["action"], each["isOwned"]) for each in told] == [
        ("rq", "create", False)
    ]
    assert not SyncOwnership.objects.exists()


def test_unknown_clusters_are_wrong_usage() -> None:
    commands: list[Callable[..., str]] = [enforcement, ownership]
    for words, command in zip([(), ("preview",)], commands, strict=True):
        assert "no cluster" in command(*words, code=2)
