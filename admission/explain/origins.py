"""The policy revisions that led to a decision, and those that were written since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.explain.object_diff import in_words
from policies.models import PolicyRevision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from admission.models import AuditEvent

SINCE: Final = 10
_DECIDING: Final = frozenset({"violated", "changed", "charged", "error"})
_Manifest = Mapping[str, Any]
_Violations = Sequence[Mapping[str, Any]]
_BOUNDS: Final = {
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
    policies = [each["policy"] for each in deciders if each["policy"]]
    names = {(policy["kind"], policy["name"]) for policy in policies}
    found = [each for each in revisions if (each.kind, each.name) in names]
    return [_origin(_introducing(event, each)) for each in found]


def _introducing(event: AuditEvent, newest: PolicyRevision) -> PolicyRevision:
    violated = [
        each
        for each in (*event.violations, *event.observed)
        if each["policy"]
        and (each["policy"]["kind"], each["policy"]["name"]) == (newest.kind, newest.name)
    ]
    values = _VALUES.get(newest.kind)
    if not violated or values is None or newest.number == 1:
        return newest
    wanted = values(newest.after or {}, violated, newest.after or {})
    if not wanted:
        return newest  # it does not contain the violated bound or rule any more
    rows = PolicyRevision.objects.of(
        cluster=newest.cluster, kind=newest.kind, name=newest.name, namespace=newest.namespace
    ).filter(number__lt=newest.number)
    found = newest
    for older in rows.order_by("-number").iterator(chunk_size=100):
        if values(older.after or {}, violated, newest.after or {}) != wanted:
            break
        found = older
    return found


def _amounts(manifest: _Manifest, violated: _Violations, _newest: _Manifest) -> object:
    """The hard amounts of each exceeded resource."""
    hard = (manifest.get("spec") or {}).get("hard") or {}
    return {name: hard.get(name) for name in _resources(violated)}


def _bounds(manifest: _Manifest, violated: _Violations, _newest: _Manifest) -> object:
    """The violated bounds of a LimitRange, by type of item."""
    items = (manifest.get("spec") or {}).get("limits") or []
    kept = [each for each in violated if each.get("reason") in _BOUNDS]
    return [
        (item.get("type"), each["reason"], name, _bound(item, each["reason"], name))
        for each in kept
        for name in _resources([each])
        for item in items
    ]


def _bound(item: _Manifest, reason: str, resource: str) -> object:
    names = _BOUNDS[reason]
    return next((item[name].get(resource) for name in names if item.get(name)), None)


def _rules(manifest: _Manifest, violated: _Violations, newest: _Manifest) -> object:
    """Whether each rule that refused was there, at any position."""
    now = (newest.get("spec") or {}).get("rules") or []
    then = (manifest.get("spec") or {}).get("rules") or []
    places = {each["rule"] for each in violated if each.get("rule") is not None}
    return [now[place] in then for place in sorted(places) if place < len(now)]


def _resources(violated: _Violations) -> list[str]:
    numbers = (each.get("numbers") or {} for each in violated)
    return sorted({each["resource"] for each in numbers if "resource" in each})


_VALUES: Final = {"ResourceQuota": _amounts, "LimitRange": _bounds, "MetadataPolicy": _rules}
"""The part of a manifest that was violated, by kind: revisions with equal parts are one origin."""


def since(event: AuditEvent, *, whole: bool) -> list[Origin]:
    """Revisions after the decision that could change it, the newest first.

    Those of the whole cluster only with ``whole``: not every user may see them.
    """
    rows = PolicyRevision.objects.filter(
        cluster=event.cluster,
        cluster_revision__gt=event.policy_revision,
        namespace__in={event.namespace, ""} if whole else {event.namespace},
        created__gt=event.created,
    ).exclude(action__in=_CREDENTIALS)
    return [_origin(each) for each in rows.order_by("-id")[:SINCE]]


def _origin(revision: PolicyRevision) -> Origin:
    return Origin(revision=revision, words=in_words(revision.before, revision.after))
