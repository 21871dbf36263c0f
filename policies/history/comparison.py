"""``compare_seen``: all that differs between two instants and that a user may see, by place.

Objects by their revisions, what quotas used by the journal, roles by their changes: each as far as
its record reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from engine.resource_list import parse, remove_zeros, subtract
from policies import roles
from policies.history.compare import (
    ChangedObject,
    PastDifference,
    PastDifferences,
    changed_objects,
)
from policies.history.objects import in_force, objects_of, revisions_at_each
from policies.history.policy_sets import used_texts
from policies.history.roles import role_bindings_at_each
from policies.history.usage import growth_between, used_at
from policies.models.roles import scope_covers

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from policies.history.horizon import Horizon
    from policies.history.objects import PastObject
    from policies.history.roles import PastBinding

USAGE_KIND: Final = "QuotaUsage"
ROLE_KIND: Final = "RoleBinding"
_QUOTA: Final = ("ResourceQuota",)
_Used = dict[tuple[str, ...], "Mapping[str, str]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoInstants:
    """What is compared: two instants of the fleet, of a cluster, or of a namespace."""

    begin: dt.datetime
    end: dt.datetime
    cluster: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs; ``knows_usage`` and ``knows_roles``: whether both instants are on record."""

    differences: Sequence[PastDifference]
    knows_usage: bool
    knows_roles: bool


def compare_seen(
    user: Any, asked: TwoInstants, *, clusters: Sequence[str], known: Horizon
) -> Comparison:
    """Compare two instants of a place, as far as a user sees it; a fixed number of queries.

    ``clusters`` are those of which the user sees any part, and ``known`` is how far the records go:
    a page has both already.
    """
    span = sorted((asked.begin, asked.end))
    knows_usage, knows_roles = known.knows_usage(span[0]), known.knows_roles(span[0])
    names = [each for each in clusters if asked.cluster in ("", each)]
    writes = revisions_at_each(names, span)
    is_backwards = asked.end < asked.begin
    found: list[PastDifference | ChangedObject] = [
        *changed_objects(writes, namespace=asked.namespace, is_backwards=is_backwards)
    ]
    if knows_usage:
        found += _compare_usage(asked, writes)
    if knows_roles:
        found += _compare_roles(asked)
    seen = [each for each in found if _is_seen(user, each) and _has_words(each)]
    seen.sort(key=lambda each: (each.cluster, each.namespace, each.kind, each.name))
    return Comparison(
        differences=PastDifferences(seen), knows_usage=knows_usage, knows_roles=knows_roles
    )


def _has_words(found: PastDifference | ChangedObject) -> bool:
    return not isinstance(found, ChangedObject) or found.has_words


def _compare_usage(asked: TwoInstants, writes: Sequence[Mapping[str, int]]) -> list[PastDifference]:
    """The quotas that were there at both instants, and used other amounts."""
    earlier, later = _used(asked, writes)
    found = []
    for key in sorted(earlier.keys() & later.keys()):
        _, cluster, place, name = key
        old, new = parse(earlier[key]), parse(later[key])
        names = [each for each in sorted(old.keys() & new.keys()) if old[each] != new[each]]
        if names:
            found.append(
                PastDifference(
                    cluster=cluster,
                    namespace=place,
                    kind=USAGE_KIND,
                    name=name,
                    words=[
                        f"use of {each} {'rose' if new[each] > old[each] else 'fell'}"
                        f" from {earlier[key][each]} to {later[key][each]}"
                        for each in names
                    ],
                    amounts=[f"used[{each}]" for each in names],
                    before={"used": earlier[key]},
                    after={"used": later[key]},
                )
            )
    return found


def _used(asked: TwoInstants, writes: Sequence[Mapping[str, int]]) -> tuple[_Used, _Used]:
    """What the quotas that moved used at both instants, by uid and place.

    The journal is added up from the later instant on once, and between the two once.
    """
    first, last = sorted((asked.begin, asked.end))
    growth = growth_between(first, last, namespace=asked.namespace)
    if not growth:
        return {}, {}
    of_first, of_last = (_quotas(each, growth) for each in writes)
    used_last = used_at(of_first.keys() | of_last.keys(), last)
    used_first = {uid: remove_zeros(subtract(used_last[uid], growth[uid])) for uid in used_last}
    earlier = _by_place(of_first, used_texts(of_first, first, used_first))
    later = _by_place(of_last, used_texts(of_last, last, used_last))
    return (earlier, later) if asked.begin <= asked.end else (later, earlier)


def _quotas(writes: Mapping[str, int], uids: Collection[UUID]) -> dict[UUID, PastObject]:
    rows = in_force(writes, kinds=_QUOTA)
    found = objects_of(rows.filter(uid__in=[str(each) for each in uids]))
    return {UUID(each.uid): each for each in found}


def _by_place(
    quotas: Mapping[UUID, PastObject], used: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, ...], Mapping[str, str]]:
    return {
        (each.uid, each.cluster, each.namespace, each.name): used[each.uid]
        for each in quotas.values()
    }


def _compare_roles(asked: TwoInstants) -> list[PastDifference]:
    """The roles that were given or taken back, of a place those that cover it."""
    states = role_bindings_at_each((asked.begin, asked.end))
    earlier, later = ({_key(each): each for each in state} for state in states)
    found = []
    for key in sorted(earlier.keys() ^ later.keys()):
        binding = earlier.get(key) or later[key]
        if not _concerns(binding, asked.cluster, asked.namespace):
            continue
        word = "taken back from" if key in earlier else "given to"
        found.append(
            PastDifference(
                cluster=binding.cluster,
                namespace=binding.namespace,
                kind=ROLE_KIND,
                name=binding.subject,
                words=[f"role {binding.role} {word} {binding.subject}"],
                before=_shown(earlier.get(key)),
                after=_shown(later.get(key)),
            )
        )
    return found


def _key(binding: PastBinding) -> tuple[str, str, str, str]:
    return binding.cluster, binding.namespace, binding.subject, binding.role


def _concerns(binding: PastBinding, cluster: str, namespace: str) -> bool:
    if cluster and namespace:
        return scope_covers((binding.cluster, binding.namespace), cluster, namespace)
    if namespace:
        return scope_covers(("", binding.namespace), "", namespace)
    return binding.cluster in ("", cluster) if cluster else True


def _shown(binding: PastBinding | None) -> Mapping[str, str] | None:
    if binding is None:
        return None
    names = ("user", "group", "role", "cluster", "namespace")
    return {name: getattr(binding, name) for name in names}


def _is_seen(user: Any, found: PastDifference | ChangedObject) -> bool:
    namespace = found.name if found.kind == "Namespace" else found.namespace
    return roles.sees(user, found.cluster, namespace)
