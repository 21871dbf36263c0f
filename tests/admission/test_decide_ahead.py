"""A mutation may be answered before its row is written: the row holds just that answer."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from admission import writer
from admission.api import respond
from admission.decide import Call, RecordedDecision, decide_ahead
from admission.models import AuditEvent
from admission.writer.batch import commit
from engine import chain
from engine.request import Phase
from policies import services, snapshot
from policies.models import WebhookCredential
from tests.namespace_classes import saved_class
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]
REJECTS = {
    "apiVersion": "policy.gatehouse.dev/v1alpha1",
    "kind": "MetadataPolicy",
    "metadata": {"name": "rejects", "namespace": "ns"},
    "spec": {"rules": [{"policyPredicate": {}, "policyAction": {"reject": True}}], "strict": True},
}


def prepared(body: Any, *, phase: Phase = Phase.MUTATE, secret: str = "", since: int = 0) -> Any:
    """A review that came so many seconds ago, prepared for the writer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    started = time.monotonic_ns() - since * 10**9
    call = Call(cluster="demo", phase=phase, client="", started=started, secret=secret)
    return respond.prepare(lambda: data, call=call).item


def ahead_of(item: writer.PendingDecision) -> RecordedDecision:
    recorded = decide_ahead(item)
    assert recorded is not None
    return recorded


def test_mutation_that_is_allowed_is_answered_with_its_patch(apply: Callable[..., None]) -> None:
    apply(SEED_LIMITS, quota())
    item = prepared(review(new_pod()))
    recorded = ahead_of(item)
    assert (recorded.id, recorded.decision.allowed) == (item.id, True)
    assert recorded.decision.patch
    assert AuditEvent.objects.count() == 0


def test_validating_call_waits(apply: Callable[..., None]) -> None:
    assert decide_ahead(prepared(review(new_pod()), phase=Phase.VALIDATE)) is None
    apply(quota())
    assert decide_ahead(prepared(review(new_pod()), phase=Phase.VALIDATE)) is None


def test_name_that_no_api_server_makes_waits() -> None:
    item = prepared(review(new_pod(), name="p\x00"))
    assert decide_ahead(item) is None
    writer.submit(item)
    assert item.outcome.decision.allowed is False


def test_denial_waits(apply: Callable[..., None]) -> None:
    apply(REJECTS)
    item = prepared(review(new_pod()))
    assert decide_ahead(item) is None
    writer.submit(item)
    assert item.outcome.decision.allowed is False


def test_review_that_cannot_be_read_waits() -> None:
    item = prepared(b'{"kind": "AdmissionReview", "request": {"uid": "u", "object": 1}}')
    assert decide_ahead(item) is None
    writer.submit(item)
    assert item.outcome.decision.allowed is False


def test_create_waits_where_a_class_may_still_give_policies() -> None:
    saved_class(names=["ns*"])
    snapshot.refresh()
    assert decide_ahead(prepared(review(new_pod()))) is None
    assert decide_ahead(prepared(review(new_pod(namespace="other"), namespace="other")))


def test_row_keeps_answer_patch_and_revision_whatever_is_written_meanwhile(
    apply: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(SEED_LIMITS)
    item = prepared(review(new_pod()))
    before, recorded = snapshot.revision("demo"), ahead_of(item)
    apply(REJECTS)
    monkeypatch.setattr(chain, "prepare", lambda *_words, **_more: pytest.fail("decided anew"))
    writer.submit(item)
    assert item.outcome is recorded
    [row] = AuditEvent.objects.all()
    assert (row.id, row.verdict, row.phase) == (recorded.id, "mutated", "mutate")
    assert row.patch == [operation.to_json() for operation in recorded.decision.patch]
    assert row.policy_revision == before < snapshot.revision("demo")


def test_neighbour_that_is_prepared_again_changes_nothing(
    apply: Callable[..., None], secret: str
) -> None:
    apply(SEED_LIMITS)
    item, other = (prepared(review(new_pod()), secret=secret) for _ in range(2))
    before, recorded = snapshot.revision("demo"), ahead_of(item)
    for credential in WebhookCredential.objects.all():
        services.revoke_webhook_credential(credential=credential, user="root")
    apply(REJECTS)
    commit([other, item])
    assert item.outcome is recorded
    assert other.failure is not None
    [row] = AuditEvent.objects.all()
    assert (row.id, row.policy_revision) == (item.id, before)


def test_row_is_written_after_its_deadline() -> None:
    item, late = (prepared(review(new_pod()), since=3600) for _ in range(2))
    recorded = ahead_of(item)
    commit([item, late])
    assert item.outcome is recorded
    assert isinstance(late.failure, writer.OverBudgetError)
    assert list(AuditEvent.objects.values_list("id", flat=True)) == [item.id]
