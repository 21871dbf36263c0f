"""Calls of the API by people with a role, and clusters with objects to call it about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from policies.managed_fields import normal
from sync.models import ClusterConnection, SyncedObject
from tests import factories, people
from tests.sync import kubeconfigs

if TYPE_CHECKING:
    from policies.models import Cluster
    from tests.sync.fake_api import FakeAPI


def client(role: str = "admin", **scope: str) -> APIClient:
    """Somebody with a role, in every scope unless the arguments narrow it."""
    name = "-".join((role, *scope.values()))
    user = User.objects.filter(username=name).first() or people.person(name, role, **scope)
    found = APIClient()
    found.force_authenticate(user)
    return found


def send(  # noqa: PLR0913 - a request has as many parts
    method: str,
    path: str,
    body: Any = None,
    *,
    code: int,
    who: APIClient | None = None,
    if_match: str = "",
) -> Any:
    """The decoded answer, which must have this status."""
    extra: dict[str, Any] = {}
    if body is not None:
        extra = {"data": json.dumps(body), "content_type": "application/json"}
    if if_match:
        extra["HTTP_IF_MATCH"] = if_match
    answer = getattr(who or client(), method)(f"/api/v1/{path}", **extra)
    assert answer.status_code == code, answer.content
    return answer.json() if answer.content else None


def etag(path: str) -> str:
    return str(client().get(f"/api/v1/{path}")["ETag"])


def connected(name: str = "prod", **fields: Any) -> Cluster:
    cluster = factories.cluster(name)
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"secret", key_id="k", **fields
    )
    return cluster


def quota_of(pods: str, name: str = "rq") -> dict[str, Any]:
    return normal(factories.manifest("ResourceQuota", {"hard": {"pods": pods}}, name=name))


def conflict(**fields: Any) -> SyncedObject:
    """Ours says 20 pods, theirs 30, and 10 was agreed on."""
    cluster = connected()
    factories.resource_quota({"pods": "20"})
    now = timezone.now()
    noted = {"field": ".spec.hard.pods", "base": "10", "ours": "20", "theirs": "30"}
    given = {
        "state": "conflict",
        "theirs": quota_of("30"),
        "live": quota_of("30"),
        "differences": [{**noted, "manager": "kubectl", "time": "2026-11-21T10:00:00Z"}],
        **fields,
    }
    return SyncedObject.objects.create(
        cluster=cluster,
        kind="ResourceQuota",
        namespace="team",
        name="rq",
        base=quota_of("10"),
        since=now,
        seen=now,
        **given,
    )


def kubeconfig_of(server: FakeAPI) -> str:
    found = server.credentials
    authority = kubeconfigs.encoded(found.ca or b"")
    given = {"server": found.server, "certificate-authority-data": authority}
    return kubeconfigs.text({"token": found.token}, **given)
