"""Origins: PolicyRevisions that introduced a violated bound or rule, and those since a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from admission.explain.object_diff import in_words
from policies.models import KeptTest, PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from admission.models import AuditEvent

SINCE: Final = 10
_DECIDING: Final = frozenset({"violated", "changed", "charged", "error"})
_Manifest = Mapping[str, Any]
_Violations = Sequence[Mapping[str, Any]]
_BOUND_FIELDS: Final = {
    "MinConstraint": ("min",),
    "MaxConstraint": ("max",),
    "MaxLimitRequestRatioConstraint": ("maxLimitRequestRatio", "limitRequestRatio"),
}
"""The fields of a LimitRange item, by the reason that they cause."""
_CREDENTIALS: Final = (PolicyRevision.Action.ISSUE, PolicyRevision.Action.REVOKE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A revision of a policy, and its changes in words."""

    revision: PolicyRevision
    words: list[str]


def deciding(event: AuditEvent, revisions: Iterable[PolicyRevision]) -> list[Origin]:
    """The revisions of the policies that affected the decision.

    Of a policy that refused: the one that introduced the violated bound or rule.
    """
    deciders = [*event.violations, *event.observed]
    deciders += [step for step in event.trace if step.get("outcome") in _DECIDING]
    policies = [decider["policy"] for decider in deciders if decider["policy"]]
    names = {(policy["kind"], policy["name"]) for policy in policies}
    newest = [revision for revision in revisions if (revision.kind, revision.name) in names]
    return [_origin(_introducing(event, revision)) for revision in newest]


def _introducing(event: AuditEvent, newest: PolicyRevision) -> PolicyRevision:
    violated = [
        violation
        for violation in (*event.violations, *event.observed)
        if violation["policy"]
        and (violation["policy"]["kind"], violation["policy"]["name"]) == (newest.kind, newest.name)
    ]
    violated_part_of = _VIOLATED_PART.get(newest.kind)
    if not violated or violated_part_of is None or newest.number == 1:
        return newest
    violated_part = violated_part_of(newest.after or {}, violated, newest.after or {})
    if not violated_part:
        return newest  # it does not contain the violated bound or rule any more
    older_revisions = PolicyRevision.objects.of(
        cluster=newest.cluster, kind=newest.kind, name=newest.name, namespace=newest.namespace
    ).filter(number__lt=newest.number)
    introducing = newest
    for older in older_revisions.order_by("-number").iterator(chunk_size=100):
        if violated_part_of(older.after or {}, violated, newest.after or {}) != violated_part:
            break
        introducing = older
    return introducing


def _hard(manifest: _Manifest, violated: _Violations, _newest: _Manifest) -> object:
    """The hard amounts of each exceeded resource."""
    hard = (manifest.get("spec") or {}).get("hard") or {}
    return {resource: hard.get(resource) for resource in _resources(violated)}


def _bounds(manifest: _Manifest, violated: _Violations, _newest: _Manifest) -> object:
    """The violated bounds of a LimitRange, by type of item."""
    items = (manifest.get("spec") or {}).get("limits") or []
    broken_bounds = [each for each in violated if each.get("reason") in _BOUND_FIELDS]
    return [
        (item.get("type"), each["reason"], resource, _bound(item, each["reason"], resource))
        for each in broken_bounds
        for resource in _resources([each])
        for item in items
    ]


def _bound(item: _Manifest, reason: str, resource: str) -> object:
    bounds = _BOUND_FIELDS[reason]
    return next((item[bound].get(resource) for bound in bounds if item.get(bound)), None)


def _rules(manifest: _Manifest, violated: _Violations, newest: _Manifest) -> object:
    """Whether each rule that refused was there, at any position."""
    rules_now = (newest.get("spec") or {}).get("rules") or []
    rules_then = (manifest.get("spec") or {}).get("rules") or []
    positions = {each["rule"] for each in violated if each.get("rule") is not None}
    return [rules_now[rule] in rules_then for rule in sorted(positions) if rule < len(rules_now)]


def _resources(violated: _Violations) -> list[str]:
    all_numbers = (violation.get("numbers") or {} for violation in violated)
    return sorted({numbers["resource"] for numbers in all_numbers if "resource" in numbers})


_VIOLATED_PART: Final = {"ResourceQuota": _hard, "LimitRange": _bounds, "MetadataPolicy": _rules}
"""The part of a manifest that was violated, by kind: revisions with equal parts are one origin."""


def since(event: AuditEvent, *, whole: bool) -> list[Origin]:
    """Revisions after the decision that could change it, the newest first.

    Those of the whole cluster only with ``whole``: not every user may see them.
    """
    later_revisions = PolicyRevision.objects.filter(
        cluster=event.cluster,
        cluster_revision__gt=event.policy_revision,
        namespace__in={event.namespace, ""} if whole else {event.namespace},
        created__gt=event.created,
    ).exclude(Q(action__in=_CREDENTIALS) | Q(kind=KeptTest.kind))
    return [_origin(revision) for revision in later_revisions.order_by("-id")[:SINCE]]


def _origin(revision: PolicyRevision) -> Origin:
    return Origin(revision=revision, words=in_words(revision.before, revision.after))
