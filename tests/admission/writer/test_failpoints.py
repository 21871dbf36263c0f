"""Failpoints: what the environment asks for, and nothing else."""

from __future__ import annotations

import pytest

from admission.writer import failpoints


def test_a_passage_is_counted() -> None:
    point = failpoints.read("before-commit:raise:3")["before-commit"]
    point.act()
    point.act()
    with pytest.raises(failpoints.FailpointError):
        point.act()
    point.act()


def test_several_are_read() -> None:
    found = failpoints.read("after-lock:sleep=0,before-answer:kill")
    assert {name: point.action for name, point in found.items()} == {
        "after-lock": "sleep=0",
        "before-answer": "kill",
    }
    found["after-lock"].act()


@pytest.mark.parametrize("text", ["nowhere:kill", "after-lock:explode", "after-lock"])
def test_what_is_unknown_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no failpoint"):
        failpoints.read(text)


def test_nothing_happens_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "armed", {})
    failpoints.hit("before-commit")
    monkeypatch.setattr(failpoints, "armed", failpoints.read("before-commit:raise"))
    with pytest.raises(failpoints.FailpointError):
        failpoints.hit("before-commit")
