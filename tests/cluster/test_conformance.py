"""The portal equals the plugins: random cases, evaluated by an API server and by the engine."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest

from tests.cluster.cases import SHARES
from tests.cluster.conformance import run
from tests.cluster.evaluation import judge
from tests.cluster.golden import read_all

if TYPE_CHECKING:
    from tests.cluster.binaries import Binaries
    from tests.cluster.cases import Case
    from tests.cluster.worlds import Observed

CASES = int(os.environ.get("CONFORMANCE_CASES", "2000"))
LEAST_SHARE = 0.25
"""Minimum numbers of allowed and of refused cases of each kind."""


@pytest.mark.cluster
def test_engine_answers_as_the_plugins_do(
    binaries: Binaries, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("CONFORMANCE_SEED") or secrets.randbelow(10**9))
    with capsys.disabled():
        print(f"\nconformance: {CASES} cases, CONFORMANCE_SEED={seed}")  # noqa: T201 - to repeat it
    tally = run(binaries, seed, CASES)
    with capsys.disabled():
        print("\n".join(tally.lines()))  # noqa: T201 - what was compared
    assert tally.cases == CASES
    assert tally.differences == []
    # Few cases may be excluded, or nothing would be compared.
    assert sum(tally.apart.values()) < CASES / 10
    # Both verdicts alternate, so neither can be rare for any kind.
    assert len(tally.verdicts) == len(SHARES)
    assert min(share for both in tally.shares().values() for share in both) >= LEAST_SHARE


@pytest.mark.parametrize(
    ("case", "observed"), [pytest.param(c, o, id=name) for name, c, o in read_all()]
)
def test_engine_gives_the_answer_that_was_kept(case: Case, observed: Observed) -> None:
    verdict = judge(case, observed)
    assert verdict.differences == ()
