"""``manage.py sync``: requests, carries out, follows, and exits with a code for scripts."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from prometheus_client import generate_latest

from policies import services
from policies.models import ResourceQuota
from sync import metrics
from sync.errors import UnreachableError, UntrustedError
from sync.management.commands import sync
from sync.models import SyncRun
from tests import factories, people
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, serve

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)
Command = "Callable[..., str]"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    found = Memory("team")
    found.put(quota({"pods": "5"}))
    serve(monkeypatch, found)
    connected()
    return found


def call(*words: str) -> str:
    out = io.StringIO()
    call_command("sync", "prod", *words, stdout=out)
    return out.getvalue()


def test_now_does_it_here(memory: Memory) -> None:
    assert "ResourceQuota team/rq: import done" in call("--now")
    assert SyncRun.objects.get().state == "done"


def test_document_has_all_fields(memory: Memory) -> None:
    told = json.loads(call("--now", "--import", "-o", "json"))
    assert (told["mode"], told["state"], told["counts"]["import"]) == ("import", "done", 2)
    assert {one["name"] for one in told["results"]} == {"rq", "team"}


def test_preview_shows_fields(memory: Memory) -> None:
    call("--now")
    own(connected())
    edit({"pods": "7"})
    assert ".spec.hard.pods: ours 7, theirs 5" in call("--now", "--preview")
    assert memory.writes == []


@pytest.mark.parametrize(
    ("prepare", "code"),
    [
        (lambda memory: memory.faults.update({1: UnreachableError("reset")}), 1),
        (
            lambda memory: (
                edit({"pods": "1"}, name="x") or own(connected()) or memory.objects.clear()
            ),
            1,
        ),
    ],
    ids=["unreachable", "no namespaces"],
)
def test_failure_ends_with_its_code(
    prepare: Callable[[Memory], Any], code: int, memory: Memory
) -> None:
    prepare(memory)
    with pytest.raises(CommandError) as end:
        call("--now")
    assert end.value.returncode == code


def test_held_run_ends_with_three(memory: Memory) -> None:
    for number in range(12):
        memory.put(quota({"pods": "1"}, name=f"q{number}"))
    own(factories.cluster())
    call("--now")
    for policy in ResourceQuota.objects.all():
        services.delete_policy(policy=policy, user="me")
    with pytest.raises(CommandError) as end:
        call("--now")
    assert end.value.returncode == 3


def test_cluster_without_connection_is_wrong_usage() -> None:
    factories.cluster()
    with pytest.raises(CommandError) as end:
        call()
    assert end.value.returncode == 2


def ending(*words: str) -> tuple[int, str]:
    with pytest.raises(CommandError) as end:
        call(*words)
    return end.value.returncode, str(end.value)


def test_pausing_wants_a_reason_and_resuming_goes_on(memory: Memory) -> None:
    people.person("ada", "admin")
    assert ending("--pause")[0] == 2
    assert "by ada: an upgrade" in call("--pause", "--reason", "an upgrade", "--user", "ada")
    assert ending("--pause", "--reason", "again")[0] == 1
    code, words = ending("--now")
    assert (code, "by ada: an upgrade" in words, memory.calls) == (1, True, [])
    assert "resumed" in call("--resume")
    assert ending("--resume")[0] == 1
    assert "done" in call("--now")


def test_what_fails_says_what_to_do(memory: Memory) -> None:
    memory.faults[1] = UntrustedError("x509: unknown authority")
    code, words = ending("--now")
    assert (code, "connect the cluster again" in words) == (1, True)


def test_a_run_that_made_way_ends_the_following(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory.calls == []
    monkeypatch.setattr(sync.time, "sleep", lambda _: SyncRun.objects.all().delete())
    code, words = ending("--follow")
    assert (code, "made way" in words) == (1, True)


def test_gauges_show_lag_states_and_trouble(memory: Memory) -> None:
    call("--now")
    text = generate_latest(metrics.registry).decode()
    assert 'gatehouse_sync_objects{cluster="prod",state="unowned"} 1.0' in text
    assert 'gatehouse_sync_connected{cluster="prod"} 1.0' in text
    assert 'gatehouse_sync_paused{cluster="prod"} 0.0' in text
    assert 'gatehouse_sync_lag_seconds{cluster="prod"}' in text
