"""The pages of the record: the list and one decision in full. Nothing here writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.mixins import LoginRequiredMixin
from django.shortcuts import get_object_or_404
from django.utils.cache import add_never_cache_headers
from django.views.generic import DetailView, TemplateView

from admission.decision_id import is_decision_id
from admission.filters import AuditEventFilter
from admission.models import AuditEvent, Verdict
from admission.narrative import sentence, summary

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponseBase, QueryDict

    from admission.models import Figures

    _DetailView = DetailView[AuditEvent]
else:
    _DetailView = DetailView

PAGE_SIZE: Final = 50
MAIN_FILTERS: Final = ("cluster", "namespace", "kind", "name", "verdict")


class RecordMixin(LoginRequiredMixin):
    """Only for people who are logged in, and never kept by a cache."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Mark the answer as not to be stored."""
        response = super().dispatch(request, *args, **kwargs)
        add_never_cache_headers(response)
        return response


class DecisionListView(RecordMixin, TemplateView):
    """The record, newest first, with its filter and one day's counts."""

    template_name = "admission/auditevent_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of events, the cursors around it, the filter form and the counts."""
        query = self.request.GET
        search = AuditEventFilter(query, queryset=AuditEvent.objects.listed())
        valid = search.is_valid()
        found = search.qs if valid else AuditEvent.objects.none()
        page = found.page(
            before=_cursor(query, "before"), after=_cursor(query, "after"), size=PAGE_SIZE
        )
        fields = list(search.form)
        return super().get_context_data(
            **kwargs,
            rows=[{"event": event, "summary": summary(event)} for event in page.events],
            form=search.form,
            main_fields=[f for f in fields if f.name in MAIN_FILTERS],
            more_fields=[f for f in fields if f.name not in MAIN_FILTERS],
            more_open=any(query.get(f.name) for f in fields if f.name not in MAIN_FILTERS),
            filtered=any(query.get(f.name) for f in fields),
            searched_to=page.searched_to,
            newer_query=_with(query, after=page.newer),
            older_query=_with(query, before=page.older),
            figures=_figures(),
            shortcuts=_shortcuts(query),
        )


class DecisionDetailView(RecordMixin, _DetailView):
    """One decision: in a sentence, then all its numbers."""

    queryset = AuditEvent.objects.all()
    context_object_name = "event"

    def get_object(self, queryset: QuerySet[AuditEvent] | None = None) -> AuditEvent:
        """The decision of this id, asked of its day alone."""
        del queryset
        return get_object_or_404(AuditEvent.objects.with_id(self.kwargs["pk"]))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The event, what it says in words, and its JSON in readable form."""
        event: AuditEvent = self.object
        return super().get_context_data(
            **kwargs,
            sentence=sentence(event),
            patch=[_operation(operation) for operation in event.patch],
            judged=_pretty(event.request.get("object")),
            judged_before=_pretty(event.request.get("oldObject")),
            milliseconds=f"{event.duration_us / 1000:.1f}",
        )


def _cursor(query: QueryDict, name: str) -> str:
    value = query.get(name, "")
    return value if is_decision_id(value) else ""


def _with(query: QueryDict, **cursor: str) -> str:
    """The query string of the page next to this one; empty where there is none."""
    if not any(cursor.values()):
        return ""
    kept = query.copy()
    for name in ("before", "after"):
        kept.pop(name, None)
    kept.update(cursor)
    return kept.urlencode()


def _figures() -> Figures:
    """What was answered in the last 24 hours."""
    return AuditEvent.objects.figures(since=datetime.now(UTC) - timedelta(days=1))


def _shortcuts(query: QueryDict) -> list[dict[str, Any]]:
    choices = [("", "All"), *Verdict.choices]
    return [
        {
            "label": label,
            "query": f"verdict={value}" if value else "",
            "current": query.get("verdict", "") == value,
        }
        for value, label in choices
    ]


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    value = json.dumps(operation.get("value"), ensure_ascii=False, sort_keys=True)
    return {**operation, "value": "" if operation.get("op") == "remove" else value}


def _pretty(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
