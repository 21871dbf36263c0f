"""ClusterBulkView: the selected clusters paused, resumed or synchronized; ClusterUndoView."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from policies import roles
from policies.models import Cluster
from policies.plurals import counted
from portal.pages.lists import search_of
from portal.pages.views import PortalPage, whole_number
from sync.passes import many_clusters
from sync.passes.many_clusters import MOST, PERMISSIONS, ConnectionChangedError

if TYPE_CHECKING:
    from django.http import HttpRequest

    from sync.passes.many_clusters import Action, FleetPlan

REFUSED_SHOWN: Final = 5
NO_REASON: Final = "Give a reason: it is shown while they are paused, and stays on record."
TOO_MANY: Final = f"At most {MOST:,} clusters at once: narrow the list."
_DONE: Final[dict[Action, str]] = {
    "pause": "{} paused.",
    "resume": "{} resumed.",
    "sync": "Sync requested for {}.",
}
_NOT_DONE: Final[dict[Action, str]] = {
    "pause": "No cluster was paused.",
    "resume": "No cluster was resumed.",
    "sync": "No sync was requested.",
}


def bulk_rights(user: Any) -> dict[str, bool]:
    """The actions that the person may take somewhere; none: nothing can be selected."""
    return {action: roles.may_somewhere(user, need) for action, need in PERMISSIONS.items()}


class ManyClusters(PortalPage):
    """An address of forms about clusters; each cluster is checked by itself."""

    def may_post(self) -> bool:
        """Whoever is signed in may ask."""
        return True

    def may_in(self, permission: str, cluster: str) -> bool:
        """Whether the person has a permission in a cluster."""
        return roles.may(self.request.user, permission, cluster=cluster)


class ClusterBulkView(ManyClusters):
    """The form of the list: a pause is shown and asks for a reason, the others are done at once."""

    template_name = "clusters/bulk.html"

    def get_template_names(self) -> list[str]:
        """Only the sheet, where a script asks for it."""
        is_sheet = self.request.headers.get("HX-Request") == "true"
        return ["clusters/_bulk.html" if is_sheet else self.template_name]

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Show the pause that a link asks for; a link changes nothing."""
        if request.GET.get("act") != "pause":
            return redirect("cluster-list")
        return self._pause_sheet(self._selected(request.GET), request.GET)

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Carry the action out for all clusters that it is for, and name the others."""
        sent = request.POST
        action = cast("Action", sent.get("act", ""))
        if action not in PERMISSIONS:
            raise Http404
        names = self._selected(sent)
        if not names:
            messages.info(request, "Select at least one cluster.")
        elif action == "pause" and (len(names) > MOST or sent.get("do") != "save"):
            return self._pause_sheet(names, sent)
        elif len(names) > MOST:
            messages.error(request, TOO_MANY)
        elif action == "pause" and not _reason_of(sent):
            return self._pause_sheet(names, sent, status=422, form_error=NO_REASON)
        else:
            self._tell(
                action,
                many_clusters.carry_out(
                    names, action, may=self.may_in, user=self.username, reason=_reason_of(sent)
                ),
            )
        return redirect(_list_address(sent))

    def _selected(self, sent: QueryDict) -> list[str]:
        """The selected clusters that the person sees as a whole; one more than may be."""
        clusters = roles.visible(
            Cluster.objects.all(), self.request.user, cluster="name", whole=True
        )
        if sent.get("all") == "1":
            search = search_of(QueryDict(sent.get("asked", "")))
            clusters = clusters.filter(name__icontains=search)
        else:
            picks = [each.replace("\0", "") for each in sent.getlist("pick")[: MOST + 1]]
            clusters = clusters.filter(name__in=picks)
        return list(clusters.order_by("name").values_list("name", flat=True)[: MOST + 1])

    def _pause_sheet(
        self, names: list[str], sent: QueryDict, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        if len(names) > MOST:
            names, status, more = [], 422, {"form_error": TOO_MANY}
        shown = many_clusters.plan(names, "pause", may=self.may_in)
        context = self.get_context_data(
            picks=names,
            shown=shown,
            title=_title(len(shown.done)),
            asked_query=sent.get("asked", ""),
            back=_list_address(sent),
            **more,
        )
        return self.render_to_response(context, status=status)

    def _tell(self, action: Action, outcome: FleetPlan) -> None:
        """One message: what was done, what was left out; undone by its button."""
        left_out = [f"{each.cluster.name} ({each.refusal})" for each in outcome.refused]
        if len(left_out) > REFUSED_SHOWN:
            left_out[REFUSED_SHOWN:] = [f"{len(left_out) - REFUSED_SHOWN} more"]
        others = f" Left out: {', '.join(left_out)}." if left_out else ""
        if not outcome.done:
            messages.warning(self.request, f"{_NOT_DONE[action]}{others}")
            return
        undo = urlencode({"of": [f"{key}:{at}" for key, at in outcome.batch]}, doseq=True)
        messages.success(
            self.request,
            f"{_DONE[action].format(counted(len(outcome.done), 'clusters'))}{others}",
            extra_tags=f"{reverse('cluster-undo')}?{undo}" if outcome.batch else "",
        )


def _title(number: int) -> str:
    return f"Pause sync of {counted(number, 'clusters')}" if number else "No cluster to pause"


def _reason_of(sent: QueryDict) -> str:
    return sent.get("reason", "").replace("\0", "").strip()


def _list_address(sent: QueryDict) -> str:
    """The list as it was asked for."""
    query = QueryDict(sent.get("asked", "")).urlencode()
    return reverse("cluster-list") + (f"?{query}" if query else "")


class ClusterUndoView(ManyClusters):
    """Takes back what this person has just paused or resumed; the button of its toast."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Resume or pause them again, if nobody has changed a connection since."""
        pairs = [each.partition(":") for each in request.GET.getlist("of")[:MOST]]
        batch = tuple((whole_number(key), whole_number(number)) for key, _, number in pairs)
        try:
            done = many_clusters.undo(batch, may=self.may_in, user=self.username)
        except ConnectionChangedError:
            messages.error(request, "Not undone: one of the clusters was changed since.")
        except PermissionError:
            messages.error(request, "Not undone: your role no longer allows it.")
        except ValidationError as error:
            messages.error(request, f"Not undone: {' '.join(error.messages)}")
        else:
            messages.success(request, f"Undone for {counted(done, 'clusters')}.")
        return redirect("cluster-list")
