"""``role_bindings_at``: who had which role at an instant; ``clusters_seen`` by a user of today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies import roles
from policies.models import Cluster, PolicyRevision, RoleBinding, RoleChange

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence

_GROUP: Final = "group "

_Key = tuple[str, str, str, str]
"""Subject, role, cluster and namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBinding:
    """A role that somebody had; ``user`` or ``group`` is empty, as in a binding of today."""

    user: str
    group: str
    role: str
    cluster: str
    namespace: str
    created: dt.datetime
    created_by: str

    @property
    def subject(self) -> str:
        """The subject as a binding of today has it."""
        return self.user or f"{_GROUP}{self.group}"


def role_bindings_at(instant: dt.datetime) -> list[PastBinding]:
    """All bindings at an instant, by subject; members of groups are not on record.

    A binding of today that is on no record counts from the time that it names itself.
    """
    [found] = role_bindings_at_each([instant])
    return found


def role_bindings_at_each(instants: Sequence[dt.datetime]) -> list[list[PastBinding]]:
    """The same at several instants, in their order; two queries for any number of them."""
    changes = list(RoleChange.objects.order_by("pk"))
    bindings = RoleBinding.objects.filter(created__lte=max(instants))
    stored = list(bindings.select_related("user", "group"))
    return [_held(changes, stored, instant) for instant in instants]


def _held(
    changes: Iterable[RoleChange], stored: Iterable[RoleBinding], instant: dt.datetime
) -> list[PastBinding]:
    held: dict[_Key, PastBinding] = {}
    recorded: set[_Key] = set()
    for change in changes:
        key = (change.subject, change.role, change.cluster, change.namespace)
        recorded.add(key)
        if change.created > instant:
            continue
        if change.action == RoleChange.Action.GIVEN:
            held[key] = _binding(key, change.created, change.actor)
        else:
            held.pop(key, None)
    for given in stored:
        key = (given.subject, given.role, given.cluster, given.namespace)
        if given.created <= instant and key not in recorded:
            held[key] = _binding(key, given.created, given.created_by)
    return [held[key] for key in sorted(held)]


def _binding(key: _Key, created: dt.datetime, author: str) -> PastBinding:
    subject, role, cluster, namespace = key
    # A user's name has no spaces.
    is_group = subject.startswith(_GROUP)
    return PastBinding(
        user="" if is_group else subject,
        group=subject.removeprefix(_GROUP) if is_group else "",
        role=role,
        cluster=cluster,
        namespace=namespace,
        created=created,
        created_by=author,
    )


def clusters_seen(user: Any) -> list[str]:
    """The clusters on record of which the user may see any part, deleted ones included."""
    names = PolicyRevision.objects.filter(kind=Cluster.kind).order_by("cluster")
    known = names.values_list("cluster", flat=True).distinct()
    return [name for name in known if roles.sees(user, name)]
