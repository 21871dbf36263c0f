"""``require_no_change``: a save without a change is refused where rules ask for approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies.change_sets.approvals.facts import ChangeFacts, ObjectFact
from policies.change_sets.approvals.needs import needs
from policies.lints import LintCode
from policies.models import PolicyRevision
from policies.models.changes.approval_rule import KINDS
from policies.services.changes.approvals.evaluate import (
    ask_for_tests,
    comes_to_enforce,
    rules_in_force,
)
from policies.services.changes.approvals.own_checks import tests_check
from policies.services.changes.approvals.refusals import ApprovalRequiredError
from policies.services.field_managers import FROM_CLUSTER
from policies.services.write import guards, lint_all

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from policies.change_sets.approvals.terms import RuleTerms
    from policies.models import Cluster
    from policies.services.write import Key

    Sides = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
    """The manifests before and after a write; None where there is no object."""

_QUOTA: Final = "ResourceQuota"


def require_no_change(cluster: Cluster, number: int, written: Mapping[Key, str]) -> None:
    """Refuse a write that no change stands behind, if rules ask for approvals or checks of it.

    A number that only a worker finds out is not known of a save, so that a rule about one asks for
    a change wherever it looks. What a cluster reports is stored whatever rules say: it is in force
    there. Raises ApprovalRequiredError.
    """
    keys = {
        key
        for key, user in written.items()
        if key[0] in KINDS and not user.startswith(FROM_CLUSTER)
    }
    rules = rules_in_force() if keys else []
    if not rules:
        return
    found = needs(rules, _facts(cluster, _sides(cluster, number, keys), rules=rules))
    if found:
        raise ApprovalRequiredError(found)


guards.append(require_no_change)


def _sides(cluster: Cluster, number: int, keys: Collection[Key]) -> dict[Key, Sides]:
    """What a write has done to each object, by its revisions; it may have written one twice."""
    revisions = PolicyRevision.objects.filter(cluster=cluster.name, cluster_revision=number)
    found: dict[Key, Sides] = {}
    for each in revisions.order_by("pk"):
        key = each.kind, each.namespace, each.name
        if key in keys:
            before = found[key][0] if key in found else each.before
            found[key] = before, each.after
    return found


def _facts(
    cluster: Cluster, sides: Mapping[Key, Sides], *, rules: Sequence[RuleTerms]
) -> ChangeFacts:
    below = _below_used(cluster, sides) if any(rule.below_used for rule in rules) else set()
    objects = tuple(
        ObjectFact(
            kind=key[0],
            cluster=cluster.name,
            namespace=key[1],
            name=key[2],
            deletes=after is None,
            enforces=comes_to_enforce(before, after),
            below_used=key in below,
        )
        for key, (before, after) in sorted(sides.items())
    )
    if not ask_for_tests(rules):
        return ChangeFacts(objects=objects)
    tests = tests_check(cluster, {each.namespace for each in objects})
    return ChangeFacts(objects=objects, checks=(tests,))


def _below_used(cluster: Cluster, sides: Mapping[Key, Sides]) -> set[Key]:
    """The quotas whose hard values were changed, and are less than what is used."""
    changed = {
        key
        for key, (before, after) in sides.items()
        if key[0] == _QUOTA and after is not None and _hard(before) != _hard(after)
    }
    if not changed:
        return set()
    lints = lint_all(cluster, {namespace for _, namespace, _ in changed})
    below = {
        (_QUOTA, lint.policy.namespace, lint.policy.name)
        for of_namespace in lints.values()
        for lint in of_namespace
        if lint.code is LintCode.HARD_BELOW_USED
    }
    return changed & below


def _hard(manifest: Mapping[str, Any] | None) -> Any:
    return manifest["spec"].get("hard") if manifest else None
