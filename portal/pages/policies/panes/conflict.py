"""``conflict_of`` a draft whose policy somebody else has saved: both changes and their merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.change_sets import merge
from policies.drafts.draft import render
from policies.manifests import diff_in_words

if TYPE_CHECKING:
    from portal.pages.policies.editor import EditorView


def conflict_of(page: EditorView, mine: dict[str, Any]) -> dict[str, Any]:
    """The context of the page about a conflict, but for the draft's own text."""
    seen_revision = page.history().filter(number=page.seen).first()
    base = seen_revision.after if seen_revision else None
    theirs = page.read_stored()
    merged = merge.merge(base, mine, theirs)
    return {
        "base_text": render(base) if base else "",
        "theirs_text": render(theirs) if theirs else "",
        "merged_text": render(merged.manifest),
        "conflicts": merged.conflicts,
        "their_changes": diff_in_words.changes(base, theirs),
        "my_changes": diff_in_words.changes(base, mine),
        "theirs": page.history().first(),
    }
