"""ChangeDiffView: the objects of a change in words and side by side; taken out, and merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404

from policies.drafts.draft import render
from policies.drafts.kinds import BY_NAME
from policies.manifests import diff_in_words
from policies.services import changes
from portal.pages.changes.sets.frame import ChangePage
from portal.pages.lists import any_contains, page_of, search_of
from portal.pages.policies.panes.differences import differences_of
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from policies.models import ChangeItem, ChangeSet
    from policies.services.changes import Rebased
    from portal.pages.policies.panes.differences import Differences


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLine:
    """An object of a change: what is proposed, in words and line by line; a base that moved."""

    item: ChangeItem
    plural: str
    words: Sequence[str]
    differences: Differences
    moved: Rebased | None
    is_new: bool
    """Whether the reader has not seen it so."""


class ChangeDiffView(ChangePage):
    """Objects of a change, found by their name or namespace."""

    template_name = "changes/sets/diff.html"
    route = "change-diff"
    done_words = {
        "takeout": "Taken out of the change.",
        "merge": "Merged with what is stored now.",
    }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of its objects."""
        search = search_of(self.request.GET)
        items = changes.visible_items(self.change, self.request.user)
        if search:
            items = items.filter(any_contains(search, "namespace", "name"))
        page = page_of(items, self.request)
        lines = _lines(list(page.object_list), self.change, new=self.since_look.new)
        return super().get_context_data(**kwargs, page=page, search=search, lines=lines)

    def take(self, verb: str, rest: str) -> None:
        """Take an object out, or merge it: its key, and the side that wins."""
        if verb not in self.done_words:
            raise Http404
        self.require(verb)
        key, _, side = rest.partition(":")
        item = whole_number(key)
        if not changes.visible_items(self.change, self.request.user).filter(pk=item).exists():
            raise changes.no_such_item()
        if verb == "takeout":
            changes.take_out(self.change, items=[item], user=self.username)
            return
        changes.rebase(self.change, item=item, user=self.username, keep=_SIDES.get(side))


_SIDES: Final[Mapping[str, Any]] = {"mine": "mine", "theirs": "theirs"}


def _lines(
    items: Sequence[ChangeItem], change: ChangeSet, *, new: Collection[int]
) -> list[ItemLine]:
    # Once it is published, its own writes have moved every base.
    is_open = "edit" in change.steps_allowed
    moved = changes.moved(items) if is_open else {}
    return [
        ItemLine(
            item=item,
            plural=BY_NAME[item.kind].plural,
            words=diff_in_words.changes(item.base, item.content),
            differences=text_differences(item),
            moved=moved.get(item.pk),
            is_new=item.pk in new,
        )
        for item in items
    ]


def text_differences(item: ChangeItem) -> Differences:
    """The lines of an object before and after."""
    return differences_of(_text(item.base), _text(item.content))


def _text(manifest: Mapping[str, Any] | None) -> str:
    return render(manifest) if manifest is not None else ""
