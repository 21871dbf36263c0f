"""SidesView: portal and cluster beside each other, the part of a row of the queue that opens."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from policies.models import PolicyRevision
from portal.pages.clusters.drift.impact import ACCEPT, RESTORE, impact_of
from portal.pages.clusters.drift.list import queue_permissions
from portal.pages.clusters.drift.object import ObjectView
from portal.pages.clusters.drift.queue import line_of
from portal.pages.clusters.drift.settle import ownerships_of
from portal.pages.clusters.drift.sides import lines_of_manifest
from sync.passes.object_sides import dicts_in, normal_form, our_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONTEXT: Final = 2
"""Equal lines that are shown around a difference."""
MOST_LINES: Final = 60
_KEY: Final = re.compile(r"^(\s*(?:- )?)([^\s:#][^:]*:)(.*)$")


@dataclass(frozen=True, slots=True)
class SideLine:
    """A line of one side in parts: before a key, the key, before and after what differs, and it."""

    number: int
    indent: str
    key: str
    before: str
    differing: str
    after: str
    is_changed: bool


class SidesView(ObjectView):
    """Both sides of one object in short, with the ways to settle it."""

    template_name = "clusters/_sides.html"
    permission: ClassVar[str] = ""
    http_method_names = ["get", "head"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The lines that differ, who wrote each side, and what a settlement refuses."""
        thing = self.find_object()
        ours = our_object(thing)
        our_lines = lines_of_manifest(normal_form(ours.to_manifest() if ours else None))
        left, right = side_by_side(our_lines, lines_of_manifest(thing.theirs))
        noted = next((one for one in dicts_in(thing.differences) if one.get("manager")), {})
        line = line_of(thing)
        # Without the context of the whole page, whose revisions and permissions cost queries.
        return {
            **kwargs,
            **queue_permissions(self),
            "line": line,
            "cluster": self.cluster,
            "ours": left,
            "theirs": right,
            "revision": self._newest_revision(),
            "manager": noted.get("manager", ""),
            "is_owned": ownerships_of([thing])[thing.pk] is not None,
            "impacts": {action: impact_of([thing], action) for action in (RESTORE, ACCEPT)},
            "back": self.request.GET.get("back", ""),
        }

    def _newest_revision(self) -> PolicyRevision | None:
        names = {"kind": self.kwargs["kind"], "name": self.kwargs["name"]}
        namespace = self.scope().namespace
        found = PolicyRevision.objects.of(cluster=self.cluster.name, namespace=namespace, **names)
        return found.defer("before", "after").order_by("-number").first()


def side_by_side(
    ours: Sequence[str], theirs: Sequence[str]
) -> tuple[list[SideLine], list[SideLine]]:
    """The lines of both sides around their differences."""
    # Without autojunk, which takes frequent lines of long texts for differences.
    matcher = difflib.SequenceMatcher(a=ours, b=theirs, autojunk=False)
    left: list[SideLine] = []
    right: list[SideLine] = []
    for group in matcher.get_grouped_opcodes(CONTEXT):
        for tag, a_from, a_to, b_from, b_to in group:
            is_changed = tag != "equal"
            left += _lines(ours, a_from, a_to, theirs[b_from:b_to], is_changed=is_changed)
            right += _lines(theirs, b_from, b_to, ours[a_from:a_to], is_changed=is_changed)
    return left[:MOST_LINES], right[:MOST_LINES]


def _lines(
    lines: Sequence[str], start: int, end: int, others: Sequence[str], *, is_changed: bool
) -> Iterator[SideLine]:
    for place, text in enumerate(lines[start:end]):
        other = others[place] if is_changed and place < len(others) else ""
        yield _line(start + place + 1, text, other, is_changed=is_changed)


def _line(number: int, text: str, other: str, *, is_changed: bool) -> SideLine:
    found = _KEY.match(text)
    indent, key, rest = found.groups() if found else ("", "", text)
    head = indent + key
    if not is_changed or not other.startswith(head):
        return SideLine(number, indent, key, rest, "", "", is_changed)
    their_rest = other[len(head) :]
    first, last = _common(rest, their_rest), _common(rest[::-1], their_rest[::-1])
    last = min(last, len(rest) - first, len(their_rest) - first)
    end = len(rest) - last
    return SideLine(number, indent, key, rest[:first], rest[first:end], rest[end:], is_changed)


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
