"""POST /admission/…: what an API server gets back for readable reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from admission.models import AuditEvent
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, patch_of, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

pytestmark = pytest.mark.django_db


def test_a_pod_is_allowed_when_no_policy_speaks(ask: Callable[..., Any]) -> None:
    asked = review()
    answer = ask(asked).json()
    assert answer["response"]["uid"] == asked["request"]["uid"]
    assert answer["response"]["allowed"] is True
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"


def test_defaults_are_patched_in_the_mutating_phase_only(
    ask: Callable[..., Any], apply: Callable[..., None]
) -> None:
    apply(SEED_LIMITS)
    mutated = ask(review(), phase="mutate").json()
    assert mutated["response"]["patchType"] == "JSONPatch"
    paths = [operation["path"] for operation in patch_of(mutated)]
    assert any(path.startswith("/spec/containers/0/resources") for path in paths)
    validated = ask(review()).json()
    assert not {"patch", "patchType"} & set(validated["response"])


def test_a_denial_names_its_decision_and_page(
    ask: Callable[..., Any], apply: Callable[..., None], settings: Any
) -> None:
    settings.GATEHOUSE_EXTERNAL_URL = "https://gate.example"
    apply(SEED_LIMITS)
    big = container(requests={"cpu": "500m"}, limits={"cpu": "2"})
    response = ask(review(new_pod("p", big)))
    status = response.json()["response"]["status"]
    event = AuditEvent.objects.get()
    assert response.status_code == 200
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert status["message"].endswith(
        f" (decision {event.id}, https://gate.example/decisions/{event.id})"
    )
    assert status["message"].startswith('pods "p" is forbidden: [')
    assert response.json()["response"]["auditAnnotations"]["decision-id"] == event.id


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "options", "head"])
def test_only_post_is_answered(client: Client, method: str) -> None:
    response = getattr(client, method)("/admission/demo/validate")
    assert response.status_code == 405
    assert response["Allow"] == "POST"


def test_answers_are_never_kept_by_a_cache(ask: Callable[..., Any]) -> None:
    assert ask(review())["Cache-Control"] == "no-store"
    assert ask(b"{}")["Cache-Control"] == "no-store"


def test_a_dry_run_charges_nothing_and_is_marked(
    ask: Callable[..., Any], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota())
    for _ in range(3):
        assert ask(review(new_pod(), dryRun=True)).json()["response"]["allowed"] is True
    assert used() == "0"
    assert AuditEvent.objects.filter(dry_run=True).count() == 3
    assert AuditEvent.objects.charged().count() == 0


def test_a_quota_is_charged_once_for_one_object(
    ask: Callable[..., Any], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota())
    made = new_pod()
    assert [ask(review(made)).json()["response"]["allowed"] for _ in range(3)] == [True] * 3
    assert used() == "1"
    refused = ask(review(new_pod("other"))).json()["response"]
    assert (
        "exceeded quota: pods, requested: pods=1, used: pods=1, limited: pods=1"
        in (refused["status"]["message"])
    )


def test_a_mutating_call_is_recorded_but_not_charged(
    ask: Callable[..., Any], apply: Callable[..., None], used: Callable[[], str]
) -> None:
    apply(quota())
    ask(review(new_pod()), phase="mutate")
    assert used() == "0"
    assert AuditEvent.objects.get().phase == "mutate"


def test_other_clusters_policies_do_not_matter(ask: Callable[..., Any]) -> None:
    from policies import services  # noqa: PLC0415 - only here
    from policies.models import Cluster  # noqa: PLC0415 - only here

    other = Cluster(name="other")
    services.save_cluster(cluster=other, user="root")
    services.apply_manifest(cluster=other, manifest=SEED_LIMITS, user="root", create_namespace=True)
    big = container(requests={"cpu": "2"}, limits={"cpu": "2"})
    assert ask(review(new_pod("p", big))).json()["response"]["allowed"] is True


def test_the_schema_does_not_show_the_endpoint() -> None:
    assert reverse("validate", args=["demo"]) == "/admission/demo/validate"
