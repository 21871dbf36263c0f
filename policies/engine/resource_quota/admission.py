"""One request against all quotas of its namespace: refuse it, or say what it is charged.

Source: ``CheckRequest`` in ``apiserver/pkg/admission/plugin/resourcequota/controller.go``.
Kubernetes stops at the first trouble; this goes on and lists everything, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from policies.engine.decision import Charge, Outcome, Reason, Step, Violation
from policies.engine.policy import Enforcement
from policies.engine.request import Operation
from policies.engine.resource_list import (
    add,
    mask,
    negative_names,
    remove_zeros,
    stored,
    subtract_with_non_negative_result,
)
from policies.engine.resource_quota.evaluators import reason_not_counted
from policies.engine.resource_quota.limited_resources import (
    limited_names,
    limited_scopes,
    uncovered_scopes,
)
from policies.engine.resource_quota.matching import Match, Subject, field_of, match_quota
from policies.engine.resource_quota.scopes import ScopeError
from policies.engine.resource_quota.usage import usage_of
from policies.engine.wire import expect_map, expect_string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.engine.policy import LimitedResource, ResourceQuota
    from policies.engine.request import AdmissionRequest
    from policies.engine.resource_list import ResourceList
    from policies.engine.selector import ScopeSelectorRequirement

_QUOTA: Final = "ResourceQuota"
_LIMITED: Final = "LimitedResources"
_SET_BY_SERVER: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaResult:
    """What quotas say to one request.

    ``violations`` are in the order in which Kubernetes meets them, those of quotas in ``warn`` and
    ``audit`` mode among them (told by ``policy``). ``charges`` are empty if anything refuses, and
    on a dry run. ``used`` has every quota by name, as stored after the request.
    """

    violations: tuple[Violation, ...] = ()
    charges: tuple[Charge, ...] = ()
    used: Mapping[str, ResourceList] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """What the object needs a covering quota for, by name and by scope."""

    names: frozenset[str] = frozenset()
    scopes: tuple[ScopeSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What the request asks of one matched quota: growth by name, and what it comes to."""

    match: Match
    requested: ResourceList
    total: ResourceList
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usage:
    """What the object uses, and by how much that grows; an error instead if it cannot be told.

    ``old`` is None where everything counts as new.
    """

    whole: ResourceList
    old: ResourceList | None = None
    violations: tuple[Violation, ...] = ()

    def growth(self, *, counted_before: bool) -> dict[str, Any]:
        """Give what is new to a quota, without zeros; it may have counted the old object."""
        if self.old is None or not counted_before:
            return remove_zeros(self.whole)
        return remove_zeros(subtract_with_non_negative_result(self.whole, self.old))


def evaluate(
    request: AdmissionRequest,
    quotas: Sequence[ResourceQuota],
    limited_resources: Sequence[LimitedResource],
    *,
    now: str | int | None = None,
) -> QuotaResult:
    """Hold a request against the quotas of its namespace, given in the order to report.

    The object is taken as API defaulting left it. ``now`` is RFC 3339 text or seconds since 1970.
    Raises DecodeError, and nothing else, for objects that cannot be read.
    """
    used = {quota.name: quota.used for quota in quotas}
    reason = reason_not_counted(request)
    if not reason and not quotas and not limited_resources:
        reason = "the namespace has no quota"
    if reason:
        return QuotaResult(used=used, steps=(_step(_QUOTA, Outcome.SKIPPED, reason),))
    obj = _as_stored(request)
    subject = Subject.of(request.resource, obj, request.old_object)
    whole = usage_of(obj, request.resource, now=now)
    try:
        scopes = limited_scopes(limited_resources, subject.test)
    except ScopeError as error:
        detail = f"{error}; so no quota is checked"
        return QuotaResult(used=used, steps=(_step(_LIMITED, Outcome.ERROR, detail),))
    names = frozenset(limited_names(limited_resources, request.resource, whole))
    matches = tuple(match_quota(quota, subject) for quota in quotas)
    usage = _usage(request, whole, now)
    return _conclude(request, matches, usage, _Limits(names=names, scopes=scopes))


def _as_stored(request: AdmissionRequest) -> Mapping[str, Any]:
    """Put aside what a client says about matters that the server alone decides.

    A new object has no status and is not being deleted; an update leaves the status as it was.
    """
    obj = dict(request.object or {})
    if request.operation is Operation.UPDATE:
        if request.sub_resource != "status" and request.old_object is not None:
            obj["status"] = request.old_object.get("status")
        return obj
    obj.pop("status", None)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        obj["metadata"] = {k: v for k, v in metadata.items() if k not in _SET_BY_SERVER}
    return obj


def _usage(request: AdmissionRequest, whole: ResourceList, now: str | int | None) -> _Usage:
    """Compare with the object's earlier state, if the update is one of something stored."""
    if negative := negative_names(whole):
        message = f"quota usage is negative for resource(s): {','.join(negative)}"
        found = _violation(Reason.NEGATIVE_USAGE, field_of(request.resource, negative[0]), message)
        numbers = {"resource": negative[0], "requested": str(whole[negative[0]])}
        return _Usage(whole=whole, violations=(replace(found, numbers=numbers),))
    if request.operation is not Operation.UPDATE:
        return _Usage(whole=whole)
    if request.old_object is None:
        message = "unable to get previous usage since prior version of object was not found"
        found = _violation(Reason.NO_PREVIOUS_USAGE, "metadata.resourceVersion", message)
        return _Usage(whole=whole, violations=(found,))
    old = request.old_object
    metadata = expect_map(old.get("metadata"), "metadata", "Object.metadata of type v1.ObjectMeta")
    path = "metadata.resourceVersion"
    go_field = f"ObjectMeta.{path} of type string"
    if not expect_string(metadata.get("resourceVersion"), path, go_field):
        return _Usage(whole=whole)
    return _Usage(whole=whole, old=usage_of(old, request.resource, now=now))


def _conclude(
    request: AdmissionRequest, matches: tuple[Match, ...], usage: _Usage, limits: _Limits
) -> QuotaResult:
    """Put all findings in Kubernetes' order, and charge if none of them refuses."""
    found = [violation for match in matches for violation in match.violations]
    found += usage.violations
    claims: tuple[_Claim, ...] = ()
    uncovered: list[Violation] = []
    if not usage.violations:
        claims = tuple(_claim(request, match, usage) for match in matches if match.is_countable)
        if _grows(matches, usage):
            uncovered = _uncovered(request, matches, limits)
    found += uncovered
    found += [violation for claim in claims for violation in claim.violations]
    watching = {match.quota.ref for match in matches if not match.is_enforced}
    is_refused = any(violation.policy not in watching for violation in found)
    charged = () if is_refused or request.dry_run else tuple(c for c in claims if _is_charged(c))
    steps = [_quota_step(match, claims, charged) for match in matches]
    if limits.names or limits.scopes:
        outcome = Outcome.VIOLATED if uncovered else Outcome.PASSED
        steps.insert(0, _step(_LIMITED, outcome, _limits_text(limits)))
    elif not matches:
        steps.append(_step(_LIMITED, Outcome.NOT_MATCHED, "nothing this object uses is limited"))
    used: dict[str, ResourceList] = {match.quota.name: match.quota.used for match in matches}
    used.update({claim.match.quota.name: claim.total for claim in charged})
    return QuotaResult(
        violations=tuple(found),
        charges=tuple(_charge(claim, usage) for claim in charged),
        used=used,
        steps=tuple(steps),
    )


def _grows(matches: tuple[Match, ...], usage: _Usage) -> bool:
    """Whether anything new is used at all; where nothing is, nothing has to be covered."""
    matched = [match for match in matches if match.is_matched and match.is_enforced]
    if not matched:
        return bool(usage.growth(counted_before=True))
    return any(usage.growth(counted_before=match.matched_old) for match in matched)


def _uncovered(
    request: AdmissionRequest, matches: tuple[Match, ...], limits: _Limits
) -> list[Violation]:
    """Find what is limited and that no quota covers; by name first, then by scope."""
    covering = [match for match in matches if match.is_enforced]
    covered = {name for match in covering if match.is_matched for name in match.names}
    found = []
    if names := sorted(limits.names - covered):
        where = field_of(request.resource, names[0])
        message = f"insufficient quota to consume: {','.join(names)}"
        violation = _violation(Reason.INSUFFICIENT_QUOTA, where, message)
        found.append(replace(violation, numbers={"resource": ",".join(names)}))
    scopes = [scope for match in covering for scope in match.scopes]
    if missing := uncovered_scopes(limits.scopes, scopes):
        text = " ".join(f"{{{requirement}}}" for requirement in missing)
        message = f"insufficient quota to match these scopes: [{text}]"
        where = "spec.priorityClassName" if "PriorityClass" in text else "spec"
        found.append(_violation(Reason.UNCOVERED_SCOPE, where, message))
    return found


def _claim(request: AdmissionRequest, match: Match, usage: _Usage) -> _Claim:
    """Add up what one quota would have used, and find the names that this takes too far."""
    quota = match.quota
    requested = mask(usage.growth(counted_before=match.matched_old), quota.hard)
    total = {**quota.used, **stored(mask(add(quota.used, requested), requested))}
    exceeded = [name for name in sorted(requested) if total[name] > quota.hard[name]]
    if not exceeded or request.sub_resource == "status":
        return _Claim(match=match, requested=requested, total=total)
    message = (
        f"exceeded quota: {quota.name}, requested: {_text(requested, exceeded)}, "
        f"used: {_text(quota.used, exceeded)}, limited: {_text(quota.hard, exceeded)}"
    )
    violations = tuple(
        Violation(
            reason=Reason.EXCEEDED_QUOTA,
            field=field_of(request.resource, name),
            message=message,
            policy=quota.ref,
            numbers={
                "resource": name,
                "requested": str(requested[name]),
                "used": str(quota.used[name]),
                "hard": str(quota.hard[name]),
            },
        )
        for name in exceeded
    )
    return _Claim(match=match, requested=requested, total=total, violations=violations)


def _text(resources: ResourceList, names: Sequence[str]) -> str:
    return ",".join(f"{name}={resources[name]}" for name in names)


def _is_charged(claim: _Claim) -> bool:
    return claim.match.is_enforced and bool(claim.requested)


def _charge(claim: _Claim, usage: _Usage) -> Charge:
    quota = claim.match.quota
    amounts = mask(usage.whole, quota.hard)
    return Charge(quota=quota.ref, delta=claim.requested, amounts=amounts)


def _quota_step(match: Match, claims: tuple[_Claim, ...], charged: tuple[_Claim, ...]) -> Step:
    """Say in the trace what came of one quota."""
    ref = match.quota.ref
    claim = next((claim for claim in claims if claim.match is match), None)
    violations = match.violations + (claim.violations if claim else ())
    if violations:
        is_broken = violations[0].reason is Reason.BAD_SCOPE_SELECTOR
        outcome = Outcome.ERROR if is_broken else Outcome.VIOLATED
        return _step(_QUOTA, outcome, violations[0].message, policy=ref)
    if not match.is_matched:
        return _step(_QUOTA, Outcome.NOT_MATCHED, match.detail, policy=ref)
    if claim is None or not claim.requested:
        return _step(_QUOTA, Outcome.PASSED, "nothing it bounds grows", policy=ref)
    numbers = {
        name: f"{claim.match.quota.used[name]} + {quantity} of {claim.match.quota.hard[name]}"
        for name, quantity in sorted(claim.requested.items())
    }
    outcome = Outcome.CHARGED if claim in charged else Outcome.PASSED
    detail = "" if match.quota.enforcement is Enforcement.ENFORCE else "watching: never charged"
    return replace(_step(_QUOTA, outcome, detail, policy=ref), numbers=numbers)


def _limits_text(limits: _Limits) -> str:
    """Name what needs a covering quota."""
    scopes = (str(requirement) for requirement in limits.scopes)
    return f"needs a covering quota: {', '.join([*sorted(limits.names), *scopes])}"


def _step(name: str, outcome: Outcome, detail: str, *, policy: Any = None) -> Step:
    return Step(name=name, outcome=outcome, policy=policy, detail=detail)


def _violation(reason: Reason, where: str, message: str) -> Violation:
    return Violation(reason=reason, field=where, message=message)
