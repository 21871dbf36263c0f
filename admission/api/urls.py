"""URL patterns for machines: mutate and validate (by key), decisions, token, schema, docs."""

from __future__ import annotations

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from admission.api.decisions import DecisionViewSet
from admission.api.explanations import ExplanationView
from admission.api.review import AdmissionReviewView
from admission.api.token_and_schema import DocsView, SchemaView, TokenView
from engine.request import Phase

router = SimpleRouter()
router.register("decisions", DecisionViewSet, basename="api-decision")

_mutate = AdmissionReviewView.as_view(phase=Phase.MUTATE)
_validate = AdmissionReviewView.as_view(phase=Phase.VALIDATE)
_schema = SchemaView.as_view()
_docs = DocsView.as_view()
_explanation = re_path(
    r"^decisions/(?P<decision_id>[0-9a-z]{16})/explanation/$",
    ExplanationView.as_view(),
    name="api-explanation",
)

urlpatterns = [
    path("admission/<str:cluster>/mutate", _mutate, name="mutate"),
    path("admission/<str:cluster>/validate", _validate, name="validate"),
    path("admission/<str:cluster>/<str:key>/mutate", _mutate, name="mutate-by-key"),
    path("admission/<str:cluster>/<str:key>/validate", _validate, name="validate-by-key"),
    path("api/v1/", include([*router.urls, _explanation])),
    path("api/v1/token/", TokenView.as_view(), name="api-token"),
    path("api/schema/", _schema, name="schema"),
    path("api/docs/", _docs, name="api-docs"),
]
