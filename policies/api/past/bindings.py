"""Role bindings as of an instant: seen, narrowed, sorted, and shown as bindings of today."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from policies import history, roles
from policies.api.past.filter import ORDERING, require_answerable
from policies.models import RoleBinding

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence

    from rest_framework.request import Request

_EXACT: Final = ("user", "group", "role", "cluster", "namespace", "created_by")
_ANY_OF: Final = ("role__in", "cluster__in", "namespace__in", "created_by__in")
_PLACE: Final = attrgetter("user", "group", "cluster", "namespace", "role")


class BindingOfThen(NamedTuple):
    """A past binding; ``pk`` is None where it was taken back since, so that nobody has its number.

    Names are those of then: the user or group may be deleted.
    """

    pk: int | None
    past: history.PastBinding
    created: dt.datetime


def seen_bindings(user: Any, instant: dt.datetime) -> list[BindingOfThen]:
    """The bindings of an instant that the user may see, by subject and place; three queries."""
    stored = {
        (each.subject, each.role, each.cluster, each.namespace): each
        for each in RoleBinding.objects.filter(created__lte=instant).select_related("user", "group")
    }
    found = sorted(history.role_bindings_at(instant), key=_PLACE)
    return [
        BindingOfThen(
            pk=today.pk if today else None,
            past=each,
            created=today.created if today else each.created,
        )
        for each in found
        if roles.sees(user, each.cluster, each.namespace)
        for today in [stored.get((each.subject, each.role, each.cluster, each.namespace))]
    ]


def narrowed(request: Request, found: Iterable[BindingOfThen]) -> Sequence[BindingOfThen]:
    """Those that fit the query, in its order; raises ``BadParameterError`` for times of creation.

    The values of the query are checked already.
    """
    require_answerable(request, {*_EXACT, *_ANY_OF, ORDERING})
    given = request.query_params
    wanted = {name: [given[name]] for name in _EXACT if name in given}
    lists = {name.removesuffix("__in"): given[name].split(",") for name in _ANY_OF if name in given}
    rows = [
        each
        for each in found
        if all(getattr(each.past, name) in values for name, values in wanted.items())
        and all(getattr(each.past, name) in values for name, values in lists.items())
    ]
    # Sorting keeps the order of equal ones: the last key comes first.
    for key in reversed([each.strip() for each in given.get(ORDERING, "").split(",") if each]):
        rows.sort(key=_key(key.removeprefix("-")), reverse=key.startswith("-"))
    return rows


def _key(name: str) -> Any:
    return attrgetter("created" if name == "created" else f"past.{name}")
