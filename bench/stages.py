"""One review after the other in one thread: what each stage costs, and which functions.

`python -m bench.stages SECRET` prints it. Everything happens inside one transaction, so that the
writer works in the calling thread, too: nothing waits, and each batch has one item.
"""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import django

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

import orjson  # noqa: E402 - Django must be set up first
from django.db import transaction  # noqa: E402

from admission.decide import Call, decide  # noqa: E402
from admission.record import write  # noqa: E402
from admission.wire.review import dump_response, parse_request, render_response  # noqa: E402
from bench import review  # noqa: E402
from engine import chain  # noqa: E402
from engine.request import Phase  # noqa: E402
from policies import snapshot  # noqa: E402

COUNT: Final = 60  # reviews in each of the chunks; the quickest chunk counts
CHUNKS: Final = 6
SHOWN: Final = 40
NAMESPACE: Final = review.SPREAD[0]
Stage = tuple[str, "Callable[[Any], Any]"]


def microseconds(work: Callable[[Any], Any], given: Sequence[Any]) -> float:
    """CPU time of one call in the quickest chunk: what disturbs only makes it longer."""
    found = []
    for chunk in range(CHUNKS):
        part = given[chunk * COUNT : (chunk + 1) * COUNT]
        begin = time.process_time()
        for one in part:
            work(one)
        found.append((time.process_time() - begin) / len(part) * 1e6)
    return min(found)


def stages(secret: str) -> list[tuple[str, float]]:
    """Microseconds of each stage, measured alone on reviews of its own."""
    known = snapshot.refresh()
    cluster = known.clusters[review.CLUSTER]
    policies = cluster.policy_set(NAMESPACE)
    bodies = [review.fresh(NAMESPACE) for _ in range(COUNT * CHUNKS)]
    requests = [parse_request(body) for body in bodies]
    prepared = [chain.prepare(r, policies, phase=Phase.VALIDATE) for r in requests]
    decisions = [one.decide() for one in prepared]
    pairs = list(zip(decisions, requests, strict=True))
    rows = [_row(pair) for pair in pairs]
    answers = [
        ("read the review", parse_request, bodies),
        ("recognise the caller", lambda _: known.authenticate(review.CLUSTER, secret), bodies),
        ("prepare", lambda r: chain.prepare(r, policies, phase=Phase.VALIDATE), requests),
        ("decide on used amounts", lambda one: one.decide(), prepared),
        ("make the record's row", _row, pairs),
        ("write the row as JSON", orjson.dumps, rows),
        ("write the answer", _answer, pairs),
        ("decide, charge and record, batch of 1", _decide, requests),
    ]
    return [(name, microseconds(work, given)) for name, work, given in answers]


def _row(pair: Any) -> Any:
    decision, request = pair
    circumstances = write.Circumstances(
        cluster=review.CLUSTER, phase=Phase.VALIDATE, client="bench", started=time.monotonic_ns()
    )
    name = write.new_decision_id()
    return write.row(
        decision,
        decision_id=name,
        request_columns=write.columns_of(request),
        circumstances=circumstances,
    )


def _answer(pair: Any) -> bytes:
    decision, request = pair
    answer = render_response(
        decision, request.uid, phase=Phase.VALIDATE, decision_id="0" * 16, external_url=""
    )
    return dump_response(answer)


def _decide(request: Any) -> Any:
    started = time.monotonic_ns()
    call = Call(cluster=review.CLUSTER, phase=Phase.VALIDATE, client="bench", started=started)
    return decide(request, call=call)


def caller(secret: str) -> Callable[[bytes], None]:
    """Ask the whole application, as the web server does, without a socket."""
    from portal.serving.wsgi import application  # noqa: PLC0415 - starts what a web process has

    path = f"/admission/{review.CLUSTER}/{secret}/validate"

    def ask(body: bytes) -> None:
        told: list[str] = []
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "SCRIPT_NAME": "",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "443",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "127.0.0.1",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "https",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
        }
        b"".join(application(environ, lambda status, _headers, *_: told.append(status)))
        if not told[0].startswith("200"):
            raise SystemExit(f"the application answered {told[0]}")

    return ask


def main(secret: str) -> None:
    """Print the stages, then the functions of the whole way."""
    ask = caller(secret)
    with transaction.atomic():
        bodies = [review.fresh(NAMESPACE) for _ in range(COUNT * CHUNKS)]
        whole = microseconds(ask, bodies)
        for name, spent in [*stages(secret), ("the whole application, batch of 1", whole)]:
            print(f"  {spent:8.1f} us  {name}")
        profiler = cProfile.Profile(time.process_time)
        more = [review.fresh(NAMESPACE) for _ in range(COUNT * CHUNKS)]
        profiler.enable()
        for body in more:
            ask(body)
        profiler.disable()
        transaction.set_rollback(True)
    for order in ("tottime", "cumulative"):
        pstats.Stats(profiler, stream=sys.stdout).sort_stats(order).print_stats(SHOWN)


if __name__ == "__main__":
    main(sys.argv[1])
