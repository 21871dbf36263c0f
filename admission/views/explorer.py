"""The explorer: the record searched, counted and followed. The address is its whole state."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.generic import TemplateView, View

from admission import decision_id
from admission.decision_id import is_decision_id
from admission.explorer import times, words
from admission.explorer.facets import facets, with_fields
from admission.explorer.grouping import grouped
from admission.filters import LENGTHS
from admission.models import SavedView
from admission.views.record import RecordMixin

if TYPE_CHECKING:
    from django.http import HttpRequest

    from admission.explorer.searching import Sample, Search
    from admission.models import AuditEvent, Page

PAGE_SIZE: Final = 50
TAIL: Final = 50
_CURSORS: Final = ("before", "after")


class DecisionListView(RecordMixin, TemplateView):
    """The record, newest first, with its filter, counts beside it and bars above."""

    template_name = "admission/auditevent_list.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Turn what was typed into the bar into an address, unless something is wrong with it."""
        typed = request.GET.get("q")
        if typed is not None:
            fields, errors = words.parse(typed)
            if not errors:
                query = with_fields(fields)
                return redirect(reverse("decision-list") + (f"?{query}" if query else ""))
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of events and all that stands around it; a fixed number of questions."""
        search = self.search()
        sample = search.sample()
        query = self._query(search)
        cursors = {name: _cursor(self.request, name) for name in _CURSORS}
        page = search.page(PAGE_SIZE, sample, **cursors)
        typed = self.request.GET.get("q", "")
        fields = list(search.filter.form)
        return super().get_context_data(
            **kwargs,
            rows=grouped(page.events),
            form=search.filter.form,
            fields=fields,
            form_open=not search.is_valid,
            bar=typed or words.render(query),
            bar_errors=words.parse(typed)[1],
            query=with_fields(query),
            filtered=any(query.values()),
            sample=sample,
            facets=facets(sample.rows, query),
            searched_to=page.searched_to,
            newer_query=_beside(query, after=page.newer),
            older_query=_beside(query, before=page.older),
            is_first=not any(cursors.values()),
            tail=_tail(page, query) if search.is_valid and not any(cursors.values()) else "",
            has_role=self.has_role,
            views=SavedView.objects.usable_by(self.request.user).select_related("owner"),
            **self._bars(search, sample, query),
        )

    def _query(self, search: Search) -> dict[str, str]:
        given = self.request.GET
        return {name: given.get(name, "") for name in search.filter.filters}

    def _bars(self, search: Search, sample: Sample, query: dict[str, str]) -> dict[str, Any]:
        if not search.is_valid:
            return {"bars": []}
        span = _span(search, query, datetime.now(UTC))
        bars, is_tallied = self._tallied(sample, span, query)
        total = sum(bar.total for bar in bars)
        plot = json.dumps({"columns": times.columns(bars), "marks": []})
        return {"bars": bars, "total": total, "plot": plot, "is_tallied": is_tallied}

    def _tallied(
        self, sample: Sample, span: times.Span, query: dict[str, str]
    ) -> tuple[list[times.Bar], bool]:
        """Bars of the tallies, where the sample is not all and the tallies know; else of that."""
        if not sample.is_whole and times.can_tally(query):
            with suppress(LookupError):
                clusters = self.whole_clusters(query.get("cluster", ""))
                return times.of_tallies(span, query, clusters, datetime.now(UTC)), True
        return times.of_sample(sample, span, query), False


def _span(search: Search, query: dict[str, str], now: datetime) -> times.Span:
    asked = search.filter.form.cleaned_data
    since, until = asked.get("since"), asked.get("until")
    if length := LENGTHS.get(query.get("last", "")):
        since = max(since, now - length) if since else now - length
    until = min(until, now) if until else now
    return times.Span(since=min(since, until) if since else None, until=until)


def _tail(page: Page, query: dict[str, str]) -> str:
    """The query that asks for what is newer than this page."""
    newest = page.events[0].id if page.events else decision_id.lowest(datetime.now(UTC))
    return with_fields(query, after=newest)


def _cursor(request: HttpRequest, name: str) -> str:
    value = request.GET.get(name, "")
    return value if is_decision_id(value) else ""


def _beside(query: dict[str, str], **cursor: str) -> str:
    """The query string of the page next to this one; empty where there is none."""
    return with_fields(query, **cursor) if any(cursor.values()) else ""


class NewerDecisionsView(RecordMixin, View):
    """What came since a decision: the lines that the live tail puts on top of the list."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Give the lines; 204 where there are none, or nothing is asked for."""
        after = _cursor(request, "after")
        search = self.search()
        if not after or not search.is_valid:
            return HttpResponse(status=204)
        rows = search.listed().newer_than(after).order_by("created", "id")
        events: list[AuditEvent] = list(reversed(rows[:TAIL]))
        if not events:
            return HttpResponse(status=204)
        query = {name: request.GET.get(name, "") for name in search.filter.filters}
        tail = with_fields(query, after=events[0].id)
        context = {"rows": grouped(events), "number": len(events), "tail": tail}
        return render(request, "admission/_newer.html", context)
