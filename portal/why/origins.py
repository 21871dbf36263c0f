"""Which changes of policies made a decision what it is, and which came since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from policies.models import PolicyRevision
from portal.why.comparing import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from admission.models import AuditEvent

SINCE: Final = 10
_TELLING: Final = frozenset({"violated", "changed", "charged", "error"})
_CREDENTIALS: Final = (PolicyRevision.Action.ISSUE, PolicyRevision.Action.REVOKE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A revision of a policy, and what it changed in words."""

    revision: PolicyRevision
    words: list[str]


def deciding(event: AuditEvent, revisions: Iterable[PolicyRevision]) -> list[Origin]:
    """The revisions of those policies that made a difference to the decision.

    Of a quota that was exceeded: the one since which the exceeded amounts are what they are.
    """
    names = _deciding_names(event)
    found = [each for each in revisions if (each.kind, each.name) in names]
    return [_origin(_introducing(event, each)) for each in found]


def _introducing(event: AuditEvent, newest: PolicyRevision) -> PolicyRevision:
    exceeded = _exceeded(event, newest)
    if not exceeded:
        return newest
    rows = PolicyRevision.objects.of(
        cluster=newest.cluster, kind=newest.kind, name=newest.name, namespace=newest.namespace
    ).filter(number__lt=newest.number)
    found, hard = newest, _hard(newest)
    for older in rows.order_by("-number").iterator(chunk_size=100):
        before = _hard(older)
        if any(before.get(name) != hard.get(name) for name in exceeded):
            break
        found = older
    return found


def _exceeded(event: AuditEvent, quota: PolicyRevision) -> set[str]:
    """The resource names of a quota that the request exceeded; empty for other policies."""
    if quota.kind != "ResourceQuota":
        return set()
    numbers = [
        each.get("numbers") or {}
        for each in (*event.violations, *event.observed)
        if each["policy"]
        and (each["policy"]["kind"], each["policy"]["name"]) == (quota.kind, quota.name)
    ]
    return {each["resource"] for each in numbers if "resource" in each}


def _hard(revision: PolicyRevision) -> dict[str, str]:
    return ((revision.after or {}).get("spec") or {}).get("hard") or {}


def _deciding_names(event: AuditEvent) -> set[tuple[str, str]]:
    found = [*event.violations, *event.observed]
    found += [step for step in event.trace if step.get("outcome") in _TELLING]
    return {(each["policy"]["kind"], each["policy"]["name"]) for each in found if each["policy"]}


def since(event: AuditEvent, *, whole: bool) -> list[Origin]:
    """Changes after the decision of all that could decide there, the newest first.

    Those of the cluster as a whole only with ``whole``: not everybody may see them.
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
