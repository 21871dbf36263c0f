"""Two clusters, one for each hand, with recorded requests that a tighter range would refuse.

Run with the portal's code.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django must be set up first
from django.utils import timezone  # noqa: E402

from admission.record import backdate  # noqa: E402
from engine.request import Phase  # noqa: E402
from policies import services, snapshot  # noqa: E402
from policies.models import ApiToken, ApprovalRule, Cluster, RoleBinding  # noqa: E402
from policies.services import changes  # noqa: E402
from portal.dev.demo.workloads import Workload, requirements  # noqa: E402
from tests.browser.demo_portal import PASSWORD  # noqa: E402
from tests.browser.hands import HANDS  # noqa: E402

APPROVER: Final = "rosa"
REQUESTED: Final = (
    ("checkout", "session-cache", "3Gi", 12),
    ("search", "indexer", "2560Mi", 11),
    ("payments", "payments-api", "3584Mi", 8),
    ("payments", "webhooks", "512Mi", 20),
)
"""Namespace, owner, memory limit, and how many pods were requested; 31 need more than 2Gi."""


def main() -> None:
    """Write all of it, and print the clusters with their credentials."""
    names = [f"story-{hand}" for hand in HANDS]
    rows = [row for name in names for row in _requests(_cluster(name))]
    backdate.keep(rows)
    terms = {
        "name": "somebody else looks at refusals",
        "clusters": names,
        "flips_over": 10,
        "for_each_namespace": False,
    }
    changes.save_rule(ApprovalRule(), user="admin", terms=terms)
    user = User.objects.create_user(APPROVER, password=PASSWORD)
    for name in names:
        RoleBinding.objects.create(user=user, role="approver", cluster=name)
    admin = User.objects.get(username="admin")
    asked = services.TokenRequest(name="roll-outs", access=ApiToken.Access.WRITE, days=7)
    _, token = services.issue_token(owner=admin, author=admin, request=asked)
    credentials = {name: _credential(name) for name in names}
    found = {"approver": APPROVER, "token": token, "credentials": credentials}
    sys.stdout.write(json.dumps(found))


def _cluster(name: str) -> Cluster:
    cluster = services.save_cluster(cluster=Cluster(name=name), user="admin").instance
    for namespace in dict.fromkeys(namespace for namespace, *_ in REQUESTED):
        services.apply_manifest(
            cluster=cluster,
            manifest={
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": "limits", "namespace": namespace},
                "spec": {"limits": [{"type": "Container", "max": {"memory": "4Gi"}}]},
            },
            user="admin",
            reason="as large as a node allows",
            create_namespace=True,
        )
    return cluster


def _requests(cluster: Cluster) -> list[Any]:
    """A request each hour until now, all of them allowed."""
    random = Random(cluster.name)  # noqa: S311 - a story, no secret
    moment = timezone.now() - timedelta(days=3)
    revision = Cluster.objects.get(pk=cluster.pk).policy_revision
    rows = []
    for namespace, owner, memory, number in REQUESTED:
        workload = Workload(
            cluster=cluster.name,
            namespace=namespace,
            name=owner,
            resources=requirements(memory=memory, memory_limit=memory),
            template_hash="5d9f8c7b6d",
        )
        for _ in range(number):
            moment += timedelta(hours=1)
            rows.append(_decided(workload, moment, random, revision=revision))
    return rows


def _decided(workload: Workload, moment: datetime, random: Random, *, revision: int) -> Any:
    policies = snapshot.load(*workload.place)
    call = backdate.PastCall(
        request=workload.request(workload.pod(random), random),
        phase=Phase.VALIDATE,
        moment=moment,
        microseconds=2_000,
        client="10.0.0.2",
        random=random.getrandbits(32),
        revision=revision,
    )
    decision, row = backdate.decide(call, policies, {})
    assert decision.allowed
    return row


def _credential(name: str) -> str:
    cluster = Cluster.objects.get(name=name)
    _, secret = services.issue_webhook_credential(cluster=cluster, label="story", user="admin")
    return secret


if __name__ == "__main__":
    main()
