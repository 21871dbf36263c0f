"""Cutting records out of objects, from the first moment and in many threads."""

from __future__ import annotations

import subprocess
import sys

from tests.processes import ROOT

# A process that crashes takes its tests along: the threads meet in one of their own.
RACE = """
import sys, threading
from admission.record.kept_fields import SHAPES, excerpt_of
sys.setswitchinterval(1e-6)
container = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
pod = {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"containers": [container]}}
barrier = threading.Barrier(16)
def cut():
    for kind in SHAPES:
        barrier.wait()
        for _ in range(20):
            excerpt_of(pod, kind=kind)
threads = [threading.Thread(target=cut) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_first_use_by_many_threads_at_once_ends_no_process() -> None:
    words = [sys.executable, "-c", RACE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, timeout=120)  # noqa: S603 - our own words
    assert done.returncode == 0, done.stderr
