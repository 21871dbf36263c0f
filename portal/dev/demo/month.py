"""Month, the demo's simulation at random: pods planned, attempted, decided, running, ended.

One seed determines all random numbers: everybody gets the same month, which ends now.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final

from admission.record import backdate
from engine.request import Phase
from engine.resource_list import add, subtract
from policies import snapshot
from policies.ledger.usage import KEPT, STEP
from policies.models import Cluster
from portal.dev.demo.plot import BEGAN, ODD, ROLLOUTS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.decision import Charge, Decision
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList
    from portal.dev.demo.workloads import Workload

SEED: Final = 20
_ROLLOUT: Final = 0.42
"""The chance that a workload is rolled out on a working day; yesterday and today count as such."""
_TRIES: Final = 9
"""Attempts of a controller to create a denied pod, each after twice the pause."""
_EVERY: Final = timedelta(hours=2)
"""The interval between two points of the quotas' usage lines."""
_FIRST_WAIT: Final = timedelta(seconds=20)
_LONGEST_WAIT: Final = timedelta(minutes=5)
"""The longest pause between attempts of a rollout, which never gives up."""
_ON_WEEKENDS: Final = 0.15
_SATURDAY: Final = 5
_MEDIAN, _SPREAD = 2400, 0.45  # microseconds of an answer, and how they scatter (log-normal)


@dataclass(frozen=True, slots=True)
class DemoPod:
    """An admitted pod, and its charges."""

    workload: Workload
    request: AdmissionRequest
    charges: tuple[Charge, ...]


@dataclass(slots=True)
class Month:
    """The state of the simulation; ``rows`` are the recorded decisions, not yet in the database.

    ``used`` is the usage of quotas by cluster, namespace and name; ``points`` are its past values.
    """

    now: dt.datetime
    random: Random = field(default_factory=lambda: Random(SEED))  # noqa: S311 - a story, no secret
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    running: dict[str, list[DemoPod]] = field(default_factory=lambda: defaultdict(list))
    used: dict[tuple[str, str, str], ResourceList] = field(default_factory=dict)
    points: list[tuple[dt.datetime, dict[tuple[str, str, str], ResourceList]]] = field(
        default_factory=list
    )
    _due: list[tuple[dt.datetime, int, Callable[[dt.datetime], None]]] = field(default_factory=list)
    _event_number: Any = field(default_factory=count)
    _policies: dict[tuple[str, str], PolicySet] = field(default_factory=dict)
    _revisions: dict[str, int] = field(default_factory=dict)

    def plan(self) -> None:
        """Schedule the requests of all workloads, and the points of the usage lines."""
        for workload in WORKLOADS:
            for days_ago in range(BEGAN.days, -1, -1):
                self._plan_day(workload, days_ago)
        now_seconds = self.now.timestamp()
        newest = dt.datetime.fromtimestamp(now_seconds - now_seconds % STEP.total_seconds(), dt.UTC)
        for number in range(KEPT // _EVERY):
            self._schedule(
                newest - number * _EVERY, lambda when: self.points.append((when, dict(self.used)))
            )
        for rollout in ROLLOUTS:
            for pod_number in range(rollout.workload.replicas[-1]):
                start = self.now - rollout.back + timedelta(seconds=7 * pod_number)
                self._schedule(start, self._replace(rollout.workload))
        for pod_age, workload in ODD:
            self._schedule(self.now - pod_age, self._attempt(workload))

    def live_until(self, moment: dt.datetime) -> None:
        """Run everything that is due by then, under the policies as they are stored now."""
        self._policies.clear()
        self._revisions = dict(Cluster.objects.values_list("name", "policy_revision"))
        while self._due and self._due[0][0] <= moment:
            event_time, _, event = heapq.heappop(self._due)
            event(event_time)

    def _schedule(self, event_time: dt.datetime, event: Callable[[dt.datetime], None]) -> None:
        if self.now - BEGAN <= event_time <= self.now:
            # The number keeps events of one moment in order: functions cannot be compared.
            heapq.heappush(self._due, (event_time, next(self._event_number), event))

    def _plan_day(self, workload: Workload, days_ago: int) -> None:
        midnight = (self.now - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0)
        wanted_pods = self._replicas(workload, days_ago)
        for hour in workload.hours:
            rollout_start = midnight + timedelta(hours=hour, seconds=self.random.randint(1, 90))
            self._plan_pods(workload, rollout_start, wanted_pods, lifetime=timedelta(minutes=95))
        if workload.hours:
            return
        if days_ago == BEGAN.days:
            self._plan_pods(workload, self.now - BEGAN, wanted_pods)
        added_pods = wanted_pods - self._replicas(workload, days_ago + 1)
        is_working_day = midnight.weekday() < _SATURDAY or days_ago <= 1
        rollout_start = midnight + timedelta(minutes=self.random.randint(7 * 60, 17 * 60 + 30))
        if self.random.random() < (_ROLLOUT if is_working_day else _ON_WEEKENDS):
            self._plan_pods(workload, rollout_start, wanted_pods)
        elif added_pods > 0 and days_ago < BEGAN.days:
            self._plan_pods(workload, rollout_start, added_pods)

    def _replicas(self, workload: Workload, days_ago: int) -> int:
        first, last = workload.replicas
        return first + round((last - first) * (BEGAN.days - min(days_ago, BEGAN.days)) / BEGAN.days)

    def _plan_pods(
        self,
        workload: Workload,
        rollout_start: dt.datetime,
        pod_count: int,
        *,
        lifetime: timedelta | None = None,
    ) -> None:
        """Schedule pods, one after the other; each replaces the oldest if there are enough."""
        days_ago = (self.now - rollout_start).days
        for pod_number in range(pod_count):
            when = rollout_start + timedelta(seconds=pod_number * self.random.uniform(2, 14))
            self._schedule(when, self._attempt(workload, most=self._replicas(workload, days_ago)))
            if lifetime:
                self._schedule(when + lifetime, lambda _when: self._end_oldest(workload))

    def _attempt(
        self, workload: Workload, *, most: int = 0, tried: int = 0
    ) -> Callable[[dt.datetime], None]:
        """An event: a pod is requested; a controller tries again if it is denied."""

        def event(event_time: dt.datetime) -> None:
            if not workload.hours and len(self.running[workload.name]) >= most > 0:
                self._end_oldest(workload)
            is_admitted = self._request_pod(workload, event_time)
            if not is_admitted and not workload.user and tried < _TRIES:
                next_attempt = self._attempt(workload, most=most, tried=tried + 1)
                self._schedule(event_time + _FIRST_WAIT * 2**tried, next_attempt)

        return event

    def _replace(self, workload: Workload, *, tried: int = 0) -> Callable[[dt.datetime], None]:
        """An event: a pod of a new template is requested; once it runs, an old one ends."""

        def event(event_time: dt.datetime) -> None:
            if not self._request_pod(workload, event_time):
                pause = min(_FIRST_WAIT * 2**tried, _LONGEST_WAIT)
                self._schedule(event_time + pause, self._replace(workload, tried=tried + 1))
            elif len(self.running[workload.name]) > workload.replicas[-1]:
                self._end_oldest(workload)

        return event

    def _request_pod(self, workload: Workload, event_time: dt.datetime) -> bool:
        """Review a pod as an API server does: mutate first, then validate the result."""
        is_trial = bool(workload.user) and self.random.random() < 1 / 3
        pod = workload.pod(self.random)
        mutate_request = workload.request(pod, self.random, dry_run=is_trial)
        mutated = self._decide_request(mutate_request, workload, Phase.MUTATE, event_time)
        if not mutated.allowed:
            return False
        validate_request = workload.request(mutated.object or pod, self.random, dry_run=is_trial)
        validate_time = event_time + timedelta(milliseconds=self.random.randint(4, 30))
        validated = self._decide_request(validate_request, workload, Phase.VALIDATE, validate_time)
        if validated.allowed and not is_trial:
            demo_pod = DemoPod(workload, validate_request, validated.charges)
            self.running[workload.name].append(demo_pod)
            self._count_charges(demo_pod, add)
        return validated.allowed

    def _decide_request(
        self, request: AdmissionRequest, workload: Workload, phase: Phase, event_time: dt.datetime
    ) -> Decision:
        random = self.random
        past_call = backdate.PastCall(
            request=request,
            phase=phase,
            moment=event_time,
            microseconds=int(random.lognormvariate(0, _SPREAD) * _MEDIAN),
            client=f"10.0.{len(workload.cluster)}.{random.randint(2, 4)}",
            random=random.getrandbits(32),
            revision=self._revisions[workload.cluster],
        )
        policies = self._policies.get(workload.place)
        if policies is None:
            policies = self._policies[workload.place] = snapshot.load(*workload.place)
        used_by_quota = {
            quota.name: self.used.get((*workload.place, quota.name), {})
            for quota in policies.resource_quotas
        }
        decision, decision_row = backdate.decide(past_call, policies, used_by_quota)
        self.rows.append(decision_row)
        return decision

    def _end_oldest(self, workload: Workload) -> None:
        if self.running[workload.name]:
            self._count_charges(self.running[workload.name].pop(0), subtract)

    def _count_charges(self, demo_pod: DemoPod, add_or_subtract: Any) -> None:
        for charge in demo_pod.charges:
            quota_key = (*demo_pod.workload.place, charge.quota.name)
            self.used[quota_key] = add_or_subtract(self.used.get(quota_key, {}), charge.amounts)
