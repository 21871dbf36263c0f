"""`python -m bench.live`: pods created on a real API server, through the product's webhook and not.

Ways take turns in rounds; arrivals are random (Poisson), and latency counts from the intended send
time. etcd and PostgreSQL both flush what they say is kept. Each pod that was created through the
product is on record and charged, or the run fails.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import itertools
import json
import queue
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import database, load, names, review, run, servers
from bench.places import RESULTS, MissingError
from tests.cluster.api_client import ApiClient
from tests.cluster.binaries import find, folders, missing
from tests.cluster.servers import Options, cluster

if TYPE_CHECKING:
    import http.client
    from collections.abc import Iterator, Sequence

    from tests.cluster.servers import Cluster

RATE: Final = 100.0
CLIENTS: Final = 32
ROUNDS: Final = 3
SECONDS: Final = 8.0
WARM_UP: Final = 2.0
BASE, STRETCH = 2.0, 1.75
NOTHING: Final = "no webhook"
VALIDATING: Final = "Gatehouse, validating"
BOTH: Final = "Gatehouse, mutating and validating"
CREATED: Final = 201
_HEADERS: Final = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
_RULE: Final = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


@dataclass(slots=True)
class Way:
    """How pods come into some namespaces: past these webhooks, by kind of configuration."""

    name: str
    namespaces: Sequence[str]
    webhooks: dict[str, str] = field(default_factory=dict)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    created: int = 0

    @property
    def label(self) -> str:
        """What tells its namespaces from others'."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower())

    def keep(self, found: list[float]) -> None:
        """Note, and tell, the milliseconds of one load."""
        found.sort()
        self.p50.append(found[len(found) // 2])
        self.p99.append(found[int(len(found) * 0.99)])
        print(
            f"  {self.name:<38} p50 {self.p50[-1]:6.2f} ms  p99 {self.p99[-1]:7.2f} ms", flush=True
        )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, keep. 0: the goal is met; 1: it could not run; 2: the goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(words)
    try:
        return _tell(_measure(options.rounds, options.seconds))
    except (load.LoadError, MissingError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _measure(rounds: int, seconds: float) -> list[Way]:
    binaries = find()
    if binaries is None:
        raise MissingError(
            f"no API server here: {', '.join(missing())} not in {' or '.join(map(str, folders()))};"
            " python -m tests.cluster.build makes them where there is Go"
        )
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(_surroundings())
        started = {s.subject.name: s for s in stack.enter_context(_started(made))}
        live = stack.enter_context(cluster(binaries, Options(is_durable=True)))
        asking = ApiClient(live)
        stack.callback(asking.close)
        ways = _ways(made, started)
        _install(asking, ways, made.certificate)
        before = database.standing(made.database, "product")
        creator = stack.enter_context(contextlib.closing(Creator(live)))
        for way in ways:
            creator.create(way, WARM_UP)
        for number in range(rounds):
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                way.keep(creator.create(way, seconds))
        _expect_exact(ways, before, database.standing(made.database, "product"))
    return ways


@contextlib.contextmanager
def _surroundings() -> Iterator[run.Run]:
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="gatehouse-live-")
        folder = Path(stack.enter_context(temporary))
        server = stack.enter_context(database.postgresql(folder / "postgresql"))
        server.create("product")
        made = run.Run(
            database=server,
            client=load.client(),
            certificate=servers.make_certificate(folder),
            folder=folder,
            extent=run.QUICK,
        )
        made.secret = run.seed(made, "small", "product")["secret"]
        yield made


@contextlib.contextmanager
def _started(made: run.Run) -> Iterator[list[servers.Server]]:
    """The product, the lean echo, and strangers where they are at hand."""
    found = [each for each in servers.floors() if each.name == names.LEAN]
    found += [each for each in servers.peers()[0] if each.name in (names.GO, names.OPA_OFF)]
    found.append(servers.product("product", made.secret))
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(run.start(made, subject)) for subject in found]
        for server in running:
            run.ready(made, server)
        yield running


def _ways(made: run.Run, started: dict[str, servers.Server]) -> list[Way]:
    def address(name: str, path: str) -> str:
        return f"https://{started[name].address}{path}"

    def other(name: str) -> Way:
        namespaces = [f"{names_of[name]}-{number:02d}" for number in range(50)]
        return Way(name, namespaces, {"Validating": address(name, "/")} if name in started else {})

    names_of = {NOTHING: "plain", names.LEAN: "lean", names.GO: "go", names.OPA_OFF: "opa"}
    path = f"/admission/{review.CLUSTER}/{made.secret}"
    validate = address(names.PRODUCT, f"{path}/validate")
    mutate = address(names.PRODUCT, f"{path}/mutate")
    return [
        other(NOTHING),
        *[other(name) for name in (names.GO, names.LEAN, names.OPA_OFF) if name in started],
        Way(VALIDATING, review.SPREAD[:50], {"Validating": validate}),
        Way(BOTH, review.SPREAD[50:], {"Mutating": mutate, "Validating": validate}),
    ]


def _install(asking: ApiClient, ways: Sequence[Way], certificate: servers.Certificate) -> None:
    """Namespaces, the priority class, and the webhooks; wait until each of them is asked."""
    bundle = base64.b64encode(certificate.file.read_bytes()).decode()
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    _post(
        asking,
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {**kind, "metadata": {"name": review.PRIORITY}, "value": 100000},
    )
    for way in ways:
        for namespace in way.namespaces:
            metadata = {"name": namespace, "labels": {"way": way.label}}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            _post(asking, "/api/v1/namespaces", body)
        for phase, address in way.webhooks.items():
            _post(
                asking,
                f"/apis/admissionregistration.k8s.io/v1/{phase.lower()}webhookconfigurations",
                _configuration(way, phase, address, bundle),
            )
    for way in ways:
        if way.webhooks:
            _wait_until_asked(asking, way)


def _configuration(way: Way, phase: str, address: str, bundle: str) -> dict[str, Any]:
    webhook = {
        "name": f"{phase.lower()}.{way.label}.bench.internal",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": address, "caBundle": bundle},
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"way": way.label}},
        "rules": [{**_RULE, "operations": ["CREATE"]}],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{phase}WebhookConfiguration",
        "metadata": {"name": way.label},
        "webhooks": [webhook],
    }


def _wait_until_asked(asking: ApiClient, way: Way) -> None:
    """An API server hears of webhooks a moment later; only the product refuses what it must."""
    pod = _pod(way.namespaces[0], "refused")
    if "Gatehouse" in way.name:
        del pod["metadata"]["labels"]["team"]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        path = f"/api/v1/namespaces/{way.namespaces[0]}/pods?dryRun=All"
        if asking.ask("POST", path, pod).code != CREATED or "Gatehouse" not in way.name:
            return
        time.sleep(0.2)
    raise load.LoadError(f"{way.name} is never asked")


def _post(asking: ApiClient, path: str, body: dict[str, Any]) -> None:
    answer = asking.ask("POST", path, body)
    if answer.code != CREATED:
        raise load.LoadError(f"{path}: {answer.code} {answer.body}")


def _pod(namespace: str, name: str) -> dict[str, Any]:
    """The review's pod as somebody writes it, before the API server adds what it adds."""
    pod = copy.deepcopy(review.template()["request"]["object"])
    kept = ("labels", "annotations", "ownerReferences")
    metadata = {key: pod["metadata"][key] for key in kept}
    for key in ("priority", "preemptionPolicy"):
        del pod["spec"][key]
    # A review may lack what an API server asks for.
    pod["spec"]["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["path"] = "token"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": name, "namespace": namespace},
        "spec": pod["spec"],
    }


class Creator:
    """Creates pods at random times, over connections that it keeps.

    It shares the processors with what is measured: bodies are made before it is their time, and of
    an answer the code alone is looked at.
    """

    def __init__(self, live: Cluster) -> None:
        self._live = live
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._idle: queue.SimpleQueue[http.client.HTTPSConnection] = queue.SimpleQueue()
        self._lines = [live.connect() for _ in range(CLIENTS)]
        for line in self._lines:
            self._idle.put(line)

    def close(self) -> None:
        """End the connections."""
        self._pool.shutdown()
        for line in self._lines:
            line.close()

    def create(self, way: Way, seconds: float) -> list[float]:
        """Give how many milliseconds each pod took since it was due."""
        times, now = [], 0.0
        while (now := now + random.expovariate(RATE)) < seconds:
            times.append(now)
        asked = []
        for due, namespace in zip(times, itertools.cycle(way.namespaces), strict=False):
            way.created += 1
            asked.append((due, namespace, json.dumps(_pod(namespace, f"p-{way.created}")).encode()))
        began = time.perf_counter() + 0.2
        found = []
        for due, namespace, body in asked:
            time.sleep(max(began + due - time.perf_counter(), 0))
            found.append(self._pool.submit(self._create, namespace, body, began + due))
        return [each.result() for each in found]

    def _create(self, namespace: str, body: bytes, due: float) -> float:
        line = self._idle.get()
        try:
            line.request("POST", f"/api/v1/namespaces/{namespace}/pods", body, _HEADERS)
            answer = line.getresponse()
            text = answer.read()
        finally:
            self._idle.put(line)
        if answer.status != CREATED:
            raise load.LoadError(f"a pod of {namespace}: {answer.status} {text.decode()}")
        return (time.perf_counter() - due) * 1000


def _expect_exact(ways: Sequence[Way], before: database.Standing, after: database.Standing) -> None:
    """Hold what was created against record and ledger."""
    calls = sum(way.created * len(way.webhooks) for way in ways if "Gatehouse" in way.name)
    pods = sum(way.created for way in ways if "Gatehouse" in way.name)
    used = sum(after.used.values()) - sum(before.used.values())
    found = (after.rows - before.rows, after.charges - before.charges, used)
    if found != (calls, pods, pods):
        raise load.LoadError(f"{calls} calls for {pods} pods; rows, charges, used: {found}")


def _tell(ways: list[Way]) -> int:
    plain = next(way for way in ways if way.name == NOTHING)
    heads = f"{'p50 ms':>9}{'p99 ms':>9}{'p50 / none':>12}{'least-most':>14}"
    print(f"\n{'pod create at 100/s':<38}{heads}")
    ratios = {}
    for way in ways:
        found = [mine / theirs for mine, theirs in zip(way.p50, plain.p50, strict=True)]
        ratios[way.name] = ratio = statistics.median(found)
        p50, p99 = statistics.median(way.p50), statistics.median(way.p99)
        spread = f"{min(found):.2f}-{max(found):.2f}"
        print(f"{way.name:<38}{p50:>9.2f}{p99:>9.2f}{ratio:>12.2f}{spread:>14}")
    ratio = ratios[VALIDATING]
    words = ["PASS" if ratio <= limit else "FAIL" for limit in (BASE, STRETCH)]
    goals = f"(<= {BASE}) {words[0]}  (<= {STRETCH}) {words[1]}"
    print(f"\nthrough the webhook / without: {ratio:.2f}  {goals}")
    print(f"{sum(way.created for way in ways)} pods created; ours are all on record and charged")
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "ratio": ratios,
        "p50_ms": {way.name: way.p50 for way in ways},
        "p99_ms": {way.name: way.p99 for way in ways},
    }
    (RESULTS / "latest-live.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0 if ratio <= BASE else 2


if __name__ == "__main__":
    sys.exit(main())
