"""The policy revision of clusters: share lock while deciding, REVISION_GATE, NOTIFY channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from policies.db.deferred import ask, is_postgresql
from policies.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

CHANNEL: Final = "gatehouse_policies"
"""PostgreSQL's notifications of policy writes: sent with each new revision number."""
COUNT: Final = "policy_revision"
REVISION_GATE: Final = 0x67617465
"""First half of an advisory lock, with a cluster's id; a write takes it before the cluster's row.

Decisions share the lock of the cluster's row. While there are always some, a writer would wait
forever: PostgreSQL lets further readers of a row pass it. At an advisory lock they queue behind it.
"""
# Django offers only FOR UPDATE, which would let in one batch of decisions at a time.
_SHARE: Final = f"""
    SELECT id, uid, {COUNT}, pg_advisory_xact_lock_shared(%s, (id %% 2147483648)::int)
    FROM {Cluster._meta.db_table} WHERE id = ANY(%s) ORDER BY id FOR SHARE"""  # noqa: S608, SLF001 - our own names
Revisions: TypeAlias = dict[int, tuple[UUID, int]]
"""Uid and policy revision of clusters, by id."""


def revision(cluster: str) -> int:
    """The number of the cluster's last policy write; 0 for an unknown cluster."""
    numbers = Cluster.objects.filter(name=cluster).values_list("policy_revision", flat=True)
    return numbers.first() or 0


def lock_revisions(cluster_ids: Collection[int]) -> Revisions:
    """Read uid and revision of clusters, and delay policy writes until this transaction ends.

    Must run inside a transaction, after its quotas are locked. One statement locks the rows in id
    order; on SQLite the transaction excludes other writers anyway. A deleted cluster is absent.
    """
    return ask_revisions(cluster_ids)()


def ask_revisions(cluster_ids: Collection[int]) -> Callable[[], Revisions]:
    """Send the statement of ``lock_revisions``; the result waits for its rows."""
    if not cluster_ids:
        return dict
    sql: str = _SHARE
    parameters: tuple[Any, ...] = (REVISION_GATE, list(cluster_ids))
    if not is_postgresql():
        clusters = Cluster.objects.filter(pk__in=cluster_ids).values_list("pk", "uid", COUNT)
        sql, parameters = clusters.order_by("pk").query.sql_with_params()
    rows = ask(sql, parameters)
    return lambda: {
        pk: (uid if isinstance(uid, UUID) else UUID(uid), number) for pk, uid, number, *_ in rows()
    }
