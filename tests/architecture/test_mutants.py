"""The list of planted faults matches the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mutants import ROOT, Mutant, read_mutants

if TYPE_CHECKING:
    from pathlib import Path

MUTANTS = read_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_fault_can_be_planted(mutant: Mutant, tmp_path: Path) -> None:
    target = tmp_path / mutant.file
    target.parent.mkdir(parents=True)
    target.write_text((ROOT / mutant.file).read_text(encoding="utf-8"), encoding="utf-8")
    before = mutant.plant(tmp_path)
    assert target.read_text(encoding="utf-8") != before


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_fault_names_existing_tests(mutant: Mutant) -> None:
    assert mutant.tests
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)


def test_there_are_twenty_faults_of_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
