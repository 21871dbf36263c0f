"""A stored Replay: requested, carried out by one worker with progress, failed, forgotten."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.models import Replay
from admission.models.replay import MOST_ATTEMPTS
from admission.replay.journal import replay_quotas
from admission.replay.policies import ReplayPolicies, drafted
from admission.replay.proposal import proposal_text, stored_proposal
from admission.replay.run import replay as replay_pieces
from admission.replay.scope import ReplayScope
from engine.errors import DecodeError
from engine.policy import PolicySet
from policies import snapshot
from policies.db.clock import read_clock

if TYPE_CHECKING:
    from uuid import UUID

    from admission.replay.policies import Proposal
    from policies.snapshot import ClusterPolicies

MOST_OPEN: Final = 5
"""Replays of one user that are not over."""
MOST_KEPT: Final = 200
"""Replays that belong to no change set; of those that do, ``MOST_OF_CHANGES``."""
MOST_OF_CHANGES: Final = 1000
KEPT_FOR: Final = timedelta(days=90)
NOTED_EVERY: Final = 0.5  # seconds between two notes of progress


class TooManyOpenError(RuntimeError):
    """A user has as many replays under way as one may have."""


class _StoppedError(Exception):
    """It was cancelled, or another worker has it."""


def request(
    scope: ReplayScope,
    proposal: Proposal,
    *,
    user: str,
    change_set: int | None = None,
    is_further: bool = False,
) -> Replay:
    """Store a replay for a worker to carry out.

    Without namespaces in the scope those of the proposal are meant; all, where it changes what
    holds in all of them. Raises ``TooManyOpenError``, unless it is a further one of a wish.
    """
    namespaces = scope.namespaces
    if not namespaces and proposal.limited_resources is None:
        namespaces = tuple(proposal.namespaces)
    if not is_further and Replay.objects.open().filter(user=user).count() >= MOST_OPEN:
        raise TooManyOpenError
    return Replay.objects.create(
        cluster=scope.cluster,
        namespaces=list(namespaces),
        since=scope.since,
        until=scope.until,
        query=scope.query,
        decisions=list(scope.ids),
        proposal=proposal_text(proposal),
        change_set=change_set,
        user=user,
    )


def due() -> list[UUID]:
    """The replays that a worker may take: waiting ones, and those whose worker ended."""
    return list(Replay.objects.due(read_clock()).values_list("uid", flat=True))


def carry_out(uid: UUID) -> None:
    """Carry out a replay, unless it is over or another worker has it.

    A worker that ends midway leaves nothing behind: the next one begins anew.
    """
    found = Replay.objects.filter(uid=uid).first()
    if found is None or not found.claim(read_clock()):
        return
    if found.attempt > MOST_ATTEMPTS:
        _end(found, Replay.State.FAILED, problem=f"its worker ended {MOST_ATTEMPTS} times")
        return
    try:
        report = _replayed(found)
    except _StoppedError:
        return
    except (DecodeError, _UnknownClusterError) as error:
        _end(found, Replay.State.FAILED, problem=str(error))
        return
    _end(found, Replay.State.DONE, report=report, done=report["verdicts"]["decisions"])


def fail(uid: UUID, problem: str) -> None:
    """End a replay that an error of ours stopped."""
    found = Replay.objects.filter(uid=uid).first()
    if found is not None:
        _end(found, Replay.State.FAILED, problem=problem)


def forget_old() -> int:
    """Delete replays that are over and old, or more than are kept; returns how many."""
    over = Replay.objects.exclude(state__in=[Replay.State.QUEUED, Replay.State.RUNNING])
    old = over.filter(created__lt=read_clock() - KEPT_FOR, change_set=None)
    going = set(old.values_list("pk", flat=True))
    for is_free, most in ((True, MOST_KEPT), (False, MOST_OF_CHANGES)):
        kind = over.filter(change_set__isnull=is_free).order_by("-pk")
        going.update(kind.values_list("pk", flat=True)[most:])
    return Replay.objects.filter(pk__in=going).delete()[0]


def base_of(cluster: ClusterPolicies) -> ReplayPolicies:
    """The present policies of a cluster."""
    namespaces = cluster.namespaces.items()
    return ReplayPolicies(
        by_namespace={name: each.policy_set for name, each in namespaces if not each.problem},
        bare=PolicySet(
            cluster=cluster.name,
            limited_resources=cluster.limited_resources,
            authority=cluster.authority,
            version=cluster.version,
        ),
        unreadable=frozenset(name for name, each in namespaces if each.problem),
    )


class _UnknownClusterError(Exception):
    """The cluster was removed meanwhile."""


def _replayed(found: Replay) -> dict[str, Any]:
    """Judge, and note progress in between; the report as JSON."""
    cluster = snapshot.refresh().clusters.get(found.cluster)
    if cluster is None:
        raise _UnknownClusterError(f"there is no cluster {found.cluster}")
    scope, proposal = ReplayScope.of(found), stored_proposal(found.proposal)
    base = base_of(cluster)
    draft = drafted(base, proposal)
    _note(found, total=scope.count())
    noted = time.monotonic()
    for report in replay_pieces(scope.pieces(), base, draft):
        if time.monotonic() - noted > NOTED_EVERY:
            _note(found, done=report.decisions)
            noted = time.monotonic()
    _note(found, done=report.decisions)
    quotas = replay_quotas(cluster, (base, draft), proposal, scope)
    return {"verdicts": report.render(), **quotas}


def _note(found: Replay, **columns: Any) -> None:
    if not found.note(noted=read_clock(), **columns):
        raise _StoppedError


def _end(found: Replay, state: Replay.State, **columns: Any) -> None:
    now = read_clock()
    found.note(state=state, noted=now, finished=now, **columns)
