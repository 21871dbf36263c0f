from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from portal.machine import available, derive_key, keep_secret, write_private

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


def test_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "var" / "key"
    first = keep_secret(path)
    assert keep_secret(path) == first
    assert len(first) > 50
    assert path.stat().st_mode & 0o777 == 0o600


def test_processes_that_start_at_once_share_one_secret(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        secrets = set(pool.map(keep_secret, [tmp_path / "key"] * 64))
    assert len(secrets) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_private_file_is_overwritten_whole(tmp_path: Path) -> None:
    write_private(tmp_path / "a", "longer than the next")
    write_private(tmp_path / "a", "short")
    assert (tmp_path / "a").read_text() == "short\n"


def test_derived_keys_differ_by_purpose_and_secret() -> None:
    keys = {derive_key("a", "x"), derive_key("a", "y"), derive_key("b", "x")}
    assert len(keys) == 3
