"""RunListView, RunView, ProgressView: SyncRuns requested, RunOutcomes, held deletions confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, F
from django.http import HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect

from portal.pages.clusters.head import ClusterTabPage
from portal.pages.lists import ListColumns, listed
from portal.pages.views import object_address, whole_number
from sync.inventory.cluster_states import UNDER_WAY, rank
from sync.models import SyncResult, SyncRun
from sync.passes import lifecycle, resolution
from sync.passes.advice import advice

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

OUTCOMES: Final = ("failed", "conflict", "held", "intended", "done")
"""Outcomes of one object, the most urgent first."""
_RUN_COLUMNS: Final = ListColumns(
    headings=(
        ("start", "Start", "start"),
        ("mode", "Run", "mode"),
        ("cause", "Cause", "by"),
        ("", "Result", "result"),
        ("took", "Took", "took figure"),
    ),
    orders={
        "start": ("id",),
        "mode": ("mode", "-id"),
        "cause": ("user", "trigger", "-id"),
        "took": (F("finished") - F("started"), "id"),
    },
    usual="-start",
    searched=("user", "trigger", "error"),
)
_RESULT_COLUMNS: Final = ListColumns(
    headings=(
        ("object", "Object", ""),
        ("action", "Action", ""),
        ("outcome", "Outcome", ""),
        ("", "Message", ""),
    ),
    orders={
        "object": ("namespace", "name", "kind"),
        "action": ("action", "id"),
        "outcome": (rank("outcome", OUTCOMES), "id"),
    },
    usual="outcome",
    searched=("namespace", "name"),
)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run for one object, and the object's page."""

    result: SyncResult
    address: str


class RunListView(ClusterTabPage):
    """All runs over a cluster, newest first; its form requests another one."""

    template_name = "clusters/runs.html"
    tab = "runs"
    permission = "sync.add_syncrun"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of runs, by mode, state, and who or what requested them."""
        asked = self.request.GET
        mode, state = asked.get("mode", ""), asked.get("state", "")
        found = SyncRun.objects.filter(cluster=self.cluster)
        if mode in SyncRun.Mode:
            found = found.filter(mode=mode)
        if state in SyncRun.State:
            found = found.filter(state=state)
        return super().get_context_data(
            **kwargs,
            **listed(found, self.request, _RUN_COLUMNS),
            modes=SyncRun.Mode.values,
            states=SyncRun.State.values,
            mode=mode,
            state=state,
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Request a run and show it; a run that already waits is shown instead."""
        run_mode = request.POST.get("mode", "")
        if run_mode not in lifecycle.REQUESTABLE:
            return HttpResponseBadRequest()
        try:
            run = lifecycle.request_by_person(self.cluster, mode=run_mode, user=self.username)
        except ValidationError as error:
            messages.error(request, error.message)
            is_connected = hasattr(self.cluster, "connection")
            return redirect("cluster-runs" if is_connected else "cluster-detail", self.cluster.name)
        return redirect("cluster-run", self.cluster.name, run.uid)


class RunView(ClusterTabPage):
    """One run, live while it goes on; its form confirms deletions that were held."""

    template_name = "clusters/run.html"
    tab = "runs"
    permission = "sync.change_syncrun"
    run: SyncRun

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The run, its counts and a page of its results."""
        run = self.find_run()
        outcome = self.request.GET.get("outcome", "")
        run_results = run.results.all()
        if outcome in OUTCOMES:
            run_results = run_results.filter(outcome=outcome)
        asked = listed(run_results, self.request, _RESULT_COLUMNS)
        return super().get_context_data(
            **kwargs,
            **progress(run),
            **asked,
            outcomes=[
                RunOutcome(each, object_address(self.cluster.name, each)) for each in asked["page"]
            ],
            outcome=outcome,
            choices=_outcome_choices(run, outcome),
            held=run.results.filter(outcome=SyncResult.Outcome.HELD).order_by("namespace", "name"),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Confirm the deletions that the page showed, if it is still held for as many."""
        run = self.find_run()
        # The number that was shown is sent back: deletions that came later are not confirmed.
        shown_deletions = whole_number(request.POST.get("held", ""))
        deletions_read = shown_deletions if request.POST.get("read") == "yes" else 0
        try:
            resolution.confirm_held(run, self.username, read=deletions_read)
            messages.success(request, "Confirmed. The objects are deleted with this run.")
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        return redirect("cluster-run", self.cluster.name, run.uid)

    def find_run(self) -> SyncRun:
        """The run that the address names, if it is one of this cluster's."""
        return get_object_or_404(SyncRun, cluster=self.cluster, uid=self.kwargs["uid"])


class ProgressView(RunView):
    """The part of a run's page that changes while it goes on."""

    template_name = "clusters/_progress.html"
    permission: ClassVar[str] = ""
    http_method_names = ["get", "head"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The run's state alone: the page polls it every other second."""
        # Without the context of the whole page, whose permissions cost queries.
        return {**kwargs, **progress(self.find_run()), "cluster": self.cluster}


def progress(run: SyncRun) -> dict[str, Any]:
    """How far a run is: its counts in words, and whether it goes on."""
    run_stats = run.counts if isinstance(run.counts, dict) else {}
    return {
        "run": run,
        "advice": advice(run),
        "counts": {str(name).replace("_", " "): count for name, count in sorted(run_stats.items())},
        "under_way": run.state in UNDER_WAY,
        # A pass may do more than it counted at the start of its stage.
        "percent": min(100, 100 * run.done // run.total) if run.total else None,
    }


def _outcome_choices(run: SyncRun, chosen_outcome: str) -> list[dict[str, Any]]:
    outcome_counts = dict(run.results.order_by().values_list("outcome").annotate(Count("id")))
    return [
        {
            "label": outcome or "all",
            "number": outcome_counts.get(outcome, 0) if outcome else sum(outcome_counts.values()),
            "query": f"outcome={outcome}" if outcome else "",
            "current": outcome == chosen_outcome,
        }
        for outcome in ("", *OUTCOMES)
        if not outcome or outcome_counts.get(outcome)
    ]
