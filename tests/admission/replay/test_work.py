"""A stored replay is carried out once, by one worker, with progress, and bounded in number."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from celery.exceptions import SoftTimeLimitExceeded

from admission import tasks
from admission.models import Replay
from admission.models.replay import MOST_ATTEMPTS, STALE_AFTER
from admission.replay import work
from admission.replay.policies import Proposal
from admission.replay.proposal import ProposalError, proposal_text, read_proposal, stored_proposal
from admission.replay.scope import ReplayScope
from engine.wire import loads
from policies import services
from policies.db.clock import read_clock
from policies.models import LedgerEntry, QuotaUsage, ResourceQuota
from tests.admission.replay.conftest import BEGIN, PROPOSED
from tests.builders import limit_range
from tests.reviews import quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
PROPOSAL = Proposal(manifests=(PROPOSED,))
State = Replay.State


def requested(proposal: Proposal = PROPOSAL, **fields: Any) -> Replay:
    whole = {"since": BEGIN - dt.timedelta(days=2), "until": BEGIN + dt.timedelta(days=2)}
    scope = ReplayScope(**{"cluster": "demo", **whole, **fields})
    return work.request(scope, proposal, user="ada")


def carried_out(replay: Replay) -> Replay:
    tasks.carry_out_replay(str(replay.uid))
    replay.refresh_from_db()
    return replay


def test_a_replay_finds_what_the_proposal_would_refuse(decided: Callable[..., list[str]]) -> None:
    recorded = decided("250m", "1", "1", "5")
    replay = carried_out(requested())
    assert replay.state == State.DONE
    assert (replay.done, replay.total) == (4, 4)
    verdicts = (replay.report or {})["verdicts"]
    assert verdicts["record"]["repeated"] == 4
    flips = verdicts["changes"]["to_denied"]
    assert flips["number"] == 2
    assert (flips["oldest"], flips["newest"]) == (recorded[1], recorded[2])
    assert verdicts["changes"]["to_allowed"]["number"] == 0


def test_by_itself_only_the_namespaces_of_the_proposal_are_replayed(
    decided: Callable[..., list[str]],
) -> None:
    decided("1", namespace="other")
    decided("1")
    replay = carried_out(requested())
    assert replay.namespaces == ["ns"]
    assert replay.total == 1


def test_limited_resources_have_all_namespaces_replayed(cluster: Cluster) -> None:
    limited = ({"resource": "pods", "matchContains": ["cpu"]},)
    assert requested(Proposal(limited_resources=limited)).namespaces == []


def test_a_finished_replay_is_not_carried_out_again(decided: Callable[..., list[str]]) -> None:
    decided("1")
    replay = carried_out(requested())
    finished = replay.finished
    assert work.due() == []
    assert carried_out(replay).finished == finished


def test_one_that_a_worker_has_is_left_to_it(cluster: Cluster) -> None:
    replay = requested()
    assert replay.claim(read_clock())
    assert work.due() == []
    assert carried_out(replay).state == State.RUNNING


def test_one_whose_worker_ended_is_begun_anew(decided: Callable[..., list[str]]) -> None:
    decided("1")
    replay = requested()
    replay.claim(read_clock() - 2 * STALE_AFTER)
    replay.note(done=1)
    assert work.due() == [replay.uid]
    replay = carried_out(replay)
    assert (replay.state, replay.attempt, replay.done) == (State.DONE, 2, 1)


def test_two_workers_cannot_claim_the_same(cluster: Cluster) -> None:
    replay = requested()
    same = Replay.objects.get(pk=replay.pk)
    assert replay.claim(read_clock())
    assert not same.claim(read_clock())


def test_a_worker_that_comes_back_writes_nothing(cluster: Cluster) -> None:
    late = requested()
    late.claim(read_clock() - 2 * STALE_AFTER)
    Replay.objects.get(pk=late.pk).claim(read_clock())
    assert not late.note(done=7)


def test_after_some_attempts_it_has_failed(cluster: Cluster) -> None:
    replay = requested()
    Replay.objects.filter(pk=replay.pk).update(attempt=MOST_ATTEMPTS)
    replay = carried_out(replay)
    assert replay.state == State.FAILED
    assert replay.problem


def test_a_cancelled_replay_stops(
    decided: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    decided("1", "1")
    replay = requested()
    pieces = ReplayScope.pieces

    def cancelled_midway(scope: ReplayScope) -> Any:
        for piece in pieces(scope):
            replay.cancel(read_clock())
            yield piece

    monkeypatch.setattr(ReplayScope, "pieces", cancelled_midway)
    replay = carried_out(replay)
    assert (replay.state, replay.report) == (State.CANCELLED, None)


def test_a_waiting_replay_is_cancelled(cluster: Cluster) -> None:
    replay = requested()
    assert replay.cancel(read_clock())
    assert not replay.cancel(read_clock())
    assert carried_out(replay).state == State.CANCELLED


def test_a_removed_cluster_fails_it(cluster: Cluster) -> None:
    replay = carried_out(requested(cluster="gone"))
    assert replay.state == State.FAILED
    assert "gone" in replay.problem


@pytest.mark.parametrize("error", [SoftTimeLimitExceeded(), RuntimeError("broken")])
def test_an_error_of_ours_fails_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(_scope: ReplayScope) -> Any:
        raise error

    monkeypatch.setattr(ReplayScope, "pieces", broken)
    replay = requested()
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError):
            tasks.carry_out_replay(str(replay.uid))
    else:
        tasks.carry_out_replay(str(replay.uid))
    replay.refresh_from_db()
    assert replay.state == State.FAILED
    assert "broken" not in replay.problem


def test_a_user_has_a_bounded_number_under_way(cluster: Cluster) -> None:
    for _ in range(work.MOST_OPEN):
        requested()
    with pytest.raises(work.TooManyOpenError):
        requested()


def test_beat_queues_those_that_are_due(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(
        tasks.carry_out_replay, "apply_async", lambda given, **_more: sent.append(given)
    )
    replay = requested()
    tasks.queue_due_replays()
    assert sent == [(str(replay.uid),)]


def test_old_ones_are_deleted_but_for_those_of_change_sets(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "MOST_KEPT", 2)
    monkeypatch.setattr(work, "MOST_OPEN", 100)
    replays = [requested() for _ in range(6)]
    over = Replay.objects.filter(pk__in=[each.pk for each in replays[:5]])
    over.update(state=State.DONE)
    old = read_clock() - 2 * work.KEPT_FOR
    Replay.objects.filter(pk__in=[replays[0].pk, replays[1].pk]).update(created=old)
    Replay.objects.filter(pk=replays[0].pk).update(change_set=7)
    tasks.forget_old_replays()
    kept = set(Replay.objects.values_list("pk", flat=True))
    assert kept == {replays[at].pk for at in (0, 3, 4, 5)}


def test_a_quota_is_replayed_over_time(cluster: Cluster) -> None:
    services.apply_manifest(cluster=cluster, manifest=quota(hard={"pods": "9"}), user="root")
    stored = ResourceQuota.objects.get(name="pods")
    until = read_clock() + dt.timedelta(hours=1)

    def entry(name: str, before: Any, after: Any, action: str) -> None:
        LedgerEntry.objects.create(
            cluster=cluster,
            quota_uid=stored.uid,
            namespace="ns",
            resource="pods",
            object_uid=name,
            object_name=name,
            action=action,
            before=before,
            after=after,
            cause=LedgerEntry.Cause.ADMISSION,
            reference=f"of-{name}",
        )

    one = {"pods": "1"}
    entry("a", {}, one, "charge")
    entry("b", {}, one, "charge")
    entry("a", one, {}, "release")
    QuotaUsage.objects.filter(quota=stored).update(used={"pods": "1"})
    proposal = Proposal(manifests=(quota(hard={"pods": "1"}), quota("new", hard={"pods": "1"})))
    replay = carried_out(requested(proposal, since=until - dt.timedelta(days=1), until=until))
    first, second = (replay.report or {})["quotas"]
    assert (first["quota"], first["state"]) == ("new", "new")
    assert (second["quota"], second["state"]) == ("pods", "replayed")
    (wait,) = second["report"]["longest_waits"]
    assert (wait["name"], wait["decision"], wait["ended"]) == ("pods b", "of-b", "admitted")
    assert second["report"]["peak"] == one
    assert second["report"]["hard_before"]["pods"] != second["report"]["hard"]["pods"]


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({"scopes": ["BestEffort"]}, "scopes-changed"),
        ({"hard": {"pods": "8"}}, "replayed"),
    ],
)
def test_the_journal_tells_of_the_same_scopes_alone(
    cluster: Cluster, changed: Any, state: str
) -> None:
    services.apply_manifest(cluster=cluster, manifest=quota(hard={"pods": "9"}), user="root")
    proposed = quota(**{"hard": {"pods": "9"}, **changed})
    replay = carried_out(requested(Proposal(manifests=(proposed,))))
    assert [each["state"] for each in (replay.report or {})["quotas"]] == [state]


def test_an_unchanged_quota_is_not_replayed(cluster: Cluster) -> None:
    services.apply_manifest(cluster=cluster, manifest=quota(hard={"pods": "9"}), user="root")
    replay = carried_out(requested(Proposal(manifests=(quota(hard={"pods": "9"}),))))
    assert (replay.report or {})["quotas"] == []


def test_a_proposal_keeps_the_digits_of_its_numbers() -> None:
    text = orjson.dumps({**PROPOSED, "spec": {"limits": []}}).decode()
    number = text.replace("[]", '[{"type": "Pod", "max": {"cpu": 0.10}}]')
    stored = stored_proposal(proposal_text(read_proposal([loads(number)])))
    assert str(stored.manifests[0]["spec"]["limits"][0]["max"]["cpu"]) == "0.10"


def test_documents_that_are_no_policies_are_left_out() -> None:
    documents = [PROPOSED, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]
    assert [each["kind"] for each in read_proposal(documents).manifests] == ["LimitRange"]


def test_a_document_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ProposalError) as refused:
        read_proposal([limit_range({"type": "Container", "max": {"cpu": "many"}})])
    assert list(refused.value.faults) == ["manifests[0].spec.limits[0].max[cpu]"]


def test_deleting_the_configuration_removes_all_limited_resources() -> None:
    gone = [("ResourceQuotaConfiguration", "", "limitedResources")]
    assert read_proposal([], deletions=gone).limited_resources == ()
