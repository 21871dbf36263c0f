"""What versions answer apart: asked of each server that is here, and replayed without one."""

from __future__ import annotations

import pytest

from tests.cluster.binaries import DEFAULT, RELEASES, find
from tests.cluster.conformance import run
from tests.cluster.evaluation import judge
from tests.cluster.golden import read_all
from tests.cluster.version_cases import CASES, INVALID, answers

RANDOM_CASES = 400
SAME = {
    "limits-are-the-sum",
    "pages-are-completed-after-limit-ranges",
    "class-of-a-pod-without-limits",
}
"""Cases that all versions answer alike, close to those that they do not."""
KEPT = {name: (case, observed) for name, case, observed in read_all()}


@pytest.mark.cluster
@pytest.mark.parametrize(
    "version",
    [pytest.param(each, marks=[] if each == DEFAULT else pytest.mark.long) for each in RELEASES],
)
def test_engine_answers_as_each_version_does(version: str) -> None:
    binaries = find(version)
    if binaries is None:
        pytest.skip(f"NO API SERVER {version} HERE: python -m tests.cluster.build {version}")
    found = dict(answers(binaries, version))
    asked = [name for name in CASES if version not in INVALID.get(name, ())]
    differences = {name: verdict.differences for name, (_, _, verdict) in found.items()}
    assert differences == dict.fromkeys(asked, ())
    if version != DEFAULT:
        # The default version has a test of its own, with more cases.
        tally = run(binaries, seed=1, cases=RANDOM_CASES, version=version)
        assert tally.differences == []


def test_answers_of_all_versions_are_kept() -> None:
    expected = {
        f"version-{name}-{version}"
        for name in CASES
        for version in RELEASES
        if version not in INVALID.get(name, ())
    }
    assert {name for name in KEPT if name.startswith("version-")} == expected


@pytest.mark.parametrize("name", sorted(CASES))
def test_kept_answers_are_those_of_their_version_alone(name: str) -> None:
    """The answers of versions differ, and the engine's rules of one do not give another's."""
    apart = set()
    valid = [version for version in RELEASES if version not in INVALID.get(name, ())]
    for version in valid:
        case, observed = KEPT[f"version-{name}-{version}"]
        for other in valid:
            if judge({**case, "kubernetesVersion": other}, observed).differences:
                apart.add((version, other))
    assert bool(apart) is (name not in SAME)
    assert all(version != other for version, other in apart)
