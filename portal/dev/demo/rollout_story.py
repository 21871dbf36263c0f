"""``tell_rollout``: a change of the demo that went out in waves until a guard stopped it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.models import AuditEvent
from admission.rollout.figures import figures_between, places_of
from policies.change_sets.rollout.guards import judge_guards
from policies.change_sets.rollout.guards import tripped as tripping
from policies.change_sets.rollout.plan import read_plan
from policies.models import Cluster, Rollout, RolloutStage
from policies.services import changes
from policies.services.changes import rollout as rollouts
from portal.dev.demo.plot import ADA, GRACE, LIN, at

if TYPE_CHECKING:
    import datetime as dt

    from policies.models import ChangeSet

CLUSTER: Final = "demo"
PROPOSED: Final = timedelta(hours=30)
BEGAN: Final = (timedelta(hours=5), timedelta(hours=4, minutes=20), timedelta(hours=3, minutes=20))
"""How long ago each stage that was taken began."""
PLAN: Final[dict[str, Any]] = {
    "waves": [
        {
            "namespaces": ["batch"],
            "stages": [{"mode": "audit", "dwell": 2400}, {"mode": "enforce", "dwell": 3600}],
        },
        {
            "namespaces": ["payments", "reports"],
            "stages": [{"mode": "audit", "dwell": 14_400}, {"mode": "enforce", "dwell": 86_400}],
        },
        {"stages": [{"mode": "audit", "dwell": 86_400}, {"mode": "enforce", "dwell": 3600}]},
    ],
    "guards": [
        {"kind": "denials_per_owner", "above": 2},
        {"kind": "failures", "above": 0},
        {"kind": "latency", "above": 50},
    ],
    "on_trip": "stop",
}
NAMESPACES: Final = ("batch", "payments", "reports", "web")


def tell_rollout(now: dt.datetime) -> None:
    """Roll a change out; the record of the month must be stored: its denials trip the guard."""
    with at(now - PROPOSED):
        change = _propose()
    for number, back in enumerate(BEGAN):
        with at(now - back):
            if number:
                rollouts.advance(change, expected=number)
            else:
                rollouts.start(change, user=LIN)
        _date_stage(change, began=now - back)
    rollout = Rollout.objects.select_related("change").get(change=change)
    if found := _tripped(rollout, now):
        moment, words = found
        with at(moment):
            rollouts.trip(rollout.change, user=LIN, words=words, reverts=False)


def _propose() -> ChangeSet:
    """A change that is in review with nobody to ask, and the plan of its roll-out."""
    cluster = Cluster.objects.get(name=CLUSTER)
    change = changes.create_change(
        title="Refuse the retired Java runtime",
        user=LIN,
        reason="Java 8 images get no fixes from the end of the month on",
        ticket="PLAT-2240",
    )
    proposals = [changes.propose(cluster, _retired_runtime(each)) for each in NAMESPACES]
    changes.put(change, proposals=proposals, user=LIN)
    rollouts.put_plan(change, plan=read_plan(PLAN), user=LIN)
    changes.comment(change, user=GRACE, note="batch first, please: payments deploys today")
    return changes.submit(change, user=ADA)


def _retired_runtime(namespace: str) -> dict[str, Any]:
    asked = {"matchExpressions": [{"key": "runtime", "operator": "In", "values": ["java-8"]}]}
    rule = {"policyPredicate": {"labelSelector": asked}, "policyAction": {"reject": True}}
    return {
        "kind": "MetadataPolicy",
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "metadata": {"name": "retired-runtime", "namespace": namespace},
        "spec": {"rules": [rule]},
    }


def _date_stage(change: ChangeSet, *, began: dt.datetime) -> None:
    """Stages have the database's time, which nobody can set back."""
    rollout = Rollout.objects.get(change=change)
    stages = RolloutStage.objects.filter(rollout=rollout)
    stages.filter(number=rollout.at).update(began=began)
    stages.filter(number=rollout.at - 1).update(ended=began)
    dwell = rollout.to_plan().stages[rollout.at - 1][1].dwell
    Rollout.objects.filter(pk=rollout.pk).update(since=began, ends=began + timedelta(seconds=dwell))


def _tripped(rollout: Rollout, now: dt.datetime) -> tuple[dt.datetime, str] | None:
    """The moment at which a guard tripped, and why."""
    since = rollout.since or now
    reached = rollout.change.items.filter(written__isnull=False)
    decisions = AuditEvent.objects.charged().filter(
        places_of(reached.values_list("cluster", "namespace"))
    )
    denied = decisions.between(since, now).filter(verdict="denied").order_by("created")
    guards = rollout.to_plan().guards
    for created in denied.values_list("created", flat=True):
        moment = created + timedelta(seconds=1)
        readings = tripping(judge_guards(guards, figures_between(decisions, since, moment)))
        if readings:
            return moment, "; ".join(map(str, readings))
    return None
