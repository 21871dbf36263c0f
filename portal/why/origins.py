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
    """The revisions of those policies that made a difference to the decision."""
    names = _deciding_names(event)
    return [_origin(each) for each in revisions if (each.kind, each.name) in names]


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
