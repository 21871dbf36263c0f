"""ChangeListView of the changes that one sees; NewChangeView, which makes an empty one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count
from django.shortcuts import redirect

from policies.services import changes
from policies.validators import errors_by_path
from portal.pages.lists import ListColumns, listed
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

DESCRIPTION: Final = ("title", "reason", "ticket")
_COLUMNS: Final = ListColumns(
    headings=(
        ("number", "Change", "prose"),
        ("state", "State", ""),
        ("author", "Author", "only-wide"),
        ("objects", "Objects", "figure only-wide"),
        ("changed", "Changed", "only-wide"),
    ),
    orders={
        "number": ("pk",),
        "state": ("state", "pk"),
        "author": ("author", "pk"),
        "objects": ("object_number", "pk"),
        "changed": ("updated", "pk"),
    },
    usual="-number",
    searched=("title", "author", "ticket"),
)


class ChangeListView(PortalPage):
    """The changes with an object where one sees something, and one's own; the newest first."""

    template_name = "changes/sets/changes.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of changes."""
        user = self.request.user
        visible = changes.visible_changes(user).annotate(object_number=Count("items"))
        asked = listed(visible, self.request, _COLUMNS)
        may_do = {"may_create": changes.may_create(user), "may_rule": self.may(changes.RULING)}
        return super().get_context_data(**kwargs, **asked, **may_do)


class NewChangeView(PortalPage):
    """The form of a new change, for those who may write some policy."""

    template_name = "changes/sets/new.html"

    def find(self, names: dict[str, Any]) -> None:
        """Refuse everybody else."""
        super().find(names)
        if not changes.may_create(self.request.user):
            raise PermissionDenied

    def may_post(self) -> bool:
        """Whoever may open it."""
        return True

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Make the change, and go to it."""
        sent = sent_description(request)
        try:
            change = changes.create_change(user=self.username, **sent)
        except ValidationError as error:
            wrong = wrong_fields(error)
            return self.render_to_response(self.get_context_data(**sent, wrong=wrong), status=422)
        return redirect("change", change.pk)


def sent_description(request: HttpRequest) -> dict[str, str]:
    """Title, reason and ticket of a form."""
    return {
        name: request.POST.get(name, "").replace("\0", "").replace("\r\n", "\n").strip()
        for name in DESCRIPTION
    }


def wrong_fields(error: ValidationError) -> dict[str, str]:
    """The first message of each field."""
    return {name: found[0]["message"] for name, found in errors_by_path(error).items()}
