"""Hints are let pass whatever happens, leave no audit row, and announce; so do policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.db.models.functions import Now

from admission.models import AuditEvent
from policies.models import Cluster, ClusterFollower, OncomingWrite
from policies.snapshot import announcements
from tests.admission.api.test_endpoint_metrics import count
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _followed(cluster: Cluster) -> None:
    ClusterFollower.objects.create(cluster=cluster, heartbeat=Now())


def about(kind: str, plural: str, obj: Any = None, **fields: Any) -> dict[str, Any]:
    return review(
        obj,
        kind={"group": "", "version": "v1", "kind": kind},
        resource={"group": "", "version": "v1", "resource": plural},
        **fields,
    )


def deleted(**fields: Any) -> dict[str, Any]:
    asked = about("LimitRange", "limitranges", operation="DELETE", name="limits")
    asked["request"] |= {"object": None, "oldObject": SEED_LIMITS, **fields}
    return asked


def test_hint_is_let_pass_and_announced(ask: Callable[..., Any]) -> None:
    asked = deleted()
    answer = ask(asked, phase="hint")
    assert answer.status_code == 200
    assert answer.json() == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": asked["request"]["uid"], "allowed": True},
    }
    assert OncomingWrite.objects.get().operation == "DELETE"
    assert not AuditEvent.objects.exists()


def test_namespace_is_announced_by_its_name(ask: Callable[..., Any]) -> None:
    made = {"metadata": {"name": "new", "uid": "n1"}}
    ask(about("Namespace", "namespaces", made, namespace="new", name="new"), phase="hint")
    write = OncomingWrite.objects.get()
    assert (write.kind, write.namespace, write.object_uid) == ("Namespace", "new", "n1")


@pytest.mark.parametrize("fields", [{"dryRun": True}, {"resource": "no object"}, {"object": 7}])
def test_what_announces_nothing_is_let_pass(
    ask: Callable[..., Any], fields: dict[str, Any]
) -> None:
    answer = ask(deleted(**fields), phase="hint")
    assert answer.json()["response"]["allowed"] is True
    assert not OncomingWrite.objects.exists()


def test_other_kinds_are_let_pass(ask: Callable[..., Any]) -> None:
    assert ask(review(new_pod()), phase="hint").json()["response"]["allowed"] is True
    assert not OncomingWrite.objects.exists()


def test_database_that_is_away_blocks_no_write(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: Any, **_more: Any) -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(announcements, "ask_to_announce", fail)
    before = count("gatehouse_admission_hints_total", outcome="failed")
    assert ask(deleted(), phase="hint").json()["response"]["allowed"] is True
    assert count("gatehouse_admission_hints_total", outcome="failed") == before + 1


def test_strangers_announce_nothing(ask: Callable[..., Any]) -> None:
    assert ask(deleted(), phase="hint", Authorization="Bearer guess").status_code == 401
    assert ask(b"{}", phase="hint").status_code == 400
    assert not OncomingWrite.objects.exists()


def test_policy_that_is_let_pass_is_announced_and_on_record(ask: Callable[..., Any]) -> None:
    asked = about("LimitRange", "limitranges", SEED_LIMITS, name="limits")
    assert ask(asked).json()["response"]["allowed"] is True
    assert OncomingWrite.objects.get().operation == "CREATE"
    assert AuditEvent.objects.count() == 1


BROKEN = {
    **SEED_LIMITS,
    "spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]},
}


@pytest.mark.parametrize(
    ("obj", "fields", "phase"),
    [
        (BROKEN, {}, "validate"),
        (SEED_LIMITS, {"dryRun": True}, "validate"),
        (SEED_LIMITS, {}, "mutate"),
    ],
    ids=["refused", "dry run", "before validation"],
)
def test_policy_that_is_not_written_is_not_announced(
    ask: Callable[..., Any], obj: dict[str, Any], fields: dict[str, Any], phase: str
) -> None:
    ask(about("LimitRange", "limitranges", obj, name="limits", **fields), phase=phase)
    assert AuditEvent.objects.count() == 1
    assert not OncomingWrite.objects.exists()


def test_policy_over_a_quota_is_not_announced(
    ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(quota("few", hard={"count/limitranges": "0"}))
    asked = about("LimitRange", "limitranges", SEED_LIMITS, name="limits")
    assert ask(asked).json()["response"]["allowed"] is False
    assert not OncomingWrite.objects.exists()
