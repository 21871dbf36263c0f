"""Small stored objects for tests, written by the product's services."""

from __future__ import annotations

from typing import Any

from policies import services
from policies.models import (
    Cluster,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PriorityClass,
    ResourceQuota,
)

USER = "tester"


def cluster(name: str = "prod") -> Cluster:
    found = Cluster.objects.filter(name=name).first()
    if found is not None:
        return found
    return services.save_cluster(cluster=Cluster(name=name), user=USER).instance


def namespace(name: str = "team", *, in_cluster: str = "prod") -> Namespace:
    return services.ensure_namespace(cluster=cluster(in_cluster), name=name, user=USER)


def manifest(kind: str, spec: dict[str, Any], *, name: str = "", **metadata: Any) -> dict[str, Any]:
    known = {"name": name or kind.lower(), "namespace": "team", **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": known, "spec": spec}


def apply(document: dict[str, Any], *, in_cluster: str = "prod") -> Any:
    """Write a manifest; returns the stored object."""
    return saved(document, in_cluster=in_cluster).instance


def saved(document: dict[str, Any], *, in_cluster: str = "prod") -> services.Saved:
    """Write a manifest; returns the result of ``services``."""
    return services.apply_manifest(
        cluster=cluster(in_cluster),
        manifest=document,
        user=USER,
        reason="test",
        create_namespace=True,
    )


def limit_range(*limits: dict[str, Any], name: str = "lr", **metadata: Any) -> LimitRange:
    document = manifest("LimitRange", {"limits": list(limits)}, name=name, **metadata)
    return apply(document)


def metadata_policy(*rules: dict[str, Any], name: str = "mp", **metadata: Any) -> MetadataPolicy:
    return apply(manifest("MetadataPolicy", {"rules": list(rules)}, name=name, **metadata))


def resource_quota(
    hard: dict[str, Any], *, name: str = "rq", used: dict[str, str] | None = None, **spec: Any
) -> ResourceQuota:
    document = manifest("ResourceQuota", {"hard": hard, **spec}, name=name)
    if used:
        document["status"] = {"hard": hard, "used": used}
    return apply(document)


def priority_class(name: str = "high", value: int = 1000, **fields: Any) -> PriorityClass:
    document = {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}
    return apply(document)


def limited_resources(*entries: dict[str, Any], in_cluster: str = "prod") -> None:
    services.set_limited_resources(cluster=cluster(in_cluster), entries=list(entries), user=USER)


def webhook_secret(in_cluster: str = "prod", **fields: Any) -> str:
    _, secret = services.issue_webhook_credential(
        cluster=cluster(in_cluster), label="test", user=USER, **fields
    )
    return secret
