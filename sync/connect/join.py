"""``join``: a JoinRequest's kubeconfig probed before Cluster and connection are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from engine.policy import Authority
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
    from sync.values import Credentials

PATIENCE: Final = Limits(seconds=10.0, read_seconds=5.0, connect_seconds=5.0)
"""Shorter than in tasks, since a person waits for the answer."""


class NotUsableError(Exception):
    """The new connection does not work, and would replace one that does, or has to; not stored."""

    def __init__(self, findings: ProbeResult) -> None:
        super().__init__(findings.message)
        self.findings = findings


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A request to connect a cluster; an empty context is the file's current one.

    ``authority`` is for a new cluster. ``is_anyway``: replace a connection that works even if the
    new one does not; ``is_other_cluster``: the name leads to another cluster from now on.
    ``must_work``: store nothing that fails its test, unless ``is_anyway``.
    ``generation``: that of the connection which the caller read, 0 for none; another one is not
    replaced. ``is_dry_run``: test and check everything, and store nothing.
    """

    name: str
    text: str
    context: str = ""
    authority: str = Authority.NATIVE
    is_anyway: bool = False
    is_other_cluster: bool = False
    must_work: bool = False
    generation: int | None = None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The stored connection, and the findings of its test."""

    connection: ClusterConnection
    findings: ProbeResult
    is_new: bool


def join(request: JoinRequest, *, user: str, reason: str = "") -> Joined:
    """Parse and test the kubeconfig, store it sealed with the findings; create the cluster if new.

    Raises KubeconfigError, ValidationError for an invalid name and (``changed``) another
    generation, SealingError without a public key, NotUsableError.
    """
    credentials = kubeconfig.parse(request.text, context=request.context)
    # Fails here without a public key, before the credential is sent anywhere.
    sealed_box.current_key_id()
    existing = _existing_connection(request)
    findings = _try_connection(credentials, request, existing)
    replaces_working = existing is not None and existing.state == probe.State.OK
    if (replaces_working or request.must_work) and not (findings.is_usable or request.is_anyway):
        raise NotUsableError(findings)
    with transaction.atomic():
        # Looked up again: somebody may have created it during the test.
        cluster = _known_cluster(request)
        is_new = cluster.pk is None
        if is_new:
            services.save_cluster(cluster=cluster, user=user, reason=reason)
        connection = connect(
            cluster, credentials, user, reason=reason, is_other_cluster=request.is_other_cluster
        )
        if request.generation not in (None, connection.generation - 1):
            raise ValidationError("the connection was changed meanwhile", code="changed")
        probe.store(connection, findings)
        if request.is_dry_run:
            transaction.set_rollback(True)
    return Joined(connection=connection, findings=findings, is_new=is_new)


def try_out(request: JoinRequest) -> ProbeResult:
    """Parse and test the kubeconfig, and store nothing; raises KubeconfigError."""
    credentials = kubeconfig.parse(request.text, context=request.context)
    return _try_connection(credentials, request, _existing_connection(request))


def _existing_connection(request: JoinRequest) -> ClusterConnection | None:
    return ClusterConnection.objects.filter(cluster__name=request.name).first()


def _try_connection(
    credentials: Credentials, request: JoinRequest, existing: ClusterConnection | None
) -> ProbeResult:
    known_uid = existing.cluster_uid if existing and not request.is_other_cluster else ""
    grants = grants_of(_known_cluster(request))
    try:
        with client_of(credentials, limits=PATIENCE) as client:
            return probe.probe(client, known_uid=known_uid, grants=grants)
    except APIError as error:
        return ProbeResult(state=probe.state_of(error), message=error.message)


def _known_cluster(request: JoinRequest) -> Cluster:
    """The cluster of that name, or an unsaved one."""
    existing: Cluster | None = Cluster.objects.filter(name=request.name).first()
    return existing or Cluster(name=request.name, authority=request.authority)
