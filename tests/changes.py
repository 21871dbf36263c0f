"""Change sets for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.models import ChangeSet, ChangeStep, LimitRange, PolicyRevision
from policies.services import changes
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTHOR = "ada"
LR = ("LimitRange", "team", "lr")


def limit(cpu: str = "2", *, name: str = "lr", **metadata: Any) -> dict[str, Any]:
    """The manifest of a LimitRange."""
    limits = [{"type": "Container", "max": {"cpu": cpu}}]
    return factories.manifest("LimitRange", {"limits": limits}, name=name, **metadata)


def change_of(*manifests: Mapping[str, Any], cluster: str = "prod") -> ChangeSet:
    """A draft that proposes to store manifests."""
    change = changes.create_change(title="Lower the maximum", user=AUTHOR)
    put(change, *manifests, cluster=cluster)
    change.refresh_from_db()
    return change


def put(
    change: ChangeSet, *manifests: Mapping[str, Any], cluster: str = "prod", **options: Any
) -> list[Any]:
    """Propose to store manifests."""
    stored_cluster = factories.cluster(cluster)
    proposals = [changes.propose(stored_cluster, each, **options) for each in manifests]
    return changes.put(change, proposals=proposals, user=AUTHOR)


def published(change: ChangeSet, *, user: str = "bob") -> ChangeSet:
    """Submit and publish."""
    return changes.publish(changes.submit(change, user=AUTHOR), user=user)


def steps(change: ChangeSet) -> list[tuple[str, str, str, str]]:
    """All steps: who, which, and the state before and after."""
    rows = ChangeStep.objects.filter(change=change)
    return [(row.user, row.step, row.state_before, row.state_after) for row in rows]


def cpu(name: str = "lr", *, namespace: str = "team", cluster: str = "prod") -> str:
    """The stored maximum of a LimitRange; empty without one."""
    found = LimitRange.objects.filter(
        namespace__cluster__name=cluster, namespace__name=namespace, name=name
    ).first()
    if found is None:
        return ""
    return str(found.to_manifest()["spec"]["limits"][0]["max"]["cpu"])


def last_revision(name: str = "lr", *, cluster: str = "prod") -> PolicyRevision:
    """The last revision of a LimitRange."""
    return PolicyRevision.objects.of(
        cluster=cluster, kind="LimitRange", namespace="team", name=name
    )[0]
