"""Running pods that a policy would refuse are named to who sees their namespace."""

from __future__ import annotations

from typing import Any

import pytest

from tests import api_document, factories
from tests.running_pods import asks, running
from tests.sync.api.calls import client, send

pytestmark = pytest.mark.django_db
PLACE = "simulations/restarts/"
RANGE = {"type": "Container", "max": {"cpu": "4"}}


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


def asked(*, code: int = 200, cpu: str = "2", **more: Any) -> Any:
    policy = factories.manifest("LimitRange", {"limits": [{**RANGE, "max": {"cpu": cpu}}]})
    body = {"cluster": "prod", "namespace": "team", "policies": [policy], **more}
    return send("post", PLACE, body, code=code)


def test_pods_of_one_owner_are_told_with_the_reason() -> None:
    factories.limit_range(RANGE)
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("web-2"), asks("small", "1", owner=False))
    found = asked()
    assert (found["running"], found["refused"], found["newly_refused"]) == (3, 2, 2)
    [row] = found["rows"]
    assert (row["kind"], row["owner"], sorted(row["pods"])) == (
        "Deployment",
        "web",
        ["web-1", "web-2"],
    )
    assert [each["reason"] for each in row["refusals"]] == ["MaxConstraint"]
    assert row["refused_today"] is False
    assert asked(cpu="4")["rows"] == []


def test_a_namespace_without_pods_has_none() -> None:
    factories.namespace("team")
    found = asked(policies=[])
    assert (found["running"], found["rows"], found["seen"]) == (0, [], None)


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        ({"cluster": "nowhere"}, 400, "cluster"),
        ({"namespace": "nobody"}, 422, "namespace"),
        ({"polices": []}, 422, "polices"),
        (
            {"policies": [{"kind": "LimitRange", "spec": {"limits": 1}}]},
            422,
            "policies[0].spec.limits",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(
    more: dict[str, Any], code: int, field: str
) -> None:
    factories.namespace("team")
    assert list(asked(code=code, **more)["errors"]) == [field]


def test_a_hidden_namespace_is_unknown() -> None:
    factories.namespace("team")
    stranger = client("editor", cluster="prod", namespace="other")
    body = {"cluster": "prod", "namespace": "team"}
    assert list(send("post", PLACE, body, code=422, who=stranger)["errors"]) == ["namespace"]
