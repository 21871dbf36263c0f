"""Add to change: the drafts of changes that one may add to; a policy's draft put into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from policies.change_sets.states import ChangeState, StepRefusedError
from policies.services import changes
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.models import ChangeSet
    from portal.pages.policies.editor import EditorView

MOST_OFFERED: Final = 20
LONGEST_TITLE: Final = 200
REFUSALS: Final = (changes.ItemsRefusedError, StepRefusedError, ValidationError)


def open_changes(user: Any) -> Sequence[ChangeSet]:
    """The person's own drafts, the newest first."""
    drafts = changes.visible_changes(user).filter(
        author=user.get_username(), state=ChangeState.DRAFT.value
    )
    return list(drafts[:MOST_OFFERED])


def put_draft(page: EditorView, manifest: Mapping[str, Any]) -> ChangeSet:
    """Put an editor's draft into the change that its person chose, or into a new one.

    It is put in for all its namespaces. Raises one of ``REFUSALS``.
    """
    metadata = manifest["metadata"]
    seen = {**dict.fromkeys(page.places.all), page.namespace_name: page.seen}
    proposals = [
        changes.propose(
            page.cluster,
            {**manifest, "metadata": {**metadata, "namespace": namespace}},
            based_on=revision,
        )
        for namespace, revision in seen.items()
    ]
    with transaction.atomic():
        change = _chosen(page.request.POST.get("change", ""), page.user)
        change = change or changes.create_change(
            title=f"Change {manifest['kind']} {metadata['name']}"[:LONGEST_TITLE],
            user=page.username,
            reason=page.reason,
        )
        items = changes.put(change, proposals=proposals, user=page.username)
        if not items:
            raise ValidationError("there is no change to add", code="no_change")
        if not changes.may_write(page.user, items):
            raise PermissionDenied
    return change


def _chosen(chosen: str, user: Any) -> ChangeSet | None:
    """The change of this number; None where a new one is wanted."""
    if not chosen:
        return None
    change = changes.visible_changes(user).filter(pk=whole_number(chosen)).first()
    if change is None or not changes.may_steer(user, change):
        raise ValidationError("there is no such change any more", code="unknown_change")
    return change


def words_of(error: Exception) -> str:
    """A refusal as the page says it."""
    return error.messages[0] if isinstance(error, ValidationError) else str(error)
