"""AuthorityImpact: Judged decisions let through or refused under another authority."""

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
"""Reasons of refusals that the portal leaves to the API server under native authority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A recorded decision: the reasons that refused, and those that enforced policies observed."""

    id: str
    namespace: str
    target: str
    authority: str
    refused: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityImpact:
    """The effect of another authority on the examined decisions.

    ``let_through`` were refused and would only get a warning, ``refused`` the other way round;
    ``by_namespace`` counts both. ``missing`` are the policies, by namespace, for which the portal
    would go on enforcing; ``differing`` names policies that differ on both sides.
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
        """The number of decisions with another verdict."""
        return self.let_through + self.refused


def what_changes(
    to: Authority,
    decisions: Iterable[Judged],
    *,
    missing: Mapping[str, Sequence[str]],
    differing: Iterable[str] = (),
) -> AuthorityImpact:
    """Find the decisions with another verdict under ``to``; the first ones are examples.

    Nothing changes in a namespace whose policies the cluster does not have.
    """
    # One pass over an iterator: there may be many decisions, and few change.
    changing: list[Judged] = []
    examined = 0
    for judged in decisions:
        examined += 1
        if _would_change(judged, to, missing):
            changing.append(judged)
    changes_by_namespace = Counter(judged.namespace for judged in changing)
    return AuthorityImpact(
        to=to,
        looked_at=examined,
        let_through=len(changing) if to is Authority.NATIVE else 0,
        refused=len(changing) if to is Authority.PORTAL else 0,
        by_namespace=tuple(changes_by_namespace.most_common()),
        examples=tuple(changing[:EXAMPLES]),
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
