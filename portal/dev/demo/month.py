"""The simulation of the demo's month of pods: requested, decided, started, ended.

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
from portal.dev.demo.plot import BEGAN, ODD, WORKLOADS

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
_LOOK: Final = timedelta(hours=2)
"""The interval between two points of the quotas' usage lines."""
_FIRST_WAIT: Final = timedelta(seconds=20)
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
    _number: Any = field(default_factory=count)
    _policies: dict[tuple[str, str], PolicySet] = field(default_factory=dict)
    _revisions: dict[str, int] = field(default_factory=dict)

    def plan(self) -> None:
        """Schedule the requests of all workloads, and the points of the usage lines."""
        for workload in WORKLOADS:
            for day in range(BEGAN.days, -1, -1):
                self._plan_day(workload, day)
        seconds = self.now.timestamp()
        last = dt.datetime.fromtimestamp(seconds - seconds % STEP.total_seconds(), dt.UTC)
        for number in range(KEPT // _LOOK):
            self._at(
                last - number * _LOOK, lambda when: self.points.append((when, dict(self.used)))
            )
        for back, workload in ODD:
            self._at(self.now - back, self._attempt(workload))

    def live_until(self, moment: dt.datetime) -> None:
        """Run everything that is due by then, under the policies as they are stored now."""
        self._policies.clear()
        self._revisions = dict(Cluster.objects.values_list("name", "policy_revision"))
        while self._due and self._due[0][0] <= moment:
            when, _, event = heapq.heappop(self._due)
            event(when)

    def _at(self, when: dt.datetime, event: Callable[[dt.datetime], None]) -> None:
        if self.now - BEGAN <= when <= self.now:
            # The number keeps events of one moment in order: functions cannot be compared.
            heapq.heappush(self._due, (when, next(self._number), event))

    def _plan_day(self, workload: Workload, day: int) -> None:
        midnight = (self.now - timedelta(days=day)).replace(hour=0, minute=0, second=0)
        wanted = self._replicas(workload, day)
        for hour in workload.hours:
            start = midnight + timedelta(hours=hour, seconds=self.random.randint(1, 90))
            self._plan_pods(workload, start, wanted, lifetime=timedelta(minutes=95))
        if workload.hours:
            return
        if day == BEGAN.days:
            self._plan_pods(workload, self.now - BEGAN, wanted)
        grown = wanted - self._replicas(workload, day + 1)
        is_working = midnight.weekday() < _SATURDAY or day <= 1
        start = midnight + timedelta(minutes=self.random.randint(7 * 60, 17 * 60 + 30))
        if self.random.random() < (_ROLLOUT if is_working else _ON_WEEKENDS):
            self._plan_pods(workload, start, wanted)
        elif grown > 0 and day < BEGAN.days:
            self._plan_pods(workload, start, grown)

    def _replicas(self, workload: Workload, day: int) -> int:
        first, last = workload.replicas
        return first + round((last - first) * (BEGAN.days - min(day, BEGAN.days)) / BEGAN.days)

    def _plan_pods(
        self,
        workload: Workload,
        start: dt.datetime,
        number: int,
        *,
        lifetime: timedelta | None = None,
    ) -> None:
        """Schedule pods, one after the other; each replaces the oldest if there are enough."""
        day = (self.now - start).days
        for each in range(number):
            when = start + timedelta(seconds=each * self.random.uniform(2, 14))
            self._at(when, self._attempt(workload, most=self._replicas(workload, day)))
            if lifetime:
                self._at(when + lifetime, lambda _when: self._end(workload))

    def _attempt(
        self, workload: Workload, *, most: int = 0, tried: int = 0
    ) -> Callable[[dt.datetime], None]:
        """An event: a pod is requested; a controller tries again if it is denied."""

        def event(when: dt.datetime) -> None:
            if not workload.hours and len(self.running[workload.name]) >= most > 0:
                self._end(workload)
            is_admitted = self._request(workload, when)
            if not is_admitted and not workload.user and tried < _TRIES:
                again = self._attempt(workload, most=most, tried=tried + 1)
                self._at(when + _FIRST_WAIT * 2**tried, again)

        return event

    def _request(self, workload: Workload, when: dt.datetime) -> bool:
        """Review a pod as an API server does: mutate first, then validate the result."""
        is_trial = bool(workload.user) and self.random.random() < 1 / 3
        pod = workload.pod(self.random)
        first = workload.request(pod, self.random, dry_run=is_trial)
        changed = self._decide(first, workload, Phase.MUTATE, when)
        if not changed.allowed:
            return False
        second = workload.request(changed.object or pod, self.random, dry_run=is_trial)
        later = when + timedelta(milliseconds=self.random.randint(4, 30))
        answer = self._decide(second, workload, Phase.VALIDATE, later)
        if answer.allowed and not is_trial:
            admitted = DemoPod(workload, second, answer.charges)
            self.running[workload.name].append(admitted)
            self._count(admitted, add)
        return answer.allowed

    def _decide(
        self, request: AdmissionRequest, workload: Workload, phase: Phase, when: dt.datetime
    ) -> Decision:
        random = self.random
        past = backdate.PastCall(
            request=request,
            phase=phase,
            moment=when,
            microseconds=int(random.lognormvariate(0, _SPREAD) * _MEDIAN),
            client=f"10.0.{len(workload.cluster)}.{random.randint(2, 4)}",
            random=random.getrandbits(32),
            revision=self._revisions[workload.cluster],
        )
        policies = self._policies.get(workload.place)
        if policies is None:
            policies = self._policies[workload.place] = snapshot.load(*workload.place)
        used = {
            quota.name: self.used.get((*workload.place, quota.name), {})
            for quota in policies.resource_quotas
        }
        decision, row = backdate.decide(past, policies, used)
        self.rows.append(row)
        return decision

    def _end(self, workload: Workload) -> None:
        if self.running[workload.name]:
            self._count(self.running[workload.name].pop(0), subtract)

    def _count(self, pod: DemoPod, change: Any) -> None:
        for charge in pod.charges:
            key = (*pod.workload.place, charge.quota.name)
            self.used[key] = change(self.used.get(key, {}), charge.amounts)
