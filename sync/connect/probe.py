"""ProbeResult: version, clock skew, cluster uid, missing permissions; stored in connections."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from policies.db.clock import read_clock
from sync import alerts, policy_writes
from sync.connect.permissions import ESSENTIAL_VERBS, GRANTS, grants_of
from sync.errors import (
    APIError,
    ForbiddenError,
    UnauthorizedError,
    UntrustedError,
)
from sync.models import ClusterConnection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sync.client import Client
    from sync.connect.permissions import Grant

State = ClusterConnection.State
MAX_SKEW: Final = 60.0
"""Seconds by which the clocks may differ without an alert."""
OTHER_CLUSTER: Final = "other-cluster"
SKEW: Final = "clock-skew"
_PROBED_COLUMNS: Final = (
    *("state", "message", "since", "tested"),
    *("server_version", "cluster_uid", "clock_skew", "missing_permissions"),
)
_STATE_OF_ERROR: Final = (
    (UntrustedError, State.UNTRUSTED),
    (UnauthorizedError, State.UNAUTHORIZED),
    (ForbiddenError, State.FORBIDDEN),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The findings of a test; ``problems`` are codes and texts, ``missing`` permissions as texts.

    ``clock_skew`` are the seconds that the server is ahead of us. Without a version the server was
    not reached.
    """

    state: str
    message: str = ""
    server_version: str = ""
    cluster_uid: str = ""
    clock_skew: float | None = None
    missing: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether a sync can begin."""
        return self.state == State.OK

    def to_json(self) -> dict[str, Any]:
        """The findings for machines."""
        return {
            "state": self.state,
            "message": self.message,
            "serverVersion": self.server_version,
            "clusterUID": self.cluster_uid,
            "clockSkewSeconds": self.clock_skew,
            "missingPermissions": list(self.missing),
            "problems": [{"code": code, "message": text} for code, text in self.problems],
        }


def test(connection: ClusterConnection, client: Client) -> ProbeResult:
    """Test a connection with its client and store the findings; never raises an APIError."""
    grants = grants_of(connection.cluster)
    findings = probe(client, known_uid=connection.cluster_uid, grants=grants)
    store(connection, findings)
    return findings


def probe(client: Client, *, known_uid: str = "", grants: Sequence[Grant] = GRANTS) -> ProbeResult:
    """Test a cluster; ``known_uid`` is the uid that it had before."""
    try:
        return _probe_server(client, known_uid, grants)
    except APIError as error:
        return ProbeResult(state=state_of(error), message=error.message)


def state_of(error: APIError) -> str:
    """The connection's state after an error."""
    error_states = (state for kind, state in _STATE_OF_ERROR if isinstance(error, kind))
    return next(error_states, State.UNREACHABLE)


def _probe_server(client: Client, known_uid: str, grants: Sequence[Grant]) -> ProbeResult:
    version = str(client.version()["gitVersion"])[:100]
    our_time, server_time = datetime.now(UTC), client.server_time()
    # Exact to a second only, as the header is.
    skew = None if server_time is None else round((server_time - our_time).total_seconds(), 1)
    missing, unread = _missing_grants(client, grants)
    # kube-system lives as long as its cluster does, and its uid is the usual id of a cluster.
    kube_system = None if "namespaces" in unread else client.get("Namespace", "kube-system")
    cluster_uid = str(kube_system["metadata"].get("uid", ""))[:64] if kube_system else ""
    problems = []
    if known_uid and cluster_uid and cluster_uid != known_uid:
        text = f"another cluster answers there now: its uid is {cluster_uid}, it was {known_uid}"
        problems.append((OTHER_CLUSTER, text))
    if skew is not None and abs(skew) > MAX_SKEW:
        skew_way = "ahead of" if skew > 0 else "behind"
        problems.append((SKEW, f"the cluster's clock is {abs(skew):.0f} s {skew_way} the portal's"))
    state, message = State.OK, ""
    if problems and problems[0][0] == OTHER_CLUSTER:
        state, message = State.UNTRUSTED, problems[0][1]
    elif unread:
        state, message = State.FORBIDDEN, f"not allowed to read {', '.join(unread)}"
    return ProbeResult(
        state=state,
        message=message,
        server_version=version,
        cluster_uid=cluster_uid,
        clock_skew=skew,
        missing=missing,
        problems=tuple(problems),
    )


def _missing_grants(
    client: Client, grants: Sequence[Grant]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the missing permissions, and the essential resources that cannot even be read."""
    missing_grants, unreadable = [], []
    for grant in grants:
        for name in grant.names or ("",):
            lacking_verbs = [
                verb
                for verb in grant.verbs
                if not client.can(verb, grant.group, grant.resource, grant.namespace, name=name)
            ]
            if lacking_verbs:
                missing_grants.append(grant.describe(lacking_verbs, name))
            if grant.is_essential and ESSENTIAL_VERBS.intersection(lacking_verbs):
                unreadable.append(grant.resource)
    return tuple(missing_grants), tuple(unreadable)


def store(connection: ClusterConnection, findings: ProbeResult) -> None:
    """Store the findings in the connection's row, but keep the first uid, and set alerts."""
    now = read_clock()
    if connection.state != findings.state or connection.since is None:
        connection.since = now
    connection.state, connection.message = findings.state, findings.message
    connection.tested = now
    connection.server_version = findings.server_version or connection.server_version
    connection.cluster_uid = connection.cluster_uid or findings.cluster_uid
    if findings.server_version:
        connection.clock_skew = findings.clock_skew
        connection.missing_permissions = list(findings.missing)
    probed_values = {name: getattr(connection, name) for name in _PROBED_COLUMNS}
    # The generation: a row with other credentials by now was not tested.
    same = ClusterConnection.objects.filter(pk=connection.pk, generation=connection.generation)
    same.update(**probed_values)
    problems = dict(findings.problems)
    if OTHER_CLUSTER not in problems:
        policy_writes.note_version(connection.cluster, findings.server_version)
    for kind, severity in ((OTHER_CLUSTER, alerts.CRITICAL), (SKEW, alerts.WARNING)):
        problem_text = problems.get(kind, "")
        if problem_text or findings.server_version:
            alerts.set_alert(connection.cluster, kind, problem_text, severity=severity)
