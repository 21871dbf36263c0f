"""The benchmark itself: what it sends, what it counts, and what a tiny run prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from admission.wire.review import parse_request
from bench import figures, load, machine, review, servers
from bench.database import Standing
from bench.engines import policies
from bench.load import Answers, Load
from bench.run import mistakes
from engine import chain
from engine.request import Phase

ROOT = Path(__file__).resolve().parents[2]
NOTHING = Standing(0, 0, {"a": 0}, {"a": 5})
ANSWERS = Answers(allowed=5, denied=1)


def test_review_is_allowed_and_charged() -> None:
    asked = parse_request(review.fresh())
    decision = chain.admit(asked, policies(), phase=Phase.VALIDATE)
    assert decision.allowed
    assert [str(charge.amounts["pods"]) for charge in decision.charges] == ["1"]


def test_review_is_changed_by_the_mutating_call() -> None:
    asked = parse_request(review.fresh())
    assert len(chain.admit(asked, policies(), phase=Phase.MUTATE).patch) == 3


@pytest.mark.parametrize("reason", review.refused())
def test_review_is_refused_for_its_reason(reason: str) -> None:
    asked = parse_request(review.fresh(review=review.refused()[reason]))
    decision = chain.admit(asked, policies(), phase=Phase.VALIDATE)
    assert reason in {violation.reason for violation in decision.violations}


_TWO_PROCESSES = """
import os, sys
held = b"x" * 2**26
child = os.fork()
if child:
    print(child, flush=True)
sys.stdin.read()
if child:
    os.wait()
"""


def test_memory_that_processes_share_counts_once() -> None:
    words = [sys.executable, "-c", _TWO_PROCESSES]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:  # noqa: S603 - our own words
        assert parent.stdout
        child = int(parent.stdout.readline())
        taken = machine.share_of(parent.pid) + machine.share_of(child)
    assert 2**26 < taken < 1.5 * 2**26
    assert machine.share_of(parent.pid) == 0


def test_review_has_the_size_of_an_ordinary_pod() -> None:
    assert 5000 < len(review.template_bytes()) < 6000


def test_each_review_has_uids_of_its_own() -> None:
    first, second = (json.loads(review.fresh())["request"] for _ in range(2))
    assert first["uid"] != second["uid"]
    assert first["object"]["metadata"]["uid"] != second["object"]["metadata"]["uid"]


def test_marks_have_the_length_of_what_replaces_them() -> None:
    all_names = (*review.SPREAD, *review.HOT, *review.TIGHT, *review.FULL)
    assert {len(name) for name in all_names} == {len(review.NAMESPACE)}


def test_exact_load_has_no_mistakes() -> None:
    assert mistakes(ANSWERS, NOTHING, Standing(6, 5, {"a": 5}, {"a": 5})) == []


@pytest.mark.parametrize(
    "after",
    [
        Standing(5, 5, {"a": 5}, {"a": 5}),
        Standing(6, 4, {"a": 5}, {"a": 5}),
        Standing(6, 5, {"a": 4}, {"a": 5}),
        Standing(6, 5, {"a": 5}, {"a": 4}),
    ],
    ids=["row lost", "charge lost", "used too low", "above the quota"],
)
def test_inexact_load_is_told(after: Standing) -> None:
    assert len(mistakes(ANSWERS, NOTHING, after)) == 1


@pytest.mark.bench
@pytest.mark.parametrize("rate", [0.0, 100.0], ids=["closed loop", "open loop"])
def test_client_without_go_is_answered(tmp_path: Path, rate: float) -> None:
    certificate = servers.make_certificate(tmp_path)
    lean = next(each for each in servers.floors() if each.name == figures.LEAN)
    with servers.started(lean, folder=tmp_path, certificate=certificate) as server:
        servers.wait_until_it_answers(server)
        asked = Load(connections=2, rate=rate, seconds=0.3)
        answers = load.in_python(asked, server.address, lean.path, certificate)
    assert answers.allowed == len(answers.latencies) > 0


@pytest.mark.bench
def test_tiny_run_prints_every_goal_and_counts_exactly() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "tiny", "--sqlite"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in {0, 2}, done.stderr
    assert "loads were counted exactly" in done.stdout
    assert "full decision / DRF-lean echo" in done.stdout
    found = json.loads(Path(done.stdout.split()[-1]).read_text("utf-8"))["figures"]
    assert found["Gatehouse | spread | c32"][0]["rps"] > 0
