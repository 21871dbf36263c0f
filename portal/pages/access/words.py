"""Roles in short words: ``roles_in_short``, ``place_in_short``, initials of a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.models import RoleBinding

if TYPE_CHECKING:
    from collections.abc import Iterable

WHOLE_FLEET: Final = "whole fleet"
_RANKS: Final = {role: rank for rank, role in enumerate(RoleBinding.Role.values)}


def place_in_short(cluster: str, namespace: str) -> str:
    """A scope in as few words as are unambiguous."""
    if cluster and namespace:
        return f"{cluster} / {namespace}"
    return namespace or cluster or WHOLE_FLEET


def roles_in_short(bindings: Iterable[RoleBinding]) -> str:
    """All roles in one line, those of one kind together: "editor payments, search"."""
    places: dict[str, list[str]] = {}
    for each in sorted(bindings, key=lambda each: _RANKS[each.role]):
        place = place_in_short(each.cluster, each.namespace)
        if place not in places.setdefault(each.role, []):
            places[each.role].append(place)
    return "; ".join(
        f"{role}, {where[0]}" if where == [WHOLE_FLEET] else f"{role} {', '.join(where)}"
        for role, where in places.items()
    )


def initials(name: str) -> str:
    """Two letters that stand for a person: of the first and the last name."""
    names = name.replace(".", " ").replace("-", " ").split()
    letters = [names[0][0], names[-1][0]] if len(names) > 1 else list(name[:2])
    return "".join(letters).upper()
