"""What is counted about answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import REGISTRY

from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

pytestmark = pytest.mark.django_db


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


def test_answers_are_counted_by_verdict(
    ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(quota(hard={"pods": "0"}))
    labels = {"cluster": "demo", "phase": "validate", "verdict": "denied", "dry_run": "false"}
    before = count("gatehouse_admission_decisions_total", **labels)
    timed = count("gatehouse_admission_seconds_count", phase="validate")
    ask(review(new_pod()))
    assert count("gatehouse_admission_decisions_total", **labels) == before + 1
    assert count("gatehouse_admission_seconds_count", phase="validate") == timed + 1


def test_strangers_and_failures_are_counted_by_status(
    client: Client, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = count("gatehouse_admission_refused_total", status="401")
    client.post("/admission/a-name-they-made-up/validate")
    assert count("gatehouse_admission_refused_total", status="401") == refused + 1
    failed = count("gatehouse_admission_failures_total", status="500")
    monkeypatch.setattr("engine.chain.prepare", lambda *_args, **_kwargs: 1 / 0)
    assert ask(review()).status_code == 500
    assert count("gatehouse_admission_failures_total", status="500") == failed + 1
