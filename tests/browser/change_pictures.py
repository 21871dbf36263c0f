"""Changes of the demo in the states that pictures show; run with the portal's code."""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from typing import Any, Final

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django must be set up first
from django.utils import timezone  # noqa: E402

from policies.change_sets.rollout.plan import read_plan  # noqa: E402
from policies.models import ApprovalRule, ChangeSet, Cluster, LimitRange, Rollout  # noqa: E402
from policies.services import changes  # noqa: E402
from policies.services.changes import rollout as rollouts  # noqa: E402
from portal.dev.demo.plot import ADA, GRACE, LIN, at  # noqa: E402

PATIENCE: Final = 60  # seconds
WAVES: Final = ("web", "payments", "reports")
PLAN: Final = {
    "waves": [
        {
            "namespaces": [name],
            "stages": [{"mode": "audit", "dwell": 14_400}, {"mode": "enforce", "dwell": 86_400}],
        }
        for name in WAVES
    ],
    "guards": [
        {"kind": "denials_per_owner", "above": 20},
        {"kind": "denials_of", "above": 0, "owners": ["payments/card-gateway"]},
        {"kind": "latency", "above": 50},
    ],
    "on_trip": "revert",
}


def main() -> None:
    """Write them, and print their numbers."""
    numbers = {"rolling": _rolling_out(), "review": _in_review(), "done": _done()}
    moment = timezone.now() - timedelta(days=8)
    sys.stdout.write(json.dumps({**numbers, "week_ago": f"{moment:%Y-%m-%dT%H:%MZ}"}))


def _done() -> int:
    """The demo's change that lowered a quota."""
    return int(ChangeSet.objects.get(title="Lower compute of payments").pk)


def _rolling_out() -> int:
    """A new rule about labels, in its second wave of three."""
    begun = timezone.now() - timedelta(hours=5)
    change = changes.create_change(
        title="Ask for an on-call label",
        user=LIN,
        reason="Alerts of the night reached nobody twice.",
        ticket="PLAT-2240",
    )
    cluster = Cluster.objects.get(name="demo")
    proposals = [
        changes.propose(cluster, _label_rule(name)) for name in ("web", "payments", "reports")
    ]
    with at(begun):
        changes.put(change, proposals=proposals, user=LIN)
        rollouts.put_plan(change, plan=read_plan(PLAN), user=LIN)
        rollouts.start(changes.submit(change, user=LIN), user=ADA)
    with at(begun + timedelta(hours=4)):
        rollouts.advance(change, expected=1)
    rollouts.advance(change, expected=2)
    rollout = Rollout.objects.get(change=change)
    stages = rollout.stages.order_by("number")
    for stage, began, ended in zip(stages, (5, 4, 1), (4, 1, None), strict=True):
        stage.began = timezone.now() - timedelta(hours=began)
        stage.ended = timezone.now() - timedelta(hours=ended) if ended else None
        stage.save()
    rollout.since = timezone.now() - timedelta(hours=1)
    rollout.ends = timezone.now() + timedelta(hours=3)
    rollout.save()
    return int(change.pk)


def _label_rule(namespace: str) -> dict[str, Any]:
    rule = {
        "policyPredicate": {
            "selector": {"matchExpressions": [{"key": "on-call", "operator": "DoesNotExist"}]}
        },
        "policyAction": {"reject": True},
    }
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": {"name": "on-call", "namespace": namespace},
        "spec": {"rules": [rule]},
    }


def _in_review() -> int:
    """Lower maxima, replayed, approved by one of two."""
    change = changes.create_change(
        title="Lower the memory maximum of pods",
        user=LIN,
        reason="Nodes ran out of memory twice this week.",
        ticket="https://example.com/browse/PLAT-2214",
    )
    cluster = Cluster.objects.get(name="demo")
    proposals = [
        changes.propose(cluster, _lowered(namespace, amount))
        for namespace, amount in (("payments", "384Mi"), ("reports", "1Gi"))
    ]
    changes.put(change, proposals=proposals, user=LIN)
    terms = {"name": "four eyes on refusals", "flips_over": 10}
    changes.save_rule(ApprovalRule(), user=ADA, terms=terms)
    changes.comment(change, user="tomas.silva", note="render streams since Monday: 1Gi is enough")
    submitted = changes.submit(change, user=LIN)
    deadline = time.monotonic() + PATIENCE
    while changes.waiting_checks():  # the portal's worker has them
        assert time.monotonic() < deadline
        time.sleep(0.2)
    submitted.refresh_from_db()
    changes.approve(submitted, user=User.objects.get(username=GRACE), seen=submitted.content_hash)
    return int(change.pk)


def _lowered(namespace: str, amount: str) -> dict[str, Any]:
    stored = LimitRange.objects.get(
        namespace__cluster__name="demo", namespace__name=namespace, name="limits"
    )
    manifest = stored.to_manifest()
    for each in manifest["spec"]["limits"]:
        if each["type"] == "Container":
            each["max"]["memory"] = amount
            for side in ("default", "defaultRequest"):
                if side in each:
                    each[side]["memory"] = "256Mi"
    return manifest


if __name__ == "__main__":
    main()
