"""NeedsAttention of a namespace: stuck owners, full quotas, red tests, audit with hits, drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.urls import reverse

from admission.record.attempts import newest_attempts, waiting_of
from policies import simulation
from policies.plurals import counted

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping

    from engine.policy import PolicySet
    from policies.models import Cluster
    from portal.pages.namespaces.figures import QuotaLevels
    from portal.pages.namespaces.policies import Group

MOST: Final = 6
TESTS_NAMED: Final = 3
STUCK_SHOWN: Final = 3
"""Owners, those that have waited longest first; the board of quotas has all."""


@dataclass(frozen=True, slots=True)
class Way:
    """What can be done about it."""

    label: str
    address: str


@dataclass(frozen=True, slots=True)
class NeedsAttention:
    """One line: what is wrong, some words about it, since when, and what can be done."""

    look: str
    title: str
    words: str
    ways: tuple[Way, ...]
    since: dt.datetime | None = None


def stuck(cluster: Cluster, namespace: str) -> Iterator[NeedsAttention]:
    """Owners that were refused and not admitted since."""
    for each in waiting_of(newest_attempts(cluster.name, namespace))[:STUCK_SHOWN]:
        ways = [Way("Why", reverse("decision-detail", args=[each.last.id]))]
        quota = _quota_of(each.last.violations)
        if quota:
            address = reverse("quota", args=[cluster.name, namespace, quota])
            ways.append(Way("Raise limit", address))
        # What is forbidden is said by the title.
        words = each.last.message.split(" is forbidden: ", 1)[-1]
        yield NeedsAttention("denied", f"{each.name} is stuck", words, tuple(ways), each.since)


def _quota_of(violations: Iterable[Mapping[str, object]]) -> str:
    for violation in violations:
        policy = violation.get("policy")
        if isinstance(policy, dict) and policy.get("kind") == "ResourceQuota":
            return str(policy.get("name", ""))
    return ""


def full(
    cluster: Cluster, namespace: str, quotas: Iterable[QuotaLevels]
) -> Iterator[NeedsAttention]:
    """Quotas that are nearly or wholly used up."""
    for quota in quotas:
        if not quota.look:
            continue
        level = quota.levels[0]
        words = f"{level.resource}: {level.used} of {level.hard} used"
        address = reverse("quota", args=[cluster.name, namespace, quota.name])
        state = "is full" if quota.look == "full" else f"is at {level.percent} %"
        look = "denied" if quota.look == "full" else "warned"
        title = f"Quota {quota.name} {state}"
        yield NeedsAttention(look, title, words, (Way("Raise limit", address),))


def observed(cluster: Cluster, namespace: str, groups: Iterable[Group]) -> Iterator[NeedsAttention]:
    """Policies that only warn or record, and would have refused something within 24 hours."""
    for row in (row for group in groups for row in group.rows):
        if row.enforcement == "enforce" or not row.hits.would_deny:
            continue
        found = counted(row.hits.would_deny, "decisions")
        query = {
            "cluster": cluster.name,
            "namespace": namespace,
            "policy": f"{row.kind}/{namespace}/{row.name}",
            "last": "24h",
        }
        ways = [Way("Hits", f"{reverse('decision-list')}?{urlencode(query)}")]
        if row.address:
            ways.append(Way("Promote to enforce…", row.address))
        mode = "in audit mode" if row.enforcement == "audit" else "in warn mode"
        words = f"would have denied {found} in 24 h"
        yield NeedsAttention("would-deny", f"{row.name} is {mode}", words, tuple(ways))


def drifted(cluster: Cluster, namespace: str, number: int) -> Iterator[NeedsAttention]:
    """Objects that differ between portal and cluster."""
    if number:
        address = f"{reverse('cluster-objects', args=[cluster.name])}?{urlencode({'q': namespace})}"
        title = f"{counted(number, 'objects')} to settle"
        words = "the portal and the cluster differ"
        yield NeedsAttention("drifted", title, words, (Way("Settle", address),))


def red_tests(cluster: Cluster, namespace: str, policies: PolicySet) -> Iterator[NeedsAttention]:
    """Kept tests that are not answered as expected by the policies in force; one line for all."""
    tests = simulation.tests_of(cluster.name, namespace)
    red = [each.test.name for each in simulation.judged(tests, policies) if not each.passes]
    if not red:
        return
    named = red[:TESTS_NAMED]
    more = len(red) - len(named)
    words = ", ".join(named) + (f" and {more} more" if more else "")
    only = next((each.pk for each in tests if [each.name] == red), None)
    query = urlencode({"cluster": cluster.name, "q": namespace})
    address = reverse("kept-test", args=[only]) if only else f"{reverse('kept-tests')}?{query}"
    title = f"{counted(len(red), 'kept tests')} {'is' if len(red) == 1 else 'are'} red"
    yield NeedsAttention("warned", title, words, (Way("Tests" if not only else "Test", address),))
