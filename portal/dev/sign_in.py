"""DemoSignInView: the sign-in of the demo, which lets anybody on this machine be its people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import login
from django.http import Http404, HttpResponseRedirect

from policies.models import SignIn
from portal.auth.callers import is_local
from portal.auth.sign_in import come_by
from portal.dev.demo.people import offered_people
from portal.pages.access.words import initials, roles_in_short
from portal.pages.account.sign_in import SignInView

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

BACKEND = "django.contrib.auth.backends.ModelBackend"


class DemoSignInView(SignInView):
    """The form, and the demo's people below it.

    Only ``portal.dev.settings`` has this view, and only the supervisor of ``make run`` names those
    settings: a portal that is operated has no address that does this.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a redirection, too
        """Sign in as the chosen person, or by the form."""
        if "person" not in request.POST:
            return super().post(request, *args, **kwargs)
        offered = offered_people() if is_local(request) else []
        chosen = [each for each in offered if each.username == request.POST["person"]]
        if not chosen:
            raise Http404
        come_by(request, SignIn.Way.DEMO)
        login(request, chosen[0], backend=BACKEND)
        return HttpResponseRedirect(self.get_success_url())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the people with their roles; none for callers from elsewhere."""
        offered = offered_people() if is_local(self.request) else []
        people = [
            {
                "user": each,
                "initials": initials(each.get_full_name()),
                "roles": roles_in_short(each.role_bindings.all()),
            }
            for each in offered
        ]
        return super().get_context_data(**kwargs, demo_people=people)
