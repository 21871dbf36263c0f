"""Grants (verbs, group, resource) that the portal needs; where quotas count; Secrets."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.metadata_policy import API_VERSION
from engine.resource_quota import resources_of
from policies.models import ResourceQuotaRow
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.request import GroupVersionResource
    from policies.models import Cluster


POLICY_GROUP: Final = API_VERSION.partition("/")[0]
POLICY_CRD: Final = f"metadatapolicies.{POLICY_GROUP}"
CONFIGURATION: Final = "gatehouse"
"""The name of both webhook configurations."""


CANARY_NAMESPACE: Final = "gatehouse-canary"
"""The namespace of the canaries: the only one in which the portal may create pods."""

SECRETS: Final = "secrets"
"""Listed only in namespaces whose quotas count them, since a list shows their contents."""
_RESOURCE_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP_NAME: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?")
_SECRETS_REMARK: Final = """\
A quota counts the Secrets of {namespaces}. Kubernetes knows no right to count
Secrets without the right to read them: whoever holds the portal's token could list
them there with their contents. The portal itself reads names and uids alone.
Leave out the Roles gatehouse-counts if that is too much: then the usage of such quotas
is not confirmed, and the portal raises an alert (ledger-blind).
"""
_LIST_VERBS: Final = ("list", "watch")
_READ_VERBS: Final = ("get", "list", "watch")
_WRITE_VERBS: Final = (*_READ_VERBS, "create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Some verbs on one resource: in all namespaces or in one, on all objects or on some.

    ``is_essential``: without it there is no sync at all.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    namespace: str = ""
    is_essential: bool = False

    def describe(self, verbs: Iterable[str], name: str = "") -> str:
        """Describe some verbs of the grant, such as ``get, patch resourcequotas``."""
        described_resource = f"{self.resource}.{self.group}" if self.group else self.resource
        in_namespace = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{', '.join(verbs)} {described_resource}{f' {name}' if name else ''}{in_namespace}"


GRANTS: Final = (
    Grant(group="", resource="namespaces", verbs=_READ_VERBS, is_essential=True),
    Grant(group="", resource="limitranges", verbs=_WRITE_VERBS, is_essential=True),
    Grant(group="", resource="resourcequotas", verbs=_WRITE_VERBS, is_essential=True),
    Grant(group=POLICY_GROUP, resource="metadatapolicies", verbs=_WRITE_VERBS, is_essential=True),
    Grant(
        group="scheduling.k8s.io", resource="priorityclasses", verbs=_READ_VERBS, is_essential=True
    ),
    Grant(group="", resource="pods", verbs=_LIST_VERBS),
    Grant(group="", resource="persistentvolumeclaims", verbs=_LIST_VERBS),
    Grant(group="", resource="services", verbs=_LIST_VERBS),
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
    Grant(group="", resource="pods", verbs=("create",), namespace=CANARY_NAMESPACE),
)
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


def grants_of(cluster: Cluster) -> tuple[Grant, ...]:
    """The permissions that the portal needs in a cluster, those for counted resources included."""
    always_granted = {(grant.group, grant.resource) for grant in GRANTS}
    counted_resources = _counted_resources(cluster)
    counting_grants = (
        Grant(group=resource.group, resource=resource.resource, verbs=_LIST_VERBS, namespace=place)
        for resource in sorted(counted_resources, key=str)
        if (resource.group, resource.resource) not in always_granted
        for place in (sorted(counted_resources[resource]) if str(resource) == SECRETS else [""])
    )
    return (*GRANTS, *counting_grants)


def remark_on(grants: Iterable[Grant]) -> str:
    """A remark about permissions that reveal more than they are for; mostly empty."""
    places = [grant.namespace for grant in grants if grant.resource == SECRETS]
    return _SECRETS_REMARK.format(namespaces=", ".join(places)) if places else ""


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
