"""``advance`` the Snapshot: heads behind compared by revision, changed namespaces read again.

Each cluster's revision is read before its policies and again afterwards. If policies were written
in between, the revisions since then name their namespaces, and these are read once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.snapshot.assemble import ClusterContext, as_of, assemble
from policies.snapshot.read import (
    changes_since,
    read_classes,
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


def advance(known_snapshot: Snapshot) -> Snapshot:
    """A snapshot of all that was committed before this call.

    Must not run inside a transaction that writes policies: it might still be rolled back.
    """
    heads = read_heads()
    known_clusters = {head.name: known_snapshot.clusters.get(head.name) for head in heads}
    fresh = {
        head.name: cluster
        for head in heads
        if (cluster := known_clusters[head.name]) is not None and _is_at_revision(cluster, head)
    }
    if len(fresh) == len(heads) == len(known_snapshot.clusters):
        return known_snapshot
    built = {name: cluster for name, cluster in known_clusters.items() if cluster is not None}
    behind = [head for head in heads if head.name not in fresh]
    # A cluster is done once its revision is the same before and after its policies were read.
    while behind:
        built |= _read_clusters(behind, built)
        heads_now = {head.name: head for head in read_heads()}
        behind = [heads_now[head.name] for head in behind if head.name in heads_now]
        fresh |= {h.name: built[h.name] for h in behind if _is_at_revision(built[h.name], h)}
        behind = [head for head in behind if head.name not in fresh]
    return Snapshot(dict(sorted(fresh.items())))


def _is_at_revision(cluster: ClusterPolicies, head: Head) -> bool:
    return (cluster.id, cluster.uid, cluster.revision) == (head.id, head.uid, head.revision)


def _read_clusters(
    heads: Iterable[Head], known_clusters: Mapping[str, ClusterPolicies]
) -> dict[str, ClusterPolicies]:
    """Read these clusters as of their heads or later."""
    whole_heads: list[Head] = []
    built: dict[str, ClusterPolicies] = {}
    for head in heads:
        changed = _changed_namespaces(known_clusters.get(head.name), head)
        if changed is None:
            whole_heads.append(head)
        else:
            namespaces = known_clusters[head.name].namespaces.items()
            kept = {name: policies for name, policies in namespaces if name not in changed}
            bare = known_clusters[head.name].bare - changed
            built |= _compiled_clusters([head], changed, kept, bare)
    return built | _compiled_clusters(whole_heads, None, {}) if whole_heads else built


def _changed_namespaces(known_cluster: ClusterPolicies | None, head: Head) -> set[str] | None:
    """The namespaces to read again; None where they are unknown, or too many."""
    # Another uid under this name: the cluster was deleted and created again.
    if known_cluster is None or known_cluster.uid != head.uid or known_cluster.id != head.id:
        return None
    if not 0 <= head.revision - known_cluster.revision <= MANY:
        return None
    changes = changes_since(head.name, known_cluster.revision)
    recorded_numbers = {revision for revision, _ in changes}
    # What a number without a revision has changed is unknown.
    if not recorded_numbers.issuperset(range(known_cluster.revision + 1, head.revision + 1)):
        return None
    changed_names = {namespace for _, namespace in changes} - {""}
    return changed_names if len(changed_names) <= MANY else None


def _compiled_clusters(
    heads: Collection[Head],
    changed: set[str] | None,
    kept: Mapping[str, NamespacePolicies],
    bare: frozenset[str] = frozenset(),
) -> dict[str, ClusterPolicies]:
    """Compile the namespaces of these names, or all, and add the kept and bare ones."""
    cluster_ids = [head.id for head in heads]
    credentials = read_credentials(cluster_ids)
    limited = limited_resources_of(cluster_ids)
    now = {
        head.id: ClusterContext(head.name, limited[head.id], head.authority, head.version)
        for head in heads
    }
    classes = read_classes()
    places = read_places(cluster_ids, changed)
    assembled = assemble(read_policies(places), now)
    names: dict[int, set[str]] = {head.id: set() for head in heads}
    for place in places:
        names[place.cluster_id].add(place.name)
    return {
        head.name: ClusterPolicies(
            id=head.id,
            uid=head.uid,
            name=head.name,
            revision=head.revision,
            unconfirmed_limit=head.unconfirmed_limit,
            limited_resources=limited[head.id],
            authority=head.authority,
            version=head.version,
            namespaces={**as_of(kept, now[head.id]), **assembled[head.id]},
            bare=bare | (names[head.id] - assembled[head.id].keys()),
            credentials=credentials[head.id],
            class_selectors=tuple([each.selector for each in classes if each.covers(head.name)]),
            portal_namespace=head.portal_namespace,
        )
        for head in heads
    }
