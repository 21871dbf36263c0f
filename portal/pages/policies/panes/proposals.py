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

    from policies.drafts.bulk_edit import EditPlan
    from policies.models import ChangeSet
    from policies.services.changes import Proposed
    from portal.pages.policies.editor import EditorView
    from portal.pages.views import PortalPage

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
    title = f"Change {manifest['kind']} {metadata['name']}"
    return put_into(page, proposals, title=title, reason=page.reason)


def put_edit(page: PortalPage, plan: EditPlan, *, title: str, reason: str) -> ChangeSet:
    """Put what an edit of many policies would write into the change that its person chose.

    Raises one of ``REFUSALS``.
    """
    proposals = [
        proposal
        for part in plan.parts
        for proposal in (
            *(
                changes.Proposed(
                    cluster=part.cluster,
                    key=preview.key,
                    manifest=preview.after,
                    based_on=preview.stored.revision if preview.stored else 0,
                )
                for preview, _ in part.previews
            ),
            *(
                changes.propose_deletion(
                    part.cluster,
                    (stored.kind, stored.namespace_name, stored.name),
                    based_on=stored.revision,
                )
                for stored in part.deletions
            ),
        )
    ]
    return put_into(page, proposals, title=title, reason=reason)


def put_into(
    page: PortalPage, proposals: Sequence[Proposed], *, title: str, reason: str
) -> ChangeSet:
    """Put writes into the change that a form names, or into a new one of this title."""
    user, username = page.request.user, page.username
    with transaction.atomic():
        change = _chosen(page.request.POST.get("change", ""), user)
        change = change or changes.create_change(
            title=title[:LONGEST_TITLE], user=username, reason=reason
        )
        items = changes.put(change, proposals=proposals, user=username)
        if not items:
            raise ValidationError("there is no change to add", code="no_change")
        if not changes.may_write(user, items):
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
