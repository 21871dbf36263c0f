"""The newest versions of a class for its editor, the changes of each in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.manifests import diff_in_words
from policies.models import NamespaceClassVersion
from portal.pages.policies.panes.history import SHOWN, history_line

if TYPE_CHECKING:
    from policies.models import NamespaceClass
    from portal.pages.policies.panes.history import HistoryLine


def class_history(stored: NamespaceClass | None) -> list[HistoryLine]:
    """The newest versions of a stored class; none of a new one."""
    if stored is None:
        return []
    # One more than is shown: the last one is compared with it.
    versions = list(NamespaceClassVersion.objects.filter(name=stored.name)[: SHOWN + 1])
    before = [*(each.manifest for each in versions[1:]), None]
    return [
        history_line(
            version,
            words=diff_in_words.changes(earlier, version.manifest),
            is_current=version.number == stored.version,
        )
        for version, earlier in zip(versions[:SHOWN], before, strict=False)
    ]
