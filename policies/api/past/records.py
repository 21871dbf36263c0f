"""PastRecord: an object as one of its revisions left it, as serializers of stored objects read it.

Manifests are taken as they were written: rules of today may refuse them, and need not know them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import Min

from engine.policy import ENFORCEMENT_ANNOTATION, IN_API_SERVER_ANNOTATION, Enforcement, InAPIServer
from policies import history
from policies.models import Cluster, Namespace, PolicyRevision, ResourceQuota

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from policies.models.cluster import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRecord:
    """A past object; ``pk`` is None where it was deleted since, so that nobody has its number."""

    pk: int | None
    uid: str
    revision: int
    created: dt.datetime
    updated: dt.datetime
    owner: Cluster
    manifest: Mapping[str, Any]
    used: Mapping[str, str] = field(default_factory=dict)

    def to_manifest(self) -> dict[str, Any]:
        """The manifest, which the caller may change."""
        return copy.deepcopy(dict(self.manifest))

    def status(self) -> dict[str, Any]:
        """``status`` of a quota; ``used`` is empty where the journal does not reach."""
        hard = (self.manifest.get("spec") or {}).get("hard") or {}
        return {"hard": hard, "used": dict(self.used)}

    @property
    def enforcement(self) -> str:
        """What happens on a violation."""
        return self._annotation(ENFORCEMENT_ANNOTATION, Enforcement.ENFORCE)

    @property
    def in_api_server(self) -> str:
        """Whether the API server enforced it, too."""
        return self._annotation(IN_API_SERVER_ANNOTATION, InAPIServer.OFF)

    @property
    def phase(self) -> str:
        """The phase of a namespace."""
        status = self.manifest.get("status") or {}
        return str(status.get("phase", Namespace.Phase.ACTIVE.value))

    def _annotation(self, key: str, usual: str) -> str:
        annotations = self.manifest["metadata"].get("annotations") or {}
        return str(annotations.get(key, usual))


def past_records(
    revisions: Sequence[PolicyRevision], model: type[Recorded], instant: dt.datetime
) -> list[Any]:
    """Past objects of one kind for its serializer; a fixed number of queries."""
    stored = {
        str(uid): (pk, created)
        for uid, pk, created in model.objects.filter(
            uid__in=[each.uid for each in revisions if each.uid]
        ).values_list("uid", "pk", "created")
    }
    begun = _begun([each for each in revisions if each.uid not in stored])
    is_quota = model is ResourceQuota and history.horizon().knows_usage(instant)
    used = history.used_of(history.objects_of(revisions), instant) if is_quota else {}
    records = [
        PastRecord(
            pk=stored.get(each.uid, (None, None))[0],
            uid=each.uid,
            revision=each.number,
            created=stored.get(each.uid, (None, begun.get(each.uid, each.created)))[1],
            updated=each.created,
            owner=Cluster(name=each.cluster),
            manifest=each.after or {},
            used=used.get(each.uid, {}),
        )
        for each in revisions
    ]
    return _clusters(records, instant) if model is Cluster else records


def _begun(revisions: Sequence[PolicyRevision]) -> dict[str, dt.datetime]:
    """When objects that are deleted since were made, by uid; one query, none if there are none."""
    if not revisions:
        return {}
    rows = PolicyRevision.objects.filter(
        cluster__in={each.cluster for each in revisions},
        kind=revisions[0].kind,
        namespace__in={each.namespace for each in revisions},
        name__in={each.name for each in revisions},
        uid__in=[each.uid for each in revisions],
    )
    return dict(rows.order_by().values_list("uid").annotate(begin=Min("created")))


def _clusters(records: Sequence[PastRecord], instant: dt.datetime) -> list[Cluster]:
    """Clusters with their settings; those of a cluster are no manifest in the API."""
    names = [each.owner.name for each in records]
    writes = history.revisions_at(names, instant) if names else {}
    return [
        Cluster(
            pk=each.pk,
            uid=each.uid,
            revision=each.revision,
            created=each.created,
            updated=each.updated,
            policy_revision=writes[each.owner.name],
        ).read_manifest(each.manifest)
        for each in records
    ]
