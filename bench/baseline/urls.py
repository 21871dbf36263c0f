"""The baseline's addresses: those of the product's webhook."""

from __future__ import annotations

from django.urls import path

from bench.baseline.view import ReviewView
from engine.request import Phase

urlpatterns = [
    path("admission/<str:cluster>/<str:key>/mutate", ReviewView.as_view(phase=Phase.MUTATE)),
    path("admission/<str:cluster>/<str:key>/validate", ReviewView.as_view(phase=Phase.VALIDATE)),
]
