"""Match a quota with a QuotaSubject: unmet scope, must specify, status unknown; fields of names.

Source: ``apiserver/pkg/quota/v1/generic/evaluator.go`` (Matches) and the first loop of
``CheckRequest`` in ``apiserver/pkg/admission/plugin/resourcequota/controller.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.decision import Reason, Violation
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.pod import is_terminal, read_pod
from engine.policy import Enforcement
from engine.resource_list import mask, remove_zeros
from engine.resource_quota.evaluators import PODS, evaluator_of
from engine.resource_quota.scopes import (
    ScopeError,
    matching_scopes,
    scope_requirements,
    scope_test,
)
from engine.resource_quota.usage import missing_names, must_specify_text, usage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.pod import PodSpec
    from engine.policy import ResourceQuota
    from engine.request import GroupVersionResource
    from engine.resource_list import ResourceList
    from engine.resource_quota.scopes import ScopeTest
    from engine.selector import ScopeSelectorRequirement

_FIELD_OF_NAME: Final = {
    "services.nodeports": "spec.ports",
    "services.loadbalancers": "spec.type",
    "requests.storage": "spec.resources.requests[storage]",
}


class QuotaSubject(NamedTuple):
    """An object and its state before an update, prepared once for matching many quotas.

    ``spec`` is that of a pod, None for other kinds.
    """

    resource: GroupVersionResource
    spec: PodSpec | None
    test: ScopeTest | None
    old_test: ScopeTest | None
    has_old: bool

    @classmethod
    def of(
        cls,
        resource: GroupVersionResource,
        obj: Mapping[str, Any],
        old: Mapping[str, Any] | None,
        spec: PodSpec | None = None,
        version: KubernetesVersion = DEFAULT_VERSION,
    ) -> QuotaSubject:
        """Prepare an object; ``spec`` is the pod's, where it was read already."""
        return cls(
            resource=resource,
            spec=(spec or read_pod(obj)) if str(resource) == PODS else None,
            test=scope_test(resource, obj, version),
            old_test=None if old is None else scope_test(resource, old, version),
            has_old=old is not None,
        )


class Match(NamedTuple):
    """The result of matching one quota with one object.

    ``scopes`` are the requirements that the object satisfies: they cover it even where the quota
    does not match as a whole. ``names`` are the bounded names that objects of this resource use.
    ``matched_old`` is whether the object counted before its update, too.
    """

    quota: ResourceQuota
    is_matched: bool = False
    matched_old: bool = False
    names: tuple[str, ...] = ()
    scopes: tuple[ScopeSelectorRequirement, ...] = ()
    violations: tuple[Violation, ...] = ()
    detail: str = ""

    @property
    def is_enforced(self) -> bool:
        """Whether the quota refuses and is charged; otherwise it covers nothing, either."""
        return self.quota.enforcement is Enforcement.ENFORCE

    @property
    def is_countable(self) -> bool:
        """Whether the quota matched and all its used amounts are known."""
        return self.is_matched and self.quota.used.keys() >= set(self.names)


def match_quota(quota: ResourceQuota, subject: QuotaSubject) -> Match:
    """Match a quota with an object; raises DecodeError for an object that cannot be read."""
    requirements = scope_requirements(quota)
    try:
        scopes = matching_scopes(subject.test, requirements)
        old_scopes = matching_scopes(subject.old_test, requirements)
    except ScopeError as error:
        return Match(quota=quota, violations=(_scope_violation(quota, error),), detail=str(error))
    names = evaluator_of(subject.resource).tracked(tuple(quota.hard))
    unmet = next((scope for scope in requirements if scope not in scopes), None)
    if not names or unmet is not None:
        detail = (
            f"its scope {unmet} does not match" if unmet else f"it bounds no {subject.resource}"
        )
        return Match(quota=quota, names=names, scopes=scopes, detail=detail)
    violations = _must_specify(quota, subject, names) + _status_unknown(quota, names)
    return Match(
        quota=quota,
        is_matched=True,
        matched_old=subject.has_old and len(old_scopes) == len(requirements),
        names=names,
        scopes=scopes,
        violations=violations,
    )


def counted_of(
    obj: Mapping[str, Any],
    resource: GroupVersionResource,
    quotas: Iterable[ResourceQuota],
    *,
    now: str | int | None = None,
    version: KubernetesVersion = DEFAULT_VERSION,
) -> dict[str, ResourceList]:
    """Compute the usage of a stored object in each enforced quota, by the quota's name.

    Amounts are cut to the names that the quota tracks for such objects, without zeros; quotas that
    count nothing are omitted. Raises DecodeError for an object that cannot be read.
    """
    whole_usage = usage_of(obj, resource, now=now, version=version)
    subject = QuotaSubject.of(resource, obj, None, version=version)
    by_quota: dict[str, ResourceList] = {}
    for quota in quotas:
        match = match_quota(quota, subject)
        if match.is_matched and match.is_enforced:
            amounts = remove_zeros(mask(whole_usage, dict.fromkeys(match.names)))
            if amounts:
                by_quota[quota.name] = amounts
    return by_quota


def is_final(obj: Mapping[str, Any], resource: GroupVersionResource) -> bool:
    """Whether the usage of the object can no longer grow: a pod that has ended."""
    return str(resource) == PODS and is_terminal(obj)


def field_of(resource: GroupVersionResource, name: str) -> str:
    """Find the field by which an object uses a name; for a mere count, its namespace."""
    if name in _FIELD_OF_NAME:
        return _FIELD_OF_NAME[name]
    if name.endswith("/requests.storage"):
        return _FIELD_OF_NAME["requests.storage"]
    if name.endswith(".deviceclass.resource.k8s.io/devices"):
        return "spec.devices.requests"
    is_count = name.startswith("count/") or name == resource.resource
    return "spec.containers" if str(resource) == PODS and not is_count else "metadata.namespace"


def _scope_violation(quota: ResourceQuota, error: ScopeError) -> Violation:
    return Violation(
        reason=Reason.BAD_SCOPE_SELECTOR,
        field="spec.priorityClassName",
        message=f"error matching scopes of quota {quota.name}, err: {error}",
        policy=quota.ref,
    )


def _must_specify(
    quota: ResourceQuota, subject: QuotaSubject, names: tuple[str, ...]
) -> tuple[Violation, ...]:
    """Refuse pods with containers that do not state a bounded name: one violation for each name."""
    if subject.spec is None:
        return ()
    lacking = missing_names(subject.spec, names)
    if not lacking:
        return ()
    message = f"failed quota: {quota.name}: {must_specify_text(lacking)}"
    return tuple(
        Violation(
            reason=Reason.MUST_SPECIFY,
            field=f"{lacking_it[0].path}.resources.{_container_field(name)}",
            message=message,
            policy=quota.ref,
            numbers={"resource": name},
        )
        for name, lacking_it in lacking.items()
    )


def _container_field(name: str) -> str:
    """Map a quota's name to the path in a container: ``limits.cpu`` is ``limits[cpu]``."""
    side, dot, resource = name.partition(".")
    return f"{side}[{resource}]" if dot else f"requests[{name}]"


def _status_unknown(quota: ResourceQuota, names: tuple[str, ...]) -> tuple[Violation, ...]:
    """Refuse while the used amount of a bounded name is unknown."""
    if quota.used.keys() >= set(names):
        return ()
    message = f"status unknown for quota: {quota.name}, resources: {','.join(names)}"
    return (
        Violation(
            reason=Reason.STATUS_UNKNOWN,
            field="metadata.namespace",
            message=message,
            policy=quota.ref,
            numbers={"resource": ",".join(names)},
        ),
    )
