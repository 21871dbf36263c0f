"""URL patterns of the whole site, and the answer to unknown addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import JsonResponse
from django.urls import include, path
from django.views.defaults import page_not_found

import portal.auth.admin  # noqa: F401  replaces Django's admin of accounts, which must be registered before

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("policies.api.urls")),
    path("", include("admission.api.urls")),
    path("", include("portal.pages.urls")),
]
handler404 = "portal.urls.not_found"


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address: JSON under ``/api/``, else a page."""
    if not request.path_info.startswith("/api/"):
        return page_not_found(request, exception)
    detail = f"nothing is at {request.path_info}; /api/schema/ lists what there is"
    return JsonResponse({"detail": detail}, status=404)
