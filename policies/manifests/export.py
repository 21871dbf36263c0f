"""Stored objects of a cluster exported as YAML by kinds and namespaces; its limitedResources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.manifests.render import admission_configuration, render_documents, render_manifests
from policies.models import (
    KeptTest,
    LimitedResource,
    LimitRange,
    MetadataPolicy,
    Namespace,
    NamespaceClass,
    PriorityClass,
    ResourceQuota,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from policies.models import Cluster, PolicyObject

NAMESPACED: dict[str, type[PolicyObject | KeptTest]] = {
    "LimitRange": LimitRange,
    "MetadataPolicy": MetadataPolicy,
    "ResourceQuota": ResourceQuota,
    KeptTest.kind: KeptTest,
}
KINDS = ("Namespace", "PriorityClass", *NAMESPACED)
CHOICES = (*KINDS, NamespaceClass.kind)
"""The kinds that may be asked for; classes, which are for all clusters, only by name."""


def export_cluster(
    cluster: Cluster, *, kinds: Collection[str] = KINDS, namespaces: Collection[str] = ()
) -> str:
    """The objects of the kinds; with ``namespaces`` only these and what they have."""
    exported: list[Any] = []
    if "Namespace" in kinds:
        spaces = Namespace.objects.filter(cluster=cluster)
        exported += spaces.filter(name__in=namespaces) if namespaces else spaces
    if "PriorityClass" in kinds and not namespaces:
        exported += PriorityClass.objects.filter(cluster=cluster)
    for kind, model in NAMESPACED.items():
        if kind in kinds:
            stored = model.objects.filter(namespace__cluster=cluster)
            stored = stored.filter(namespace__name__in=namespaces) if namespaces else stored
            exported += stored.select_related("namespace").prefetch_related(*model.row_sets)
    if NamespaceClass.kind in kinds and not namespaces:
        classes = NamespaceClass.objects.all()
        exported += [each for each in classes if each.value.covers(cluster.name)]
    return render_manifests(exported_object.to_manifest() for exported_object in exported)


def export_limited_resources(cluster: Cluster) -> str:
    """The file that the cluster's API server reads as its admission configuration."""
    rows = LimitedResource.objects.filter(cluster=cluster)
    return render_documents([admission_configuration([row.to_manifest() for row in rows])])
