"""``look`` at a change: which objects are new to a reader since the last look."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.change_sets.content import content_hash
from policies.models import ChangeLook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.models import ChangeItem, ChangeSet

_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class SinceLook:
    """The objects that the reader has not seen as they are, and how many were taken out."""

    new: frozenset[int] = frozenset()
    gone: int = 0

    def __bool__(self) -> bool:
        return bool(self.new or self.gone)


def look(change: ChangeSet, *, user: Any, items: Sequence[ChangeItem]) -> SinceLook:
    """Note that the user sees the present content; what is new stays so until it changes again.

    ``items`` are all objects of the change. One write for each content and reader.
    """
    last = ChangeLook.objects.filter(change=change, user=user).first()
    digests = {_digest(str((item.cluster, *item.key))): _content(item) for item in items}
    if last is None or last.content_hash != change.content_hash:
        before = None if last is None else last.seen
        ChangeLook.objects.update_or_create(
            change=change,
            user=user,
            defaults={"content_hash": change.content_hash, "seen": digests, "before": before},
        )
    else:
        before = last.before
    if before is None:
        return SinceLook()
    new = {
        item.pk
        for item, (name, content) in zip(items, digests.items(), strict=True)
        if before.get(name) != content
    }
    return SinceLook(frozenset(new), len(before.keys() - digests.keys()))


def _content(item: ChangeItem) -> str:
    return content_hash([item.to_content()])[:_DIGITS]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
