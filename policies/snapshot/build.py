"""``advance`` to the next Snapshot: heads compared by revision, changed namespaces read.

Each cluster's revision is read before its policies and again afterwards. If policies were written
in between, the revisions since then name their namespaces, and these are read once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.snapshot.assemble import ClusterContext, as_of, assemble
from policies.snapshot.read import (
    changes_since,
    read_credentials,
    read_heads,
    read_places,
    read_policies,
)
from policies.snapshot.stored import limited_resources_of
from policies.snapshot.values import ClusterPolicies, NamespacePolicies, Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from policies.snapshot.read import Head

MANY: Final = 500
"""With more changes than this the whole cluster is read."""


def advance(known: Snapshot) -> Snapshot:
    """A snapshot of all that was committed before this call.

    Must not run inside a transaction that writes policies: it might still be rolled back.
    """
    heads = read_heads()
    current = {head.name: known.clusters.get(head.name) for head in heads}
    done = {
        head.name: cluster
        for head in heads
        if (cluster := current[head.name]) is not None and _is_at_revision(cluster, head)
    }
    if len(done) == len(heads) == len(known.clusters):
        return known
    drafts = {name: cluster for name, cluster in current.items() if cluster is not None}
    waiting = [head for head in heads if head.name not in done]
    # A cluster is done once its revision is the same before and after its policies were read.
    while waiting:
        drafts |= _read_clusters(waiting, drafts)
        now = {head.name: head for head in read_heads()}
        waiting = [now[head.name] for head in waiting if head.name in now]
        done |= {h.name: drafts[h.name] for h in waiting if _is_at_revision(drafts[h.name], h)}
        waiting = [head for head in waiting if head.name not in done]
    return Snapshot(dict(sorted(done.items())))


def _is_at_revision(cluster: ClusterPolicies, head: Head) -> bool:
    return (cluster.id, cluster.uid, cluster.revision) == (head.id, head.uid, head.revision)


def _read_clusters(
    heads: Iterable[Head], known: Mapping[str, ClusterPolicies]
) -> dict[str, ClusterPolicies]:
    """Read these clusters as of their heads or later."""
    whole: list[Head] = []
    drafts: dict[str, ClusterPolicies] = {}
    for head in heads:
        names = _changed_namespaces(known.get(head.name), head)
        if names is None:
            whole.append(head)
        else:
            namespaces = known[head.name].namespaces.items()
            kept = {name: found for name, found in namespaces if name not in names}
            drafts |= _compiled_clusters([head], names, kept)
    return drafts | _compiled_clusters(whole, None, {}) if whole else drafts


def _changed_namespaces(known: ClusterPolicies | None, head: Head) -> set[str] | None:
    """The namespaces to read again; None where they are unknown, or too many."""
    # Another uid under this name: the cluster was deleted and created again.
    if known is None or known.uid != head.uid or known.id != head.id:
        return None
    if not 0 <= head.revision - known.revision <= MANY:
        return None
    changes = changes_since(head.name, known.revision)
    counted = {revision for revision, _ in changes}
    # What a number without a revision has changed is unknown.
    if not counted.issuperset(range(known.revision + 1, head.revision + 1)):
        return None
    names = {namespace for _, namespace in changes} - {""}
    return names if len(names) <= MANY else None


def _compiled_clusters(
    heads: Collection[Head], names: set[str] | None, kept: Mapping[str, NamespacePolicies]
) -> dict[str, ClusterPolicies]:
    """Compile the namespaces of these names, or all, and add the kept ones."""
    ids = [head.id for head in heads]
    credentials = read_credentials(ids)
    limited = limited_resources_of(ids)
    now = {head.id: ClusterContext(head.name, limited[head.id], head.authority) for head in heads}
    assembled = assemble(read_policies(read_places(ids, names)), now)
    return {
        head.name: ClusterPolicies(
            id=head.id,
            uid=head.uid,
            name=head.name,
            revision=head.revision,
            unconfirmed_limit=head.unconfirmed_limit,
            limited_resources=limited[head.id],
            authority=head.authority,
            namespaces={**as_of(kept, now[head.id]), **assembled[head.id]},
            credentials=credentials[head.id],
        )
        for head in heads
    }
