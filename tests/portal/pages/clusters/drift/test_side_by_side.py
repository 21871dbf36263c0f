"""A row of the queue opens to both sides, with what differs marked within the line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portal.pages.clusters.drift.queue import in_words, short_field
from portal.pages.clusters.drift.side_by_side import side_by_side
from tests.portal.pages.clusters.drift.test_settle import drifted, person

if TYPE_CHECKING:
    from django.test import Client

__all__ = ["person"]
OURS = ["spec:", "  hard:", "    cpu: '1'", "    memory: 4Gi", "    pods: '20'", "    x: 1"]
THEIRS = [*OURS[:4], "    pods: '30'", *OURS[5:]]


def test_the_words_that_differ_are_marked_on_both_sides() -> None:
    left, right = side_by_side(OURS, THEIRS)
    assert [line.number for line in left] == [3, 4, 5, 6]
    [ours] = [line for line in left if line.is_changed]
    [theirs] = [line for line in right if line.is_changed]
    assert (ours.indent, ours.key, ours.before, ours.differing, ours.after) == (
        "    ", "pods:", " '", "2", "0'",
    )  # fmt: skip
    assert (theirs.differing, theirs.after) == ("3", "0'")


def test_a_missing_side_has_no_lines() -> None:
    left, right = side_by_side(OURS, [])
    assert (len(left), right) == (len(OURS), [])
    assert all(line.is_changed for line in left)


def test_a_row_opens_with_the_ways_to_settle_it(person: Client) -> None:
    thing = drifted()
    page: Any = person.get("/clusters/prod/objects/ResourceQuota/team/rq/sides")
    assert page.status_code == 200
    text = page.content.decode()
    for action in ("restore", "accept", "release"):
        assert f"do={action}&amp;object={thing.pk}" in text


def test_fields_have_the_names_that_people_use() -> None:
    assert short_field(".spec.limits[0].max.memory") == "max memory"
    assert short_field(".spec.hard.requests.cpu") == "requests.cpu"
    assert short_field(".metadata.labels.team") == "metadata.labels.team"


def test_a_conflict_tells_both_changes() -> None:
    difference = {"field": ".spec.hard.pods", "base": "60", "ours": "80", "theirs": "70"}
    assert in_words([difference], is_conflict=True) == "pods 60 → 80 here, 60 → 70 there"
    assert in_words([difference, difference]) == "pods 80 → 70 and 1 more"
    assert in_words([{"field": "", "theirs": None}]) == "the cluster has none"
