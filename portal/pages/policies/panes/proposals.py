"""Add to change: the drafts of changes that one may add to; what pages would write put into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from policies.change_sets.states import ChangeState, StepRefusedError
from policies.services import KINDS, changes
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.drafts.bulk_edit import EditPlan
    from policies.drafts.bulk_import import Plan
    from policies.models import ChangeSet, Cluster
    from policies.services.changes import Proposed
    from portal.pages.policies.editor import EditorView
    from portal.pages.views import PortalPage

MOST_OFFERED: Final = 20
LONGEST_TITLE: Final = 200
ADDED: Final = "Added. It applies once the change is published."
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


def put_deletion(page: EditorView) -> ChangeSet:
    """Put the deletion of an editor's policy into a change; raises one of ``REFUSALS``."""
    key = (page.place.kind.name, page.namespace_name, page.place.name)
    proposal = changes.propose_deletion(page.cluster, key, based_on=page.seen)
    title = f"Delete {page.place.kind.name} {page.place.name}"
    return put_into(page, [proposal], title=title, reason=page.reason)


def put_import(
    page: PortalPage, cluster: Cluster, plan: Plan, *, title: str, reason: str
) -> ChangeSet:
    """Put what an imported text would write into a change; raises one of ``REFUSALS``.

    A text with a new or changed object of a kind that no change holds is refused as a whole.
    """
    others = [each for each in plan.objects if each.kind not in KINDS and each.verb != "unchanged"]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        left = f"{others[0].kind} {others[0].name}{more}"
        message = f"a change holds only {', '.join(KINDS)}: save {left} first, or leave it out"
        raise ValidationError(message, code="unknown_kind")
    proposals = [
        changes.Proposed(
            cluster=cluster,
            key=preview.key,
            manifest=preview.after,
            based_on=preview.stored.revision if preview.stored else 0,
        )
        for preview, _ in plan.previews
        if preview.key[0] in KINDS
    ]
    return put_into(page, proposals, title=title, reason=reason)


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
