"""What tests of the endpoint share: a cluster with a credential, and a way to ask."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.models import Cluster, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A cluster named demo without policies."""
    made = Cluster(name="demo")
    services.save_cluster(cluster=made, user="root")
    return made


@pytest.fixture
def secret(cluster: Cluster) -> str:
    """A valid credential of that cluster."""
    return services.issue_webhook_credential(cluster=cluster, label="hook", user="root")[1]


@pytest.fixture
def apply(cluster: Cluster) -> Callable[..., None]:
    """Store manifests in that cluster."""

    def store(*manifests: dict[str, Any]) -> None:
        for manifest in manifests:
            services.apply_manifest(
                cluster=cluster, manifest=manifest, user="root", create_namespace=True
            )

    return store


@pytest.fixture
def ask(client: Client, secret: str) -> Callable[..., Any]:
    """Post a review (a dict, or bytes as they are) and return the response."""

    def post(body: Any, *, phase: str = "validate", query: str = "", **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {secret}", **headers}
        address = f"/admission/demo/{phase}{query}"
        return client.post(address, data, content_type="application/json", headers=headers)

    return post


@pytest.fixture
def used(cluster: Cluster) -> Callable[..., str]:
    """What a quota of that cluster has used of a resource."""

    def read(name: str = "pods", resource: str = "pods") -> str:
        return str(QuotaUsage.objects.get(quota__name=name).used[resource])

    return read
