"""TakesToken: plain views that only read accept an API token in place of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from rest_framework.exceptions import APIException, AuthenticationFailed

from policies.problem_details import CONTENT_TYPE, problem
from policies.tokens.authentication import ScopedTokenAuthentication

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


class TakesToken:
    """Part of a plain view that only reads: accepts an API token in place of a session.

    It stands before the class that requires a user. An invalid token is answered with 401.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Set the token's owner as the user."""
        token_authentication = ScopedTokenAuthentication()
        try:
            user_and_token = token_authentication.authenticate(request)
        except APIException as error:
            members = problem(error.status_code, str(error.detail))
            token_refused = JsonResponse(
                members, status=error.status_code, content_type=CONTENT_TYPE
            )
            if isinstance(error, AuthenticationFailed):
                header = token_authentication.authenticate_header(request)
                token_refused["WWW-Authenticate"] = header
            return token_refused
        if user_and_token:
            request.user = user_and_token[0]
        view_response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        return view_response
