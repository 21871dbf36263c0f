"""The hash of a change set's content depends on all of it, and on nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.change_sets.content import ProposedContent, content_hash

FIRST = ProposedContent(
    cluster="prod",
    kind="LimitRange",
    namespace="team",
    name="lr",
    base_revision=3,
    base={"spec": {"limits": [{"max": {"cpu": "1"}}]}, "kind": "LimitRange"},
    content={"spec": {"limits": [{"max": {"cpu": "2"}}]}, "kind": "LimitRange"},
)
SECOND = replace(FIRST, name="other", base=None, base_revision=0)


def test_the_order_of_objects_and_members_is_no_matter() -> None:
    turned = replace(FIRST, base={"kind": "LimitRange", "spec": (FIRST.base or {})["spec"]})
    assert content_hash([FIRST, SECOND]) == content_hash([SECOND, turned])


@pytest.mark.parametrize(
    "other",
    [
        {"cluster": "dev"},
        {"kind": "ResourceQuota"},
        {"namespace": "team2"},
        {"name": "lr2"},
        {"base_revision": 4},
        {"base": None},
        {"base": {"spec": {"limits": [{"max": {"cpu": "3"}}]}, "kind": "LimitRange"}},
        {"content": None},
        {"content": {"spec": {"limits": [{"max": {"cpu": "2"}}, {}]}, "kind": "LimitRange"}},
        {"cluster": "prodLimit", "kind": "Range"},
    ],
)
def test_any_other_base_content_or_name_has_another_hash(other: dict[str, Any]) -> None:
    changed = replace(FIRST, **other)
    assert content_hash([changed, SECOND]) != content_hash([FIRST, SECOND])


def test_the_number_of_objects_counts() -> None:
    hashes = {content_hash(each) for each in ([], [FIRST], [SECOND], [FIRST, SECOND])}
    assert len(hashes) == 4
    assert all(len(each) == 64 for each in hashes)
