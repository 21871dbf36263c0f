"""``POST /api/v1/apply/`` with a change: what a plan would write is put into it, not written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from rest_framework.exceptions import PermissionDenied

from policies.services import FieldWriter, changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import ChangeSet, Cluster
    from policies.object_sets.plan import SetPlan

MEMBERS: Final = ("change", "changeTitle")
"""The members of a body that ask for it: the number of a change, or the title of a new one."""


def is_asked_for(sent: Mapping[str, Any]) -> bool:
    """Whether a body names a change."""
    return any(name in sent for name in MEMBERS)


def put_plan(
    cluster: Cluster, planned: SetPlan, *, sent: Mapping[str, Any], user: Any
) -> ChangeSet:
    """Put what a plan would write into the change that a body names, or into a new one.

    The set stays the field manager of what it proposes, whoever publishes it.
    Raises ``ValidationError``, ``PermissionDenied`` and ItemsRefusedError.
    """
    change = _change_of(sent, user)
    writer = FieldWriter(planned.options.manager, planned.options.commit)
    proposals = [
        changes.Proposed(
            cluster=cluster,
            key=each.key,
            manifest=None if each.action == "delete" else each.after,
            based_on=each.revision,
            writer=writer,
        )
        for each in planned.objects
        if each.action in ("create", "change", "delete")
    ]
    changes.put(change, proposals=proposals, user=user.get_username())
    return change


def _change_of(sent: Mapping[str, Any], user: Any) -> ChangeSet:
    if "change" not in sent:
        if not changes.may_create(user):
            raise PermissionDenied
        title, reason = sent["changeTitle"], sent.get("reason", "")
        return changes.create_change(title=title, user=user.get_username(), reason=reason)
    change = changes.visible_changes(user).filter(pk=sent["change"]).first()
    if change is None:
        message = f"there is no change {sent['change']}"
        raise ValidationError({"change": ValidationError(message, code="unknown_change")})
    if not changes.may_steer(user, change):
        raise PermissionDenied
    return change
