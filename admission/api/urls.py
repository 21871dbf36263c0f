"""URL patterns for machines: mutate, validate, hint (by key), the record, token, schema, docs."""

from __future__ import annotations

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from admission.api.decisions import DecisionViewSet
from admission.api.explanations import ExplanationView
from admission.api.record.consumers import QuotaConsumersView
from admission.api.record.decision_counts import DecisionCountsView
from admission.api.record.legal_holds import LegalHoldView
from admission.api.record.replays import ReplayView
from admission.api.record.retention import RetentionView
from admission.api.record.saved_views import SavedViewView
from admission.api.redecisions import RedecisionView
from admission.api.review import AdmissionReviewView, HintView
from admission.api.token_and_schema import DocsView, SchemaView, TokenView
from engine.request import Phase

router = SimpleRouter()
router.register("decisions", DecisionViewSet, basename="api-decision")
router.register("savedviews", SavedViewView, basename="api-savedview")
router.register("legalholds", LegalHoldView, basename="api-legalhold")
router.register("replays", ReplayView, basename="api-replay")

_mutate = AdmissionReviewView.as_view(phase=Phase.MUTATE)
_validate = AdmissionReviewView.as_view(phase=Phase.VALIDATE)
_hint = HintView.as_view()
_schema = SchemaView.as_view()
_docs = DocsView.as_view()
_explanation = re_path(
    r"^decisions/(?P<decision_id>[0-9a-z]{16})/explanation/$",
    ExplanationView.as_view(),
    name="api-explanation",
)
_redecision = re_path(
    r"^decisions/(?P<decision_id>[0-9a-z]{16})/redecide/$",
    RedecisionView.as_view(),
    name="api-redecision",
)
_counts = path("decisions/counts/", DecisionCountsView.as_view(), name="api-decision-counts")
_retention = path("retention/", RetentionView.as_view(), name="api-retention")
_consumers = path(
    "resourcequotas/<int:pk>/consumers/", QuotaConsumersView.as_view(), name="api-quota-consumers"
)
_further = (_explanation, _redecision, _counts, _retention, _consumers)

urlpatterns = [
    path("admission/<str:cluster>/mutate", _mutate, name="mutate"),
    path("admission/<str:cluster>/validate", _validate, name="validate"),
    path("admission/<str:cluster>/hint", _hint, name="hint"),
    path("admission/<str:cluster>/<str:key>/mutate", _mutate, name="mutate-by-key"),
    path("admission/<str:cluster>/<str:key>/validate", _validate, name="validate-by-key"),
    path("admission/<str:cluster>/<str:key>/hint", _hint, name="hint-by-key"),
    path("api/v1/", include([*router.urls, *_further])),
    path("api/v1/token/", TokenView.as_view(), name="api-token"),
    path("api/schema/", _schema, name="schema"),
    path("api/docs/", _docs, name="api-docs"),
]
