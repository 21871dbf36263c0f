"""What a database of `python -m bench ui` looks back on: revisions of its policies, its journal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from policies.models import Cluster, LimitRange, MetadataPolicy, Namespace, ResourceQuota

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

WRITES: Final = 5
"""So often each policy was written."""
JOURNAL: Final = 300_000
"""Entries of the ledger: about one for three decisions."""
_COLUMNS: Final = (
    *("cluster", "namespace", "kind", "name", "uid", "number", "action", '"user"', "manager"),
    *('"commit"', "reason", "before", "after", "created", "cluster_revision"),
)


def write_history(cluster: Cluster, namespaces: Sequence[str]) -> None:
    """Revisions of the namespaces and their policies, one a minute, before all others."""
    columns = ", ".join(_COLUMNS)
    values = ", ".join(
        "now() - %s * interval '1 minute'" if name == "created" else "%s" for name in _COLUMNS
    )
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO policies_policyrevision ({columns}) VALUES ({values})",  # noqa: S608 - our own words
            list(_revisions(cluster, namespaces)),
        )
        cursor.execute(
            "UPDATE policies_cluster SET policy_revision = (SELECT max(cluster_revision) FROM"
            " policies_policyrevision WHERE cluster = %s) WHERE id = %s",
            [cluster.name, cluster.pk],
        )


def _revisions(cluster: Cluster, namespaces: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    of_cluster = {"namespace__cluster": cluster, "namespace__name__in": namespaces}
    objects: list[Any] = list(Namespace.objects.filter(cluster=cluster, name__in=namespaces))
    for model in (LimitRange, MetadataPolicy, ResourceQuota):
        found = model.objects.filter(**of_cluster).select_related("namespace__cluster")
        objects += found.prefetch_related(*model.row_sets)
    number = Cluster.objects.values_list("policy_revision", flat=True).get(pk=cluster.pk)
    minutes = 60 + WRITES * len(objects)
    for write in range(1, WRITES + 1):
        for each in objects:
            number, minutes = number + 1, minutes - 1
            after = json.dumps(each.to_manifest())
            yield (
                *(cluster.name, each.namespace_name, each.kind, each.name, str(each.uid), write),
                *("create" if write == 1 else "update", "bench", "", "", "bench"),
                *(None if write == 1 else after, after, minutes, number),
            )


def write_journal(cluster: Cluster, namespaces: Sequence[str], *, since: datetime) -> None:
    """Charges and releases of pods in the seeded quotas, all after an instant to look back on."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO policies_ledgerentry (created, cluster_id, quota_uid, namespace, resource,
              object_uid, object_name, action, cause, reference, before, after)
            SELECT %s::timestamptz + i * (now() - %s::timestamptz) / %s, %s, uid, namespace, 'pods',
              'pod-' || i / 2, 'pod-' || i / 2, CASE WHEN i %% 2 = 0 THEN 'charge' ELSE 'release'
              END, 'admission', '', CASE WHEN i %% 2 = 0 THEN '{}' ELSE '{"pods": "1"}' END::jsonb,
              CASE WHEN i %% 2 = 0 THEN '{"pods": "1"}' ELSE '{}' END::jsonb
            FROM generate_series(1, %s) AS i JOIN (
              SELECT q.uid, n.name AS namespace, row_number() OVER () - 1 AS place
              FROM policies_resourcequota q JOIN policies_namespace n ON n.id = q.namespace_id
              WHERE n.cluster_id = %s AND n.name = ANY(%s)) AS quota ON place = i / 2 %% %s
            """,
            [
                since,
                since,
                JOURNAL,
                cluster.pk,
                JOURNAL,
                cluster.pk,
                list(namespaces),
                len(namespaces),
            ],
        )
