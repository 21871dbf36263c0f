"""Assess a request before used amounts: whole usage and growth, Demand on matches, needed cover.

Source: the parts of ``CheckRequest`` that need no used amount, in
``apiserver/pkg/admission/plugin/resourcequota/controller.go``. The tracked names are known here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.decision import Charge, Outcome, Reason, Step, Violation
from engine.fields import expect_map, expect_string
from engine.request import Operation
from engine.resource_list import (
    mask,
    negative_names,
    remove_zeros,
    subtract_with_non_negative_result,
)
from engine.resource_quota.evaluators import reason_not_counted
from engine.resource_quota.limited_resources import (
    limited_names,
    limited_scopes,
    uncovered_scopes,
)
from engine.resource_quota.match import Match, QuotaSubject, field_of, match_quota
from engine.resource_quota.scopes import ScopeError
from engine.resource_quota.usage import usage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.pod import PodSpec
    from engine.policy import PolicySet, ResourceQuota
    from engine.request import AdmissionRequest, GroupVersionResource
    from engine.resource_list import ResourceList
    from engine.selector import ScopeSelectorRequirement

QUOTA_STEP: Final = "ResourceQuota"
LIMITED_STEP: Final = "LimitedResources"
_BYTES: Final = 512  # bytes of a match, an amount, or a violation without its text, for the cache
_SET_BY_SERVER: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_NOTHING: Final[Mapping[str, Any]] = {}


class Demand(NamedTuple):
    """The demand of a request on one matched quota that tracks all its names.

    ``requested`` is the growth by name, without zeros. ``counted`` is the object's whole usage once
    it is admitted, ``before`` its usage before the update. ``sums`` are texts by name that follow
    the used amount in the trace; ``charge`` is the cost of admitting the object.
    """

    match: Match
    requested: ResourceList
    counted: ResourceList
    before: ResourceList
    sums: Mapping[str, str]
    charge: Charge


class Assessment(NamedTuple):
    """The matches and demands of a request in the quotas of its namespace.

    ``violations`` are those that no used amount can change; ``limited`` is the step about usage
    that needs a covering quota. ``steps`` is the whole trace where quotas do not apply. With
    ``is_advisory`` the API server enforces, and only missing coverage prevents the charge.
    """

    request: AdmissionRequest
    quotas: tuple[ResourceQuota, ...]
    matches: tuple[Match, ...] = ()
    demands: tuple[Demand, ...] = ()
    violations: tuple[Violation, ...] = ()
    limited: Step | None = None
    steps: tuple[Step, ...] = ()
    is_advisory: bool = False

    @property
    def weight(self) -> int:
        """The estimated bytes in memory."""
        names = sum([len(demand.counted) + len(demand.sums) for demand in self.demands])
        texts = sum([len(violation.message) for violation in self.violations])
        return _BYTES * (len(self.matches) + names + len(self.violations)) + texts

    @property
    def open_demands(self) -> tuple[Demand, ...]:
        """The demands that are not empty: only these need the quota's used amounts."""
        return tuple(demand for demand in self.demands if demand.requested)


class _Needs(NamedTuple):
    """The names and scopes for which the object needs a covering quota."""

    names: frozenset[str] = frozenset()
    scopes: tuple[ScopeSelectorRequirement, ...] = ()


class _ObjectUsage(NamedTuple):
    """The usage of an object and its growth, or the violations that prevent computing it.

    ``old`` is the usage before the update, empty where everything counts as new. ``as_new`` is
    the growth, without zeros, in a quota that did not count the old object, ``growth`` in one that
    did.
    """

    whole: ResourceList
    old: ResourceList
    as_new: ResourceList
    growth: ResourceList
    violations: tuple[Violation, ...] = ()

    @classmethod
    def of(
        cls,
        whole: ResourceList,
        *,
        old: ResourceList = _NOTHING,
        violations: tuple[Violation, ...] = (),
    ) -> _ObjectUsage:
        """Compute the growth."""
        as_new = growth = remove_zeros(whole)
        if old:
            growth = remove_zeros(subtract_with_non_negative_result(whole, old))
        return cls(whole=whole, old=old, as_new=as_new, growth=growth, violations=violations)


def assess(
    request: AdmissionRequest,
    policy_set: PolicySet,
    *,
    now: str | int | None = None,
    spec: PodSpec | None = None,
) -> Assessment:
    """Assess a request in the quotas of its namespace, which are in the order of the report.

    The object is taken as defaulted. ``now`` is RFC 3339 text or seconds since 1970. ``spec`` is
    the pod's, where it was read already. Raises DecodeError, and nothing else, for an object that
    cannot be read.
    """
    quotas, limited_resources = policy_set.resource_quotas, policy_set.limited_resources
    version = policy_set.version
    reason = reason_not_counted(request)
    if not reason and not quotas and not limited_resources:
        reason = "the namespace has no quota"
    if reason:
        step = Step(name=QUOTA_STEP, outcome=Outcome.SKIPPED, detail=reason)
        return Assessment(request=request, quotas=quotas, steps=(step,))
    obj = _as_stored(request)
    subject = QuotaSubject.of(request.resource, obj, request.old_object, spec, version)
    whole = usage_of(obj, request.resource, now=now, spec=subject.spec, version=version)
    try:
        scopes = limited_scopes(limited_resources, subject.test)
    except ScopeError as error:
        # Kubernetes logs the error and admits the object unchecked.
        detail = f"{error}; so no quota is checked"
        step = Step(name=LIMITED_STEP, outcome=Outcome.ERROR, detail=detail)
        return Assessment(request=request, quotas=quotas, steps=(step,))
    names = frozenset(limited_names(limited_resources, request.resource, whole))
    matches = tuple([match_quota(quota, subject) for quota in quotas])
    usage = _usage(request, whole, partial(usage_of, now=now, version=version))
    return _assemble(request, matches, usage, _Needs(names=names, scopes=scopes))


def _as_stored(request: AdmissionRequest) -> Mapping[str, Any]:
    """Discard the fields of a client that only the server sets.

    A new object has no status and is not being deleted; an update does not change the status.
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


def _usage(
    request: AdmissionRequest,
    whole: ResourceList,
    measure: Callable[[Mapping[str, Any], GroupVersionResource], ResourceList],
) -> _ObjectUsage:
    """Compute usage and growth; an update is compared with the stored object."""
    if negative := negative_names(whole):
        message = f"quota usage is negative for resource(s): {','.join(negative)}"
        found = _violation(Reason.NEGATIVE_USAGE, field_of(request.resource, negative[0]), message)
        numbers = {"resource": negative[0], "requested": str(whole[negative[0]])}
        return _ObjectUsage.of(whole, violations=(replace(found, numbers=numbers),))
    if request.operation is not Operation.UPDATE:
        return _ObjectUsage.of(whole)
    if request.old_object is None:
        message = "unable to get previous usage since prior version of object was not found"
        found = _violation(Reason.NO_PREVIOUS_USAGE, "metadata.resourceVersion", message)
        return _ObjectUsage.of(whole, violations=(found,))
    old = request.old_object
    metadata = expect_map(old.get("metadata"), "metadata", "Object.metadata of type v1.ObjectMeta")
    path = "metadata.resourceVersion"
    go_field = f"ObjectMeta.{path} of type string"
    # Without a resourceVersion the old object was never stored, so that nothing was counted.
    if not expect_string(metadata.get("resourceVersion"), path, go_field):
        return _ObjectUsage.of(whole)
    return _ObjectUsage.of(whole, old=measure(old, request.resource))


def _assemble(
    request: AdmissionRequest, matches: tuple[Match, ...], usage: _ObjectUsage, needs: _Needs
) -> Assessment:
    """Collect violations in Kubernetes' order, and the demand on each quota."""
    violations = [violation for match in matches for violation in match.violations]
    violations += usage.violations
    demands: tuple[Demand, ...] = ()
    uncovered: list[Violation] = []
    if not usage.violations:
        demands = tuple([_demand(match, usage) for match in matches if match.is_countable])
        matched = [match for match in matches if match.is_matched and match.is_enforced]
        growths = [usage.growth if match.matched_old else usage.as_new for match in matched]
        # An update that uses nothing new needs no covering quota.
        if (needs.names or needs.scopes) and any(growths or [usage.growth]):
            uncovered = _uncovered(request, matches, needs)
    return Assessment(
        request=request,
        quotas=tuple([match.quota for match in matches]),
        matches=matches,
        demands=demands,
        violations=(*violations, *uncovered),
        limited=_limited_step(matches, needs, is_covered=not uncovered),
    )


def _demand(match: Match, usage: _ObjectUsage) -> Demand:
    """Compute the growth in one quota, and its usage by the object before."""
    hard = match.quota.hard
    requested = mask(usage.growth if match.matched_old else usage.as_new, hard)
    counted = mask(usage.whole, hard)
    return Demand(
        match=match,
        requested=requested,
        counted=counted,
        before=mask(usage.old, hard) if match.matched_old else _NOTHING,
        sums={name: f" + {requested[name]} of {hard[name]}" for name in sorted(requested)},
        charge=Charge(quota=match.quota.ref, delta=requested, amounts=counted),
    )


def _uncovered(
    request: AdmissionRequest, matches: tuple[Match, ...], needs: _Needs
) -> list[Violation]:
    """Find limited usage that no quota covers: by name first, then by scope."""
    covering = [match for match in matches if match.is_enforced]
    covered = {name for match in covering if match.is_matched for name in match.names}
    uncovered = []
    if unbounded := sorted(needs.names - covered):
        field = field_of(request.resource, unbounded[0])
        message = f"insufficient quota to consume: {','.join(unbounded)}"
        violation = _violation(Reason.INSUFFICIENT_QUOTA, field, message)
        uncovered.append(replace(violation, numbers={"resource": ",".join(unbounded)}))
    scopes = [scope for match in covering for scope in match.scopes]
    if unmet := uncovered_scopes(needs.scopes, scopes):
        scopes_text = " ".join(f"{{{requirement}}}" for requirement in unmet)
        message = f"insufficient quota to match these scopes: [{scopes_text}]"
        field = "spec.priorityClassName" if "PriorityClass" in scopes_text else "spec"
        uncovered.append(_violation(Reason.UNCOVERED_SCOPE, field, message))
    return uncovered


def _limited_step(matches: tuple[Match, ...], needs: _Needs, *, is_covered: bool) -> Step | None:
    """Trace which usage needs a covering quota, or that none does where no quota exists."""
    if needs.names or needs.scopes:
        scopes = (str(requirement) for requirement in needs.scopes)
        detail = f"needs a covering quota: {', '.join([*sorted(needs.names), *scopes])}"
        outcome = Outcome.PASSED if is_covered else Outcome.VIOLATED
        return Step(name=LIMITED_STEP, outcome=outcome, detail=detail)
    if matches:
        return None
    detail = "nothing this object uses is limited"
    return Step(name=LIMITED_STEP, outcome=Outcome.NOT_MATCHED, detail=detail)


def _violation(reason: Reason, where: str, message: str) -> Violation:
    return Violation(reason=reason, field=where, message=message)
