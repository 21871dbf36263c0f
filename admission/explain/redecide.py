"""A recorded request judged by the Rules of then (revisions, used amounts) or of now.

The record keeps every field that rules read, so nothing is missing for a decision.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from admission.record.redaction import restore
from engine.chain import admit
from engine.errors import DecodeError
from engine.kubernetes_version import stored_version
from engine.policy import Authority, PolicySet
from engine.policy_manifests import build_policy_set
from engine.request import Operation, Phase
from engine.request_json import build_request
from policies import snapshot
from policies.models import Cluster, PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from admission.models import AuditEvent
    from engine.decision import Decision
    from engine.kubernetes_version import KubernetesVersion
    from engine.request import AdmissionRequest

LIMITED: Final = "limitedResources"
_JUDGED: Final = frozenset({Operation.CREATE, Operation.UPDATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The policies of a namespace, as values for the engine and as manifests for a file."""

    policies: PolicySet
    manifests: tuple[dict[str, Any], ...] = ()
    limited: tuple[dict[str, Any], ...] = ()


def request_of(event: AuditEvent) -> AdmissionRequest | None:
    """The recorded request; None where it could not be read, or no rule applies to its operation.

    None, too, where it was cut: a decision about a part may be wrong.
    """
    if event.is_cut:
        return None
    try:
        request = build_request(restore(event.request))
    except DecodeError:
        return None
    has_object = request.object is not None and request.operation in _JUDGED
    return request if has_object else None


def judge(request: AdmissionRequest, policies: PolicySet) -> Decision:
    """Decide as in an API server: default, mutate, validate."""
    return admit(request, policies, phase=Phase.BOTH, now=int(time.time()))


def rules_now(event: AuditEvent) -> PolicySet:
    """The policies of today, with the amounts used today."""
    return snapshot.load(event.cluster, event.namespace)


def revisions_of(event: AuditEvent) -> list[PolicyRevision]:
    """The revisions of the evaluated policies, and of the cluster's limited resources."""
    refs = [
        Q(kind=ref["kind"], namespace=ref["namespace"], name=ref["name"], number=ref["revision"])
        for ref in event.policies
    ]
    limited = Q(name=LIMITED, namespace="", cluster_revision__lte=event.policy_revision)
    revisions = PolicyRevision.objects.filter(reduce(or_, refs, limited), cluster=event.cluster)
    return list(revisions.order_by("kind", "name", "number"))


def rules_then(event: AuditEvent, revisions: Iterable[PolicyRevision]) -> Rules | None:
    """The policies of then; None where a revision is missing, or cannot be read any more."""
    then = [revision for revision in revisions if revision.after and revision.name != LIMITED]
    if len(then) < len(event.policies):
        return None
    limited = next((r.after for r in reversed(list(revisions)) if r.name == LIMITED), None)
    limited_entries = tuple((limited or {}).get(LIMITED) or ())
    used = _recorded_amounts(event)
    manifests = tuple(_with_status(revision, used) for revision in then)
    try:
        policies = build_policy_set(
            manifests,
            list(limited_entries),
            namespace=event.namespace,
            version=_version_then(event),
        )
    except DecodeError:
        return None
    policies = dataclasses.replace(policies, authority=Authority(event.authority))
    return Rules(policies=policies, manifests=manifests, limited=limited_entries)


def _version_then(event: AuditEvent) -> KubernetesVersion:
    """The version of the cluster, as it was known when the request was decided."""
    of_cluster = PolicyRevision.objects.filter(
        cluster=event.cluster, kind=Cluster.kind, cluster_revision__lte=event.policy_revision
    )
    newest = of_cluster.order_by("-cluster_revision").first()
    spec = ((newest.after if newest else None) or {}).get("spec") or {}
    return stored_version(spec.get("kubernetesVersion") or "")


def agrees(event: AuditEvent, request: AdmissionRequest, rules: Rules) -> bool:
    """Whether the engine, under these rules, repeats the recorded decision."""
    decision = admit(request, rules.policies, phase=Phase(event.phase))
    reasons = sorted({violation.reason.value for violation in decision.violations})
    return reasons == sorted({violation["reason"] for violation in event.violations})


def _recorded_amounts(event: AuditEvent) -> dict[str, dict[str, str]]:
    """The used amounts of each quota, as far as the decision recorded them."""
    used: dict[str, dict[str, str]] = {}
    for step in event.trace:
        if (policy := step.get("policy")) and policy["kind"] == "ResourceQuota":
            amounts = used.setdefault(policy["name"], {})
            for number_name, number in (step.get("numbers") or {}).items():
                amounts[number_name] = str(number).partition(" + ")[0]
    for violation in (*event.violations, *event.observed):
        numbers = violation.get("numbers") or {}
        if violation.get("policy") and "used" in numbers:
            used.setdefault(violation["policy"]["name"], {})[numbers["resource"]] = numbers["used"]
    return used


def _with_status(revision: PolicyRevision, used: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    manifest: dict[str, Any] = dict(revision.after or {})
    if revision.kind != "ResourceQuota":
        return manifest
    hard = (manifest.get("spec") or {}).get("hard") or {}
    recorded_used = used.get(revision.name, {})
    used_amounts = {resource: recorded_used.get(resource, "0") for resource in hard}
    return {**manifest, "status": {"hard": hard, "used": used_amounts}}
