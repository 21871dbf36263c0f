"""ChangePageView: a change with its objects in words and side by side, its steps and buttons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.shortcuts import redirect

from policies.change_sets.states import ChangeState, StepRefusedError
from policies.drafts.draft import render
from policies.drafts.kinds import BY_NAME
from policies.manifests import diff_in_words
from policies.services import changes
from portal.pages.changes.sets.list import sent_description, wrong_fields
from portal.pages.policies.panes.differences import differences_of
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from policies.models import ChangeItem, ChangeSet
    from policies.services.changes import ItemProblem, Rebased
    from portal.pages.policies.panes.differences import Differences

CONFLICT: Final = 409
INVALID: Final = 422
MOST_SHOWN: Final = 100
"""So many objects of a change are on its page; the API has all."""
_STRAIGHT: Final = (
    ChangeState.DRAFT,
    ChangeState.IN_REVIEW,
    ChangeState.APPROVED,
    ChangeState.DONE,
)
_DONE_WORDS: Final = {
    "submit": "Submitted. Nobody has to approve it: publish it when you like.",
    "withdraw": "It is a draft again.",
    "abandon": "Abandoned.",
    "publish": "Published. It applies from the next decision on.",
    "revert": "Reverted: everything is as it was before.",
    "comment": "Your comment is on record.",
    "describe": "Saved.",
    "takeout": "Taken out of the change.",
    "merge": "Merged with what is stored now.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLine:
    """An object of a change: what is proposed, in words and line by line; a base that moved."""

    item: ChangeItem
    plural: str
    words: Sequence[str]
    differences: Differences
    moved: Rebased | None


class ChangePageView(PortalPage):
    """One change; its buttons take its steps."""

    template_name = "changes/sets/change.html"
    change: ChangeSet

    def find(self, names: dict[str, Any]) -> None:
        """Find the change; 404 for those who may not see it."""
        number = whole_number(str(names["number"]))
        found = changes.visible_changes(self.request.user).filter(pk=number).first()
        if found is None:
            raise Http404
        self.change = found

    def may_post(self) -> bool:
        """Whoever sees it may comment; each other step asks for its own permission."""
        return True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The change with a page of its objects."""
        user, change = self.request.user, self.change
        items = changes.visible_items(change, user)
        number = items.count()
        everything = list(change.items.all())
        return super().get_context_data(
            **kwargs,
            change=change,
            allowed={step.value for step in change.steps_allowed},
            progress=list(_progress(change.stands)),
            object_number=number,
            lines=_lines(list(items[:MOST_SHOWN]), change),
            more=max(0, number - MOST_SHOWN),
            hidden=len(everything) - number,
            steps=changes.visible_steps(change, user),
            may_steer=changes.may_steer(user, change),
            may_publish=changes.may_write(user, everything),
            may_revert=changes.may_write(user, everything, is_revert=True),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Take the button's step, or say what is against it."""
        verb, _, rest = request.POST.get("do", "").partition(":")
        try:
            self._take(verb, rest)
        except changes.ItemsRefusedError as error:
            return self._refuse("Nothing was written.", status=CONFLICT, problems=error.problems)
        except (
            StepRefusedError,
            changes.OutdatedChangeError,
            changes.MergeConflictError,
        ) as error:
            return self._refuse(f"{error}.".capitalize(), status=CONFLICT)
        except ValidationError as error:
            return self._refuse(error.messages[0], status=INVALID, wrong=wrong_fields(error))
        messages.success(request, _DONE_WORDS[verb])
        return redirect("change", self.change.pk)

    def _take(self, verb: str, rest: str) -> None:
        sent = self.request.POST
        if verb in {"submit", "publish"}:
            step = changes.submit if verb == "submit" else changes.publish
            self._require(verb)
            step(self.change, user=self.username, seen=sent.get("seen", ""))
        elif verb in _PLAIN_STEPS:
            self._require(verb)
            _PLAIN_STEPS[verb](self.change, user=self.username)
        elif verb == "comment":
            note = sent.get("note", "").replace("\0", "").replace("\r\n", "\n").strip()
            changes.comment(self.change, user=self.username, note=note)
        elif verb == "describe":
            self._require(verb)
            description = sent_description(self.request)
            changes.describe_change(self.change, description=description, user=self.username)
        elif verb in {"takeout", "merge"}:
            self._edit(verb, rest)
        else:
            raise Http404

    def _edit(self, verb: str, rest: str) -> None:
        """Take an object out, or merge it: its key, and the side that wins."""
        self._require(verb)
        key, _, side = rest.partition(":")
        item = whole_number(key)
        if not changes.visible_items(self.change, self.request.user).filter(pk=item).exists():
            raise changes.no_such_item()
        if verb == "takeout":
            changes.take_out(self.change, items=[item], user=self.username)
            return
        keep = _SIDES.get(side)
        changes.rebase(self.change, item=item, user=self.username, keep=keep)

    def _require(self, verb: str) -> None:
        """Refuse those who may not take a step."""
        user = self.request.user
        if verb in {"publish", "revert"}:
            items = self.change.items.all()
            is_allowed = changes.may_write(user, items, is_revert=verb == "revert")
        else:
            is_allowed = changes.may_steer(user, self.change)
        if not is_allowed:
            raise PermissionDenied

    def _refuse(
        self,
        message: str,
        *,
        status: int,
        problems: Sequence[ItemProblem] = (),
        wrong: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        self.change.refresh_from_db()
        context = self.get_context_data(
            form_error=message,
            problems=problems,
            wrong=wrong or {},
            note=self.request.POST.get("note", ""),
        )
        return self.render_to_response(context, status=status)


_PLAIN_STEPS: Final[Mapping[str, Callable[..., ChangeSet]]] = {
    "withdraw": changes.withdraw,
    "abandon": changes.abandon,
    "revert": changes.revert,
}
_SIDES: Final[Mapping[str, Any]] = {"mine": "mine", "theirs": "theirs"}


def _lines(items: Sequence[ChangeItem], change: ChangeSet) -> list[ItemLine]:
    # Once it is published, its own writes have moved every base.
    is_open = "edit" in change.steps_allowed
    moved = changes.moved(items) if is_open else {}
    return [
        ItemLine(
            item=item,
            plural=BY_NAME[item.kind].plural,
            words=diff_in_words.changes(item.base, item.content),
            differences=differences_of(_text(item.base), _text(item.content)),
            moved=moved.get(item.pk),
        )
        for item in items
    ]


def _text(manifest: Mapping[str, Any] | None) -> str:
    return render(manifest) if manifest is not None else ""


def _progress(state: ChangeState) -> Iterator[tuple[str, str]]:
    """The states from the draft to the end, each with whether it is past, now, or to come."""
    if state is ChangeState.ABANDONED:
        path: tuple[ChangeState, ...] = (ChangeState.DRAFT, state)
    elif state in _STRAIGHT:
        path = _STRAIGHT
    elif state is ChangeState.REVERTED:
        path = (*_STRAIGHT, state)
    else:
        path = (*_STRAIGHT[:-1], state, ChangeState.DONE)
    at = path.index(state)
    for index, each in enumerate(path):
        yield each.words.capitalize(), "past" if index < at else "now" if index == at else "later"
