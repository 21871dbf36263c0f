"""TermsView: what the query's field offers for the word at its caret, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from django.http import JsonResponse
from django.views.generic import View

from admission.record.search.terms import terms
from admission.record.search.words import LONGEST
from policies import roles
from policies.models import Cluster, Namespace
from portal.pages.decisions.explorer import RecordMixin, visible_decisions

if TYPE_CHECKING:
    from django.http import HttpRequest

LONGEST_TERM: Final = 300


class TermsView(RecordMixin, View):
    """Terms for a word of the query; ``rest`` is the query without it."""

    def get(self, request: HttpRequest) -> JsonResponse:
        """The terms in the order in which they are offered."""
        typed = request.GET.get("word", "")[:LONGEST_TERM]
        rest = request.GET.get("rest", "")[:LONGEST]
        user = request.user
        found = terms(typed, rest, visible_decisions(user), lambda key: _known_names(key, user))
        return JsonResponse({"terms": [asdict(term) for term in found]})


def _known_names(key: str, user: Any) -> list[str]:
    """The clusters or namespaces that the user sees, with decisions or without; one query."""
    if key == "cluster":
        clusters = roles.visible(Cluster.objects.all(), user, cluster="name", whole=True)
        return list(clusters.order_by("name").values_list("name", flat=True))
    if key != "ns":
        return []
    namespaces = roles.visible(
        Namespace.objects.all(), user, cluster="cluster__name", namespace="name"
    )
    return list(namespaces.order_by("name").values_list("name", flat=True).distinct())
