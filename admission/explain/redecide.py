"""Decide a recorded request again, under the policies of then or of now, by the engine.

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

from admission.offline import build_policy_set
from admission.record.redaction import restore
from admission.wire.review import build_request
from engine.chain import admit
from engine.errors import DecodeError
from engine.policy import Authority, PolicySet
from engine.request import Operation, Phase
from policies import snapshot
from policies.models import PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from admission.models import AuditEvent
    from engine.decision import Decision
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
    wanted = [
        Q(kind=ref["kind"], namespace=ref["namespace"], name=ref["name"], number=ref["revision"])
        for ref in event.policies
    ]
    limited = Q(name=LIMITED, namespace="", cluster_revision__lte=event.policy_revision)
    rows = PolicyRevision.objects.filter(reduce(or_, wanted, limited), cluster=event.cluster)
    return list(rows.order_by("kind", "name", "number"))


def rules_then(event: AuditEvent, revisions: Iterable[PolicyRevision]) -> Rules | None:
    """The policies of then; None where a revision is missing, or cannot be read any more."""
    found = [each for each in revisions if each.after and each.name != LIMITED]
    if len(found) < len(event.policies):
        return None
    limited = next((r.after for r in reversed(list(revisions)) if r.name == LIMITED), None)
    entries = tuple((limited or {}).get(LIMITED) or ())
    used = _used(event)
    manifests = tuple(_with_status(each, used) for each in found)
    try:
        policies = build_policy_set(manifests, list(entries), namespace=event.namespace)
    except DecodeError:
        return None
    policies = dataclasses.replace(policies, authority=Authority(event.authority))
    return Rules(policies=policies, manifests=manifests, limited=entries)


def agrees(event: AuditEvent, request: AdmissionRequest, rules: Rules) -> bool:
    """Whether the engine, under these rules, repeats the recorded decision."""
    decision = admit(request, rules.policies, phase=Phase(event.phase))
    reasons = sorted({each.reason.value for each in decision.violations})
    return reasons == sorted({each["reason"] for each in event.violations})


def _used(event: AuditEvent) -> dict[str, dict[str, str]]:
    """The used amounts of each quota, as far as the decision recorded them."""
    used: dict[str, dict[str, str]] = {}
    for step in event.trace:
        if (policy := step.get("policy")) and policy["kind"] == "ResourceQuota":
            amounts = used.setdefault(policy["name"], {})
            for name, text in (step.get("numbers") or {}).items():
                amounts[name] = str(text).partition(" + ")[0]
    for found in (*event.violations, *event.observed):
        numbers = found.get("numbers") or {}
        if found.get("policy") and "used" in numbers:
            used.setdefault(found["policy"]["name"], {})[numbers["resource"]] = numbers["used"]
    return used


def _with_status(revision: PolicyRevision, used: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    manifest: dict[str, Any] = dict(revision.after or {})
    if revision.kind != "ResourceQuota":
        return manifest
    hard = (manifest.get("spec") or {}).get("hard") or {}
    known = used.get(revision.name, {})
    amounts = {name: known.get(name, "0") for name in hard}
    return {**manifest, "status": {"hard": hard, "used": amounts}}
