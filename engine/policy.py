"""LimitRange, MetadataPolicy, ResourceQuota, PolicySet as values; Enforcement, Authority."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from engine.cache import Remembering, once
from engine.errors import DecodeError
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.resource_list import ResourceList
    from engine.selector import LabelSelector, ScopeSelectorRequirement


class Enforcement(StrEnum):
    """The effect of a policy's verdict: refuse, warn the client, or only record."""

    ENFORCE = "enforce"
    WARN = "warn"
    AUDIT = "audit"


class InAPIServer(StrEnum):
    """Whether the API server enforces a policy, too: not at all, recording only, or refusing."""

    OFF = "off"
    AUDIT = "audit"
    ENFORCE = "enforce"


class Authority(StrEnum):
    """Who enforces ranges and quotas; the portal always enforces metadata policies.

    ``NATIVE``: the API server's own LimitRanger and ResourceQuota plugins enforce the same
    policies, and the portal refuses only what they do not know: a limited resource without a
    covering quota.
    """

    PORTAL = "portal"
    NATIVE = "native"


ENFORCEMENT_ANNOTATION: Final = "policy.gatehouse.dev/enforcement"
"""The annotation of a manifest's enforcement; Kubernetes would drop an unknown field."""


def decode_enforcement(annotations: object) -> Enforcement:
    """Read the enforcement from a manifest's ``metadata.annotations``; absent is ``enforce``.

    Raises ``DecodeError`` for any other word.
    """
    word = annotations.get(ENFORCEMENT_ANNOTATION) if isinstance(annotations, dict) else None
    if word is None:
        return Enforcement.ENFORCE
    if word not in tuple(Enforcement):
        field = f"metadata.annotations[{ENFORCEMENT_ANNOTATION}]"
        raise DecodeError(field, f"{field}: must be one of: enforce, warn, audit")
    return Enforcement(word)


def encode_enforcement(enforcement: Enforcement) -> dict[str, str]:
    """Return the annotation of an enforcement; the default needs none."""
    if enforcement is Enforcement.ENFORCE:
        return {}
    return {ENFORCEMENT_ANNOTATION: enforcement.value}


IN_API_SERVER_ANNOTATION: Final = "policy.gatehouse.dev/in-api-server"
"""The annotation of a LimitRange or MetadataPolicy that the API server enforces, too."""


def decode_in_api_server(annotations: object) -> InAPIServer:
    """Read from ``metadata.annotations`` what the API server does; absent is ``off``.

    Raises ``DecodeError`` for any other word.
    """
    word = annotations.get(IN_API_SERVER_ANNOTATION) if isinstance(annotations, dict) else None
    if word is None:
        return InAPIServer.OFF
    if word not in tuple(InAPIServer):
        field = f"metadata.annotations[{IN_API_SERVER_ANNOTATION}]"
        raise DecodeError(field, f"{field}: must be one of: off, audit, enforce")
    return InAPIServer(word)


def encode_in_api_server(in_api_server: InAPIServer) -> dict[str, str]:
    """Return the annotation of what the API server does; the default needs none."""
    if in_api_server is InAPIServer.OFF:
        return {}
    return {IN_API_SERVER_ANNOTATION: in_api_server.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRef:
    """Names one policy object at one revision, in records and answers."""

    kind: str
    namespace: str
    name: str
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRangeItem(Remembering):
    """One entry of ``spec.limits``, after API defaulting."""

    type: str
    max: ResourceList = field(default_factory=dict)
    min: ResourceList = field(default_factory=dict)
    default: ResourceList = field(default_factory=dict)
    default_request: ResourceList = field(default_factory=dict)
    max_limit_request_ratio: ResourceList = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRange(Remembering):
    """A LimitRange of one namespace."""

    name: str
    namespace: str = ""
    items: tuple[LimitRangeItem, ...] = ()
    enforcement: Enforcement = Enforcement.ENFORCE
    in_api_server: InAPIServer = InAPIServer.OFF
    revision: int = 0

    @property
    def ref(self) -> PolicyRef:
        """The reference by which records name this object."""
        return _ref_of(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPredicate:
    """All criteria must hold; an absent one (``None``) always holds."""

    label_selector: LabelSelector | None = None
    annotation_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAction:
    """The effect of a matching rule: refuse, or add and overwrite labels and annotations."""

    reject: bool = False
    updated_labels: Mapping[str, str] = field(default_factory=dict)
    updated_annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPolicyRule(Remembering):
    """One rule of a MetadataPolicy."""

    policy_predicate: PolicyPredicate
    policy_action: PolicyAction


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPolicy(Remembering):
    """A MetadataPolicy of one namespace.

    ``ratchet``: an update is refused only if the old object did not match already.
    ``strict``: rejects are checked again in the validating phase.
    """

    name: str
    namespace: str = ""
    rules: tuple[MetadataPolicyRule, ...] = ()
    ratchet: bool = False
    strict: bool = False
    enforcement: Enforcement = Enforcement.ENFORCE
    in_api_server: InAPIServer = InAPIServer.OFF
    revision: int = 0

    @property
    def ref(self) -> PolicyRef:
        """The reference by which records name this object."""
        return _ref_of(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota(Remembering):
    """A ResourceQuota of one namespace.

    ``hard`` is enforced and ``used`` is consumed, both as in ``status``; ``spec_hard`` is as in
    ``spec``. A new quota whose status is not computed yet has empty ``hard`` and ``used``: it
    bounds nothing, though its scopes already cover.
    """

    name: str
    namespace: str = ""
    spec_hard: ResourceList = field(default_factory=dict)
    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: tuple[ScopeSelectorRequirement, ...] | None = None
    enforcement: Enforcement = Enforcement.ENFORCE
    revision: int = 0

    @property
    def ref(self) -> PolicyRef:
        """The reference by which records name this object."""
        return _ref_of(self)


# Kept, since violations and steps of every request share the references.
@once
def _ref_of(policy: LimitRange | MetadataPolicy | ResourceQuota) -> PolicyRef:
    kind = type(policy).__name__
    return PolicyRef(
        kind=kind, namespace=policy.namespace, name=policy.name, revision=policy.revision
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedResource:
    """One entry of the cluster's ``limitedResources``: usage that needs a covering quota."""

    resource: str
    api_group: str = ""
    match_contains: tuple[str, ...] = ()
    match_scopes: tuple[ScopeSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet(Remembering):
    """All policies of one namespace of one cluster, each kind in name order.

    ``version`` is the Kubernetes version of the cluster, whose rules hold.
    """

    cluster: str = ""
    namespace: str = ""
    limit_ranges: tuple[LimitRange, ...] = ()
    metadata_policies: tuple[MetadataPolicy, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    limited_resources: tuple[LimitedResource, ...] = ()
    authority: Authority = Authority.PORTAL
    version: KubernetesVersion = DEFAULT_VERSION
