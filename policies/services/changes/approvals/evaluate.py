"""``standing_of`` a change: what rules ask for, what it has, and what is open; for its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model

from engine.errors import DecodeError
from engine.policy import Enforcement, decode_enforcement
from policies.change_sets.approvals.causes import checks_of
from policies.change_sets.approvals.checks import BY_WORKER, CheckKind
from policies.change_sets.approvals.facts import ChangeFacts, ObjectFact
from policies.change_sets.approvals.needs import GivenApproval, Need, needs, open_needs
from policies.change_sets.states import StepKind
from policies.lints import LintCode
from policies.models import ApprovalRule, ChangeApproval, ChangeCheck
from policies.services.changes.approvals.own_checks import (
    by_cluster,
    new_lints,
    own_checks,
    proposed_sets,
)
from policies.services.changes.approvals.permissions import grants_of, who_wrote
from policies.services.changes.approvals.refusals import ApprovalsMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.change_sets.approvals.checks import CheckResult
    from policies.change_sets.approvals.terms import RuleTerms
    from policies.models import ChangeItem, ChangeSet

_QUOTA: Final = "ResourceQuota"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStanding:
    """What the rules in force ask of a change, the approvals of its content, and what is open."""

    needs: tuple[Need, ...]
    approvals: tuple[GivenApproval, ...]
    open: tuple[Need, ...]


def rules_in_force() -> list[RuleTerms]:
    """The enabled rules, in their order."""
    return [rule.terms for rule in ApprovalRule.objects.filter(enabled=True)]


def standing_of(change: ChangeSet, *, afresh: bool = False) -> ChangeStanding:
    """What a change needs by the rules of now; ``afresh`` repeats the checks of no worker."""
    rules = rules_in_force()
    if not rules:
        return ChangeStanding(needs=(), approvals=approvals_of(change), open=())
    asked = needs(rules, facts_of(change, rules=rules, afresh=afresh))
    approvals = approvals_of(change)
    return ChangeStanding(needs=asked, approvals=approvals, open=open_needs(asked, approvals))


def require_approved(locked: ChangeSet) -> None:
    """Raise ApprovalsMissingError unless a locked change has all that the rules of now ask for."""
    found = standing_of(locked, afresh=True).open
    if found:
        raise ApprovalsMissingError(found)


def approvals_of(change: ChangeSet) -> tuple[GivenApproval, ...]:
    """The approvals of the content since it was last submitted, as far as they are worth something.

    One counts for the roles that its user had then and still has.
    """
    submitted = change.steps.filter(step=StepKind.SUBMIT).last()
    if submitted is None:
        return ()
    given = ChangeApproval.objects.filter(
        step__change=change, step__content_hash=change.content_hash, step__pk__gt=submitted.pk
    )
    rows = list(given.select_related("step").order_by("step"))
    if not rows:
        return ()
    writers = who_wrote(change)
    users = get_user_model().objects.filter(username__in={row.step.user for row in rows})
    present = {user.get_username(): user for user in users}
    return tuple(
        GivenApproval(user=row.step.user, grants=_still_held(present.get(row.step.user), row))
        for row in rows
        if row.step.user not in writers
    )


def _still_held(user: Any, row: ChangeApproval) -> Any:
    then = frozenset(((cluster, namespace), role) for cluster, namespace, role in row.grants)
    if user is None:
        return frozenset()
    return then & grants_of(user, {place for place, _ in then})


def facts_of(change: ChangeSet, *, rules: Sequence[RuleTerms], afresh: bool) -> ChangeFacts:
    """What the rules ask of a change; as little is read as they need."""
    items = list(change.items.all())
    below = _below_used(items) if any(rule.below_used for rule in rules) else set()
    checks = stored_checks(change)
    if afresh and ask_for_tests(rules):
        by_workers = [each for each in checks if each.kind in BY_WORKER]
        checks = [*own_checks(items), *by_workers]
    facts = [
        ObjectFact(
            kind=item.kind,
            cluster=item.cluster,
            namespace=item.namespace,
            name=item.name,
            deletes=item.content is None,
            enforces=comes_to_enforce(item.base, item.content),
            below_used=(item.cluster, item.key) in below,
        )
        for item in items
    ]
    return ChangeFacts(objects=tuple(facts), checks=tuple(checks))


def ask_for_tests(rules: Sequence[RuleTerms]) -> bool:
    """Whether any rule takes effect by kept tests, or must have them green."""
    return any(rule.checks_green or CheckKind.TESTS in checks_of(rule) for rule in rules)


def stored_checks(change: ChangeSet) -> list[CheckResult]:
    """The checks of the present content."""
    rows = ChangeCheck.objects.filter(change=change, content_hash=change.content_hash)
    return [row.result for row in rows]


def comes_to_enforce(before: Any, after: Any) -> bool:
    """Whether an object denies from now on that was not there, or only warned or audited."""
    return _enforces(after) and not _enforces(before)


def _enforces(manifest: Any) -> bool:
    if manifest is None:
        return False
    annotations = manifest["metadata"].get("annotations")
    return decode_enforcement(annotations) is Enforcement.ENFORCE


def _below_used(items: Sequence[ChangeItem]) -> set[tuple[str, tuple[str, str, str]]]:
    """The quotas of a change whose hard values would be less than what is used."""
    quotas = [item for item in items if item.kind == _QUOTA and item.content is not None]
    found = set()
    for cluster, of_cluster in by_cluster(quotas):
        try:
            lints = new_lints(cluster, proposed_sets(cluster, of_cluster))
        except DecodeError:
            # One that nobody can read might be anything.
            found |= {(item.cluster, item.key) for item in of_cluster}
            continue
        found |= {
            (cluster.name, (_QUOTA, lint.policy.namespace, lint.policy.name))
            for lint in lints
            if lint.code is LintCode.HARD_BELOW_USED
        }
    return found
