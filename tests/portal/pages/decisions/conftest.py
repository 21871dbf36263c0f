"""A decision as a cluster causes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from admission.models import AuditEvent
from tests import factories

if TYPE_CHECKING:
    from django.test import Client


class Decided(Protocol):
    """Posts a review of an object as a cluster would; gives what is on record then."""

    def __call__(self, obj: dict[str, Any], *, phase: str = ..., **more: Any) -> AuditEvent: ...


@pytest.fixture
def decided(client: Client) -> Decided:
    def post(obj: dict[str, Any], *, phase: str = "validate", **more: Any) -> AuditEvent:
        request = {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "team",
            "operation": "CREATE",
            "userInfo": {"username": "ada"},
            "object": obj,
            **more,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        response = client.post(
            f"/admission/prod/{phase}",
            json.dumps({**review, "request": request}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {factories.webhook_secret()}"},
        )
        assert response.status_code == 200
        answer = response.json()["response"]["auditAnnotations"]["decision-id"]
        return AuditEvent.objects.with_id(answer).get()

    return post
