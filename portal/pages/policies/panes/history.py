"""HistoryLines of a policy: its newest revisions, the changes of each in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.urls import reverse

from policies.manifests import diff_in_words
from portal.pages.views import names_of, route_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.models import NamespaceClassVersion, PolicyRevision
    from portal.pages.policies.page import PolicyPage

SHOWN: Final = 20
"""Revisions beside the form; the page of all revisions has the others."""
_WORDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """A revision, what it changed, and its page, where it is restored; empty for none."""

    revision: PolicyRevision | NamespaceClassVersion
    words: Sequence[str]
    others: int
    address: str
    is_current: bool


def history_of(page: PolicyPage) -> list[HistoryLine]:
    """The newest revisions of a page's policy; none of a new one."""
    place = page.place
    if not place.name and not place.kind.is_configuration:
        return []
    names = names_of(
        place.kind, cluster=place.cluster.name, namespace=place.namespace_name, name=place.name
    )
    lines = []
    for revision in page.history()[:SHOWN]:
        address = reverse(
            f"{route_of(place.kind)}-revision", kwargs={**names, "number": revision.number}
        )
        lines.append(
            history_line(
                revision,
                words=diff_in_words.changes(revision.before, revision.after),
                address=address,
                is_current=revision.after == page.manifest,
            )
        )
    return lines


def history_line(
    revision: PolicyRevision | NamespaceClassVersion,
    *,
    words: Sequence[str],
    is_current: bool,
    address: str = "",
) -> HistoryLine:
    """A line that names the first changes, and counts the others."""
    return HistoryLine(
        revision=revision,
        words=words[:_WORDS],
        others=max(0, len(words) - _WORDS),
        address=address,
        is_current=is_current,
    )
