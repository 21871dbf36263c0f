"""Labels of a namespace's newest recorded objects, offered where a rule about labels is written."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from admission.models import AuditEvent
from admission.models.document import IN_DOCUMENT
from admission.record.redaction import restore

if TYPE_CHECKING:
    from collections.abc import Mapping

READ: Final = 100
"""Decisions that are read: pods of one owner have the same labels."""
MOST_VALUES: Final = 20


def labels_seen(cluster: str, namespace: str) -> Mapping[str, list[str]]:
    """The keys of labels with some of their values, by name; one query."""
    events = AuditEvent.objects.for_cluster(cluster).for_namespace(namespace)
    found: dict[str, set[str]] = defaultdict(set)
    for event in events.only("created", *IN_DOCUMENT).newest_by_pieces(READ):
        recorded = restore(event.request.get("object"))
        metadata = recorded.get("metadata") if isinstance(recorded, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        for key, value in labels.items() if isinstance(labels, dict) else ():
            if isinstance(value, str) and len(found[key]) < MOST_VALUES:
                found[key].add(value)
    return {key: sorted(found[key]) for key in sorted(found)}
