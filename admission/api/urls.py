"""The addresses that machines call: the admission endpoint, the record, tokens, the schema."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from knox.auth import TokenAuthentication
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.routers import SimpleRouter

from admission.api.decisions import DecisionViewSet
from admission.api.review import AdmissionReviewView
from admission.api.token import TokenView
from policies.engine.request import Phase

router = SimpleRouter()
router.register("decisions", DecisionViewSet, basename="api-decision")

_mutate = AdmissionReviewView.as_view(phase=Phase.MUTATE)
_validate = AdmissionReviewView.as_view(phase=Phase.VALIDATE)
_schema = SpectacularAPIView.as_view(
    authentication_classes=[TokenAuthentication, SessionAuthentication],
    permission_classes=[IsAuthenticated],
)
# A page for people: a stranger is sent to sign in, not answered 401.
_docs = login_required(
    SpectacularSwaggerSplitView.as_view(
        permission_classes=[AllowAny], template_name="admission/api_docs.html"
    )
)

urlpatterns = [
    path("admission/<str:cluster>/mutate", _mutate, name="mutate"),
    path("admission/<str:cluster>/validate", _validate, name="validate"),
    path("admission/<str:cluster>/<str:key>/mutate", _mutate, name="mutate-by-key"),
    path("admission/<str:cluster>/<str:key>/validate", _validate, name="validate-by-key"),
    path("api/v1/", include(router.urls)),
    path("api/v1/token/", TokenView.as_view(), name="api-token"),
    path("api/schema/", _schema, name="schema"),
    path("api/docs/", _docs, name="api-docs"),
]
