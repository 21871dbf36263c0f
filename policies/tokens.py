"""API tokens for views that are no API views: exports, and the API's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


class TakesToken:
    """Part of a view that only reads, before what asks who is signed in.

    A token that is not valid is 401; without one the session counts, as everywhere.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Have the token's owner ask."""
        authentication = TokenAuthentication()
        try:
            found = authentication.authenticate(request)
        except AuthenticationFailed as error:
            refused = JsonResponse({"detail": str(error.detail)}, status=401)
            refused["WWW-Authenticate"] = authentication.authenticate_header(request)
            return refused
        if found:
            request.user = found[0]
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        return response
