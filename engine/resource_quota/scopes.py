"""Quota scopes: names and conflicts; ScopeTest of pods and claims (affinity terms, priority class).

Source: ``pkg/quota/v1/evaluator/core/{pods,persistent_volume_claims}.go`` and
``pkg/apis/core/helper/helpers.go``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.cache import once
from engine.fields import expect_map, expect_objects, expect_string, expect_strings, read_integer
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.pod import qos_class
from engine.request import GroupVersionResource
from engine.selector import ScopeSelectorRequirement, SelectorError, matches_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.policy import ResourceQuota

    ScopeTest = Callable[[ScopeSelectorRequirement], bool]

TERMINATING: Final = "Terminating"
NOT_TERMINATING: Final = "NotTerminating"
BEST_EFFORT: Final = "BestEffort"
NOT_BEST_EFFORT: Final = "NotBestEffort"
PRIORITY_CLASS: Final = "PriorityClass"
CROSS_NAMESPACE: Final = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS: Final = "VolumeAttributesClass"

EXISTS_ONLY: Final = frozenset(
    {TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, CROSS_NAMESPACE}
)
"""Scopes without values: only the operator Exists is valid with them."""
CONFLICTS: Final = (
    frozenset({BEST_EFFORT, NOT_BEST_EFFORT}),
    frozenset({TERMINATING, NOT_TERMINATING}),
)
_POD_COMPUTE: Final = frozenset(
    {
        *("pods", "cpu", "memory", "requests.cpu", "requests.memory"),
        *("limits.cpu", "limits.memory"),
    }
)
ALLOWED_NAMES: Final = {
    TERMINATING: _POD_COMPUTE,
    NOT_TERMINATING: _POD_COMPUTE,
    BEST_EFFORT: frozenset({"pods"}),
    NOT_BEST_EFFORT: _POD_COMPUTE,
    PRIORITY_CLASS: _POD_COMPUTE,
    CROSS_NAMESPACE: _POD_COMPUTE,
    VOLUME_ATTRIBUTES_CLASS: frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""All scopes, with the standard names that a quota may bound with each."""

PODS: Final = GroupVersionResource(resource="pods")
CLAIMS: Final = GroupVersionResource(resource="persistentvolumeclaims")
_AFFINITY_TERMS: Final = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


class ScopeError(ValueError):
    """A scope selector that cannot be evaluated; the text is that of Kubernetes' log."""


@once
def scope_requirements(quota: ResourceQuota) -> tuple[ScopeSelectorRequirement, ...]:
    """List the requirements of a quota: ``scopes`` (each as Exists), then the selector."""
    scopes = (ScopeSelectorRequirement(scope, "Exists") for scope in quota.scopes)
    return (*scopes, *(quota.scope_selector or ()))


def scope_test(
    resource: GroupVersionResource,
    obj: Mapping[str, Any],
    version: KubernetesVersion = DEFAULT_VERSION,
) -> ScopeTest | None:
    """Return a test of scope requirements on an object; None for kinds without scopes.

    The test raises ScopeError for a requirement that cannot be evaluated, DecodeError for an
    object that cannot be read.
    """
    if resource.group:
        return None
    if resource.resource == PODS.resource:
        return partial(_matches_pod, obj, version)
    return partial(_matches_claim, obj) if resource.resource == CLAIMS.resource else None


def matching_scopes(
    test: ScopeTest | None, requirements: Iterable[ScopeSelectorRequirement]
) -> tuple[ScopeSelectorRequirement, ...]:
    """Select the requirements that the object satisfies; raises ScopeError."""
    return tuple([r for r in requirements if _holds(test, r)]) if test else ()


def _holds(test: ScopeTest, requirement: ScopeSelectorRequirement) -> bool:
    try:
        return test(requirement)
    except SelectorError as error:
        text = f"error on matching scope {{{requirement}}}: failed to parse and convert selector"
        raise ScopeError(f"{text}: {error}") from error


def is_terminating(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has a deadline, so that it runs for a bounded time."""
    deadline = read_integer(
        _pod_spec(pod), "activeDeadlineSeconds", "spec", "PodSpec.spec.activeDeadlineSeconds"
    )
    return deadline is not None and deadline >= 0


def _pod_spec(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return expect_map(pod.get("spec"), "spec", "Pod.spec of type v1.PodSpec")


def _matches_pod(
    pod: Mapping[str, Any], version: KubernetesVersion, requirement: ScopeSelectorRequirement
) -> bool:
    if requirement.scope_name == PRIORITY_CLASS:
        go_field = "PodSpec.spec.priorityClassName of type string"
        priority_class = expect_string(
            _pod_spec(pod).get("priorityClassName"), "spec.priorityClassName", go_field
        )
        return matches_value(requirement, priority_class)
    fact = _POD_FACTS.get(requirement.scope_name)
    return fact is not None and fact(pod, version)


def _is_best_effort(pod: Mapping[str, Any], version: KubernetesVersion) -> bool:
    """Compare the class in the status, or the one computed from the spec."""
    status = expect_map(pod.get("status"), "status", "Pod.status of type v1.PodStatus")
    go_field = "PodStatus.status.qosClass of type v1.PodQOSClass"
    recorded_class = expect_string(status.get("qosClass"), "status.qosClass", go_field)
    return (recorded_class or qos_class(pod, version)) == BEST_EFFORT


def _has_cross_namespace_affinity(pod: Mapping[str, Any]) -> bool:
    """Whether any (anti-)affinity term, required or preferred, selects other namespaces."""
    go_field = "PodSpec.spec.affinity of type v1.Affinity"
    affinity = expect_map(_pod_spec(pod).get("affinity"), "spec.affinity", go_field)
    for side, kind in (("podAffinity", "PodAffinity"), ("podAntiAffinity", "PodAntiAffinity")):
        for term, path in _affinity_terms(affinity, side, kind):
            namespaces_path = f"{path}.namespaces"
            go_field = f"PodAffinityTerm.{namespaces_path} of type []string"
            namespaces = expect_strings(term.get("namespaces"), namespaces_path, go_field)
            # An empty namespace selector selects all namespaces.
            if namespaces or term.get("namespaceSelector") is not None:
                return True
    return False


_POD_FACTS: Final[dict[str, Callable[[Mapping[str, Any], KubernetesVersion], bool]]] = {
    TERMINATING: lambda pod, _: is_terminating(pod),
    NOT_TERMINATING: lambda pod, _: not is_terminating(pod),
    BEST_EFFORT: _is_best_effort,
    NOT_BEST_EFFORT: lambda pod, version: not _is_best_effort(pod, version),
    CROSS_NAMESPACE: lambda pod, _: _has_cross_namespace_affinity(pod),
}


def _affinity_terms(
    affinity: Mapping[str, Any], side: str, kind: str
) -> list[tuple[Mapping[str, Any], str]]:
    """Read the terms of one side with their paths, required ones first."""
    at = f"spec.affinity.{side}"
    terms = expect_map(affinity.get(side), at, f"Affinity.{at} of type v1.{kind}")
    required, preferred = _AFFINITY_TERMS
    found = [
        (term, f"{at}.{required}")
        for term in expect_objects(
            terms.get(required), f"{at}.{required}", f"{kind}.{at}.{required}", "v1.PodAffinityTerm"
        )
    ]
    path, weighted = f"{at}.{preferred}", "WeightedPodAffinityTerm"
    for entry in expect_objects(terms.get(preferred), path, f"{kind}.{path}", f"v1.{weighted}"):
        inner = f"{path}.podAffinityTerm"
        go_field = f"{weighted}.{inner} of type v1.PodAffinityTerm"
        found.append((expect_map(entry.get("podAffinityTerm"), inner, go_field), inner))
    return found


def _matches_claim(claim: Mapping[str, Any], requirement: ScopeSelectorRequirement) -> bool:
    if requirement.scope_name != VOLUME_ATTRIBUTES_CLASS:
        return False
    kind = "PersistentVolumeClaim"
    spec = expect_map(claim.get("spec"), "spec", f"{kind}.spec of type v1.{kind}Spec")
    status = expect_map(claim.get("status"), "status", f"{kind}.status of type v1.{kind}Status")
    modify_path = "status.modifyVolumeStatus"
    go_field = f"{kind}Status.{modify_path} of type v1.ModifyVolumeStatus"
    target = expect_map(status.get("modifyVolumeStatus"), modify_path, go_field)
    class_fields = (
        (spec, "volumeAttributesClassName", "spec", f"{kind}Spec"),
        (status, "currentVolumeAttributesClassName", "status", f"{kind}Status"),
        (target, "targetVolumeAttributesClassName", modify_path, "ModifyVolumeStatus"),
    )
    # A claim counts for the class that it asks for, has, and is being moved to.
    class_names = {
        expect_string(parent.get(key), f"{path}.{key}", f"{struct}.{path}.{key} of type string")
        for parent, key, path, struct in class_fields
    } - {""}
    # Without a class the empty name is matched, for which only DoesNotExist and NotIn hold.
    return any(matches_value(requirement, name) for name in sorted(class_names or {""}))
