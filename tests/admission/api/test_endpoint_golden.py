"""Whole answers, byte for byte: a request and its response from each file of fixtures/reviews."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent
from policies import services

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
FILES = sorted((Path(__file__).parents[2] / "fixtures" / "reviews").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_answer_is_as_it_was(
    ask: Callable[..., Any], apply: Callable[..., None], cluster: Cluster, file: Path
) -> None:
    case = json.loads(file.read_text())
    apply(*case["policies"])
    if case.get("limitedResources"):
        entries = case["limitedResources"]
        services.set_limited_resources(cluster=cluster, entries=entries, user="root")
    response = ask(case["review"], phase=case["phase"])
    decision = AuditEvent.objects.get().id
    assert json.loads(response.content.decode().replace(decision, "<decision>")) == case["answer"]


def test_there_are_examples() -> None:
    assert len(FILES) >= 8
