"""SQL that reads heads, namespaces, child rows, credentials as tuples by id; without models.

A reader may see some tables before and others after a commit. Its result is consistent only if the
cluster's revision is the same before and after, which ``build`` checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Case, F, When

from engine.kubernetes_version import stored_version
from engine.policy import Authority
from policies.models import (
    Cluster,
    LimitRange,
    LimitRangeRow,
    MetadataPolicy,
    MetadataPolicyRule,
    Namespace,
    NamespaceClass,
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
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from django.db.models import Model, QuerySet

    from engine.kubernetes_version import KubernetesVersion
    from engine.namespace_class import NamespaceClass as EngineClass
    from policies.snapshot.decode import Row

AT_ONCE: Final = 500
_POLICY_COLUMNS: Final = ("id", "namespace_id", "name", "enforcement", "revision")
_KINDS: Final[tuple[tuple[type[PolicyObject], tuple[str, ...]], ...]] = (
    (LimitRange, ("is_native",)),
    (MetadataPolicy, ("ratchet", "strict")),
    (ResourceQuota, ("uid", "is_native", "uncounted", "scopes", "has_scope_selector")),
)
_ITEMS: Final = ("limit_range_id", "position", "type", "resource", *MAPS.values())
_RULES: Final = ("policy_id", *SELECTORS.values(), "reject", *UPDATES.values())
_HARD: Final = ("quota_id", "resource", "hard")
_EXPRESSIONS: Final = ("quota_id", "scope_name", "operator", "values")


class Head(NamedTuple):
    """A cluster's own row: its identity, revision and settings."""

    id: int
    uid: UUID
    name: str
    revision: int
    unconfirmed_limit: int
    authority: Authority
    version: KubernetesVersion
    portal_namespace: str


class NamespaceRow(NamedTuple):
    """A namespace's own row."""

    id: int
    cluster_id: int
    name: str


class Policies(NamedTuple):
    """All policies of some namespaces as columns; rows by the id of their policy, in order."""

    places: dict[int, NamespaceRow]
    limit_ranges: list[Row]
    items: dict[int, list[Row]]
    metadata_policies: list[Row]
    rules: dict[int, list[Row]]
    resource_quotas: list[Row]
    hard: dict[int, list[Row]]
    expressions: dict[int, list[Row]]


def read_heads() -> list[Head]:
    """Read the rows of all clusters; one small query."""
    identity = ("id", "uid", "name", "policy_revision", "portal_namespace")
    columns = (*identity, "unconfirmed_limit", "authority", "kubernetes_version")
    clusters = Cluster.objects.order_by("id")
    return [
        Head(pk, as_uuid(uid), name, number, limit, Authority(ruler), stored_version(version), own)
        for pk, uid, name, number, own, limit, ruler, version in _fetch_rows(clusters, *columns)
    ]


def read_classes() -> list[EngineClass]:
    """Read all namespace classes; one small query."""
    return [each.value for each in NamespaceClass.objects.only("manifest")]


def changes_since(cluster: str, revision: int) -> set[tuple[int, str]]:
    """Read the namespaces written after a revision: pairs of revision and namespace.

    An empty namespace means the cluster as a whole; a Namespace itself counts as inside of it.
    """
    # By name, which is all that a revision keeps of its cluster.
    revisions = PolicyRevision.objects.filter(cluster=cluster, cluster_revision__gt=revision)
    place = Case(When(kind=Namespace.kind, then=F("name")), default=F("namespace"))
    return set(revisions.order_by().values_list("cluster_revision", place).distinct())


def read_places(clusters: Collection[int], names: Collection[str] | None) -> list[NamespaceRow]:
    """Read the namespaces of some clusters, or those of these names."""
    namespaces = Namespace.objects.filter(cluster__in=clusters).order_by("id")
    if names is not None:
        if not names:
            return []
        namespaces = namespaces.filter(name__in=names)
    return [NamespaceRow(*row) for row in _fetch_rows(namespaces, "id", "cluster_id", "name")]


def read_policies(places: Sequence[NamespaceRow]) -> Iterator[Policies]:
    """Read all policies of namespaces, ``AT_ONCE`` at a time: whole tables need much memory."""
    for first in range(0, len(places), AT_ONCE):
        namespace_rows = {place.id: place for place in places[first : first + AT_ONCE]}
        limit_ranges, metadata_policies, quotas = (
            _rows_among(model, "namespace_id", namespace_rows, (*_POLICY_COLUMNS, *kind_columns))
            for model, kind_columns in _KINDS
        )
        yield Policies(
            places=namespace_rows,
            limit_ranges=limit_ranges,
            items=_child_rows(LimitRangeRow, limit_ranges, _ITEMS, ("position", "id")),
            metadata_policies=metadata_policies,
            rules=_child_rows(MetadataPolicyRule, metadata_policies, _RULES, ("position",)),
            resource_quotas=quotas,
            hard=_child_rows(ResourceQuotaRow, quotas, _HARD, ("id",)),
            expressions=_child_rows(ScopeSelectorRow, quotas, _EXPRESSIONS, ("position",)),
        )


def read_credentials(clusters: Collection[int]) -> dict[int, dict[str, dt.datetime | None]]:
    """Read the digests that are not revoked, by cluster, each with its expiry."""
    valid = WebhookCredential.objects.filter(cluster_id__in=clusters, revoked=None).order_by()
    credentials: dict[int, dict[str, dt.datetime | None]] = {pk: {} for pk in clusters}
    for cluster_id, digest, expires in valid.values_list("cluster_id", "digest", "expires"):
        credentials[cluster_id][digest] = expires
    return credentials


def as_uuid(value: UUID | str) -> UUID:
    """A UUID as the driver gives it: SQLite stores a text."""
    return value if isinstance(value, UUID) else UUID(value)


def _child_rows(
    model: type[Model], policies: Sequence[Row], columns: tuple[str, ...], order: tuple[str, ...]
) -> dict[int, list[Row]]:
    """Read the rows of these policies; the first column is the policy's id."""
    owner_id = columns[0]
    rows_of_policy: dict[int, list[Row]] = {}
    for child in _rows_among(model, owner_id, [policy[0] for policy in policies], columns, order):
        rows_of_policy.setdefault(child[0], []).append(child[1:])
    return rows_of_policy


def _rows_among(
    model: type[Model],
    id_column: str,
    ids: Iterable[int],
    columns: tuple[str, ...],
    order: tuple[str, ...] = (),
) -> list[Row]:
    """Read by many ids as one parameter: Django would check and adapt each of them."""
    quote, wanted_ids = connection.ops.quote_name, list(ids)
    chosen, sorting = (", ".join(map(quote, names)) for names in (columns, (id_column, *order)))
    is_postgresql = connection.vendor == "postgresql"
    among = "= ANY(%s::bigint[])" if is_postgresql else "IN (SELECT value FROM json_each(%s))"
    table = quote(model._meta.db_table)  # noqa: SLF001 - Django's own API
    sql = f"SELECT {chosen} FROM {table} WHERE {quote(id_column)} {among} ORDER BY {sorting}"  # noqa: S608 - our own names
    # One text: drivers adapt the numbers of a list one by one.
    opening, closing = "{}" if is_postgresql else "[]"
    return _run_sql(sql, (f"{opening}{','.join(map(str, wanted_ids))}{closing}",))


def _fetch_rows(queryset: QuerySet[Any], *columns: str) -> list[Row]:
    """Run a query without Django's converters, which cost more than the rows."""
    return _run_sql(*queryset.values_list(*columns).query.sql_with_params())


def _run_sql(sql: str, parameters: tuple[Any, ...]) -> list[Row]:
    """Columns as the driver gives them: the decoder parses equal texts once."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        tuples: list[Row] = cursor.fetchall()
    return tuples
