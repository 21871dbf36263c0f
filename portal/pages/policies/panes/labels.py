"""``label_choices``: labels seen in the namespace, offered in rules about labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from admission.explain.labels_seen import labels_seen
from policies.drafts.kinds import METADATA_POLICY

if TYPE_CHECKING:
    from portal.pages.policies.editor import EditorView

MOST_VALUES: Final = 100


def label_choices(page: EditorView) -> dict[str, Any]:
    """Their keys and values; nothing for other kinds, and for those who only read."""
    if page.place.kind is not METADATA_POLICY or not page.may_post():
        return {}
    seen = labels_seen(page.cluster.name, page.namespace_name)
    values = sorted({value for found in seen.values() for value in found})
    return {"label_keys": list(seen), "label_values": values[:MOST_VALUES]}
