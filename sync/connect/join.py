"""Connect a cluster: from the text of a kubeconfig to a tested connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import transaction

from policies import services
from policies.models import Cluster
from sync.connect import kubeconfig, probe, sealed_box
from sync.connect.connections import client_of, connect
from sync.connect.permissions import grants_of
from sync.connect.probe import ProbeResult
from sync.errors import APIError
from sync.models import ClusterConnection
from sync.values import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sync.connect.permissions import Grant
    from sync.values import Credentials

PATIENCE: Final = Limits(seconds=10.0, read_seconds=5.0, connect_seconds=5.0)
"""Somebody waits for the answer."""


class NotUsableError(Exception):
    """What would replace a connection that works does not work itself; nothing was stored."""

    def __init__(self, findings: ProbeResult) -> None:
        super().__init__(findings.message)
        self.findings = findings


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """What somebody asks for; an empty context is the file's current one.

    ``authority`` is that of a new cluster. ``is_anyway``: replace a connection that works even if
    the new one does not; ``is_other_cluster``: the name shall lead to another cluster from now on.
    """

    name: str
    text: str
    context: str = ""
    authority: str = Cluster.Authority.NATIVE
    is_anyway: bool = False
    is_other_cluster: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The connection that was stored, and what its test found."""

    connection: ClusterConnection
    findings: ProbeResult
    is_new: bool


def join(asked: JoinRequest, *, user: str, reason: str = "") -> Joined:
    """Read the kubeconfig, try it, store it sealed; the cluster is made if it is not there.

    What was found is stored, too. Raises KubeconfigError, ValidationError for a name that none
    can have, SealingError without a public key, NotUsableError.
    """
    credentials = kubeconfig.parse(asked.text, context=asked.context)
    sealed_box.current_key_id()
    found = ClusterConnection.objects.filter(cluster__name=asked.name).first()
    known = found.cluster_uid if found and not asked.is_other_cluster else ""
    findings = _try(credentials, known, grants_of(_known(asked)))
    if found and found.state == probe.State.OK and not (findings.is_usable or asked.is_anyway):
        raise NotUsableError(findings)
    with transaction.atomic():
        cluster, is_new = _cluster(asked, user=user, reason=reason)
        connection = connect(
            cluster, credentials, user, reason=reason, is_other_cluster=asked.is_other_cluster
        )
        probe.store(connection, findings)
    return Joined(connection=connection, findings=findings, is_new=is_new)


def _try(credentials: Credentials, known_uid: str, grants: Sequence[Grant]) -> ProbeResult:
    try:
        with client_of(credentials, limits=PATIENCE) as client:
            return probe.probe(client, known_uid=known_uid, grants=grants)
    except APIError as error:
        return ProbeResult(state=probe.state_of(error), message=error.message)


def _known(asked: JoinRequest) -> Cluster:
    """Find the cluster, or think of one that is yet to be saved."""
    found: Cluster | None = Cluster.objects.filter(name=asked.name).first()
    return found or Cluster(name=asked.name, authority=asked.authority)


def _cluster(asked: JoinRequest, *, user: str, reason: str) -> tuple[Cluster, bool]:
    made = _known(asked)
    if made.pk is not None:
        return made, False
    services.save_cluster(cluster=made, user=user, reason=reason)
    return made, True
