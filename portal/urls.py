"""URL patterns of the whole site, and the answer to unknown addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpResponseServerError, JsonResponse
from django.template.loader import render_to_string
from django.urls import include, path
from django.views.defaults import page_not_found

import portal.auth.admin  # noqa: F401  replaces Django's admin of accounts, which must be registered before
from policies.problem_details import CONTENT_TYPE, problem
from portal.logs import request_id

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("policies.api.urls")),
    path("api/v1/", include("sync.api.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("", include("admission.api.urls")),
    path("", include("portal.pages.urls")),
]
handler404 = "portal.urls.not_found"
handler500 = "portal.urls.failed"


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address: JSON under ``/api/``, else a page."""
    if not request.path_info.startswith("/api/"):
        return page_not_found(request, exception)
    detail = f"nothing is at {request.path_info}; /api/schema/ lists what there is"
    return JsonResponse(problem(404, detail), status=404, content_type=CONTENT_TYPE)


def failed(request: HttpRequest) -> HttpResponse:
    """Answer a defect of the portal: JSON under ``/api/``, else a page."""
    if not request.path_info.startswith("/api/"):
        # Without the request: what reads the database or the account may be what failed.
        page = render_to_string("500.html", {"request_id": request_id.get()})
        return HttpResponseServerError(page)
    detail = f"the portal failed; its log tells why, under the request id {request_id.get()}"
    return JsonResponse(problem(500, detail), status=500, content_type=CONTENT_TYPE)
