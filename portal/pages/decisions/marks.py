"""Marks of the plot: the revisions of policies within its time, and their pages; one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, Q

from admission.record.search.words import EXCLUDE, words_of
from policies import roles
from policies.drafts.kinds import BY_NAME
from policies.models import Cluster, Namespace, PolicyRevision
from portal.pages.views import revision_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from admission.record.search.histogram import Bar

MOST_MARKS: Final = 50
LONGEST_REASON: Final = 120
_PLACES: Final = ("cluster", "namespace")


@dataclass(frozen=True, slots=True)
class RevisionMark:
    """A revision of a policy: a line in the plot that leads to its page."""

    revision: PolicyRevision
    address: str

    @property
    def label(self) -> str:
        """The mark in two words."""
        return f"{self.revision.name or self.revision.kind} #{self.revision.number}"

    @property
    def title(self) -> str:
        """What was changed where, by whom and why."""
        revision = self.revision
        reason = f": {revision.reason[:LONGEST_REASON]}" if revision.reason else ""
        return f"{revision}, {revision.action} by {revision.user}{reason}"

    @property
    def seconds(self) -> int:
        """The time in seconds since 1970, as the plot has it."""
        return int(self.revision.created.timestamp())


def marks_of(bars: Sequence[Bar], query: Mapping[str, str], user: Any) -> list[RevisionMark]:
    """The newest revisions that the user sees in the time of the bars and the query's places."""
    if not bars:
        return []
    revisions = roles.visible(
        PolicyRevision.objects.filter(_in_scope(bars[0].start, bars[-1].end, query)),
        user,
        cluster="cluster",
        namespace="namespace",
    )
    found = revisions.filter(_has_page()).order_by("-created", "-id").defer("before", "after")
    marks = [RevisionMark(each, revision_address(each)) for each in found[:MOST_MARKS]]
    return [mark for mark in reversed(marks) if mark.address]


def _in_scope(begin: datetime, end: datetime, query: Mapping[str, str]) -> Q:
    scope = Q(created__gte=begin, created__lt=end, kind__in=list(BY_NAME))
    scope &= Q(**{place: query[place] for place in _PLACES if query.get(place)})
    for word in words_of(query.get(EXCLUDE, "")):
        if word.field in _PLACES:
            scope &= ~Q(**{word.field: word.value})
    return scope


def _has_page() -> Q:
    """Revisions whose place is still there: with it went the pages of its policies."""
    cluster = Cluster.objects.filter(name=OuterRef("cluster"))
    namespace = Namespace.objects.filter(
        cluster__name=OuterRef("cluster"), name=OuterRef("namespace")
    )
    return Q(Exists(namespace)) | Q(Exists(cluster), namespace="")
