"""Explorer of decisions: Search of visible ones, facets, bars of tallies, live tail, export."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import (
    Http404,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.views.generic import TemplateView, View

from admission.models import AuditEvent, AuditEventQuerySet, decision_id
from admission.record.search import histogram, stream
from admission.record.search import query as search_query
from admission.record.search.facets import with_fields
from admission.record.search.overview import number_of, overview
from admission.record.search.pages import (
    PagePosition,
    SearchPage,
    grouped,
    oldest_page,
    page,
    read_events,
    stretch,
)
from admission.record.search.saved_views import may_change, usable_views
from admission.record.search.search import Search
from policies import roles
from policies.tokens.plain_views import TakesToken
from portal.pages.decisions.facet_column import facet_column, filters_chosen
from portal.pages.decisions.groups import GROUPS, grouped_by
from portal.pages.decisions.looks import COOKIE, Look
from portal.pages.decisions.marks import MOST_MARKS, marks_of
from portal.pages.decisions.periods import period_of
from portal.pages.decisions.rows import log_rows
from portal.pages.shell.times import shown, zone_label, zone_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from django.http import HttpRequest, HttpResponseBase

    from admission.models import CappedCount
    from admission.record.search.search import Sample


TAIL: Final = 50
_PLACE: Final = ("before", "after", "line")
_EXPORT_WRITERS: Final = {"csv": stream.as_csv, "jsonl": stream.as_jsonl}


def visible_decisions(user: Any) -> AuditEventQuerySet:
    """The decisions that a person may see."""
    return roles.visible(AuditEvent.objects.all(), user, cluster="cluster", namespace="namespace")


class RecordMixin(LoginRequiredMixin):
    """A page of the record: for people who are signed in, never cached."""

    request: HttpRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Mark the answer as not to be stored."""
        response = super().dispatch(request, *args, **kwargs)
        add_never_cache_headers(response)
        return response

    @property
    def has_role(self) -> bool:
        """Whether the person has a role anywhere."""
        user = self.request.user
        return roles.sees_all(user) or bool(roles.bindings_of(user))

    @property
    def may_hold(self) -> bool:
        """Whether the person may hold decisions of any place against retention."""
        return roles.may_somewhere(self.request.user, "admission.add_audithold")

    def search(self) -> Search:
        """The search of the address, among visible decisions."""
        return Search(self.request.GET.dict(), visible_decisions(self.request.user))

    @cached_property
    def look(self) -> Look:
        """How the decisions are shown."""
        return Look.of(self.request)

    def fields(self, search: Search) -> dict[str, str]:
        """The text of each field of the filter, as the address has it."""
        return {name: self.request.GET.get(name, "") for name in search.filter.filters}


class DecisionListView(RecordMixin, TemplateView):
    """The record, newest first, with its filter, counts beside it and bars above."""

    template_name = "decisions/decisions.html"

    def get(self, request: HttpRequest, *_args: Any, **kwargs: Any) -> HttpResponse:
        """Redirect a valid query of the bar to the address that says the same."""
        typed_query = request.GET.get("q")
        if typed_query is not None:
            typed_fields, query_errors = search_query.parse(typed_query, self.zone)
            if not query_errors:
                return _to_list(with_fields({**typed_fields, **self.look.kept}))
        if "local" in request.GET:  # the times of the picker, which are not in UTC
            fields = search_query.in_zone(self.fields(self.search()), self.zone, UTC)
            return _to_list(with_fields({**fields, **self.look.kept}))
        if "remember" in request.GET:
            return self._remember()
        context = self.get_context_data(**kwargs)
        return self.render_to_response(context, status=400 if context["form_open"] else 200)

    def _continues(self, position: PagePosition) -> str:
        """The button that goes on with a search that has found nothing yet."""
        is_forward = self.look.is_oldest_first and not (self.look.group or position.ends_before)
        return "Newer" if is_forward else "Older"

    def _remember(self) -> HttpResponse:
        """Remember the chosen columns, and show the same page with them."""
        query = self.request.GET
        place = {name: query.get(name, "") for name in _PLACE}
        response = _to_list(with_fields({**self.fields(self.search()), **self.look.kept, **place}))
        response.set_cookie(
            COOKIE,
            self.look.cookie,
            max_age=timedelta(days=365),
            path=reverse("decision-list"),
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
        return response

    def _found(self, search: Search, position: PagePosition) -> SearchPage:
        """The page of lines; of groups, the stretch that they count."""
        if self.look.group:
            return stretch(search, position)
        return (oldest_page if self.look.is_oldest_first else page)(search, position)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of lines, facets, bars and the query; a fixed number of queries."""
        search = self.search()
        position = PagePosition.of(self.request.GET)
        found = self._found(search, position)
        asked = self.fields(search)
        kept = {**asked, **self.look.kept}
        typed_query = self.request.GET.get("q", "")
        is_newest = position.is_first and not (self.look.group or self.look.is_oldest_first)
        return super().get_context_data(
            **kwargs,
            rows=found.lines,
            log=list(log_rows(found.lines)),
            form=search.filter.form,
            fields=list(search.filter.form),
            form_open=not search.is_valid,
            bar=typed_query or search_query.render(asked, self.zone),
            bar_errors=search_query.parse(typed_query, self.zone)[1],
            query=with_fields(kept),
            filtered=any(asked.values()),
            sample=found.sample,
            number=self._number(search, found.sample),
            lines=found.number,
            period=period_of(kept, self._moments(search), datetime.now(self.zone)),
            asked=[(name, text) for name, text in kept.items() if text],
            facets=facet_column(found.sample.rows, kept),
            filters_chosen=filters_chosen(asked),
            searched_to=found.sample.searched_to,
            newer_query=_beside_query(kept, found.newer),
            older_query=_beside_query(kept, found.older),
            tail=_tail_query(found.sample, kept) if search.is_valid and is_newest else "",
            has_role=self.has_role,
            may_hold=self.may_hold,
            **self._views(),
            **self._bars(search, found.sample, kept),
            continues=self._continues(position),
            **self._looks(found.sample, kept),
        )

    def _number(self, search: Search, sample: Sample) -> CappedCount | None:
        return number_of(search, sample, self.request.user) if search.is_valid else None

    @property
    def zone(self) -> tzinfo:
        """The reader's time zone."""
        return zone_of(self.request)

    def _views(self) -> dict[str, Any]:
        """Saved views to open, and those that the person may delete."""
        user = self.request.user
        views = usable_views(user)
        return {"views": views, "kept_views": [view for view in views if may_change(user, view)]}

    def _looks(self, sample: Sample, kept: dict[str, str]) -> dict[str, Any]:
        """What the page shows of the look, and the queries of other ones."""
        look = self.look
        plain = {**kept, "group": ""}
        choices = [("", "Not grouped"), *GROUPS.items()]
        return {
            "look": look,
            "turned_query": with_fields({**kept, **look.turned}),
            "zone": zone_label(self.zone),
            "spans": search_query.in_zone(kept, UTC, self.zone),
            "place": [(name, self.request.GET.get(name, "")) for name in _PLACE],
            "grouped": grouped_by(sample.rows, look.group, plain) if look.group else None,
            "group_choices": [
                (label, with_fields(plain, group=name), name == look.group)
                for name, label in choices
            ],
        }

    def _moments(self, search: Search) -> dict[str, Any]:
        return search.filter.form.cleaned_data if search.is_valid else {}

    def _bars(self, search: Search, sample: Sample, query: dict[str, str]) -> dict[str, Any]:
        if not search.is_valid:
            return {"bars": []}
        found = overview(search, sample, query, self.request.user)
        ends = (found.bars[0].start, found.bars[-1].end) if found.bars else ()
        bars_total = sum(bar.total for bar in found.bars)
        marks = marks_of(found.bars, query, self.request.user) if bars_total else []
        plot_marks = [{"at": mark.seconds} for mark in marks]
        bars_plot = json.dumps({"columns": histogram.columns(found.bars), "marks": plot_marks})
        return {
            "bars": found.bars,
            "total": bars_total,
            "marks": marks,
            "has_more_marks": len(marks) == MOST_MARKS,
            "plot": bars_plot,
            "plot_zone": getattr(self.zone, "key", "UTC"),
            "plot_ends": [shown(at, "exact", self.zone) for at in ends],
            "is_tallied": found.is_tallied,
        }


def _to_list(query: str) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("decision-list") + (f"?{query}" if query else ""))


def _tail_query(sample: Sample, query: dict[str, str]) -> str:
    """The query for decisions that are newer than this page."""
    # Ids are sorted by time, so the lowest id of this moment is a cursor as well.
    newest = sample.rows[0].id if sample.rows else decision_id.lowest(datetime.now(UTC))
    return with_fields(query, after=newest)


def _beside_query(query: dict[str, str], cursor: dict[str, str]) -> str:
    """The query string of the page next to this one; empty where there is none."""
    return with_fields(query, **cursor) if cursor else ""


class NewerDecisionsView(RecordMixin, View):
    """The decisions since a given one: the lines that the live tail puts on top of the list."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """The newer lines; 204 where there are none, or the query is not valid."""
        # An id and not a time: several decisions may share one moment.
        after_id = PagePosition.of(request.GET).after
        search = self.search()
        sample = search.newer(after_id, TAIL) if after_id and search.is_valid else None
        if not (sample and sample.rows):
            return HttpResponse(status=204)
        newer_lines = grouped(sample.rows)
        read_events(search, newer_lines)
        tail_query = _tail_query(sample, {**self.fields(search), **self.look.kept})
        newer_context = {
            "rows": newer_lines,
            "log": list(log_rows(newer_lines)),
            "number": sum(newer_line.number for newer_line in newer_lines),
            "tail": tail_query,
            "look": self.look,
        }
        return render(request, "decisions/_newer.html", newer_context)


class ExportView(TakesToken, RecordMixin, View):
    """All decisions that fit, as CSV or JSON Lines."""

    def get(self, _request: HttpRequest, form: str) -> HttpResponseBase:
        """Stream the file; 400 for a query that is not valid."""
        to_rows = _EXPORT_WRITERS.get(form)
        if to_rows is None:
            raise Http404
        search = self.search()
        if not search.is_valid:
            return HttpResponseBadRequest("The filter cannot be read.\n", content_type="text/plain")
        # Streamed: an export may be larger than the memory of the process.
        response = StreamingHttpResponse(to_rows(search.found), content_type=stream.FORMATS[form])
        export_name = f"decisions-{datetime.now(UTC):%Y%m%d-%H%M%S}.{form}"
        response["Content-Disposition"] = f'attachment; filename="{export_name}"'
        return response
