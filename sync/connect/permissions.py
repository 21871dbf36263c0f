"""Grants (verbs, group, resource) that the portal needs or may be given; where quotas count."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from engine.metadata_policy import API_VERSION
from engine.request import GroupVersionResource
from engine.resource_quota import resources_of
from policies.models import LimitRange, MetadataPolicy, MetadataPolicyRule, ResourceQuotaRow
from policies.validators import CANARY_NAMESPACE
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from policies.models import Cluster


POLICY_GROUP: Final = API_VERSION.partition("/")[0]
POLICY_CRD: Final = f"metadatapolicies.{POLICY_GROUP}"
CONFIGURATION: Final = "gatehouse"
"""The name of both webhook configurations."""

SECRETS: Final = "secrets"
"""Listed only in namespaces whose quotas count them, since a list shows their contents."""
BUILT_IN: Final = {
    "": (
        *("configmaps", "endpoints", "persistentvolumeclaims", "pods", "podtemplates"),
        *("replicationcontrollers", "serviceaccounts", "services"),
    ),
    "apps": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "coordination.k8s.io": ("leases",),
    "discovery.k8s.io": ("endpointslices",),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "rbac.authorization.k8s.io": ("rolebindings", "roles"),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
    "storage.k8s.io": ("csistoragecapacities",),
}
"""What quotas may count in every cluster, by group, beside policies; without Secrets."""
_RESOURCE_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP_NAME: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?")
_SECRETS_REMARK: Final = """\
A quota counts the Secrets of {namespaces}. Kubernetes knows no right to count
Secrets without the right to read them: whoever holds the portal's token could list
them there with their contents. The portal itself reads names and uids alone.
Leave out the Roles gatehouse-counts if that is too much: then the usage of such quotas
is not confirmed, and the portal raises an alert (ledger-blind).
"""
_ALL_SECRETS_REMARK: Final = """\
--count secrets: whoever holds the portal's token could read every Secret of the
cluster with its contents. Without that choice the right is limited to the namespaces
whose quotas count Secrets.
"""
COUNT_VERBS: Final = ("list", "watch")
"""What it takes to count a resource, and to learn of its deletions."""
_COMPILING_REMARK: Final = """\
Some policies are to be enforced by the API server, too, as
ValidatingAdmissionPolicies. Whoever holds the portal's token could with this right
refuse requests anywhere in the cluster, and delete the admission policies of others.
Leave out the right on them if that is too much: then only the portal enforces these
policies, and it raises an alert (compiled-policies).
"""
_CHANGING_REMARK: Final = """\
Some of them set labels or annotations, as MutatingAdmissionPolicies. Whoever holds the
portal's token could with this right change whatever anybody writes in the cluster.
Leave out the right on them if that is too much: then only the portal sets labels and
annotations, and it raises the same alert.
"""
_READ_VERBS: Final = ("get", "list", "watch")
_WRITE_VERBS: Final = (*_READ_VERBS, "create", "update", "patch", "delete")
_STATUS_VERBS: Final = ("get", "update", "patch")


class Rights(StrEnum):
    """How much the manifests grant: all that quotas may count, or what they count now."""

    WIDE = "wide"
    NARROW = "narrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Some verbs on one resource: in all namespaces or in one, on all objects or on some.

    ``is_essential``: without it there is no sync at all. ``is_chosen``: an administrator asked for
    it by name; it stands in a role of its own.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    namespace: str = ""
    is_essential: bool = False
    is_chosen: bool = False

    def describe(self, verbs: Iterable[str], name: str = "") -> str:
        """Describe some verbs of the grant, such as ``get, patch resourcequotas``."""
        described_resource = f"{self.resource}.{self.group}" if self.group else self.resource
        in_namespace = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{', '.join(verbs)} {described_resource}{f' {name}' if name else ''}{in_namespace}"


def resource_in(described: str) -> tuple[str, str]:
    """The resource with its group, and the namespace, of a description of a grant."""
    words, _, namespace = described.partition(" in namespace ")
    # Verbs end with a comma, but for the last one; a name may follow the resource.
    parts = [part for part in words.split() if not part.endswith(",")]
    return (parts[1] if len(parts) > 1 else ""), namespace


GRANTS: Final = (
    Grant(group="", resource="namespaces", verbs=_READ_VERBS, is_essential=True),
    Grant(group="", resource="limitranges", verbs=_WRITE_VERBS, is_essential=True),
    Grant(group="", resource="resourcequotas", verbs=_WRITE_VERBS, is_essential=True),
    Grant(group=POLICY_GROUP, resource="metadatapolicies", verbs=_WRITE_VERBS, is_essential=True),
    Grant(
        group="scheduling.k8s.io", resource="priorityclasses", verbs=_READ_VERBS, is_essential=True
    ),
    # The used amounts of quotas, where the portal enforces them.
    Grant(group="", resource="resourcequotas/status", verbs=_STATUS_VERBS),
    Grant(group="", resource="pods", verbs=COUNT_VERBS),
    Grant(group="", resource="persistentvolumeclaims", verbs=COUNT_VERBS),
    Grant(group="", resource="services", verbs=COUNT_VERBS),
    Grant(
        group="apiextensions.k8s.io",
        resource="customresourcedefinitions",
        verbs=("get",),
        names=(POLICY_CRD,),
    ),
    *(
        Grant(
            group="admissionregistration.k8s.io",
            resource=f"{phase}webhookconfigurations",
            verbs=("get",),
            names=(CONFIGURATION,),
        )
        for phase in ("mutating", "validating")
    ),
    # Others than ours may stand in the way of a create: they are found by a list alone.
    Grant(
        group="admissionregistration.k8s.io",
        resource="validatingwebhookconfigurations",
        verbs=("list",),
    ),
    Grant(group="", resource="pods", verbs=("create",), namespace=CANARY_NAMESPACE),
)
_ALWAYS_LISTED: Final = {(each.group, each.resource) for each in GRANTS if "list" in each.verbs}
_COMPILING_GRANTS, _CHANGING_GRANTS = (
    tuple(
        Grant(
            group="admissionregistration.k8s.io",
            resource=f"{phase}admission{each}",
            verbs=("list", "create", "patch", "delete"),
        )
        for each in ("policies", "policybindings")
    )
    for phase in ("validating", "mutating")
)
# Only for clusters with compiled policies, and with such that set metadata: these reach far.
ESSENTIAL_VERBS: Final = frozenset(_READ_VERBS)
"""The verbs of essential grants without which nothing can be read, as opposed to written."""


def where_counted(
    quotas: Iterable[tuple[str, Iterable[str]]],
) -> dict[GroupVersionResource, set[str]]:
    """Map counted resources to namespaces, from namespaces and the names in their quotas."""
    namespaces_of: dict[GroupVersionResource, set[str]] = defaultdict(set)
    for namespace, names in quotas:
        for each in resources_of(names):
            # Users type these names: only valid ones may enter URLs and permissions.
            if _RESOURCE_NAME.fullmatch(each.resource) and _GROUP_NAME.fullmatch(each.group):
                namespaces_of[each].add(namespace)
    return namespaces_of


def is_counted_by_namespace(resource: GroupVersionResource) -> bool:
    """Whether it is listed only in namespaces whose quotas count it: Secrets, custom resources."""
    is_listed_anyway = (resource.group, resource.resource) in _ALWAYS_LISTED
    return not is_listed_anyway and resource.resource not in BUILT_IN.get(resource.group, ())


def parse_resource(text: str) -> GroupVersionResource:
    """Read ``deployments.apps``; raises ValueError for what is no resource."""
    name, _, group = text.partition(".")
    if not (_RESOURCE_NAME.fullmatch(name) and _GROUP_NAME.fullmatch(group)):
        message = (
            f"{text!r} is not a resource: give its plural and group, such as widgets.example.com"
        )
        raise ValueError(message)
    return GroupVersionResource(group=group, resource=name)


def grants_of(cluster: Cluster) -> tuple[Grant, ...]:
    """The permissions that the portal needs in a cluster now, for what its quotas count."""
    counting_grants = _counting_grants(_counted_resources(cluster))
    return (*GRANTS, *_compiling_grants(cluster), *counting_grants)


def manifest_grants(
    cluster: Cluster,
    *,
    rights: Rights = Rights.WIDE,
    chosen: Collection[GroupVersionResource] = (),
) -> tuple[Grant, ...]:
    """The permissions that the manifests of a cluster grant.

    Wide ones hold for all that quotas may count, so that a new quota needs no new manifests; but
    Secrets and custom resources only where quotas count them now, or if they are ``chosen``.
    """
    wanted = _counted_resources(cluster)
    if rights is Rights.WIDE:
        for group, names in BUILT_IN.items():
            for name in names:
                wanted.setdefault(GroupVersionResource(group=group, resource=name), set())
    chosen_grants = tuple(
        Grant(group=each.group, resource=each.resource, verbs=COUNT_VERBS, is_chosen=True)
        for each in sorted(set(chosen), key=str)
    )
    unchosen = {each: where for each, where in wanted.items() if each not in chosen}
    compiling_grants = _compiling_grants(cluster)
    return (*GRANTS, *compiling_grants, *_counting_grants(unchosen), *chosen_grants)


def _counting_grants(
    counted: dict[GroupVersionResource, set[str]],
) -> Iterator[Grant]:
    for each in sorted(counted, key=lambda resource: (resource.group, resource.resource)):
        if (each.group, each.resource) not in _ALWAYS_LISTED:
            places = sorted(counted[each]) if is_counted_by_namespace(each) else [""]
            for place in places:
                yield Grant(
                    group=each.group, resource=each.resource, verbs=COUNT_VERBS, namespace=place
                )


def _compiling_grants(cluster: Cluster) -> tuple[Grant, ...]:
    """The rights on admission policies, if the API server is to enforce some policy, too."""
    if cluster.pk is None:
        return ()
    is_compiled = any(
        model.objects.filter(namespace__cluster=cluster).exclude(in_api_server="off").exists()
        for model in (LimitRange, MetadataPolicy)
    )
    if not is_compiled:
        return ()
    setting = MetadataPolicyRule.objects.filter(
        policy__namespace__cluster=cluster,
        policy__in_api_server="enforce",
        policy__enforcement="enforce",
        reject=False,
    ).exclude(updated_labels={}, updated_annotations={})
    return (*_COMPILING_GRANTS, *_CHANGING_GRANTS) if setting.exists() else _COMPILING_GRANTS


def remark_on(grants: Iterable[Grant]) -> str:
    """A remark about permissions that reveal more than they are for; mostly empty."""
    granted = tuple(grants)
    secret_grants = [grant for grant in granted if grant.resource == SECRETS]
    places = [grant.namespace for grant in secret_grants]
    remarks = []
    if any(grant.is_chosen for grant in secret_grants):
        remarks.append(_ALL_SECRETS_REMARK)
    elif places:
        remarks.append(_SECRETS_REMARK.format(namespaces=", ".join(places)))
    if any(grant in _COMPILING_GRANTS for grant in granted):
        remarks.append(_COMPILING_REMARK)
    if any(grant in _CHANGING_GRANTS for grant in granted):
        remarks.append(_CHANGING_REMARK)
    return "".join(remarks)


def _counted_resources(cluster: Cluster) -> dict[GroupVersionResource, set[str]]:
    """The resources that the stored quotas count; none for an unsaved cluster."""
    if cluster.pk is None:
        return {}
    quota_rows = ResourceQuotaRow.objects.filter(quota__namespace__cluster=cluster)
    bound: dict[str, set[str]] = defaultdict(set)
    for namespace, name in quota_rows.values_list("quota__namespace__name", "resource").order_by():
        bound[namespace].add(name)
    # Namespaces that exist in the portal alone need no Role; before the first pass none is known.
    synced_namespaces = SyncedObject.objects.filter(cluster=cluster, kind="Namespace", gone=None)
    there = set(synced_namespaces.filter(theirs__isnull=False).values_list("name", flat=True))
    return where_counted((n, names) for n, names in bound.items() if not there or n in there)
