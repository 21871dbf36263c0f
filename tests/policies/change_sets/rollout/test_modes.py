"""A stage weakens nothing that is in force, and enforces nothing early."""

from __future__ import annotations

from typing import Any

import pytest

from engine.policy import Enforcement, decode_enforcement, encode_enforcement
from policies.change_sets.content import ProposedContent
from policies.change_sets.rollout.modes import staged, unobservable

AUDIT, WARN, ENFORCE = Enforcement.AUDIT, Enforcement.WARN, Enforcement.ENFORCE


def item(
    base: Enforcement | None, content: Enforcement | None, *, kind: str = "MetadataPolicy"
) -> ProposedContent:
    return ProposedContent(
        cluster="prod",
        kind=kind,
        namespace="team",
        name="owner",
        base_revision=int(base is not None),
        base=manifest(base),
        content=manifest(content),
    )


def manifest(mode: Enforcement | None) -> dict[str, Any] | None:
    if mode is None:
        return None
    return {"metadata": {"name": "owner", "annotations": encode_enforcement(mode)}, "spec": {}}


@pytest.mark.parametrize(
    ("base", "content", "stage", "written"),
    [
        (None, ENFORCE, AUDIT, AUDIT),
        (None, ENFORCE, WARN, WARN),
        (None, ENFORCE, ENFORCE, ENFORCE),
        (None, AUDIT, WARN, AUDIT),
        (None, AUDIT, ENFORCE, AUDIT),
        (WARN, ENFORCE, AUDIT, WARN),
        (AUDIT, ENFORCE, WARN, WARN),
        (WARN, AUDIT, WARN, AUDIT),
    ],
)
def test_a_stage_writes_no_stricter_mode_than_its_own_or_the_one_in_force(
    base: Enforcement | None, content: Enforcement, stage: Enforcement, written: Enforcement
) -> None:
    found = staged(item(base, content), stage)
    assert found.content is not None
    assert decode_enforcement(found.content["metadata"].get("annotations")) is written


@pytest.mark.parametrize("content", [WARN, None])
def test_what_loosens_or_deletes_a_policy_in_force_waits_for_the_last_stage(
    content: Enforcement | None,
) -> None:
    change = item(ENFORCE, content)
    assert not staged(change, WARN).is_written
    assert staged(change, ENFORCE).is_written
    assert staged(change, ENFORCE).content == change.content


@pytest.mark.parametrize("kind", ["LimitRange", "ResourceQuota", "PriorityClass", "NamespaceClass"])
def test_what_a_cluster_would_enforce_by_itself_is_not_observed(kind: str) -> None:
    assert "enforces it in every mode" in unobservable(item(None, ENFORCE, kind=kind))
    assert unobservable(item(ENFORCE, None, kind=kind)) == ""


def test_a_policy_in_force_is_not_switched_off_to_observe_its_successor() -> None:
    assert "is in force" in unobservable(item(ENFORCE, ENFORCE))
    assert unobservable(item(WARN, ENFORCE)) == unobservable(item(ENFORCE, WARN)) == ""
    assert unobservable(item(None, ENFORCE)) == ""
