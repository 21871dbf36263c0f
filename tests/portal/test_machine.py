from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from portal.machine import available

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("max 100000\n", 8),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("6400000 100000\n", 8),
        (None, 8),
    ],
)
def test_limit_of_a_container_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    if content:
        (tmp_path / "cpu.max").write_text(content)
    assert available(tmp_path / "cpu.max") == expected


def test_machine_counts_where_nobody_limits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert available(tmp_path / "none") == 3
