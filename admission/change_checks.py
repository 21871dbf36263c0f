"""``take_checks``: the checks of changes that need the record, one after the other.

A replay of seven days tells how many requests would newly be refused, and the running pods how
many could not restart. Whatever ends this midway leaves the check waiting for the next turn.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from admission.models import Replay
from admission.replay import work
from admission.replay.judge import ChangeKind
from admission.replay.of_change import proposals_of, replays_of
from admission.replay.scope import ReplayScope, days_back
from engine.errors import DecodeError
from policies.change_sets.approvals.checks import CheckKind, CheckResult, CheckState
from policies.db.clock import read_clock
from policies.services import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from admission.replay.of_change import ChangeReplay
    from policies.models import ChangeCheck, ChangeItem

DAYS: Final = 7


def take_checks(*, until: float) -> int:
    """Carry out what waits until ``time.monotonic()`` is ``until``; returns how many ended."""
    ended = 0
    for check in changes.waiting_checks():
        if time.monotonic() >= until:
            break
        found = _CHECKS[CheckKind(check.kind)](check)
        if found is not None:
            ended += changes.store_result(check, found)
    return ended


def _replayed(check: ChangeCheck) -> CheckResult | None:
    """The refusals that a replay finds; None while one is under way."""
    items = list(check.change.items.all())
    current = {
        each.replay.cluster: each
        for each in replays_of(check.change_id, items=items)
        if each.is_current and each.replay.created >= check.asked
    }
    missing = proposals_of(items).keys() - current.keys()
    if missing:
        _ask_for(check, items, missing)
        return None
    return _sum_of(list(current.values()))


def _ask_for(check: ChangeCheck, items: Sequence[ChangeItem], clusters: set[str]) -> None:
    now = read_clock()
    for name, proposal in proposals_of(items).items():
        if name in clusters:
            scope = ReplayScope(cluster=name, since=days_back(DAYS, until=now), until=now)
            # It was wished for when it was submitted: it does not count as one of the user's.
            work.request(
                scope, proposal, user=check.user, change_set=check.change_id, is_further=True
            )


def _sum_of(replays: Sequence[ChangeReplay]) -> CheckResult | None:
    states = {each.replay.state for each in replays}
    if Replay.State.FAILED in states:
        problem = next(each.replay.problem for each in replays if each.replay.problem)
        return CheckResult(kind=CheckKind.REPLAY, state=CheckState.FAILED, words=problem)
    if states != {Replay.State.DONE}:
        return None
    reports = [(each.replay.report or {})["verdicts"] for each in replays]
    flips = sum(report["changes"][ChangeKind.TO_DENIED]["number"] for report in reports)
    decisions = sum(report["decisions"] for report in reports)
    return CheckResult(
        kind=CheckKind.REPLAY,
        state=CheckState.WARNED if flips else CheckState.PASSED,
        number=flips,
        words=f"{flips:,} of {decisions:,} requests of {DAYS} days would be refused",
    )


def _restarted(check: ChangeCheck) -> CheckResult:
    """The running pods that the proposed policies alone would refuse."""
    newly = running = 0
    try:
        for cluster, both in changes.proposed_sets_of(check.change):
            for namespace, (before, after) in both.items():
                found = restarts_of(running_in(cluster, namespace), before=before, after=after)
                newly += found.newly
                running += len(found.running.pods)
    except DecodeError as error:
        return CheckResult(kind=CheckKind.RESTARTS, state=CheckState.FAILED, words=str(error))
    return CheckResult(
        kind=CheckKind.RESTARTS,
        state=CheckState.WARNED if newly else CheckState.PASSED,
        number=newly,
        words=f"{newly:,} of {running:,} running pods could not restart",
    )


_CHECKS: Final[Mapping[CheckKind, Callable[[ChangeCheck], CheckResult | None]]] = {
    CheckKind.REPLAY: _replayed,
    CheckKind.RESTARTS: _restarted,
}
