"""What happens in a live cluster is in force here, and the other way round, within a second.

``SAMPLES`` is how often each thing is done, 100 with ``WHOLE=1``. The limits are those of the
product's promise, which 95 of 100 must keep. Tests beside these start servers, which may hold all
of the few samples up that are taken without ``WHOLE``: then half of them must keep five times that.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import ExitStack, nullcontext
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from policies.ledger.observed import CREATE_MARGIN
from tests.cluster.delays import (
    IN_A_ROW,
    LONGEST,
    Api,
    Delays,
    delay_until,
    limit_range,
    pod,
    quota,
)
from tests.processes import children_of, running, words_of
from tests.upstream.plane import control_plane
from tests.upstream.product import gatehouse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.binaries import Binaries
    from tests.cluster.portal import Portal
    from tests.cluster.servers import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.no_cover]
STORED: Final = "SELECT count(*) FROM policies_namespace WHERE name = %s"
COUNTED: Final = """
SELECT count(*) FROM policies_resourcequota JOIN policies_namespace AS place
ON place.id = namespace_id WHERE place.name = %s AND uncounted = '[]'
"""
HEARTBEAT: Final = "SELECT clock_timestamp() - max(heartbeat) FROM policies_clusterfollower"
IS_FOLLOWED: Final = """
SELECT count(*) FROM policies_clusterfollower WHERE heartbeat > clock_timestamp() - interval '3 s'
"""
DECIDED: Final = """
SELECT array_agg(concat_ws(' ', created, phase, kind, verdict, policy_revision) ORDER BY created)
FROM admission_auditevent WHERE namespace = %s
"""
ONE_CPU: Final = {"requests.cpu": "1"}
IS_WHOLE: Final = bool(os.environ.get("WHOLE"))
SAMPLES: Final = int(os.environ.get("SAMPLES") or (100 if IS_WHOLE else 5))
ENOUGH: Final = 0.95 if IS_WHOLE else 0.5
"""The share of samples that must be in time."""
SLOWER: Final = 1 if IS_WHOLE else 5
IN_FORCE: Final = 0.3
ROOM: Final = 1.0
UNSEEN: Final = 15.0
"""What no watch has shown ends with a list that begins ``CREATE_MARGIN`` after its review."""
_OWN: Final = """
import django, sys; django.setup()
from policies.models import Cluster
from sync.models import SyncOwnership
SyncOwnership.objects.create(cluster=Cluster.objects.get(), namespace=sys.stdin.read(), user="t")
"""
_EDIT: Final = """
import django, json, sys, time; django.setup()
from policies import services
from policies.models import Cluster
cluster = Cluster.objects.get()
for manifest in json.load(sys.stdin):
    services.apply_manifest(cluster=cluster, manifest=manifest, user="ada")
    print(time.time(), flush=True)
    time.sleep(1.5)
"""


_CLASS: Final = """
import django, json, sys; django.setup()
from policies.services import classes
classes.save_class(manifest=json.load(sys.stdin), user="ada")
"""
CLASS: Final = {
    "apiVersion": "policy.gatehouse.dev/v1alpha1",
    "kind": "NamespaceClass",
    "metadata": {"name": "small"},
    "spec": {
        "selector": {"matchLabels": {"tier": "small"}},
        "policies": [
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "none"},
                "spec": {"hard": {"pods": "0"}},
            }
        ],
        "onLeave": "remove",
    },
}


class Site:
    """A cluster whose plugins are off, the portal in their place, and its database."""

    def __init__(self, cluster: Cluster, portal: Portal, database: Any, stack: ExitStack) -> None:
        self.cluster, self.portal, self.database, self.stack = cluster, portal, database, stack
        self.api = Api(cluster)
        stack.callback(self.api.close)
        self.delays = Delays()

    def ask(self, query: str, *values: Any) -> Any:
        """The first column of the first row; None without one."""
        row = self.database.execute(query, values).fetchone()
        return row[0] if row else None


@pytest.fixture(scope="module")
def site(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if binaries.controller_manager is None:
        pytest.skip("NO CONTROLLER MANAGER HERE: python -m tests.cluster.build makes it")
    logs: Path = tmp_path_factory.mktemp("logs")
    with ExitStack() as stack:
        plane = control_plane(binaries, logs, plugins=False, resync="5m")
        cluster = stack.enter_context(plane)
        portal = stack.enter_context(gatehouse(cluster, logs, "portal"))
        address = portal.around["GATEHOUSE_DATABASE_URL"]
        database = stack.enter_context(psycopg.connect(address, autocommit=True))
        yield Site(cluster, portal, database, stack)


@pytest.fixture(scope="module", autouse=True)
def _report(site: Site, request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        print(f"\ngatehouse: {SAMPLES} samples\n{site.delays.report()}")  # noqa: T201 - the figures


def namespace(site: Site, name: str) -> str:
    """Create a namespace; where there are classes, its first objects wait until it is known."""
    site.api.do("POST", "/namespaces", {"metadata": {"name": name}})
    delay_until(partial(_counts, site, STORED, name, 1))
    return name


def require(site: Site, limit: float, *names: str) -> None:
    """Enough of these took no longer; ``limit`` is in seconds on a quiet machine."""
    # What never happened counts as LONGEST.
    allowed = min(limit * SLOWER, LONGEST - 1)
    for name in names:
        in_time = site.delays.share_within(name, allowed)
        assert in_time >= ENOUGH, f"{name}\n{site.delays.report()}"


def test_policies_are_in_force_in_every_process(site: Site) -> None:
    for number in range(SAMPLES):
        place = namespace(site, f"policies-{number}")
        quotas, ranges = (
            f"/namespaces/{place}/{kind}" for kind in ("resourcequotas", "limitranges")
        )
        more = {"spec": {"hard": {"pods": "5"}}}
        smaller = {"spec": limit_range("l", "5m")["spec"]}
        changes: tuple[tuple[str, str, str, Any, bool], ...] = (
            ("quota created", "POST", quotas, quota("q", pods="0"), False),
            ("quota raised", "PATCH", f"{quotas}/q", more, True),
            ("range created", "POST", ranges, limit_range("l", "20m"), True),
            ("range changed", "PATCH", f"{ranges}/l", smaller, False),
            ("range deleted", "DELETE", f"{ranges}/l", None, True),
            ("quota lowered", "PATCH", f"{quotas}/q", quota("q", pods="0"), False),
            ("quota deleted", "DELETE", f"{quotas}/q", None, True),
        )
        for what, method, path, body, admitted in changes:
            site.api.do(method, path, body)
            wanted = partial(_answers, site, place, admitted=admitted)
            if what != "range created":  # it refuses nothing: the next one shows that it is there
                site.delays.add(what, delay_until(wanted, in_a_row=IN_A_ROW))
    require(site, IN_FORCE, *(what for what, *_ in changes if what != "range created"))


def _answers(site: Site, place: str, *, admitted: bool) -> bool:
    return site.api.admits(place, pod("p")) is admitted


def _is_counted(site: Site, place: str) -> bool:
    """Whether the process that answers knows the quota of one CPU, and has its amounts.

    The quota's status says nothing of that: the controller of the control plane writes it, too.
    """
    return site.api.finds_full(place, pod("big", "2"))


def test_room_of_what_goes_is_free(site: Site) -> None:
    place = namespace(site, "room")
    pods, api = f"/namespaces/{place}/pods", site.api
    quotas = f"/namespaces/{place}/resourcequotas"
    api.do("POST", quotas, quota("q", pods="0"))
    full, free = (partial(_answers, site, place, admitted=each) for each in (False, True))
    # That every process knows the quota is seen only where it refuses.
    delay_until(full, in_a_row=IN_A_ROW)
    api.do("PATCH", f"{quotas}/q", quota("q", pods="1"))
    delay_until(free, in_a_row=IN_A_ROW)
    for number in range(SAMPLES):
        api.do("POST", pods, pod(f"a{number}"))
        assert full()
        api.do("DELETE", f"{pods}/a{number}?gracePeriodSeconds=0")
        site.delays.add("pod deleted, its room free", delay_until(free))
        api.do("POST", pods, pod(f"b{number}"))
        api.do("PATCH", f"{pods}/b{number}/status", {"status": {"phase": "Succeeded"}})
        site.delays.add("pod finished, its room free", delay_until(free))
    require(site, ROOM, "pod deleted, its room free", "pod finished, its room free")


def test_reservation_of_a_refused_create_is_given_back(site: Site) -> None:
    place = namespace(site, "refused")
    pods, api = f"/namespaces/{place}/pods", site.api
    api.do("POST", pods, pod("taken"))
    quotas = f"/namespaces/{place}/resourcequotas"
    api.do("POST", quotas, quota("q", pods="2", **ONE_CPU))
    delay_until(partial(_is_counted, site, place), in_a_row=IN_A_ROW)
    free = partial(_answers, site, place, admitted=True)
    delay_until(free)
    for _ in range(5 if IS_WHOLE else 2):  # each takes more than ten seconds
        begun = time.monotonic()
        # The webhooks admit it, and the API server then finds that the name is taken.
        assert api.call("POST", pods, pod("taken")).status_code == HTTPStatus.CONFLICT
        # Held while the create may be under way: a machine that stands still may see it later only.
        assert not free() or time.monotonic() - begun > CREATE_MARGIN.total_seconds()
        site.delays.add("create refused after us, given back", delay_until(free))
    require(site, UNSEEN, "create refused after us, given back")


def test_new_quota_counts_what_exists_and_its_status_follows(site: Site) -> None:
    for number in range(SAMPLES):
        place = namespace(site, f"existing-{number}")
        quotas, pods = (f"/namespaces/{place}/{kind}" for kind in ("resourcequotas", "pods"))
        for name in ("a", "b", "c"):
            site.api.do("POST", pods, pod(name))
        site.api.do("POST", quotas, quota("q", pods="4", **ONE_CPU))
        # Refused as unknown until the portal has counted; then one more fits, and no second one.
        begun = time.monotonic()
        delay_until(partial(_counts, site, COUNTED, place, 1))
        delay_until(partial(_answers, site, place, admitted=True), in_a_row=IN_A_ROW)
        delay_until(partial(_status_is, site, f"{quotas}/q", "3"))
        site.delays.add("new quota over objects, status exact", time.monotonic() - begun)
        delay_until(partial(_is_counted, site, place), in_a_row=IN_A_ROW)
        site.api.do("POST", pods, pod("d"))
        assert _answers(site, place, admitted=False)
        used = partial(_status_is, site, f"{quotas}/q", "4")
        site.delays.add("pod created, status in the cluster", delay_until(used))
    require(site, 1.0, "new quota over objects, status exact", "pod created, status in the cluster")


def _status_is(site: Site, path: str, used: str) -> bool:
    status = site.api.do("GET", path).get("status") or {}
    return bool((status.get("used") or {}).get("pods") == used)


def test_namespaces_are_known_and_forgotten(site: Site) -> None:
    for number in range(SAMPLES):
        place = f"known-{number}"
        site.api.do("POST", "/namespaces", {"metadata": {"name": place}})
        known = partial(_counts, site, STORED, place, 1)
        site.delays.add("namespace created, known", delay_until(known))
    for number in range(SAMPLES):
        place = f"known-{number}"
        site.api.do("DELETE", f"/namespaces/{place}")
        gone = partial(_is_gone, site, place)
        delay_until(gone)
        forgotten = partial(_counts, site, STORED, place, 0)
        site.delays.add("namespace gone, forgotten", delay_until(forgotten))
    require(site, 1.0, "namespace created, known", "namespace gone, forgotten")


def _counts(site: Site, query: str, value: str, number: int) -> bool:
    return bool(site.ask(query, value) == number)


def _is_gone(site: Site, place: str) -> bool:
    return site.api.call("GET", f"/namespaces/{place}").status_code == HTTPStatus.NOT_FOUND


def test_namespace_gets_and_loses_the_policies_of_its_class(site: Site) -> None:
    site.portal.run(_CLASS, json.dumps(CLASS))
    # Another test stops the API server or the follower. Without one, what is known decides.
    assert delay_until(lambda: bool(site.ask(IS_FOLLOWED))) < LONGEST
    # A person must confirm it if more of a class's policies go in an hour.
    for number in range(min(SAMPLES, 10)):
        place = f"classed-{number}"
        labels = {"tier": "small"}
        site.api.do("POST", "/namespaces", {"metadata": {"name": place, "labels": labels}})
        # Its first object is judged by the class, or told to try again: never let pass.
        first = site.api.call("POST", f"/namespaces/{place}/pods?dryRun=All", pod("first"))
        refused = first.status_code in {HTTPStatus.FORBIDDEN, HTTPStatus.SERVICE_UNAVAILABLE}
        assert refused, f"{place}, followed {site.ask(HEARTBEAT)} ago: {site.ask(DECIDED, place)}"
        delay_until(partial(_counts, site, STORED, place, 1))
        site.api.do("PATCH", f"/namespaces/{place}", {"metadata": {"labels": {"tier": "large"}}})
        free = partial(_answers, site, place, admitted=True)
        site.delays.add(
            "namespace relabelled, left its class", delay_until(free, in_a_row=IN_A_ROW)
        )
        site.api.do("PATCH", f"/namespaces/{place}", {"metadata": {"labels": {"tier": "small"}}})
        full = partial(_answers, site, place, admitted=False)
        site.delays.add("namespace relabelled, has its class", delay_until(full, in_a_row=IN_A_ROW))
    names = ("namespace relabelled, left its class", "namespace relabelled, has its class")
    require(site, 1.0, *names)


def test_policies_of_a_class_reach_an_owned_namespace(site: Site) -> None:
    site.portal.run(_CLASS, json.dumps(CLASS))
    site.portal.run(_OWN, "owned-class")
    made = {"metadata": {"name": "owned-class", "labels": {"tier": "small"}}}
    site.api.do("POST", "/namespaces", made)
    path = "/namespaces/owned-class/resourcequotas/none"
    there = partial(_is_there, site, path)
    site.delays.add("namespace of a class, quota in the cluster", delay_until(there))
    require(site, 5.0, "namespace of a class, quota in the cluster")


def _is_there(site: Site, path: str) -> bool:
    return site.api.call("GET", path).status_code == HTTPStatus.OK


def test_edits_reach_the_other_side(site: Site) -> None:
    place = namespace(site, "owned")
    path = f"/namespaces/{place}/resourcequotas/q"
    site.api.do("POST", f"/namespaces/{place}/resourcequotas", quota("q", pods="1"))
    stored = "SELECT count(*) FROM policies_resourcequota WHERE name = 'q' AND namespace_id IN "
    stored += "(SELECT id FROM policies_namespace WHERE name = %s)"
    delay_until(partial(_counts, site, stored, place, 1))
    site.portal.run(_OWN, place)
    edits = [_owned(place, number + 2) for number in range(SAMPLES)]
    with site.portal.started(_EDIT, edits) as editor:
        for manifest in edits:
            begun = float(editor.readline())
            wanted = manifest["spec"]["hard"]["pods"]
            delay_until(partial(_hard_is, site, path, wanted))
            site.delays.add("edit in the portal, in the cluster", max(0.0, time.time() - begun))
    state = "SELECT count(*) FROM sync_syncedobject WHERE kind = 'ResourceQuota' AND namespace = %s"
    drifted = partial(_counts, site, f"{state} AND state = 'drifted'", place, 1)
    same = partial(_counts, site, f"{state} AND state = 'in-sync'", place, 1)
    delay_until(same)
    for number in range(SAMPLES):
        site.api.do("PATCH", path, {"spec": {"hard": {"pods": f"9{number}"}}})
        site.delays.add("edit in the cluster, drift here", delay_until(drifted))
        site.api.do("PATCH", path, {"spec": {"hard": {"pods": str(SAMPLES + 1)}}})
        delay_until(same)
    require(site, 1.0, "edit in the portal, in the cluster")
    require(site, 2.0, "edit in the cluster, drift here")


def _owned(place: str, pods: int) -> dict[str, Any]:
    metadata = {"name": "q", "namespace": place}
    spec = {"hard": {"pods": str(pods)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def _hard_is(site: Site, path: str, pods: str) -> bool:
    return bool(site.api.do("GET", path)["spec"]["hard"]["pods"] == pods)


def test_api_server_that_comes_back_is_followed_again(site: Site) -> None:
    away = 60.0 if IS_WHOLE else 5.0
    place = namespace(site, "away")
    delay_until(partial(_answers, site, place, admitted=True), in_a_row=IN_A_ROW)
    site.cluster.restart(away)
    site.api.do("POST", f"/namespaces/{place}/resourcequotas", quota("q", pods="0"))
    refused = partial(_answers, site, place, admitted=False)
    site.delays.add("API server away, then a new quota", delay_until(refused, in_a_row=IN_A_ROW))
    require(site, 10.0, "API server away, then a new quota")


def test_another_follower_takes_over_without_a_gap(site: Site, tmp_path: Path) -> None:
    place = namespace(site, "taken-over")
    quotas, pods = (f"/namespaces/{place}/{kind}" for kind in ("resourcequotas", "pods"))
    site.api.do("POST", quotas, quota("q", pods="1", **ONE_CPU))
    delay_until(partial(_is_counted, site, place), in_a_row=IN_A_ROW)
    free = partial(_answers, site, place, admitted=True)
    site.api.do("POST", pods, pod("a"))
    assert not free()
    [first] = [each for each in children_of(os.getpid()) if "manage.py follow" in words_of(each)]
    words = [sys.executable, "manage.py", "follow"]
    with running(words, site.portal.around, tmp_path / "second.log"):
        os.kill(first, signal.SIGKILL)
        # Seen by nobody: the second one finds it on its list.
        site.api.do("DELETE", f"{pods}/a?gracePeriodSeconds=0")
        site.delays.add("follower killed, another one frees", delay_until(free))
        require(site, UNSEEN, "follower killed, another one frees")
    # It stays for the tests that follow.
    site.stack.enter_context(running(words, site.portal.around, tmp_path / "third.log"))
    site.api.do("POST", pods, pod("b"))
    assert not free()
    site.api.do("DELETE", f"{pods}/b?gracePeriodSeconds=0")
    site.delays.add("follower stopped, another one frees", delay_until(free))
    require(site, UNSEEN, "follower stopped, another one frees")
