"""Rules of approval written, moved and deleted, each on record; changes in review asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from policies.change_sets.states import ChangeState
from policies.models import ApprovalRule, ApprovalRuleChange, ChangeSet
from policies.models.changes.approval_rule import TERMS
from policies.services.changes.approvals.settle import settle
from policies.services.changes.approvals.worker_checks import ask_for_checks
from policies.services.write import StaleRevisionError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_RULES: Final = 100
FOUR_EYES: Final[Mapping[str, Any]] = {
    "name": "four eyes on enforce",
    "enforces": True,
    "below_used": True,
    "restarts_over": 10,
    "approvers": 1,
    "role": "approver",
    "for_each_namespace": True,
}
"""The preset: one approver of each namespace, where something begins to refuse."""
RED_TESTS_BLOCK: Final[Mapping[str, Any]] = {
    "name": "red tests block",
    "red_tests_over": 0,
    "approvers": 0,
    "checks_green": True,
}
"""Another: a change that would make a kept test red is published in an emergency alone."""
_Action = ApprovalRuleChange.Action


def save_rule(
    rule: ApprovalRule, *, user: str, terms: Mapping[str, Any], expected_revision: int | None = None
) -> ApprovalRule:
    """Create a rule or set terms of it; an unchanged one leaves no trace.

    Raises ``ValidationError`` and StaleRevisionError.
    """
    with transaction.atomic():
        stored = ApprovalRule.objects.select_for_update().filter(pk=rule.pk).first()
        revision = stored.revision if stored else 0
        if expected_revision not in (None, revision):
            raise StaleRevisionError(expected=expected_revision or 0, found=revision)
        fresh = stored or ApprovalRule(position=_last_position() + 1)
        before = fresh.to_json() if stored else None
        for name in TERMS:
            if name in terms:
                setattr(fresh, name, terms[name])
        fresh.full_clean()
        if stored is None and ApprovalRule.objects.count() >= MOST_RULES:
            message = f"there are {MOST_RULES} rules, the maximum: delete some first"
            raise ValidationError({"name": ValidationError(message, code="too_many_rules")})
        if fresh.to_json() != before:
            _store(fresh, before, user=user)
            _ask_changes_again(user=user)
    return fresh


def add_preset(*, user: str, terms: Mapping[str, Any] = FOUR_EYES) -> ApprovalRule:
    """Create the rule of a preset; raises ``ValidationError`` where it is there."""
    return save_rule(ApprovalRule(), user=user, terms=terms)


def move_rule(rule: ApprovalRule, *, user: str, places: int) -> None:
    """Move a rule so many places down, or up; at the ends it stays where it is."""
    with transaction.atomic():
        rules = list(ApprovalRule.objects.select_for_update())
        at = next((i for i, each in enumerate(rules) if each.pk == rule.pk), None)
        if at is None:
            return
        moved = rules.pop(at)
        before, to = moved.to_json(), max(0, min(len(rules), at + places))
        rules.insert(to, moved)
        for position, each in enumerate(rules):
            if each.position != position:
                each.position = position
                each.save(update_fields=["position", "updated"])
        if to != at:
            _record(_Action.MOVED, moved.name, before, moved.to_json(), user=user)


def delete_rule(rule: ApprovalRule, *, user: str) -> None:
    """Delete a rule; changes that waited for it alone are approved."""
    with transaction.atomic():
        stored = ApprovalRule.objects.select_for_update().filter(pk=rule.pk).first()
        if stored is None:
            return
        before = stored.to_json()
        stored.delete()
        _record(_Action.DELETED, stored.name, before, None, user=user)
        _ask_changes_again(user=user)


def _store(fresh: ApprovalRule, before: dict[str, Any] | None, *, user: str) -> None:
    fresh.revision += 1
    fresh.save()
    action = _Action.CHANGED if before else _Action.CREATED
    _record(action, fresh.name, before, fresh.to_json(), user=user)


def _record(action: _Action, name: str, before: Any, after: Any, *, user: str) -> None:
    ApprovalRuleChange.objects.create(
        action=action, rule=name, before=before, after=after, actor=user
    )


def _last_position() -> int:
    return ApprovalRule.objects.aggregate(last=Max("position"))["last"] or 0


def _ask_changes_again(*, user: str) -> None:
    """Ask of submitted changes what the rules of now ask for; in the order of their locks."""
    submitted = (ChangeState.IN_REVIEW, ChangeState.APPROVED)
    for locked in ChangeSet.objects.select_for_update().filter(state__in=submitted).order_by("pk"):
        ask_for_checks(locked, user=user)
        settle(locked, user=user)
