"""One review after the other in one thread: `python -m bench.stages SECRET`.

Prints as text what the whole application takes for one, and, under Python's profiler, what its
stages and functions take. Everything happens inside one transaction, so that the writer works in
the calling thread, too: nothing waits, and each batch has one item.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import time
from typing import Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.db import transaction  # noqa: E402 - Django must be set up first
from django.test import RequestFactory  # noqa: E402

from bench import review  # noqa: E402
from portal.serving.wsgi import application  # noqa: E402

COUNT: Final = 60  # reviews in each of the chunks; the quickest chunk counts
CHUNKS: Final = 6


def ask(body: bytes, secret: str) -> None:
    """Ask the whole application, as the web server does, without a socket."""
    path = f"/admission/{review.CLUSTER}/{secret}/validate"
    asked = RequestFactory(SERVER_NAME="127.0.0.1").generic(
        "POST", path, body, content_type="application/json", secure=True
    )
    statuses: list[str] = []
    b"".join(application(asked.environ, lambda status, _headers, *_: statuses.append(status)))
    if not statuses[0].startswith("200"):
        raise SystemExit(f"the application answered {statuses[0]}")


def seconds(secret: str) -> float:
    """CPU time of one chunk of reviews, which are made beforehand."""
    bodies = [review.fresh() for _ in range(COUNT)]
    begin = time.process_time()
    for body in bodies:
        ask(body, secret)
    return time.process_time() - begin


if __name__ == "__main__":
    with transaction.atomic():
        quickest = min(seconds(sys.argv[1]) for _ in range(CHUNKS))
        print(f"{quickest / COUNT * 1e6:.1f} us for the whole application, batch of 1")
        with cProfile.Profile(time.process_time) as profiler:
            seconds(sys.argv[1])
        transaction.set_rollback(True)
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("cumulative").print_stats(60)
