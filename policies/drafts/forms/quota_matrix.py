"""Matrix of quotas beside the form: Bands are class rows, Spots columns, Bounds of others.

The draft replaces its stored version. The engine decides which quota covers which class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.resource_quota import scope_requirements, unknown_names
from engine.resource_quota.scopes import PRIORITY_CLASS
from engine.selector import SelectorError, matches_value
from policies.drafts.forms import quota as forms_quota
from policies.ledger.usage import UNKNOWN
from policies.simulation import with_unsaved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import PolicySet, ResourceQuota
    from policies.drafts.forms.sheets import Sheet

MOST: Final = 12
"""The most columns, beyond the draft's own resources, and the most rows of classes."""
ANY: Final = "any priority"
NONE: Final = "no priority class"
ELSEWHERE: Final = "no class of this cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One stored quota's limit of a resource, and its used amount."""

    quota: str
    hard: str
    used: str


@dataclass(slots=True, kw_only=True)
class Spot:
    """One cell: a resource in a row; ``line`` is the draft's own limit, if it has one here."""

    resource: str
    line: int | None = None
    is_typed: bool = False
    is_offered: bool = False
    others: list[Bound] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One row: a priority class, any or none; ``is_own``: the draft covers it."""

    name: str
    is_own: bool
    spots: Sequence[Spot]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The matrix; ``lines`` are the draft's limits that it shows."""

    resources: Mapping[str, int | None]
    bands: Sequence[Band]
    lines: frozenset[int]


def matrix_of(
    manifest: Mapping[str, Any] | None,
    sheet: Sheet,
    before: PolicySet | None,
    priorities: Sequence[str],
) -> Matrix | None:
    """The namespace's quotas with the draft; None for a draft that cannot be read."""
    if manifest is None or before is None:
        return None
    draft_name = (manifest.get("metadata") or {}).get("name") or ""
    try:
        after = with_unsaved(before, [manifest])
    except DecodeError:
        return None
    own = next((quota for quota in after.resource_quotas if quota.name == draft_name), None)
    if own is None:
        return None
    others = [quota for quota in after.resource_quotas if quota is not own]
    typed_columns = _typed_lines(sheet)
    columns = _resource_columns(typed_columns, others)
    offered = set(forms_quota.offered_resources(sheet))
    bands = [
        _band(row, own, others, columns, offered) for row in _class_rows(own, others, priorities)
    ]
    _mark_first_own_band(bands)
    return Matrix(resources=columns, bands=bands, lines=frozenset(typed_columns.values()))


def _typed_lines(sheet: Sheet) -> dict[str, int]:
    """The draft's limits by resource; of a repeated name only the first."""
    line_of_column: dict[str, int] = {}
    for line_number, line in enumerate(sheet.of(forms_quota.HARD)):
        if (name := line.get("resource", "")) and "kept" not in line:
            line_of_column.setdefault(name, line_number)
    return line_of_column


def _resource_columns(
    typed_columns: Mapping[str, int], others: Sequence[ResourceQuota]
) -> dict[str, int | None]:
    limited = {name for quota in others for name in quota.hard}
    column_order = [*[name for name in forms_quota.RESOURCES if name in limited], *sorted(limited)]
    more_columns = [name for name in dict.fromkeys(column_order) if name not in typed_columns]
    return {**typed_columns, **dict.fromkeys(more_columns[: max(0, MOST - len(typed_columns))])}


def _class_rows(
    draft_quota: ResourceQuota, others: Sequence[ResourceQuota], priorities: Sequence[str]
) -> list[str]:
    """The rows; of too many classes, those that the draft covers come first."""
    # Sorting is stable: classes keep their order within both groups.
    covered_first = sorted(priorities, key=lambda name: not _covers_class(draft_quota, name))[:MOST]
    class_rows = [name for name in priorities if name in covered_first]
    matrix_rows = [ANY, *class_rows, NONE]
    has_any = any(_covers_class(quota, ANY) for quota in (draft_quota, *others))
    if not any(_covers_class(draft_quota, row) for row in matrix_rows):
        matrix_rows.append(ELSEWHERE)
    return matrix_rows if has_any else matrix_rows[1:]


def _covers_class(quota: ResourceQuota, class_row: str) -> bool:
    """Whether the quota covers pods of this row; a quota without priority scopes covers any."""
    scopes = [each for each in scope_requirements(quota) if each.scope_name == PRIORITY_CLASS]
    if class_row == ANY or not scopes:
        return class_row == ANY and not scopes
    try:
        return all(matches_value(each, "" if class_row == NONE else class_row) for each in scopes)
    except SelectorError:
        return False


def _used_text(quota: ResourceQuota, column: str) -> str:
    if column in quota.used:
        return str(quota.used[column])
    return UNKNOWN if column in unknown_names(quota) else ""


def _band(
    class_row: str,
    draft_quota: ResourceQuota,
    other_quotas: Sequence[ResourceQuota],
    columns: Mapping[str, int | None],
    offered: set[str],
) -> Band:
    is_own = class_row == ELSEWHERE or _covers_class(draft_quota, class_row)
    spots = [
        Spot(
            resource=column,
            line=draft_line if is_own else None,
            is_offered=is_own and draft_line is None and column in offered,
            others=[
                Bound(
                    quota=quota.name,
                    hard=str(quota.hard[column]),
                    used=_used_text(quota, column),
                )
                for quota in other_quotas
                if column in quota.hard and _covers_class(quota, class_row)
            ],
        )
        for column, draft_line in columns.items()
    ]
    return Band(name=class_row, is_own=is_own, spots=spots)


def _mark_first_own_band(bands: Sequence[Band]) -> None:
    """The first row of the draft has its input fields; the other rows repeat them."""
    first_own_band = next((band for band in bands if band.is_own), None)
    for spot in first_own_band.spots if first_own_band else ():
        spot.is_typed = spot.line is not None
    for band in bands:
        for spot in band.spots:
            spot.is_offered = spot.is_offered and band is first_own_band
