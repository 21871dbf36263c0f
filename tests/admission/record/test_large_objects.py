"""Large objects on record: rows and answers of bounded size, marked where they are cut."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from admission.explain import redecide, running_pods
from admission.models import AuditEvent
from admission.models.row_bounds import CUT, LARGEST_ROW
from admission.record import export, write
from admission.record.search import stream
from portal import authority_switch as authority
from tests.builders import Manifest, container, limit_range
from tests.reviews import new_pod, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from django.test import Client

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


def ranges(number: int) -> list[Manifest]:
    item = {"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "50Mi"}}
    return [limit_range(item, name=f"range-{each:02}") for each in range(number)]


def many_containers(number: int) -> Manifest:
    return new_pod(
        "large",
        *[
            container(f"c{n}", requests={"memory": "1Mi"}, limits={"cpu": f"{2000 + n}m"})
            for n in range(number)
        ],
    )


def many_names(number: int) -> Manifest:
    amounts = {f"example.com/{'long-name-' * 5}{n}": "1" for n in range(number)}
    return new_pod("large", container(requests=amounts, limits=amounts))


def size_of_row() -> int:
    """The bytes of all columns of the only row, as the database has them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM admission_auditevent")
        (row,) = cursor.fetchall()
    return sum(len(str(value).encode()) for value in row)


def test_a_denial_of_very_many_violations_is_small_in_answer_and_record(
    ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(*ranges(32))
    response = ask(review(many_containers(2500)))
    answer = response.json()["response"]
    assert not answer["allowed"]
    assert len(response.content) < 20 * 1024
    event = AuditEvent.objects.get()
    assert len(event.violations) == 50
    assert event.more_violations == 2 * 2500 * 32 - 50
    assert event.reasons.split() == ["MinConstraint", "MaxConstraint"]
    assert len(event.policies) == 32
    assert size_of_row() <= LARGEST_ROW


@pytest.mark.parametrize("phase", ["mutate", "validate"])
@pytest.mark.parametrize("hard", [{}, {"requests.cpu": "1"}])
def test_no_row_is_larger_than_it_may_be(
    ask: Callable[..., Any], apply: Callable[..., None], phase: str, hard: dict[str, str]
) -> None:
    default = {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}}
    apply(limit_range(default, name="defaults"), quota(hard={"pods": "5", **hard}))
    obj = new_pod("large", *[container(f"c{n}") for n in range(3000)])
    obj["metadata"]["labels"] = {f"label-{n}": "x" * 60 for n in range(500)}
    ask(review(obj), phase=phase)
    assert size_of_row() <= LARGEST_ROW


@pytest.mark.parametrize("refused", [True, False])
def test_ten_thousand_names_of_resources_make_a_small_row(
    ask: Callable[..., Any], apply: Callable[..., None], *, refused: bool
) -> None:
    apply(quota(hard={"pods": "0" if refused else "1"}))
    assert ask(review(many_names(10_000))).json()["response"]["allowed"] is not refused
    assert size_of_row() <= LARGEST_ROW
    charges = AuditEvent.objects.get().charges
    assert [each["delta"] for each in charges] == ([] if refused else [{"pods": "1"}])


def test_an_object_that_is_cut_keeps_its_names_its_size_and_its_digest(
    ask: Callable[..., Any],
) -> None:
    ask(review(many_containers(2500)))
    event = AuditEvent.objects.get()
    found = event.request["object"]
    assert event.is_cut
    assert found["metadata"]["name"] == "large"
    assert found[CUT]["bytes"] > 64 * 1024
    assert len(found[CUT]["sha256"]) == 64
    assert "containers" not in found.get("spec", {})


def test_an_object_below_the_bound_is_kept_as_it_is(ask: Callable[..., Any]) -> None:
    ask(review(many_containers(400)))
    event = AuditEvent.objects.get()
    assert not event.is_cut
    assert len(event.request["object"]["spec"]["containers"]) == 400
    assert len(json.dumps(event.request)) > 30_000


def test_what_was_cut_is_not_judged_again(
    ask: Callable[..., Any], apply: Callable[..., None], admin_client: Client
) -> None:
    apply(*ranges(2))
    ask(review(many_containers(2500)))
    event = AuditEvent.objects.get()
    assert redecide.request_of(event) is None
    page = admin_client.get(f"/decisions/{event.pk}")
    assert page.context["is_cut"] is True
    assert page.context["today"] is None
    assert len(page.content) < 120 * 1024
    assert b"9,973 more, in the trace" in page.content


def test_a_running_pod_that_was_cut_is_not_known(
    ask: Callable[..., Any], apply: Callable[..., None], cluster: Cluster
) -> None:
    apply(quota(hard={"pods": "5"}))
    ask(review(many_containers(2500)))
    ask(review(new_pod("small")))
    found = running_pods.running_in(cluster, "ns")
    assert [each.pod.name for each in found.pods] == ["small"]
    assert found.unknown == ("large",)


def test_the_reasons_of_what_is_not_listed_count_for_another_authority(
    ask: Callable[..., Any], apply: Callable[..., None], cluster: Cluster
) -> None:
    apply(*ranges(1))
    obj = many_containers(2500)
    # Listed are 50 violations of other ranges' reasons; that of the last quota is not.
    apply(quota(hard={"pods": "0"}))
    ask(review(obj))
    (judged,) = authority.judged(cluster, 1, 10)
    assert {*judged.refused} == {"MinConstraint", "MaxConstraint", "ExceededQuota"}


@pytest.mark.long
@pytest.mark.parametrize("read", ["jsonl", "file", "switching"])
def test_many_large_rows_are_read_in_little_memory(
    ask: Callable[..., Any], cluster: Cluster, read: str, tmp_path: Path, settings: Any
) -> None:
    settings.GATEHOUSE_EXPORT_FOLDER = tmp_path
    ask(review(many_containers(800)))
    model = AuditEvent.objects.get()
    found = [{**violation(n), "message": "x" * 400} for n in range(50)]
    for _ in range(400):
        fields = {each.name: getattr(model, each.name) for each in AuditEvent._meta.concrete_fields}
        fields |= {"id": write.new_decision_id(), "violations": found}
        AuditEvent(**fields).save()
    tracemalloc.start()
    try:
        if read == "jsonl":
            assert sum(len(piece) > 0 for piece in stream.as_jsonl(AuditEvent.objects.all())) > 5
        elif read == "file":
            export.export_day(model.created.date())
        else:
            assert sum(1 for _ in authority.judged(cluster, 1, 5000)) == 401
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 1024 * 1024


def violation(number: int) -> dict[str, Any]:
    """One as the record has it."""
    ref = {"kind": "LimitRange", "namespace": "ns", "name": f"range-{number}", "revision": 1}
    return {"reason": "MaxConstraint", "field": "spec", "policy": ref, "rule": 0, "numbers": {}}
