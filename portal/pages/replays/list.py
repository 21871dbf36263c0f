"""ReplayListView: the replays that a reader may see; NewReplayView asks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F
from django.shortcuts import redirect
from django.urls import reverse

from admission.replay.access import visible_replays
from admission.replay.judge import ChangeKind
from portal.pages.lists import ListColumns, listed
from portal.pages.replays.form import USUAL_DAYS, ReplayForm
from portal.pages.shell.chosen import chosen_cluster, visible_clusters
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


_COLUMNS: Final = ListColumns(
    headings=(
        ("asked", "Asked for", ""),
        ("cluster", "Cluster", "only-wide"),
        ("", "Namespaces", "only-wide"),
        ("user", "By", "only-wide"),
        ("state", "State", ""),
        ("", "Decisions", "figure only-wide"),
        ("", "Newly denied", "figure"),
        ("", "Newly allowed", "figure only-wide"),
    ),
    orders={
        "asked": ("pk",),
        "cluster": ("cluster", "-pk"),
        "user": ("user", "-pk"),
        "state": ("state", "-pk"),
    },
    usual="-asked",
    searched=("cluster", "user", "query"),
)
_FLIPS: Final = {
    kind.value: F(f"report__verdicts__changes__{kind}__number")
    for kind in (ChangeKind.TO_DENIED, ChangeKind.TO_ALLOWED)
}


class ReplayListView(PortalPage):
    """Replays, newest first."""

    template_name = "replays/replays.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of replays with what they have found."""
        # Reports are large: of each only the two numbers are read.
        found = visible_replays(self.request.user).defer("report").annotate(**_FLIPS)
        chosen = chosen_cluster(self.request)
        asked = listed(found.filter(cluster=chosen) if chosen else found, self.request, _COLUMNS)
        return super().get_context_data(**kwargs, **asked)


class NewReplayView(PortalPage):
    """The form of a replay; the editor sends its draft here."""

    template_name = "replays/new.html"

    def may_post(self) -> bool:
        """It writes no policy: the form checks that the person sees all of it."""
        return True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form, empty unless one was refused."""
        first = {"cluster": chosen_cluster(self.request)}
        return super().get_context_data(**{"form": self._form(initial=first), **kwargs})

    def post(self, request: HttpRequest) -> HttpResponse:
        """Ask for a replay and lead to it; the editor sends its YAML, and no number of days."""
        sent = request.POST.dict()
        usual = {"days": str(USUAL_DAYS), "manifests": sent.pop("yaml", "")}
        form = self._form(data=usual | sent)
        replay = form.request() if form.is_valid() else None
        if replay is None:
            return self.render_to_response(self.get_context_data(form=form), status=422)
        return redirect(reverse("replay", args=[replay.uid]))

    def _form(self, **more: Any) -> ReplayForm:
        return ReplayForm(self.request.user, visible_clusters(self.request), **more)
