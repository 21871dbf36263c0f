"""The plugins enforce, while the portal's webhooks run with outdated policies."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import secrets
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.cluster.api_client import ApiClient
from tests.cluster.cases import SHARES, draw_before, draw_case
from tests.cluster.comparison import resources
from tests.cluster.portal import portal
from tests.cluster.rules import draw_policies, room_of
from tests.cluster.servers import Cluster, cluster
from tests.cluster.worlds import Barrier, World, prepare_cluster
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.binaries import Binaries
    from tests.cluster.cases import Case
    from tests.cluster.portal import Portal
    from tests.cluster.worlds import Observed

pytestmark = pytest.mark.cluster

WORLDS, QUESTIONS = 20, 15
NATIVE = """
import django; django.setup()
from policies.models import Cluster, LimitRange, ResourceQuota
from policies.services import note_native, set_authority
cluster = Cluster.objects.get(name="demo")
stored = [
    (model.kind, policy.namespace.name, policy.name)
    for model in (LimitRange, ResourceQuota)
    for policy in model.objects.filter(namespace__cluster=cluster)
]
note_native(cluster=cluster, native=stored, user="root")
set_authority(cluster=cluster, authority="native", user="root")
"""
COVERING = "insufficient quota to match these scopes: [{PriorityClass In [cluster-services]}]"
REJECTED = "rejected by MetadataPolicy"


class Side(NamedTuple):
    """A cluster whose plugins enforce; its answers alone, and beside the portal."""

    cluster: Cluster
    alone: list[tuple[Case, Observed]]
    beside: list[tuple[Case, Observed]]


def outdated(policy: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The portal's outdated version of a policy, with less room."""
    found = copy.deepcopy({key: value for key, value in policy.items() if key != "status"})
    found["metadata"]["namespace"] = namespace
    if found["kind"] == "ResourceQuota":
        found["spec"]["hard"] = dict.fromkeys(found["spec"]["hard"], "0")
    return found


def one_range(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave one range: with several, the first evaluated one changes from request to request."""
    ranges = [policy for policy in policies if policy["kind"] == "LimitRange"]
    return [policy for policy in policies if policy not in ranges[1:]]


def make_worlds(api: ApiClient, random: Random) -> list[tuple[World, list[Case]]]:
    made = []
    for number in range(WORLDS):
        before = draw_before(random)
        world = World(api, f"side-{number}", drawn=before)
        world.make(one_range(draw_policies(random, [])), list(before.values()))
        kinds = random.choices(list(SHARES), weights=list(SHARES.values()), k=QUESTIONS)
        rooms = [random.choice((None, room_of(world.policies))) for _ in kinds]
        cases = [draw_case(random, *k, before, room) for k, room in zip(kinds, rooms, strict=True)]
        made.append((world, [{**case, "dryRun": True} for case in cases]))
    return made


def answers(worlds: list[tuple[World, list[Case]]]) -> list[tuple[Case, Observed]]:
    found = [world.ask(copy.deepcopy(case)) for world, cases in worlds for case in cases]
    return [answer for answer in found if answer is not None]


def import_policies(gatehouse: Portal, worlds: list[tuple[World, list[Case]]], folder: Any) -> None:
    reject = {"policyPredicate": {}, "policyAction": {"reject": True}}
    rules: dict[str, Any] = {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": {"name": "none-pass", "namespace": "side-0"},
        "spec": {"rules": [reject]},
    }
    items = [outdated(p, world.name) for world, _ in worlds for p in world.policies]
    items.append(outdated(quota("1"), "demo"))
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, rules]})
    (folder / "policies.json").write_text(text)
    gatehouse.manage(
        "import_manifests",
        str(folder / "policies.json"),
        "--cluster",
        "demo",
        "--create-namespaces",
    )
    gatehouse.run(NATIVE)


def is_called(api: ApiClient) -> bool:
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], "priorityClassName": "cluster-services"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    return COVERING in api.create(pod, "default", dry=True).message


@pytest.fixture(scope="module")
def side(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    seed = int(os.environ.get("CONFORMANCE_SEED") or secrets.randbelow(10**9))
    print(f"CONFORMANCE_SEED={seed}")  # noqa: T201 - to repeat it
    folder = tmp_path_factory.mktemp("side")
    with (
        cluster(binaries) as made,
        portal(folder / "portal") as gatehouse,
        contextlib.closing(ApiClient(made)) as api,
    ):
        prepare_cluster(api)
        worlds = make_worlds(api, Random(seed))  # noqa: S311 - repeatable on purpose
        Barrier(api).wait()
        alone = answers(worlds)
        import_policies(gatehouse, worlds, folder)
        gatehouse.enforce(made, "demo")
        wait_for(lambda: is_called(api))
        yield Side(made, alone, answers(worlds))


def test_portal_refuses_nothing_that_the_plugins_admit(side: Side) -> None:
    assert len(side.alone) == len(side.beside) > WORLDS * QUESTIONS / 2
    more = [
        (now.message, case["request"]["namespace"])
        for (case, before), (_, now) in zip(side.alone, side.beside, strict=True)
        if before.is_allowed and not now.is_allowed
    ]
    own = [m for m, ns in more if COVERING in m or (REJECTED in m and ns == "side-0")]
    assert [message for message, _ in more] == own
    assert own


def test_portal_admits_nothing_that_the_plugins_refuse(side: Side) -> None:
    pairs = [(before, now) for (_, before), (_, now) in zip(side.alone, side.beside, strict=True)]
    assert [now.message for before, now in pairs if now.is_allowed and not before.is_allowed] == []
    assert any(not before.is_allowed for before, _ in pairs)


def test_stored_objects_are_those_of_the_plugins(side: Side) -> None:
    pairs = [(before, now) for (_, before), (_, now) in zip(side.alone, side.beside, strict=True)]
    stored = [(before.object, now.object) for before, now in pairs if now.is_allowed]
    assert [resources(b) for b, _ in stored] == [resources(n) for _, n in stored]
    assert stored


def pod(**limits: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def quota(pods: str) -> dict[str, Any]:
    spec = {"hard": {"pods": pods}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "own"}, "spec": spec}


@pytest.fixture(scope="module")
def demo(side: Side) -> Side:
    """Create a range and a full quota in the namespace that the portal knows from its demo."""
    limits = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    own = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "own"}, "spec": limits}
    status = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    side.cluster.kubectl("create", "namespace", "demo")
    side.cluster.kubectl("create", "--namespace", "demo", "--filename", "-", stdin=own)
    with contextlib.closing(ApiClient(side.cluster)) as api:
        made = api.create(quota("1"), "demo").body
        api.replace({**made, "status": status}, "demo", sub="status")
        wait_for(lambda: not api.create(pod(cpu="1"), "demo", dry=True).is_allowed)
    return side


@pytest.mark.parametrize(
    ("cpu", "text"),
    [
        ("9", "maximum cpu usage per Container is 1, but limit is 9"),
        ("1", "exceeded quota: own, requested: pods=1, used: pods=1, limited: pods=1"),
    ],
)
def test_kubectl_shows_the_link_on_the_plugins_own_refusal(demo: Side, cpu: str, text: str) -> None:
    words = ["create", "--namespace", "demo", "--filename", "-"]
    done = demo.cluster.kubectl(*words, stdin=pod(cpu=cpu, memory="300Mi"))
    warning, _, error = done.stderr.partition("Error from server (Forbidden): ")
    assert error.rstrip().endswith(f'pods "p" is forbidden: {text}')
    assert "webhook" not in error
    assert warning.startswith("Warning: ")
    assert "https://127.0.0.1:" in warning
