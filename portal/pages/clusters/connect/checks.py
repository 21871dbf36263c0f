"""Check, a row of the test of a connection: what passed, what failed, and the repairing command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sync.connect.permissions import ESSENTIAL_VERBS, GRANTS
from sync.connect.probe import OTHER_CLUSTER, SKEW, State
from sync.models import ClusterConnection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sync.connect.join import JoinRequest
    from sync.connect.probe import ProbeResult

_WRITES: Final = {"create", "update", "patch", "delete"}
_ESSENTIAL: Final = {each.resource for each in GRANTS if each.is_essential}


@dataclass(frozen=True, slots=True)
class Check:
    """A row: its look is ``passed``, ``warned`` or ``failed``; ``unknown`` where nothing asked."""

    name: str
    look: str
    words: str
    command: str = ""


def checks_of(findings: ProbeResult, request: JoinRequest) -> Sequence[Check]:
    """The rows of a test; after the first failure of the connection the rest is unknown."""
    rows = [*_connection_checks(findings, request)]
    if findings.server_version:
        return [*rows, *_server_checks(findings, request)]
    names = ("API server", "Same cluster", "Read policies", "Read counted objects", "Write")
    return [*rows, *(Check(name, "unknown", "not tested: no connection") for name in names)]


def _connection_checks(findings: ProbeResult, request: JoinRequest) -> Iterator[Check]:
    """Address, TLS and credential: the first that failed has the reason."""
    flags = _context_flag(request)
    view = f"kubectl config view --raw --flatten --minify{flags} > cluster.kubeconfig"
    token = f"kubectl{flags} -n gatehouse create token gatehouse --duration 8760h"
    is_cut_off = not findings.server_version
    rows = (
        ("Address", State.UNREACHABLE, "answers", view),
        ("TLS", State.UNTRUSTED, "the certificate is of the file's authority", view),
        ("Credential", State.UNAUTHORIZED, "accepted", token),
    )
    is_reached = True
    for name, state, passed, command in rows:
        if is_cut_off and findings.state == state:
            yield Check(name, "failed", findings.message, command)
            is_reached = False
        elif is_reached:
            yield Check(name, "passed", passed)
        else:
            yield Check(name, "unknown", "not tested")


def _server_checks(findings: ProbeResult, request: JoinRequest) -> Iterator[Check]:
    problems = dict(findings.problems)
    skew = findings.clock_skew
    clock = "" if skew is None else f", clock differs by {abs(skew):g} s"
    if SKEW in problems:
        ntp = "sudo timedatectl set-ntp true  # on the node of the API server"
        yield Check("API server", "warned", f"{findings.server_version}: {problems[SKEW]}", ntp)
    else:
        yield Check("API server", "passed", f"{findings.server_version}{clock}")
    if OTHER_CLUSTER in problems:
        yield Check("Same cluster", "failed", problems[OTHER_CLUSTER])
    else:
        yield _uid_check(findings, request)
    yield from _permission_checks(findings.missing, request)


def _uid_check(findings: ProbeResult, request: JoinRequest) -> Check:
    """Whether the cluster has another name here already."""
    if not findings.cluster_uid:
        return Check("Not connected yet", "unknown", "the cluster's uid could not be read")
    known = ClusterConnection.objects.filter(cluster_uid=findings.cluster_uid)
    other = known.exclude(cluster__name=request.name).select_related("cluster").first()
    if other is None:
        return Check("Not connected yet", "passed", "no other connection has this cluster's uid")
    return Check("Not connected yet", "warned", f"{other.cluster.name} leads to the same cluster")


def _permission_checks(missing: Sequence[str], request: JoinRequest) -> Iterator[Check]:
    unread, uncounted, unwritten = [], [], []
    for described in missing:
        verbs, resource = _verbs_and_resource(described)
        is_essential = resource in _ESSENTIAL
        if is_essential and ESSENTIAL_VERBS.intersection(verbs):
            unread.append(described)
        elif _WRITES.intersection(verbs):
            unwritten.append(described)
        else:
            uncounted.append(described)
    # Whoever gives the portal's account its roles gives it all of them.
    command = (
        f"python manage.py cluster_manifests {request.name} --create --ca-file ca.crt"
        f" | kubectl{_context_flag(request)} apply --server-side -f -"
    )
    rows = (
        ("Read policies", "failed", unread, "namespaces, policies and priority classes"),
        ("Read counted objects", "warned", uncounted, "pods, claims, services and webhooks"),
        ("Write", "warned", unwritten, "policies, their status and the canary"),
    )
    for name, look, lacking, words in rows:
        if lacking:
            yield Check(name, look, f"missing: {'; '.join(lacking)}", command)
        else:
            yield Check(name, "passed", words)


def _verbs_and_resource(described: str) -> tuple[set[str], str]:
    """The verbs and the resource of a described grant, as ``get, patch resourcequotas``."""
    words = described.partition(" in namespace ")[0].split()
    verbs = {word.removesuffix(",") for word in words if word.endswith(",")}
    first = len(verbs)
    return {*verbs, words[first]}, words[first + 1].partition(".")[0]


def _context_flag(request: JoinRequest) -> str:
    return f" --context {request.context}" if request.context else ""
