"""Groups of the log: the decisions of each value of a field, counted as the facets count."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from admission.record import owners
from admission.record.search.facets import FIELD_VALUES, with_fields
from portal.pages.decisions.words import GENERATED_KINDS, short_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from admission.record.search.search import Sampled

OWNER: Final = "owner"
GROUPS: Final = {
    OWNER: "Owner",
    **{
        name: FIELD_VALUES[name][0]
        for name in (
            "reason", "namespace", "user", "policy", "kind", "cluster", "verdict", "priority",
        )
    },
}  # fmt: skip
"""What the log can be grouped by, with its name."""
SHOWN: Final = 200
_VERDICTS: Final = ("denied", "would-deny", "mutated", "allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionGroup:
    """The decisions of one value; ``query`` finds them, and is empty where no filter does."""

    label: str
    title: str
    number: int
    verdicts: Sequence[tuple[str, int]]
    newest: datetime
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """The largest groups; ``rest`` others are not shown."""

    name: str
    title: str
    groups: Sequence[DecisionGroup]
    rest: int = 0

    @property
    def number(self) -> int:
        """How many groups there are."""
        return len(self.groups) + self.rest


def grouped_by(rows: Sequence[Sampled], name: str, query: Mapping[str, str]) -> Grouped:
    """Group rows, newest first, by a field; one row may be in several groups, as in facets."""
    by_owner = name == OWNER
    found = list(_owners(rows) if by_owner else _values(rows, name))
    found.sort(key=lambda group: len(group[1]), reverse=True)
    groups = [_group(label, members, {**query, **narrow}) for label, members, narrow in found]
    return Grouped(
        name=name, title=GROUPS[name], groups=groups[:SHOWN], rest=max(0, len(groups) - SHOWN)
    )


_Found = tuple[str, "list[Sampled]", dict[str, str]]


def _values(rows: Sequence[Sampled], name: str) -> Iterator[_Found]:
    members: defaultdict[str, list[Sampled]] = defaultdict(list)
    _, values = FIELD_VALUES[name]
    for row in rows:
        for value in set(values(row)) or {""}:
            members[value].append(row)
    for value, exact in members.items():
        found = exact
        if name == "user" and value:  # the log finds users by the beginning of their name
            found = [row for row in rows if row.user.startswith(value)]
        yield value, found, {name: value}


def _owners(rows: Sequence[Sampled]) -> Iterator[_Found]:
    """Owners with the decisions that the beginning of the name finds, which the log filters by."""
    places: defaultdict[tuple[str, str], list[Sampled]] = defaultdict(list)
    for row in rows:
        places[row.namespace, row.kind].append(row)
    for (namespace, kind), beside in places.items():
        for name, beginning in dict.fromkeys(map(_owner, beside)):
            members = [row for row in beside if row.name.startswith(beginning)]
            narrow = {"namespace": namespace, "kind": kind, "name": beginning}
            yield f"{namespace} / {name}" if namespace else name, members, narrow


def _owner(row: Sampled) -> tuple[str, str]:
    """The name of a row's owner, and the beginning of its objects' names."""
    name = row.owner.name
    if not name and row.kind in GENERATED_KINDS:
        name = owners.named(row.name.rstrip("-"))
    if name and row.name.startswith(f"{name}-"):
        return name, f"{name}-"
    return row.name, row.name


def _group(label: str, members: Sequence[Sampled], query: Mapping[str, str]) -> DecisionGroup:
    verdicts = Counter(row.outcome.value for row in members)
    short = short_user(label)
    return DecisionGroup(
        label=short.replace("would-deny", "would deny"),
        title=label if label != short else "",
        number=len(members),
        verdicts=[(verdict, verdicts[verdict]) for verdict in _VERDICTS],
        newest=members[0].created,
        query=with_fields(query) if label else "",
    )
