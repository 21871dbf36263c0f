"""``changed_objects`` written between two instants; ``PastDifferences``: what it comes to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, overload

from django.db.models import Max, OuterRef, Q, Subquery, TextField
from django.db.models.functions import Cast

from policies.history.objects import POLICY_KINDS, objects_of, reached
from policies.managed_fields import changed_fields
from policies.manifests import diff_in_words
from policies.models import PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.history.objects import PastObject
    from policies.models.edits import PolicyRevisionQuerySet

COMPARED_KINDS: Final = (
    *("Cluster", "ResourceQuotaConfiguration", "PriorityClass", "Namespace"),
    *POLICY_KINDS,
)
_NAMES: Final = ("cluster", "namespace", "kind", "name")
_TEXT: Final = Cast("after", TextField())
_State = tuple[str | None, int]
"""The text of a manifest, None if there is none, and the id of the revision that left it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDifference:
    """An object that differs; ``before`` or ``after`` is None where it was not there.

    ``written`` is the newest of the revisions that made the two, None of what has none: usage,
    roles. ``amounts`` are the paths of usage that differ.
    """

    cluster: str
    namespace: str
    kind: str
    name: str
    words: Sequence[str]
    amounts: Sequence[str] = ()
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    written: PastObject | None = None

    @property
    def fields(self) -> Sequence[str]:
        """The paths that differ; none where the whole came or went.

        Found when they are asked for: to read both manifests costs more than all else of a
        difference, and of thousands a page shows fifty.
        """
        if self.amounts or not self.before or not self.after:
            return self.amounts
        return sorted(changed_fields(self.before, self.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedObject:
    """An object whose manifest differs; both as the database's text, None where it was not there.

    ``written`` is the id of the newest of the revisions that made the two.
    """

    cluster: str
    namespace: str
    kind: str
    name: str
    before: str | None
    after: str | None
    written: int

    @property
    def has_words(self) -> bool:
        """Whether there is anything to say; another order of keys is nothing."""
        # Of what came or went there is, whatever is in it: thousands may have.
        if self.before is None or self.after is None:
            return True
        return diff_in_words.are_different(json.loads(self.before), json.loads(self.after))

    def in_words(self, written: PastObject) -> PastDifference:
        """The difference, as it is shown."""
        before, after = map(_parsed, (self.before, self.after))
        return PastDifference(
            cluster=self.cluster,
            namespace=self.namespace,
            kind=self.kind,
            name=self.name,
            words=diff_in_words.changes(before, after),
            before=before,
            after=after,
            written=written,
        )


def _parsed(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


class PastDifferences(Sequence[PastDifference]):
    """All that differs; put in words, and read with its revisions, for the part that is shown."""

    def __init__(self, found: Sequence[PastDifference | ChangedObject]) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> PastDifference: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PastDifference]: ...
    def __getitem__(self, index: int | slice) -> PastDifference | Sequence[PastDifference]:
        if isinstance(index, slice):
            return _in_words(self._found[index])
        [found] = _in_words([self._found[index]])
        return found

    def __iter__(self) -> Iterator[PastDifference]:
        # One query, not one for each.
        return iter(_in_words(self._found))


def _in_words(found: Sequence[PastDifference | ChangedObject]) -> list[PastDifference]:
    ids = [each.written for each in found if isinstance(each, ChangedObject)]
    rows = PolicyRevision.objects.filter(pk__in=ids).order_by().defer("before")
    written = {each.id: each for each in objects_of(rows)}
    return [
        each.in_words(written[each.written]) if isinstance(each, ChangedObject) else each
        for each in found
    ]


def changed_objects(
    writes: Sequence[Mapping[str, int]], *, namespace: str = "", is_backwards: bool = False
) -> list[ChangedObject]:
    """The objects whose manifests differ after so many writes of each cluster and so many more.

    One query for any number of clusters. Only what was written in between is looked at, and what
    is equal again is told by its text, before any of it is parsed. ``is_backwards``: from the later
    to the earlier state.
    """
    since, until = writes
    rows = _written(since, until, namespace).order_by()
    newest = rows.values(*_NAMES).annotate(newest=Max("pk")).values("newest")
    same_name = {name: OuterRef(name) for name in _NAMES}
    # Its numbers rise with its writes, so that the index by name and number ends with the newest.
    state = PolicyRevision.objects.filter(reached(since), **same_name).order_by("-number")
    columns = (
        PolicyRevision.objects.filter(pk__in=newest)
        .order_by()
        .annotate(
            earlier=Subquery(state.values("pk")[:1]),
            earlier_text=Subquery(state.annotate(text=_TEXT).values("text")[:1]),
            text=_TEXT,
        )
        .values_list(*_NAMES, "earlier_text", "earlier", "text", "pk")
    )
    order = -1 if is_backwards else 1
    return [
        _changed(names, ((earlier_text, earlier), (text, pk))[::order])
        for *names, earlier_text, earlier, text, pk in columns
        if earlier_text != text
    ]


def _changed(names: Sequence[str], states: Sequence[_State]) -> ChangedObject:
    cluster, namespace, kind, name = names
    # A deletion leaves no text, and is not what made an object.
    (before, before_id), (after, after_id) = states
    return ChangedObject(
        cluster=cluster,
        namespace=namespace,
        kind=kind,
        name=name,
        before=before,
        after=after,
        written=before_id if after is None else after_id,
    )


def _written(
    since: Mapping[str, int], until: Mapping[str, int], namespace: str
) -> PolicyRevisionQuerySet:
    """The revisions between two numbers of writes of each cluster."""
    between = reduce(
        or_,
        (
            Q(cluster=name, cluster_revision__gt=since.get(name, 0), cluster_revision__lte=number)
            for name, number in until.items()
        ),
        Q(pk__in=[]),
    )
    rows = PolicyRevision.objects.filter(between, kind__in=COMPARED_KINDS)
    if namespace:
        rows = rows.filter(Q(namespace=namespace) | Q(kind="Namespace", name=namespace))
    return rows
