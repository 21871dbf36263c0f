"""The record: complete, redacted, never changed, enough to judge again."""

from __future__ import annotations

import json
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, connection, transaction

from admission.models import AppendOnlyError, AuditEvent, Verdict, decision_id
from admission.record import redaction, write
from engine import chain
from engine.decision import Decision, Outcome, Step
from engine.policy import PolicyRef
from engine.request import Phase
from engine.request_json import build_request
from engine.wire import RawNumber, loads
from policies import snapshot
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

pytestmark = pytest.mark.django_db
BIG = container(requests={"cpu": "100m", "memory": "250Mi"}, limits={"cpu": "2", "memory": "500Mi"})


@pytest.fixture
def event(ask: Callable[..., Any], apply: Callable[..., None]) -> AuditEvent:
    """A denial on record."""
    apply(SEED_LIMITS, quota())
    ask(review(new_pod("web", BIG)), **{"User-Agent": "kube-apiserver-admission"})
    return AuditEvent.objects.get()


def test_a_denial_is_recorded_in_full(event: AuditEvent) -> None:
    assert (event.verdict, event.code, event.reason) == (Verdict.DENIED, 403, "Forbidden")
    assert (event.cluster, event.namespace, event.kind, event.name) == ("demo", "ns", "Pod", "web")
    assert (event.operation, event.user, event.groups) == (
        "CREATE",
        "alice",
        ["system:authenticated"],
    )
    assert {v["reason"] for v in event.violations} == {
        "MaxConstraint",
        "MaxLimitRequestRatioConstraint",
    }
    assert {(p["kind"], p["name"], p["revision"]) for p in event.policies} == {
        ("LimitRange", "limits", 1),
        ("ResourceQuota", "pods", 1),
    }
    assert event.client == "127.0.0.1 kube-apiserver-admission"
    assert event.trace
    assert event.duration_us > 0
    assert event.message.startswith('pods "web" is forbidden: ')


def test_ids_sort_by_time() -> None:
    first = [write.new_decision_id() for _ in range(200)]
    assert {len(i) for i in first} == {16}
    assert len(set(first)) == 200
    assert decision_id.encode(1, 2**32 - 1) < decision_id.encode(2, 0)


def test_the_queryset_answers_questions(event: AuditEvent) -> None:
    asked = AuditEvent.objects
    assert asked.denied().for_cluster("demo").for_namespace("ns").get() == event
    assert not asked.allowed().exists()
    assert asked.for_reason("MaxConstraint").exists()
    assert not asked.for_reason("Max").exists()
    assert asked.for_policy("limits").exists()
    assert asked.for_policy("LimitRange/ns/limits").exists()
    assert not asked.for_policy("limit").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda event: event.save(),
        lambda event: event.delete(),
        lambda _: AuditEvent.objects.update(user="x"),
        lambda _: AuditEvent.objects.all().delete(),
        lambda event: AuditEvent.objects.bulk_update([event], ["user"]),
        lambda event: AuditEvent.objects.bulk_create([event]),
    ],
    ids=["save", "delete", "update", "delete-all", "bulk_update", "bulk_create"],
)
def test_django_does_not_change_the_record(event: AuditEvent, change: Callable[..., Any]) -> None:
    with pytest.raises(AppendOnlyError):
        change(event)


@pytest.fixture
def _triggers(db: None) -> None:
    """As migrations leave them, also behind a test that lifted them."""
    triggers = import_module("admission.migrations.0002_append_only")
    triggers.drop(connection)
    triggers.create(connection)


@pytest.mark.usefixtures("_triggers")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE admission_auditevent SET verdict = 'allowed'",
        "DELETE FROM admission_auditevent",
        "INSERT OR REPLACE INTO admission_auditevent SELECT * FROM admission_auditevent",
        "TRUNCATE admission_auditevent",
    ],
    ids=["update", "delete", "replace", "truncate"],
)
def test_the_database_does_not_change_the_record(event: AuditEvent, statement: str) -> None:
    known = "TRUNCATE" if connection.vendor == "sqlite" else "OR REPLACE"
    if known in statement:
        pytest.skip(f"{connection.vendor} has no such statement")
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_secrets_stay_out_of_the_record(ask: Callable[..., Any]) -> None:
    made = new_pod("p", container())
    made["spec"]["containers"][0]["env"] = [{"name": "A", "value": "hunter2"}]
    made["spec"]["containers"][0]["args"] = ["--password=hunter2"]
    made["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": "hunter2"}}]
    made["metadata"]["managedFields"] = [{"manager": "hunter2"}]
    made["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": '{"env":"hunter2"}',
        "long": "hunter2" * 200,
    }
    ask(review(made, options={"x": "hunter2"}))
    row = AuditEvent.objects.values().get()
    assert "hunter2" not in json.dumps(row, default=str)


def test_data_of_other_kinds_stays_out(ask: Callable[..., Any]) -> None:
    obj = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}
    kind = {"group": "", "version": "v1", "kind": "Secret"}
    ask(review(obj, kind=kind, resource={**kind, "resource": "secrets"}))
    assert AuditEvent.objects.get().request["object"] == {
        "kind": "Secret",
        "metadata": {"name": "s"},
    }


OBJECTS = {
    "denied": new_pod("p", BIG),
    "allowed": new_pod("p", container(requests={"cpu": "125m"}, limits={"cpu": "500m"})),
    "many": new_pod("p", BIG, container("d", limits={"memory": "2Gi"})),
    "priority": new_pod("p", container(), priorityClassName="high"),
    "numbers": new_pod("p", container(requests={"cpu": 1}, limits={"cpu": 1})),
    "long-annotation": {
        **new_pod(),
        "metadata": {"name": "p", "annotations": {"a": "x" * 300_000}, "uid": "u"},
    },
    "wrong-type": {"metadata": {"name": "p"}, "spec": {"containers": "none"}},
}


@pytest.mark.sampled
@pytest.mark.parametrize("phase", ["mutate", "validate"])
@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS)
def test_what_is_on_record_is_judged_the_same_again(
    ask: Callable[..., Any], apply: Callable[..., None], obj: dict[str, Any], phase: str
) -> None:
    apply(SEED_LIMITS, quota(hard={"requests.cpu": "1", "limits.memory": "1Gi"}))
    policies = snapshot.load("demo", "ns")
    ask(review(obj), phase=phase)
    event = AuditEvent.objects.get()
    again = chain.admit(
        build_request(redaction.restore(event.request)), policies, phase=Phase(phase), now=None
    )
    assert (again.allowed, again.code) == (event.allowed, event.code)
    assert [v.reason for v in again.violations] == [v["reason"] for v in event.violations]
    assert again.message == redaction.unescape(event.message)


@pytest.mark.parametrize(
    ("obj", "kept"),
    [
        ({"spec": "secret"}, {"spec": ""}),
        ({"spec": ["secret"]}, {"spec": []}),
        ({"spec": {"containers": {"a": "secret"}}}, {"spec": {"containers": {}}}),
        ({"spec": {"containers": ["secret"]}}, {"spec": {"containers": [""]}}),
        ({"spec": 5, "data": 1}, {"spec": 5}),
        ({"metadata": {"annotations": "secret"}}, {"metadata": {"annotations": ""}}),
        ({"metadata": {"annotations": {"a": ["s"]}}}, {"metadata": {"annotations": {"a": []}}}),
        (
            {"metadata": {"annotations": {"$n": "v"}}},
            {"metadata": {"annotations": {"␛0024n": "v"}}},
        ),
    ],
)
def test_what_has_the_wrong_type_keeps_its_type_only(obj: Any, kept: Any) -> None:
    assert redaction.redacted_object(obj, kind="Pod") == kept


JUDGED = '{"a":"␛\\u0000\\ud800","b":[1,1.50,1e3,-0,{"$c":null,"d":true}],"$number":"x","e":{}}'


def test_storing_loses_nothing() -> None:
    value = loads(JUDGED)
    stored = json.loads(json.dumps(redaction.storable(value)))
    assert "\x00" not in json.dumps(stored, ensure_ascii=False)
    assert "\\u0000" not in json.dumps(stored)
    assert redaction.restore(stored) == value
    assert isinstance(redaction.restore(stored)["b"][1], RawNumber)


def test_depth_and_length_are_bounded() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    assert len(json.dumps(redaction.storable(deep))) < 200
    assert redaction.storable("x" * 100_000) == {"$bytes": 100_000}
    assert redaction.restore({"$bytes": 3}) == "xxx"


def test_pages_of_the_record_meet_without_gap(ask: Callable[..., Any]) -> None:
    for _ in range(7):
        ask(review())
    ids = list(AuditEvent.objects.newest_first().values_list("id", flat=True))
    first = AuditEvent.objects.page(size=3)
    second = AuditEvent.objects.page(before=first.older, size=3)
    last = AuditEvent.objects.page(before=second.older, size=3)
    pages = (first, second, last)
    assert [event.id for page in pages for event in page.events] == ids
    assert (first.newer, last.older) == ("", "")
    back = AuditEvent.objects.page(after=last.newer, size=3)
    assert back.events == second.events
    assert AuditEvent.objects.page(after=back.newer, size=3).newer == ""
    assert AuditEvent.objects.page(after=ids[0], size=3).events == ()


def test_the_admin_reads_only(admin_client: Client, event: AuditEvent) -> None:
    address = "/admin/admission/auditevent/"
    assert admin_client.get(address).status_code == 200
    assert admin_client.get(f"{address}{event.pk}/change/").status_code == 200
    assert admin_client.get(f"{address}add/").status_code == 403
    assert admin_client.post(f"{address}{event.pk}/delete/", {"post": "yes"}).status_code == 403


def row_of(decision: Decision) -> dict[str, Any]:
    """The record's row of a decision about nothing."""
    circumstances = write.Circumstances(
        cluster="demo", phase=Phase.VALIDATE, client="", started=time.monotonic_ns()
    )
    return write.row(
        decision,
        decision_id=write.new_decision_id(),
        request_columns=write.columns_of(None),
        circumstances=circumstances,
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [("é", "é"), ("a\x00", "a␛0000"), ("\ud800", "␛d800"), ("␛", "␛241b")],
    ids=["plain", "nul", "surrogate", "escape-sign"],
)
def test_findings_are_kept_field_by_field_in_texts_that_can_be(text: str, kept: str) -> None:
    policy = PolicyRef(kind="LimitRange", namespace="ns", name=text, revision=2)
    step = Step(
        name="Check", outcome=Outcome.PASSED, policy=policy, detail=text, numbers={text: text}
    )
    wanted = {"kind": "LimitRange", "namespace": "ns", "name": kept, "revision": 2}
    row = row_of(Decision(allowed=True, trace=(step,)))
    (found,) = json.loads(row["trace"])
    assert list(found) == ["name", "outcome", "policy", "rule", "detail", "numbers"]
    assert (found["outcome"], found["rule"], found["policy"]) == ("passed", None, wanted)
    assert (found["detail"], found["numbers"]) == (kept, {kept: kept})
    assert json.loads(row["policies"]) == [wanted]
    assert row["policy_names"] == f" LimitRange/ns/{kept} "


def test_many_rows_are_written_each_once() -> None:
    decision = Decision(allowed=True)
    rows = [{**row_of(decision), "name": f"pod-{number}"} for number in range(45)]
    write.write(rows)
    kept = AuditEvent.objects.order_by("id").values_list("id", "name")
    assert sorted(kept) == sorted((row["id"], row["name"]) for row in rows)


def test_a_row_is_read_back_the_same_whoever_saved_it() -> None:
    step = Step(name="Check", outcome=Outcome.PASSED)
    written, saved = (row_of(Decision(allowed=True, trace=(step,))) for _ in range(2))
    write.write([written])
    AuditEvent(**saved).save()
    one, other = ((e.trace, e.groups, e.request) for e in AuditEvent.objects.all())
    assert one == other == ([json.loads(written["trace"])[0]], [], {})
