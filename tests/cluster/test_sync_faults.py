"""Sync under faults: after any failure, both sides converge or the difference is reported.

Edits on both sides, also in the middle of passes; SYNC_SEEDS (50) histories, each from its seed.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from engine.metadata_policy import API_VERSION
from policies import services
from policies.managed_fields import normal
from sync.client import Client
from sync.errors import APIError
from sync.installation.custom_resource import metadata_policy_definition
from sync.models import SyncedObject, SyncOwnership
from sync.values import Limits, ObjectKey
from tests import factories
from tests.cluster.proxy import Proxy, proxy
from tests.cluster.test_sync import sync
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.servers import Cluster as ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
SEEDS: Final = int(os.environ.get("SYNC_SEEDS", "50"))
PLACES: Final = ("faults-a", "faults-b")
ROUNDS: Final = 4
TRIES: Final = 40
LIMITS: Final = Limits(seconds=3, read_seconds=0.5)
PATHS: Final = {
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "MetadataPolicy": f"/apis/{API_VERSION}/namespaces/{{}}/metadatapolicies",
}
KEYS: Final = tuple(
    ObjectKey(kind, place, name) for kind in PATHS for place in PLACES for name in ("one", "two")
)
Manifest = dict[str, Any]


@dataclass
class History:
    """The history of one seed: the last editor of each object, unless deliberately overwritten."""

    plane: ControlPlane
    chance: random.Random
    numbers: int = 0
    ours: dict[ObjectKey, Manifest | None] = field(default_factory=dict)
    theirs: dict[ObjectKey, Manifest | None] = field(default_factory=dict)
    agreed: set[ObjectKey] = field(default_factory=set)

    def edit_ours(self) -> None:
        """An edit in the portal, which knows the objects imported from the cluster."""
        key = self.chance.choice(KEYS)
        before = stored(key)
        made = self.draw(key, before)
        if made is before is None:
            return
        if key in self.theirs and same(before, self.theirs[key]):
            del self.theirs[key]
        self.note(self.ours, key, made)
        if made is not None:
            factories.apply(made)
        elif (found := find(key)) is not None:
            services.delete_policy(policy=found, user="editor", reason="test")

    def edit_theirs(self) -> None:
        """An edit in the cluster, which knows the objects written by the portal."""
        key = self.chance.choice(KEYS)
        before = live(self.plane, key)
        made = self.draw(key, before)
        if made is before is None:
            return
        if key in self.ours and same(before, self.ours[key]):
            del self.ours[key]
        self.note(self.theirs, key, made)
        put_theirs(self.plane, key, made, before)

    def note(self, edits: dict[ObjectKey, Manifest | None], key: ObjectKey, made: Any) -> None:
        """Record an edit; deleting an object that the other side never had only withdraws it."""
        edits[key] = made
        if made is None and key not in self.agreed:
            del edits[key]

    def draw(self, key: ObjectKey, before: Manifest | None) -> Manifest | None:
        """Draw a new content, or other labels or annotations, or a deletion."""
        if self.chance.random() < 0.2:
            return None
        self.numbers += 1
        number = str(self.numbers)
        if before is None or self.chance.random() < 0.7:
            return shaped(key, self.spec(key.kind, number))
        metadata = {name: before["metadata"].get(name) or {} for name in ("labels", "annotations")}
        changed = self.chance.choice(list(metadata))
        # Set a new one, in addition to the existing ones or instead of them.
        metadata[changed] = {**self.chance.choice(({}, metadata[changed])), "edit": number}
        return shaped(key, before["spec"], **metadata)

    def spec(self, kind: str, number: str) -> Manifest:
        """The content of a kind by a number."""
        if kind == "LimitRange":
            return {"limits": [{"type": "Pod", "max": {"cpu": number}}]}
        if kind == "MetadataPolicy":
            action = {"reject": False, "updatedLabels": {"edit": number}}
            predicate = {"labelSelector": {"matchLabels": {"a": number}}}
            return {"rules": [{"policyPredicate": predicate, "policyAction": action}]}
        return {"hard": {self.chance.choice(["pods", "cpu", "services"]): number}}


def shaped(key: ObjectKey, spec: Manifest, **metadata: Any) -> Manifest:
    """Write a manifest in the kind's own API version."""
    made = factories.manifest(key.kind, spec, name=key.name, namespace=key.namespace, **metadata)
    return {**made, "apiVersion": API_VERSION} if key.kind == "MetadataPolicy" else made


def put_theirs(
    plane: ControlPlane, key: ObjectKey, made: Manifest | None, before: Manifest | None
) -> None:
    """Write or delete an object of the cluster as another client; custom ones need a version."""
    path = PATHS[key.kind].format(key.namespace)
    if made is None:
        assert ask(plane, "DELETE", f"{path}/{key.name}") == 200
        return
    if before is None:
        assert ask(plane, "POST", path, made) == 201
        return
    version = before["metadata"]["resourceVersion"]
    bound = {**made, "metadata": {**made["metadata"], "resourceVersion": version}}
    assert ask(plane, "PUT", f"{path}/{key.name}", bound) == 200


def ask(plane: ControlPlane, method: str, path: str, body: Any = None) -> int:
    """Call the API server as a client other than the portal."""
    line = plane.connect()
    headers = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
    text = None if body is None else json.dumps(body)
    line.request(method, f"{path}?fieldManager=kubectl-edit", text, headers)
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer.status


def find(key: ObjectKey) -> Any:
    return services.find_object(
        factories.cluster(), kind=key.kind, name=key.name, namespace=key.namespace
    )


def stored(key: ObjectKey) -> Manifest | None:
    found = find(key)
    manifest: Manifest | None = found.to_manifest() if found else None
    return manifest


def live(plane: ControlPlane, key: ObjectKey) -> Manifest | None:
    line = plane.connect()
    path = f"{PATHS[key.kind].format(key.namespace)}/{key.name}"
    line.request("GET", path, headers={"Authorization": "Bearer admin-token"})
    answer = line.getresponse()
    data = json.loads(answer.read())
    line.close()
    return {**data, "kind": key.kind} if answer.status == 200 else None


def same(one: Manifest | None, other: Manifest | None) -> bool:
    if one is None or other is None:
        return one is other
    return normal(one) == normal(other) and marks(one) == marks(other)


def marks(manifest: Manifest) -> list[str | None]:
    """The expected labels and annotations after edits, independent of the code under test."""
    maps = (manifest["metadata"].get(name) or {} for name in ("labels", "annotations"))
    return [texts.get("edit") for texts in maps]


@pytest.fixture
def plane(plain_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane with two dedicated namespaces, empty again afterwards."""
    policies = PATHS["MetadataPolicy"].format(PLACES[0])
    if ask(plain_cluster, "GET", policies) != 200:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        ask(plain_cluster, "POST", definitions, metadata_policy_definition())
        wait_for(lambda: ask(plain_cluster, "GET", policies) == 200)
    for place in PLACES:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
        assert ask(plain_cluster, "POST", "/api/v1/namespaces", manifest) in {201, 409}
    # An API server holds creates for seconds after it first serves a definition: an edit in the
    # middle of a pass would outlast the history.
    first = ObjectKey("MetadataPolicy", PLACES[0], "first")
    spec = {"rules": [{"policyPredicate": {}, "policyAction": {"reject": True}}]}
    assert ask(plain_cluster, "POST", policies, shaped(first, spec)) == 201
    assert ask(plain_cluster, "DELETE", f"{policies}/first") == 200
    yield plain_cluster
    for place in PLACES:
        for path in PATHS.values():
            ask(plain_cluster, "DELETE", path.format(place))


def own(chance: random.Random) -> None:
    """Take ownership of everything, a namespace, an object, or nothing."""
    places: list[dict[str, str]] = [{}, {"namespace": "faults-a"}]
    places.append({"namespace": "faults-b", "kind": "ResourceQuota", "name": "one"})
    places.append({"namespace": "faults-b", "kind": "MetadataPolicy", "name": "two"})
    for place in chance.sample(places, chance.choice([0, 1, 2, 3, 4])):
        SyncOwnership.objects.create(cluster=factories.cluster(), user="admin", **place)


def owned(key: ObjectKey) -> bool:
    places = set(SyncOwnership.objects.values_list("namespace", "kind", "name"))
    whole = {("", "", ""), (key.namespace, "", ""), (key.namespace, key.kind, key.name)}
    return bool(whole & places)


def sync_through(way: Proxy, history: History) -> None:
    """Try passes until one succeeds; failed ones leave their partial work.

    Faults become rarer with each try: otherwise some history would by chance never finish.
    """
    usual = way.share
    for tried in range(TRIES):
        way.share = usual * (1 - tried / TRIES)
        try:
            with Client(way.credentials, limits=LIMITS) as client:
                sync(client)
        except APIError:
            continue
        way.share = usual
        agreed = SyncedObject.objects.exclude(base=None)
        history.agreed = {
            ObjectKey(*names) for names in agreed.values_list("kind", "namespace", "name")
        }
        return
    pytest.fail(f"no pass came through: {way.injected}")


def live_through(history: History, way: Proxy) -> None:
    """Alternate edits and passes, with some edits in the middle of a pass."""

    def sometimes() -> None:
        if history.chance.random() < 0.05:
            history.edit_theirs()

    sync_through(way, history)
    own(history.chance)
    for _ in range(ROUNDS):
        for _ in range(history.chance.randint(1, 4)):
            history.chance.choice([history.edit_ours, history.edit_ours, history.edit_theirs])()
        way.between = sometimes
        sync_through(way, history)
    way.between = lambda: None
    way.calm()
    for _ in range(3):
        sync_through(way, history)


def verdict(key: ObjectKey) -> str:
    row = SyncedObject.objects.filter(kind=key.kind, namespace=key.namespace, name=key.name).first()
    return row.state if row else ""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_edit_is_lost_and_every_difference_is_reported(plane: ControlPlane, seed: int) -> None:
    history = History(plane, random.Random(seed))  # noqa: S311 - chance that can be repeated
    with proxy(plane, seed) as way:
        for _ in range(6):
            history.edit_theirs()
        live_through(history, way)
    for key in KEYS:
        ours, theirs = stored(key), live(plane, key)
        context = (seed, key, verdict(key), way.injected)
        if not same(ours, theirs):
            expected = {"drifted", "conflict"} if owned(key) else {"unowned", "conflict"}
            assert verdict(key) in expected, context
        if key in history.ours:
            assert same(ours, history.ours[key]), context
        if key in history.theirs:
            assert same(theirs, history.theirs[key]), context
    paths = {f"{PATHS[key.kind].format(key.namespace)}/{key.name}": key for key in KEYS}
    for _, path in way.written:
        assert owned(paths[path]), path
