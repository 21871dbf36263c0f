"""People of each role, and the names for addresses; run with the portal's code."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Any, Final

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django must be set up first
from django.template.loader import render_to_string  # noqa: E402
from django.utils import timezone  # noqa: E402

from admission.models import AuditEvent  # noqa: E402
from admission.replay import work  # noqa: E402
from admission.replay.proposal import read_proposal  # noqa: E402
from admission.replay.scope import ReplayScope  # noqa: E402
from policies import services  # noqa: E402
from policies.models import (  # noqa: E402
    ApiToken,
    ApprovalRule,
    Cluster,
    KeptTest,
    LimitRange,
    ResourceQuota,
    RoleBinding,
    Rollout,
)
from policies.services import changes  # noqa: E402
from portal.auth.invitations import invite, new_link  # noqa: E402
from sync.models import SyncedObject, SyncRun  # noqa: E402
from tests.browser.demo_portal import PASSWORD  # noqa: E402

PEOPLE: Final = {
    "viewer": ("viewer", "", ""),
    "editor": ("editor", "demo", "payments"),
    "other": ("editor", "demo", "web"),
    "approver": ("approver", "demo-connected", ""),
}
"""Role, cluster, namespace; the portal creates the admin itself."""
ERRORS: Final = ("403.html", "403_csrf.html", "404.html", "500.html")


def main() -> None:
    """Create them, and print their names."""
    for name, (role, cluster, namespace) in PEOPLE.items():
        user = User.objects.create_user(name, password=PASSWORD)
        RoleBinding.objects.create(user=user, role=role, cluster=cluster, namespace=namespace)
    admin = User.objects.get(username="admin")
    account = services.create_service_account(name="ci", description="pipelines", author=admin)
    ApiToken.objects.create(user=account.user, name="apply", access="write", cluster="demo")
    _, credential = services.issue_webhook_credential(
        cluster=Cluster.objects.get(name="demo"), label="journeys", user="admin"
    )
    invited = invite(username="invited", email="invited@example.com", author=admin)
    names = {
        "invitation": new_link(invited, author=admin),
        "credential": credential,
        "people": list(PEOPLE),
        "run": str(SyncRun.objects.filter(cluster__name="demo-connected")[0].uid),
        "drifted": _object("drifted"),
        "conflict": _object("conflict"),
        "replay": replayed(),
        "change": proposed_change(),
        "rolled": Rollout.objects.get().change_id,
        "rule": idle_rule(),
        "kept": KeptTest.objects.get(name="large-pods-run").pk,
        "then": f"{timezone.now():%Y-%m-%dT%H:%M:%SZ}",
        "denied": _newest("denied"),
        "mutated": _newest("mutated"),
        "errors": {name: render_to_string(name) for name in ERRORS},
    }
    sys.stdout.write(json.dumps(names))


def _object(state: str) -> str:
    """The first object in this state."""
    return str(SyncedObject.objects.filter(state=state).order_by("pk")[0].pk)


def idle_rule(user: str = "admin") -> int:
    """A rule of approval that is not in force."""
    terms = {"name": "four eyes on enforce", "enabled": False, "enforces": True}
    return int(changes.save_rule(ApprovalRule(), user=user, terms=terms).pk)


def replayed(user: str = "admin") -> str:
    """A finished replay of a week under a tighter range and a smaller quota."""
    cluster = Cluster.objects.get(name="demo")
    place = {"namespace__cluster": cluster, "namespace__name": "payments"}
    limits = LimitRange.objects.get(name="limits", **place).to_manifest()
    amount = {"memory": "300Mi"}
    limits["spec"]["limits"] = [{"type": "Container", "max": amount, "default": amount}]
    quota = ResourceQuota.objects.get(name="critical", **place).to_manifest()
    quota["spec"]["hard"] |= {"pods": "12"}
    until = timezone.now()
    since = until - timedelta(days=7)
    scope = ReplayScope(cluster="demo", since=since, until=until)
    replay = work.request(scope, read_proposal([limits, quota]), user=user)
    work.carry_out(replay.uid)
    return str(replay.uid)


def proposed_change(user: str = "admin") -> int:
    """A draft about three policies of payments; one was made elsewhere in the meantime."""
    change = changes.create_change(
        title="Lower the memory maximum to 2Gi",
        user=user,
        reason="Nodes ran out of memory twice this week.",
        ticket="https://example.com/browse/PLAT-2214",
    )
    cluster = Cluster.objects.get(name="demo")
    stored = LimitRange.objects.get(namespace__cluster=cluster, namespace__name="payments")
    manifest = stored.to_manifest()
    lowered = json.loads(json.dumps(manifest).replace('"4Gi"', '"2Gi"'))
    new = {**lowered, "metadata": {**lowered["metadata"], "name": "proposed"}}
    quota = ResourceQuota.objects.filter(namespace=stored.namespace)[0].to_manifest()
    quota["metadata"]["labels"] = {"managed-by": "somebody"}
    proposals = [
        changes.propose(cluster, lowered),
        changes.propose(cluster, new),
        changes.propose(cluster, quota, based_on=0),
    ]
    changes.put(change, proposals=proposals, user=user)
    for name, amount in (("small-pods-run", "1Gi"), ("large-pods-run", "3Gi")):
        services.save_kept_test(
            test=services.take_over(KeptTest(namespace=stored.namespace), _kept(name, amount)),
            user=user,
        )
    changes.comment(change, user="viewer", note="session-cache moves to 1.5Gi on Thursday")
    return int(change.pk)


def _kept(name: str, memory: str) -> dict[str, Any]:
    """A test that a pod of this limit is allowed."""
    amounts = {"cpu": "500m", "memory": memory}
    container = {"name": "app", "image": "nginx", "resources": {"limits": amounts}}
    metadata = {"name": "app", "labels": {"team": "payments"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }
    return {
        "kind": "PolicyTest",
        "metadata": {"name": name, "namespace": "payments"},
        "spec": {"expect": {"verdict": "allow"}, "object": pod},
    }


def _newest(verdict: str) -> str:
    """The newest decision about namespace payments."""
    rows = AuditEvent.objects.filter(verdict=verdict, cluster="demo", namespace="payments")
    return rows.order_by("-created", "-id")[0].id


if __name__ == "__main__":
    main()
