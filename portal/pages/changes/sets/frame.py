"""ChangePage, the frame of all tabs of a change: its head, who may do what, a step taken."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import OperationalError, transaction
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from admission.models import Replay
from policies import roles
from policies.change_sets.states import ChangeState, StepRefusedError
from policies.models import KeptTest
from policies.services import changes
from portal.pages.changes.sets.list import wrong_fields
from portal.pages.changes.sets.people import people_of
from portal.pages.changes.sets.replay_box import replayed
from portal.pages.views import PortalPage, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from policies.models import ChangeSet
    from policies.services.changes import ItemGroup, ItemProblem

CONFLICT: Final = 409
INVALID: Final = 422
_WRITTEN: Final = (
    ChangeState.ROLLING_OUT,
    ChangeState.STOPPED,
    ChangeState.DONE,
    ChangeState.REVERTED,
)
"""States in which a change has written something."""
_STRAIGHT: Final = (
    ChangeState.DRAFT,
    ChangeState.IN_REVIEW,
    ChangeState.APPROVED,
    ChangeState.DONE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTab:
    """A tab of a change, and how much is there; None where nothing is counted."""

    label: str
    address: str
    is_current: bool
    number: int | None = None


class ChangePage(PortalPage):
    """One tab of a change; its buttons take steps."""

    route: ClassVar[str]
    """The name of the tab's address, where its buttons lead back to."""
    done_words: ClassVar[Mapping[str, str]] = {}
    """What the page says after each of its buttons."""
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

    @cached_property
    def groups(self) -> list[ItemGroup]:
        """What the change writes, without the contents."""
        return changes.item_groups(self.change)

    @cached_property
    def visible_number(self) -> int:
        """How many of its objects the person sees."""
        user = self.request.user
        seen = (each for each in self.groups if roles.sees(user, each.cluster, each.namespace))
        return sum(each.number for each in seen)

    @cached_property
    def flips(self) -> int | None:
        """How many verdicts the change would turn; None unless all that it proposes is replayed."""
        if not Replay.objects.filter(change_set=self.change.pk, state=Replay.State.DONE).exists():
            return None
        items = changes.visible_items(self.change, self.request.user)
        found = replayed(self.change, items=items, user=self.request.user)
        return found.flips if found.is_current else None

    @cached_property
    def since_look(self) -> changes.SinceLook:
        """What is new to a reviewer since the last look, which is noted; nothing to others."""
        user, change = self.request.user, self.change
        if not changes.may_approve(user, change) or "approve" not in change.steps_allowed:
            return changes.SinceLook()
        # A database that takes no writes now is no reason to show no change.
        with suppress(OperationalError), transaction.atomic():
            return changes.look(change, user=user, items=list(change.items.all()))
        return changes.SinceLook()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The head of the change: its tabs, and which of its buttons the person may press."""
        user, change = self.request.user, self.change
        may_approve = "approve" in change.steps_allowed and changes.may_approve(user, change)
        return super().get_context_data(
            **kwargs,
            change=change,
            author=people_of([change.author])[change.author],
            allowed={step.value for step in change.steps_allowed},
            progress=list(_progress(change.stands, was_done=self._was_done())),
            tabs=list(self._tabs()),
            object_number=self.visible_number,
            hidden=sum(each.number for each in self.groups) - self.visible_number,
            may_steer=changes.may_steer(user, change, groups=self.groups),
            may_approve=may_approve,
            offers_approve=may_approve and not changes.has_approved(change, user=user),
            may_review=change.unreviewed and changes.may_review(user, change),
            may_publish=changes.may_write(user, self.groups),
            may_revert=changes.may_write(user, self.groups, is_revert=True),
        )

    def _was_done(self) -> bool:
        """Whether it was written whole; what a guard stopped may be reverted before that."""
        change, done = self.change, ChangeState.DONE.value
        is_taken_back = change.stands is ChangeState.REVERTED
        return not is_taken_back or change.steps.filter(state_after=done).exists()

    def _tabs(self) -> Iterator[ChangeTab]:
        tabs: list[tuple[str, str, int | None]] = [
            ("change", "Overview", None),
            ("change-diff", "Diff", self.visible_number),
            ("change-replay", "Replay", self.flips),
            ("change-tests", "Tests", tests_at(self.groups, self.request.user).count()),
        ]
        tabs.append(("change-rollout", "Roll-out", None))
        if self.change.stands in _WRITTEN:
            tabs.append(("change-effect", "Effect", None))
        tabs.append(("change-timeline", "Timeline", self.change.steps.count()))
        for route, label, number in tabs:
            address = reverse(route, args=[self.change.pk])
            yield ChangeTab(
                label=label, address=address, is_current=route == self.route, number=number
            )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Take the button's step, or say what is against it."""
        verb, _, rest = request.POST.get("do", "").partition(":")
        try:
            self.take(verb, rest)
        except changes.ItemsRefusedError as error:
            return self._refuse("Nothing was written.", status=CONFLICT, problems=error.problems)
        except (
            StepRefusedError,
            changes.ApprovalRefusedError,
            changes.ApprovalsMissingError,
            changes.OutdatedChangeError,
            changes.MergeConflictError,
        ) as error:
            words = str(error)
            return self._refuse(f"{words[:1].upper()}{words[1:]}.", status=CONFLICT)
        except ValidationError as error:
            return self._refuse(error.messages[0], status=INVALID, wrong=wrong_fields(error))
        messages.success(request, self.said(verb))
        return redirect(self.route, self.change.pk)

    def said(self, verb: str) -> str:
        """What the page says after a button."""
        return self.done_words[verb]

    def take(self, _verb: str, _rest: str) -> None:
        """Take the step of a button of this tab; Http404 for what is none."""
        raise Http404

    def require(self, verb: str) -> None:
        """Refuse those who may not take a step."""
        user = self.request.user
        if verb in {"publish", "revert"}:
            is_allowed = changes.may_write(user, self.groups, is_revert=verb == "revert")
        else:
            is_allowed = changes.may_steer(user, self.change, groups=self.groups)
        if not is_allowed:
            raise PermissionDenied

    def sent_note(self) -> str:
        """The comment of a form."""
        return self.request.POST.get("note", "").replace("\0", "").replace("\r\n", "\n").strip()

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


def tests_at(groups: Iterable[ItemGroup], user: Any) -> QuerySet[KeptTest]:
    """The tests of the namespaces that a change writes, as far as the user sees them."""
    clusters, namespaces = (
        {each.cluster for each in groups},
        {each.namespace for each in groups if each.namespace},
    )
    tests = KeptTest.objects.filter(
        namespace__cluster__name__in=clusters, namespace__name__in=namespaces
    )
    return roles.visible(
        tests, user, cluster="namespace__cluster__name", namespace="namespace__name"
    )


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """A state on the way of a change; ``place`` is ``past``, ``now`` or ``later``."""

    label: str
    place: str
    is_current: bool


def _progress(state: ChangeState, *, was_done: bool) -> Iterator[ProgressStep]:
    """The states from the draft to the end."""
    if state is ChangeState.ABANDONED:
        path: tuple[ChangeState, ...] = (ChangeState.DRAFT, state)
    elif state in _STRAIGHT:
        path = _STRAIGHT
    elif state is ChangeState.REVERTED:
        path = (*_STRAIGHT[:-1], ChangeState.DONE if was_done else ChangeState.STOPPED, state)
    else:
        path = (*_STRAIGHT[:-1], state, ChangeState.DONE)
    at = path.index(state)
    # Nothing follows the last one: it is reached.
    now = "past" if at == len(path) - 1 else "now"
    for index, each in enumerate(path):
        place = "past" if index < at else now if index == at else "later"
        yield ProgressStep(each.words.capitalize(), place, index == at)
