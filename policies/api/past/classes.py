"""PastClass: a namespace class as one of its versions left it, with what it matched then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError
from engine.namespace_class import decode_namespace_class
from policies import history
from policies.models import Cluster, Namespace, NamespaceClass, NamespaceClassVersion
from policies.models.cluster import PORTAL_NAMESPACE

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from policies.history import PastObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PastClass:
    """A past class; ``namespaces`` is how many it matched, None where it cannot be read."""

    version: int
    manifest: Mapping[str, Any]
    created: dt.datetime
    updated: dt.datetime
    namespaces: int | None


def past_classes(
    versions: Sequence[NamespaceClassVersion], clusters: Sequence[str], instant: dt.datetime
) -> list[PastClass]:
    """Past classes for their serializer; a fixed number of queries."""
    if not versions:
        return []
    begun = _begun(versions, instant)
    writes = history.revisions_at(clusters, instant)
    found = history.objects_of(history.in_force(writes, kinds=(Cluster.kind, Namespace.kind)))
    return [
        PastClass(
            version=each.number,
            manifest=each.manifest or {},
            created=begun[each.name],
            updated=each.created,
            namespaces=_matched(each.manifest or {}, found),
        )
        for each in versions
    ]


def _begun(
    versions: Sequence[NamespaceClassVersion], instant: dt.datetime
) -> dict[str, dt.datetime]:
    """When the classes of some versions were made: after their last deletion."""
    names = [each.name for each in versions]
    last = {each.name: each.pk for each in versions}
    begun: dict[str, dt.datetime] = {}
    rows = NamespaceClassVersion.objects.filter(name__in=names).order_by("pk")
    for name, pk, created, manifest in rows.values_list("name", "pk", "created", "manifest"):
        if pk <= last[name]:
            begun[name] = begun.get(name, created)
            if manifest is None:
                del begun[name]
    stored = NamespaceClass.objects.filter(name__in=names, created__lte=instant)
    return begun | dict(stored.values_list("name", "created"))


def _matched(manifest: Mapping[str, Any], found: Sequence[PastObject]) -> int | None:
    """How many of the namespaces among some objects a class was for."""
    try:
        value = decode_namespace_class(manifest)
    except DecodeError:
        return None  # written by rules that hold no more
    reserved = {
        each.cluster: (each.manifest.get("spec") or {}).get("portalNamespace") or PORTAL_NAMESPACE
        for each in found
        if each.kind == Cluster.kind
    }
    return sum(
        value.covers(each.cluster)
        and value.selector.matches(
            each.name,
            each.manifest["metadata"].get("labels") or {},
            reserved=reserved.get(each.cluster, PORTAL_NAMESPACE),
        )
        and not (each.manifest.get("status") or {}).get("phase")
        for each in found
        if each.kind == Namespace.kind
    )
