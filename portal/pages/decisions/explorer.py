"""Explorer of decisions: Search of visible ones, facets, bars of tallies, live tail, export."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.views.generic import TemplateView, View

from admission.models import AuditEvent, AuditEventQuerySet, decision_id
from admission.record.search import histogram, stream
from admission.record.search import query as search_query
from admission.record.search.facets import with_fields
from admission.record.search.overview import overview
from admission.record.search.pages import PagePosition, grouped, page, read_events
from admission.record.search.saved_views import usable_views
from admission.record.search.search import Search
from policies import roles
from policies.tokens.plain_views import TakesToken
from portal.pages.decisions.facet_column import facet_column
from portal.pages.decisions.periods import period_of
from portal.pages.decisions.rows import log_rows

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

    from admission.record.search.search import Sample


TAIL: Final = 50
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
            typed_fields, query_errors = search_query.parse(typed_query)
            if not query_errors:
                list_query = with_fields(typed_fields)
                return redirect(reverse("decision-list") + (f"?{list_query}" if list_query else ""))
        context = self.get_context_data(**kwargs)
        return self.render_to_response(context, status=400 if context["form_open"] else 200)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of lines, facets, bars and the query; a fixed number of queries."""
        search = self.search()
        position = PagePosition.of(self.request.GET)
        found = page(search, position)
        asked = self.fields(search)
        typed_query = self.request.GET.get("q", "")
        return super().get_context_data(
            **kwargs,
            rows=found.lines,
            log=list(log_rows(found.lines)),
            form=search.filter.form,
            fields=list(search.filter.form),
            form_open=not search.is_valid,
            bar=typed_query or search_query.render(asked),
            bar_errors=search_query.parse(typed_query)[1],
            query=with_fields(asked),
            filtered=any(asked.values()),
            sample=found.sample,
            number=search.count(found.sample) if search.is_valid else None,
            lines=found.number,
            period=period_of(asked, self._moments(search), datetime.now(UTC)),
            asked=[(name, text) for name, text in asked.items() if text],
            facets=facet_column(found.sample.rows, asked),
            searched_to=found.sample.searched_to,
            newer_query=_beside_query(asked, found.newer),
            older_query=_beside_query(asked, found.older),
            tail=_tail_query(found.sample, asked) if search.is_valid and position.is_first else "",
            has_role=self.has_role,
            may_hold=self.may_hold,
            views=usable_views(self.request.user),
            **self._bars(search, found.sample, asked),
        )

    def _moments(self, search: Search) -> dict[str, Any]:
        return search.filter.form.cleaned_data if search.is_valid else {}

    def _bars(self, search: Search, sample: Sample, query: dict[str, str]) -> dict[str, Any]:
        if not search.is_valid:
            return {"bars": []}
        found = overview(search, sample, query, self.request.user)
        bars_total = sum(bar.total for bar in found.bars)
        bars_plot = json.dumps({"columns": histogram.columns(found.bars), "marks": []})
        return {
            "bars": found.bars,
            "total": bars_total,
            "plot": bars_plot,
            "is_tallied": found.is_tallied,
        }


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
        tail_query = _tail_query(sample, self.fields(search))
        newer_context = {
            "rows": newer_lines,
            "log": list(log_rows(newer_lines)),
            "number": sum(newer_line.number for newer_line in newer_lines),
            "tail": tail_query,
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
