"""Simulate a month of pods, minute by minute: requested, decided, started, ended.

Everything is drawn from one seed: the same month for everybody, ending now.
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
"""How often a workload is rolled out on a working day, as yesterday and today always are."""
_TRIES: Final = 9
"""A controller asks so often for a pod that is refused, twice as late each time."""
_LOOK: Final = timedelta(hours=2)
"""So often it is noted how full quotas are."""
_FIRST_WAIT: Final = timedelta(seconds=20)
_ON_WEEKENDS: Final = 0.15
_SATURDAY: Final = 5
_MEDIAN, _SPREAD = 2400, 0.45  # microseconds of an answer, and how they scatter (log-normal)


@dataclass(frozen=True, slots=True)
class DemoPod:
    """A pod that was let in, and what it is charged by quota."""

    workload: Workload
    request: AdmissionRequest
    charges: tuple[Charge, ...]


@dataclass(slots=True)
class Month:
    """The state of all workloads; ``rows`` are what was recorded and not written yet.

    ``used`` is what quotas count by cluster, namespace and name, ``points`` what they did before.
    """

    now: dt.datetime
    made: Random = field(default_factory=lambda: Random(SEED))  # noqa: S311 - a story, no secret
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
        """Put everything that workloads want into the calendar."""
        for workload in WORKLOADS:
            for day in range(BEGAN.days, -1, -1):
                self._plan_day(workload, day)
        seconds = self.now.timestamp()
        last = dt.datetime.fromtimestamp(seconds - seconds % STEP.total_seconds(), dt.UTC)
        for number in range(KEPT // _LOOK):
            self._at(last - number * _LOOK, self._note)
        for back, workload in ODD:
            self._at(self.now - back, self._asking(workload))

    def live_until(self, moment: dt.datetime) -> None:
        """Let happen what is due by then, under the policies as they are stored now."""
        self._policies.clear()
        self._revisions = dict(Cluster.objects.values_list("name", "policy_revision"))
        while self._due and self._due[0][0] <= moment:
            when, _, happen = heapq.heappop(self._due)
            happen(when)

    def _note(self, when: dt.datetime) -> None:
        self.points.append((when, dict(self.used)))

    def _at(self, when: dt.datetime, happen: Callable[[dt.datetime], None]) -> None:
        if self.now - BEGAN <= when <= self.now:
            heapq.heappush(self._due, (when, next(self._number), happen))

    def _plan_day(self, workload: Workload, day: int) -> None:
        midnight = (self.now - timedelta(days=day)).replace(hour=0, minute=0, second=0)
        wanted = self._replicas(workload, day)
        for hour in workload.hours:
            start = midnight + timedelta(hours=hour, seconds=self.made.randint(1, 90))
            self._plan_pods(workload, start, wanted, lifetime=timedelta(minutes=95))
        if workload.hours:
            return
        if day == BEGAN.days:
            self._plan_pods(workload, self.now - BEGAN, wanted)
        grown = wanted - self._replicas(workload, day + 1)
        is_working = midnight.weekday() < _SATURDAY or day <= 1
        start = midnight + timedelta(minutes=self.made.randint(7 * 60, 17 * 60 + 30))
        if self.made.random() < (_ROLLOUT if is_working else _ON_WEEKENDS):
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
        """One pod after the other; each takes the place of the oldest when there are enough."""
        day = (self.now - start).days
        for each in range(number):
            when = start + timedelta(seconds=each * self.made.uniform(2, 14))
            self._at(when, self._asking(workload, most=self._replicas(workload, day)))
            if lifetime:
                self._at(when + lifetime, lambda _when: self._end(workload))

    def _asking(
        self, workload: Workload, *, most: int = 0, tried: int = 0
    ) -> Callable[[dt.datetime], None]:
        """What happens when a pod is asked for; refused, a controller asks again."""

        def happen(when: dt.datetime) -> None:
            if not workload.hours and len(self.running[workload.name]) >= most > 0:
                self._end(workload)
            is_in = self._ask(workload, when)
            if not is_in and not workload.user and tried < _TRIES:
                again = self._asking(workload, most=most, tried=tried + 1)
                self._at(when + _FIRST_WAIT * 2**tried, again)

        return happen

    def _ask(self, workload: Workload, when: dt.datetime) -> bool:
        """Ask as an API server does: first to mutate, then to validate what came of it."""
        is_trial = bool(workload.user) and self.made.random() < 1 / 3
        pod = workload.pod(self.made)
        first = workload.request(pod, self.made, dry_run=is_trial)
        changed = self._decide(first, workload, Phase.MUTATE, when)
        if not changed.allowed:
            return False
        second = workload.request(changed.object or pod, self.made, dry_run=is_trial)
        later = when + timedelta(milliseconds=self.made.randint(4, 30))
        answer = self._decide(second, workload, Phase.VALIDATE, later)
        if answer.allowed and not is_trial:
            self._start(DemoPod(workload, second, answer.charges))
        return answer.allowed

    def _decide(
        self, request: AdmissionRequest, workload: Workload, phase: Phase, when: dt.datetime
    ) -> Decision:
        made = self.made
        asked = backdate.PastCall(
            request=request,
            phase=phase,
            moment=when,
            microseconds=int(made.lognormvariate(0, _SPREAD) * _MEDIAN),
            client=f"10.0.{len(workload.cluster)}.{made.randint(2, 4)}",
            random=made.getrandbits(32),
            revision=self._revisions[workload.cluster],
        )
        policies = self._policies_of(workload)
        used = {
            quota.name: self.used.get((*workload.place, quota.name), {})
            for quota in policies.resource_quotas
        }
        decision, row = backdate.decide(asked, policies, used)
        self.rows.append(row)
        return decision

    def _policies_of(self, workload: Workload) -> PolicySet:
        found = self._policies.get(workload.place)
        if found is None:
            found = self._policies[workload.place] = snapshot.load(*workload.place)
        return found

    def _start(self, pod: DemoPod) -> None:
        self.running[pod.workload.name].append(pod)
        self._count(pod, add)

    def _end(self, workload: Workload) -> None:
        if self.running[workload.name]:
            self._count(self.running[workload.name].pop(0), subtract)

    def _count(self, pod: DemoPod, change: Any) -> None:
        for charge in pod.charges:
            key = (*pod.workload.place, charge.quota.name)
            self.used[key] = change(self.used.get(key, {}), charge.amounts)
