"""Bulk reading: whole tables or some namespaces in a fixed number of queries, no model instances.

A reader may see some tables before and others after somebody's commit. What it read is good only
if the cluster's revision is the same before and after (``building`` sees to that).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db import connection

from policies.models import (
    Cluster,
    LimitRange,
    LimitRangeRow,
    MetadataPolicy,
    MetadataPolicyRule,
    Namespace,
    PolicyRevision,
    ResourceQuota,
    ResourceQuotaRow,
    ScopeSelectorRow,
    WebhookCredential,
)
from policies.models.limit_range import MAPS
from policies.models.metadata_policy import SELECTORS, UPDATES

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection

    from django.db.models import QuerySet

    from policies.snapshot.decoding import Row

_OWN = ("id", "namespace_id", "name", "enforcement", "revision")


class Head(NamedTuple):
    """A cluster's own row."""

    id: int
    uid: UUID
    name: str
    revision: int
    unconfirmed_limit: int


class Scope(NamedTuple):
    """Which namespaces to read: of these clusters, or of all; these names, or all."""

    clusters: Collection[int] | None = None
    names: Collection[str] | None = None

    def within(self, prefix: str) -> dict[str, Any]:
        """Give the filter for a model that reaches the namespace by ``prefix``."""
        wanted = {"cluster_id__in": self.clusters, "name__in": self.names}
        return {f"{prefix}{key}": value for key, value in wanted.items() if value is not None}


class Policies(NamedTuple):
    """Everything within a scope, as columns; rows by the id of their policy, in order."""

    namespaces: dict[int, tuple[int, str]]
    limit_ranges: list[Row]
    items: dict[int, list[Row]]
    metadata_policies: list[Row]
    rules: dict[int, list[Row]]
    resource_quotas: list[Row]
    hard: dict[int, list[Row]]
    expressions: dict[int, list[Row]]


def read_heads() -> list[Head]:
    """Read how far each cluster is; one small query."""
    columns = ("id", "uid", "name", "policy_revision", "unconfirmed_limit")
    found = Cluster.objects.order_by("id")
    return [
        Head(pk, as_uuid(uid), name, revision, limit)
        for pk, uid, name, revision, limit in _fetch(found, *columns)
    ]


def changes_since(cluster: str, revision: int) -> set[tuple[int, str]]:
    """Read which namespaces were written after a revision: pairs of revision and namespace.

    An empty namespace stands for what belongs to the whole cluster.
    """
    found = PolicyRevision.objects.filter(cluster=cluster, cluster_revision__gt=revision)
    return set(found.order_by().values_list("cluster_revision", "namespace").distinct())


def read_policies(scope: Scope) -> Policies:
    """Read all policies of some namespaces; eight queries, however many there are."""
    own = scope.within("namespace__")
    namespaces = _fetch(Namespace.objects.filter(**scope.within("")), "id", "cluster_id", "name")
    limit_ranges, metadata_policies, quotas = (
        model.objects.filter(**own).order_by()
        for model in (LimitRange, MetadataPolicy, ResourceQuota)
    )
    return Policies(
        namespaces={pk: (cluster_id, name) for pk, cluster_id, name in namespaces},
        limit_ranges=_fetch(limit_ranges, *_OWN),
        items=_rows(
            LimitRangeRow.objects.filter(**scope.within("limit_range__namespace__"))
            .order_by("limit_range_id", "position", "id"),
            "limit_range_id", "position", "type", "resource", *MAPS.values(),
        ),
        metadata_policies=_fetch(metadata_policies, *_OWN, "ratchet", "strict"),
        rules=_rows(
            MetadataPolicyRule.objects.filter(**scope.within("policy__namespace__"))
            .order_by("policy_id", "position"),
            "policy_id", *SELECTORS.values(), "reject", *UPDATES.values(),
        ),
        resource_quotas=_fetch(quotas, *_OWN, "uid", "scopes", "has_scope_selector"),
        hard=_rows(
            ResourceQuotaRow.objects.filter(**scope.within("quota__namespace__"))
            .order_by("quota_id", "id"),
            "quota_id", "resource", "hard",
        ),
        expressions=_rows(
            ScopeSelectorRow.objects.filter(**scope.within("quota__namespace__"))
            .order_by("quota_id", "position"),
            "quota_id", "scope_name", "operator", "values",
        ),
    )  # fmt: skip


def read_credentials(clusters: Collection[int]) -> dict[int, dict[str, dt.datetime | None]]:
    """Read the digests that are not revoked, by cluster, each with its end."""
    found = WebhookCredential.objects.filter(cluster_id__in=clusters, revoked=None).order_by()
    credentials: dict[int, dict[str, dt.datetime | None]] = {pk: {} for pk in clusters}
    for cluster_id, digest, expires in found.values_list("cluster_id", "digest", "expires"):
        credentials[cluster_id][digest] = expires
    return credentials


def as_uuid(value: UUID | str) -> UUID:
    """SQLite stores a text."""
    return value if isinstance(value, UUID) else UUID(value)


def _rows(queryset: QuerySet[Any], *columns: str) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = defaultdict(list)
    for key, *row in _fetch(queryset, *columns):
        grouped[key].append(tuple(row))
    return grouped


def _fetch(queryset: QuerySet[Any], *columns: str) -> list[Row]:
    """Run the query without Django's converters: equal texts are parsed once, by the decoder."""
    sql, parameters = queryset.values_list(*columns).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[Row] = cursor.fetchall()
    return found
