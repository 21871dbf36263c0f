"""`python -m bench live`: pods created on a real API server, through the product's webhook and not.

Ways take turns in rounds; arrivals are random (Poisson), and latency counts from the intended send
time. etcd and PostgreSQL both flush what they say is kept. Each pod that was created through the
product is on record and charged, or the run fails.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import json
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from bench import database, report, review, run, servers
from bench.figures import GO, LEAN, OPA_OFF, PRODUCT, ratios, values
from bench.load import LoadError
from bench.machine import MissingError
from tests.cluster.api_client import ApiClient, path_of
from tests.cluster.binaries import find, folders, missing
from tests.cluster.servers import Options, cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.figures import Figures
    from tests.cluster.servers import Cluster

RATE: Final = 100.0  # pods a second, unless another one is asked for
CLIENTS: Final = 32
SECONDS: Final = 8.0
WARM_UP: Final = 2.0
NOTHING: Final = "no webhook"
VALIDATING: Final = "Gatehouse, validating"
BOTH: Final = "Gatehouse, mutating and validating"
QUEUED: Final = "Gatehouse, mutating (queued) and validating"
GOALS: Final = {VALIDATING: 1.8, BOTH: 4.0, QUEUED: 3.0}
"""Median time of a create by each way, in times of one without a webhook."""
CREATED: Final = 201
OTHERS: Final = (GO, LEAN, OPA_OFF)
_HEADERS: Final = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1"
_RULE: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}


@dataclasses.dataclass(slots=True)
class Way:
    """How pods come into some namespaces: past these webhooks, by kind of configuration."""

    name: str
    namespaces: Sequence[str]
    webhooks: dict[str, str]
    created: int = 0

    @property
    def is_ours(self) -> bool:
        """Whether its pods are to be on record."""
        return PRODUCT in self.name


def measure(rounds: int, rate: float = RATE) -> int:
    """Measure at this many pods a second, print, keep. 0: the goal is met; 2: it was missed."""
    binaries = find()
    if binaries is None:
        raise MissingError(
            f"no API server here: {', '.join(missing())} not in {' or '.join(map(str, folders()))};"
            " python -m tests.cluster.build makes them where there is Go"
        )
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(run.prepared(run.QUICK))
        made.databases.clone("seeded", "product")
        # The product, the lean echo, and strangers where they are at hand.
        subjects = [s for s in (*servers.floors(), *servers.peers()[0]) if s.name in OTHERS]
        subjects += [servers.product("product", made.secret), _queued("product", made.secret)]
        for subject in subjects:
            made.running[subject.name] = stack.enter_context(made.start(subject))
        live = stack.enter_context(cluster(binaries, Options(is_durable=True)))
        asking = stack.enter_context(contextlib.closing(ApiClient(live)))
        ways = _ways(made)
        _install(asking, ways, made.certificate)
        before = database.standing(made.databases, "product")
        creator = Creator(live, rate)
        for way in ways:
            creator.create(way, WARM_UP)
        for number in range(rounds):
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                times = sorted(creator.create(way, SECONDS))
                p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
                made.keep(way.name, {"p50": p50, "p99": p99})
        _check(made, ways, before)
    return _show(made.figures, sum(way.created for way in ways), rate)


def _queued(name: str, secret: str) -> servers.Subject:
    """The product on the same database, with mutations that are answered once queued."""
    subject = servers.product(name, secret, name=QUEUED)
    environment = {**subject.environment, "GATEHOUSE_RECORD_MUTATIONS": "queued"}
    return dataclasses.replace(subject, environment=environment)


def _check(made: run.Run, ways: Sequence[Way], before: database.Standing) -> None:
    """Raise LoadError unless all pods of ours are on record and charged, within seconds."""
    ours = [way for way in ways if way.is_ours]
    pods = sum(way.created for way in ours)
    wanted = (sum(way.created * len(way.webhooks) for way in ours), pods, pods)
    deadline = time.monotonic() + 5
    while True:
        after = database.standing(made.databases, "product")
        used = sum(after.used.values()) - sum(before.used.values())
        found = (after.rows - before.rows, after.charges - before.charges, used)
        if found == wanted:
            return
        if time.monotonic() > deadline:
            raise LoadError(f"rows, charges and used pods are {found}, not {wanted}")
        time.sleep(0.1)  # rows of queued mutations follow their answers


def _ways(made: run.Run) -> list[Way]:
    addresses = {name: f"https://{server.address}" for name, server in made.running.items()}
    path = f"/admission/{review.CLUSTER}/{made.secret}"
    validate, mutate = {"Validating": f"{path}/validate"}, {"Mutating": f"{path}/mutate"}
    webhooks: dict[str, dict[str, str]] = {NOTHING: {}}
    for name in filter(made.running.get, OTHERS):
        own_path = made.running[name].subject.path
        webhooks[name] = {"Validating": f"{addresses[name]}{own_path}"}
    found = [
        Way(name, [f"way-{number}-{each}" for each in range(50)], called)
        for number, (name, called) in enumerate(webhooks.items())
    ]
    ours = ((VALIDATING, PRODUCT, validate), (BOTH, PRODUCT, mutate | validate))
    for number, (name, server, paths) in enumerate((*ours, (QUEUED, QUEUED, mutate | validate))):
        called = {phase: addresses[server] + path for phase, path in paths.items()}
        found.append(Way(name, review.SPREAD[number::3], called))
    return found


def _install(asking: ApiClient, ways: Sequence[Way], certificate: Path) -> None:
    """Namespaces, the priority class, and the webhooks; wait until ours are asked."""
    bundle = base64.b64encode(certificate.read_bytes()).decode()
    priority = {"metadata": {"name": review.PRIORITY}, "value": 100000}
    wanted: list[tuple[str, dict[str, Any]]] = [(path_of("PriorityClass", ""), priority)]
    for way in ways:
        label = way.namespaces[0]
        for name in way.namespaces:
            metadata = {"name": name, "labels": {"way": label}}
            wanted.append((path_of("Namespace", ""), {"metadata": metadata}))
        for phase, address in way.webhooks.items():
            webhook = {
                "name": f"{phase.lower()}.{label}.bench.internal",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": address, "caBundle": bundle},
                "failurePolicy": "Fail",
                "namespaceSelector": {"matchLabels": {"way": label}},
                "rules": [_RULE],
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 10,
            }
            place = f"{_WEBHOOKS}/{phase.lower()}webhookconfigurations"
            wanted.append((place, {"metadata": {"name": label}, "webhooks": [webhook]}))
    for place, body in wanted:
        answer = asking.ask("POST", place, body)
        if not answer.is_allowed:
            raise LoadError(f"{place}: {answer.code} {answer.message}")
    for way in ways:
        if way.is_ours:
            _wait_until_asked(asking, way)


def _wait_until_asked(asking: ApiClient, way: Way) -> None:
    """An API server hears of webhooks a moment later; only the product refuses what it must."""
    pod = _pod(way.namespaces[0], "refused")
    del pod["metadata"]["labels"]["team"]
    deadline = time.monotonic() + 30
    path = f"{path_of('Pod', way.namespaces[0])}?dryRun=All"
    while asking.ask("POST", path, pod).code == CREATED:
        if time.monotonic() > deadline:
            raise LoadError(f"{way.name} is never asked")
        time.sleep(0.2)


def _pod(namespace: str, name: str) -> dict[str, Any]:
    """The review's pod as somebody writes it, before the API server adds what it adds."""
    pod = review.template()["request"]["object"]
    kept = ("labels", "annotations", "ownerReferences")
    metadata = {key: pod["metadata"][key] for key in kept}
    for key in ("priority", "preemptionPolicy"):
        del pod["spec"][key]
    # A review may lack what an API server asks for.
    pod["spec"]["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["path"] = "token"
    del pod["status"]
    return {**pod, "metadata": {**metadata, "name": name, "namespace": namespace}}


class Creator:
    """Creates pods at random times, over connections that it keeps.

    It shares the processors with what is measured: bodies are made before it is their time, and of
    an answer the code alone is looked at.
    """

    def __init__(self, live: Cluster, rate: float) -> None:
        self._pool, self._own = ThreadPoolExecutor(CLIENTS), threading.local()
        self._live, self._rate = live, rate

    def create(self, way: Way, seconds: float) -> list[float]:
        """Give how many milliseconds each pod took since it was due."""
        intervals = (random.expovariate(self._rate) for _ in itertools.count())
        times = itertools.takewhile(lambda due: due < seconds, itertools.accumulate(intervals))
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
        if not hasattr(self._own, "line"):
            self._own.line = self._live.connect()
        self._own.line.request("POST", path_of("Pod", namespace), body, _HEADERS)
        answer = self._own.line.getresponse()
        text = answer.read()
        if answer.status != CREATED:
            raise LoadError(f"a pod of {namespace}: {answer.status} {text.decode()}")
        return (time.perf_counter() - due) * 1000


def _show(found: Figures, created: int, rate: float) -> int:
    rows = [[f"pod create at {rate:g}/s", "p50 ms", "p99 ms", "p50 / none", "least-most"]]
    for name in found:
        p50, p99 = (values(found, name, metric) for metric in ("p50", "p99"))
        ratio = ratios(p50, values(found, NOTHING, "p50"))
        numbers = (statistics.median(each) for each in (p50, p99, ratio))
        spanned = f"{min(ratio):.2f}-{max(ratio):.2f}"
        rows.append([name, *(f"{number:.2f}" for number in numbers), spanned])
    print(f"\n{report.table(rows)}")
    is_met = True
    for name, most in GOALS.items():
        p50, plain = (values(found, each, "p50") for each in (name, NOTHING))
        times = statistics.median(ratios(p50, plain))
        is_met &= times <= most
        print(f"{name} / without: {times:.2f}  (<= {most}) {'PASS' if times <= most else 'FAIL'}")
    print(f"{created} pods created; ours are all on record and charged")
    report.save({"figures": found, "rate": rate}, name="live")
    return 0 if is_met else 2
