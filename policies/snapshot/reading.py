"""Bulk reading: some hundred namespaces in seven queries, and no model instances.

A reader may see some tables before and others after somebody's commit. What it read is good only
if the cluster's revision is the same before and after (``building`` sees to that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db import connection

from policies.models import (
    Cluster,
    LimitRange,
    LimitRangeRow,
    MetadataPolicy,
    MetadataPolicyRule,
    Namespace,
    PolicyObject,
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
    from collections.abc import Collection, Iterator, Sequence

    from django.db.models import Model, QuerySet

    from policies.snapshot.decoding import Row

AT_ONCE: Final = 500
_OWN: Final = ("id", "namespace_id", "name", "enforcement", "revision")
_KINDS: Final[tuple[tuple[type[PolicyObject], tuple[str, ...]], ...]] = (
    (LimitRange, ()),
    (MetadataPolicy, ("ratchet", "strict")),
    (ResourceQuota, ("uid", "scopes", "has_scope_selector")),
)
_ITEMS: Final = ("limit_range_id", "position", "type", "resource", *MAPS.values())
_RULES: Final = ("policy_id", *SELECTORS.values(), "reject", *UPDATES.values())
_HARD: Final = ("quota_id", "resource", "hard")
_EXPRESSIONS: Final = ("quota_id", "scope_name", "operator", "values")


class Head(NamedTuple):
    """A cluster's own row."""

    id: int
    uid: UUID
    name: str
    revision: int
    unconfirmed_limit: int


class Place(NamedTuple):
    """A namespace's own row."""

    id: int
    cluster_id: int
    name: str


class Policies(NamedTuple):
    """Everything of some namespaces, as columns; rows by the id of their policy, in order."""

    places: dict[int, Place]
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


def read_places(clusters: Collection[int], names: Collection[str] | None) -> list[Place]:
    """Read which namespaces some clusters have, or which of these names."""
    found = Namespace.objects.filter(cluster__in=clusters).order_by("id")
    if names is not None:
        if not names:
            return []
        found = found.filter(name__in=names)
    return [Place(*row) for row in _fetch(found, "id", "cluster_id", "name")]


def read_policies(places: Sequence[Place], *, is_all: bool) -> Iterator[Policies]:
    """Read all policies of namespaces, some hundred at a time: a whole table is much to hold.

    ``is_all``: these are all namespaces of their clusters, which saves naming each of them.
    """
    clusters = {place.cluster_id for place in places} if is_all else set()
    for first in range(0, len(places), AT_ONCE):
        some = {place.id: place for place in places[first : first + AT_ONCE]}
        yield _read(some, clusters)


def _read(places: dict[int, Place], clusters: Collection[int]) -> Policies:
    wanted: dict[str, Any] = {"namespace_id__in": list(places)}
    if clusters:
        wanted = {
            "namespace_id__gte": min(places),
            "namespace_id__lte": max(places),
            "namespace__cluster_id__in": clusters,
        }

    def rows(model: type[Model], columns: tuple[str, ...], *order: str) -> dict[int, list[Row]]:
        owner = columns[0]
        within = owner.removesuffix("id") + "_"
        found = model._default_manager.filter(  # noqa: SLF001 - of any model
            **{f"{within}{key}": value for key, value in wanted.items()}
        )
        grouped: dict[int, list[Row]] = {}
        for row in _fetch(found.order_by(owner, *order), *columns):
            grouped.setdefault(row[0], []).append(row[1:])
        return grouped

    limit_ranges, metadata_policies, quotas = (
        [
            row
            for row in _fetch(model.objects.filter(**wanted).order_by(), *_OWN, *more)
            if row[1] in places
        ]
        for model, more in _KINDS
    )
    return Policies(
        places=places,
        limit_ranges=limit_ranges,
        items=rows(LimitRangeRow, _ITEMS, "position", "id"),
        metadata_policies=metadata_policies,
        rules=rows(MetadataPolicyRule, _RULES, "position"),
        resource_quotas=quotas,
        hard=rows(ResourceQuotaRow, _HARD, "id"),
        expressions=rows(ScopeSelectorRow, _EXPRESSIONS, "position"),
    )


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


def _fetch(queryset: QuerySet[Any], *columns: str) -> list[Row]:
    """Run the query without Django's converters: equal texts are parsed once, by the decoder."""
    sql, parameters = queryset.values_list(*columns).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[Row] = cursor.fetchall()
    return found
