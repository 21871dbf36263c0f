"""Compute what another authority would change. Pure: values in, values out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.decision import Reason
from engine.policy import Authority

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

EXAMPLES: Final = 10
LEFT: Final = frozenset(
    {
        Reason.MIN_CONSTRAINT,
        Reason.MAX_CONSTRAINT,
        Reason.RATIO_CONSTRAINT,
        Reason.MUST_SPECIFY,
        Reason.STATUS_UNKNOWN,
        Reason.NEGATIVE_USAGE,
        Reason.NO_PREVIOUS_USAGE,
        Reason.EXCEEDED_QUOTA,
        Reason.BAD_SCOPE_SELECTOR,
        Reason.TOO_MANY_UNCONFIRMED,
    }
)
"""Reasons that refuse where the portal enforces, and are left to the API server elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A decision on record: the reasons that refused, and those of enforced policies observed."""

    id: str
    namespace: str
    target: str
    authority: str
    refused: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityImpact:
    """What would be otherwise. Counts are of the decisions that were looked at.

    ``let_through``: refused then, only warned of from now on. ``refused``: warned of then, refused
    from now on; ``by_namespace`` counts both. ``missing`` are the policies, by namespace, that keep
    it the portal's; ``differing`` names those that are not the same on both sides.
    """

    to: Authority
    looked_at: int = 0
    let_through: int = 0
    refused: int = 0
    by_namespace: tuple[tuple[str, int], ...] = ()
    examples: tuple[Judged, ...] = ()
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    differing: tuple[str, ...] = ()

    @property
    def verdicts(self) -> int:
        """How many decisions would have another verdict."""
        return self.let_through + self.refused


def what_changes(
    to: Authority,
    decisions: Iterable[Judged],
    *,
    missing: Mapping[str, Sequence[str]],
    differing: Iterable[str] = (),
) -> AuthorityImpact:
    """Judge the decisions again as if ``to`` had been set; newest first, so are the examples.

    In a namespace whose policies the cluster does not have, nothing changes.
    """
    found: list[Judged] = []
    looked_at = 0
    for judged in decisions:
        looked_at += 1
        if _would_change(judged, to, missing):
            found.append(judged)
    places = Counter(judged.namespace for judged in found)
    return AuthorityImpact(
        to=to,
        looked_at=looked_at,
        let_through=len(found) if to is Authority.NATIVE else 0,
        refused=len(found) if to is Authority.PORTAL else 0,
        by_namespace=tuple(places.most_common()),
        examples=tuple(found[:EXAMPLES]),
        missing=dict(missing),
        differing=tuple(differing),
    )


def _would_change(judged: Judged, to: Authority, missing: Mapping[str, object]) -> bool:
    if judged.authority == to:
        return False
    if to is Authority.PORTAL:
        return not judged.refused and any(reason in LEFT for reason in judged.observed)
    if judged.namespace in missing:
        return False
    return bool(judged.refused) and all(reason in LEFT for reason in judged.refused)
