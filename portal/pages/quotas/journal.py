"""QuotaJournalPage: the ledger's entries of one quota, newest first; why ``used`` is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.shortcuts import get_object_or_404

from policies.ledger.entries import entries_of
from policies.models import LedgerEntry, ResourceQuota
from policies.services import differences_of
from portal.pages.views import ClusterPage, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

ON_A_PAGE: Final = 50
LONGEST_FILTER: Final = 253
FILTERS: Final = ("action", "cause", "object")


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry, its amounts by name, and the decision that it comes from."""

    entry: LedgerEntry
    amounts: Sequence[tuple[str, str, str]]
    decision: str


class QuotaJournalPage(ClusterPage):
    """How a quota came to what it uses, a page at a time."""

    template_name = "quotas/journal.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The requested page of entries, the filters, and what differs from the charges."""
        namespace, name = str(self.kwargs["namespace"]), str(self.kwargs["quota"])
        quota = get_object_or_404(
            ResourceQuota, namespace__cluster=self.cluster, namespace__name=namespace, name=name
        )
        asked = {
            each: self.request.GET.get(each, "").replace("\0", "").strip()[:LONGEST_FILTER]
            for each in FILTERS
        }
        before = whole_number(self.request.GET.get("before", ""))
        found = _matching(entries_of(self.cluster.pk, quota.uid).order_by("-id"), asked)
        # One row more than shown says whether there is an older page, without a count.
        shown = list((found.filter(pk__lt=before) if before else found)[: ON_A_PAGE + 1])
        is_older = len(shown) > ON_A_PAGE
        is_first = not before and not any(asked.values())
        journal_context = {
            "namespace": namespace,
            "quota": quota,
            "differences": differences_of(quota) if is_first else [],
        }
        return super().get_context_data(
            **{**kwargs, **journal_context},
            rows=[_row(each) for each in shown[:ON_A_PAGE]],
            asked=asked,
            is_asked=any(asked.values()),
            is_later=bool(before),
            actions=LedgerEntry.Action.values,
            causes=LedgerEntry.Cause.values,
            older=self._query(before=str(shown[ON_A_PAGE - 1].pk)) if is_older else "",
            newest=self._query(),
        )

    def _query(self, **more: str) -> str:
        page_query = self.request.GET.copy()
        page_query.pop("before", None)
        page_query.update(more)
        return page_query.urlencode()


def _matching(entries: QuerySet[LedgerEntry], asked: dict[str, str]) -> QuerySet[LedgerEntry]:
    wanted = Q(**{name: asked[name] for name in ("action", "cause") if asked[name]})
    if asked["object"]:
        wanted &= Q(object_name=asked["object"]) | Q(object_uid=asked["object"])
    return entries.filter(wanted)


def _row(entry: LedgerEntry) -> EntryRow:
    is_admitted = entry.cause == LedgerEntry.Cause.ADMISSION
    return EntryRow(entry, _amounts(entry), entry.reference if is_admitted else "")


def _amounts(entry: LedgerEntry) -> list[tuple[str, str, str]]:
    """Each name with its amount before and after."""
    names = sorted({*entry.before, *entry.after})
    return [(name, entry.before.get(name, "0"), entry.after.get(name, "0")) for name in names]
