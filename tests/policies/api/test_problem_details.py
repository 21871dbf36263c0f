"""Every error of the API is a problem (RFC 9457) of one shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.test import APIClient

from policies import problem_details
from policies.api import views
from tests import factories, people

if TYPE_CHECKING:
    from django.http import HttpResponse

pytestmark = pytest.mark.django_db
QUOTA = {
    "cluster": "prod",
    "metadata": {"name": "rq", "namespace": "team"},
    "spec": {"hard": {"pods": "5"}},
}


@pytest.fixture
def chief() -> APIClient:
    factories.namespace()
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(people.person("chief", "admin"))
    return client


def problem_in(answer: HttpResponse) -> dict[str, Any]:
    """The problem of an answer, after a check of its shape."""
    assert answer["Content-Type"] == problem_details.CONTENT_TYPE
    found: dict[str, Any] = json.loads(answer.content)
    assert {"type", "title", "status", "detail"} <= set(found)
    assert found["status"] == answer.status_code
    assert found["detail"]
    for errors in found.get("errors", {}).values():
        assert [set(error) for error in errors] == [{"code", "message"}] * len(errors)
    return found


@pytest.mark.parametrize(
    ("method", "path", "body", "problem"),
    [
        ("post", "resourcequotas/", {**QUOTA, "speck": 1}, (422, "invalid-body")),
        ("post", "resourcequotas/", {"cluster": "prod"}, (400, "invalid-request")),
        ("post", "resourcequotas/", {**QUOTA, "metadata": {}}, (400, "invalid-request")),
        ("post", "resourcequotas/", {**QUOTA, "cluster": "x"}, (400, "invalid-request")),
        ("post", "resourcequotas/?dry=1", QUOTA, (400, "invalid-request")),
        ("post", "resourcequotas/?dryRun=1", QUOTA, (400, "invalid-request")),
        ("post", "clusters/", {"name": "prod"}, (409, "already-exists")),
        ("put", "clusters/prod/", {"name": "prod", "revision": 9}, (409, "stale-revision")),
        ("delete", "clusters/prod/", None, (428, "precondition-required")),
        ("get", "clusters/none/", None, (404, "not-found")),
        ("get", "nowhere/", None, (404, "not-found")),
        ("post", "clusters/prod/", {}, (405, "method-not-allowed")),
    ],
)
def test_an_error_is_a_problem_of_its_type(
    chief: APIClient, method: str, path: str, body: Any, problem: tuple[int, str]
) -> None:
    more = {} if body is None else {"data": body, "format": "json"}
    answer = getattr(chief, method)(f"/api/v1/{path}", **more)
    found = problem_in(answer)
    status, name = problem
    assert (answer.status_code, found["type"]) == (status, f"urn:gatehouse:problem:{name}")


def test_errors_of_a_serializer_stand_at_their_path(chief: APIClient) -> None:
    answer = chief.post("/api/v1/resourcequotas/", {**QUOTA, "metadata": {}}, format="json")
    assert [*problem_in(answer)["errors"]] == ["metadata.name"]


def test_body_that_is_no_json_or_of_another_type_is_a_problem(chief: APIClient) -> None:
    for content_type, status in (("application/json", 400), ("text/plain", 415)):
        answer = chief.post("/api/v1/clusters/", b"{", content_type=content_type)
        assert problem_in(answer)["status"] == status


def test_strangers_get_a_problem_with_the_way_to_sign_in() -> None:
    answer = APIClient().get("/api/v1/clusters/")
    assert problem_in(answer)["status"] == 401
    assert answer["WWW-Authenticate"]
    answer = APIClient().get("/api/docs/", headers={"authorization": "Token none"})
    assert problem_in(answer)["status"] == 401


def test_who_may_not_write_gets_a_problem() -> None:
    factories.namespace()
    client = APIClient()
    client.force_authenticate(people.person("reader"))
    answer = client.post("/api/v1/clusters/", {"name": "c"}, format="json")
    assert problem_in(answer)["status"] == 403


def test_wrong_password_is_a_problem() -> None:
    User.objects.create_user("ada", password="a long enough password")
    answer = APIClient().post("/api/v1/token/", {"username": "ada", "password": "x"}, format="json")
    assert problem_in(answer)["errors"][""][0]["code"] == "authorization"


def test_defect_is_a_problem_that_leads_to_the_log(
    chief: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_view: Any, *_args: Any, **_names: Any) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr(views.ClusterView, "list", broken)
    answer = chief.get("/api/v1/clusters/", headers={"x-request-id": "abc"})
    found = problem_in(answer)
    assert (found["status"], "abc" in found["detail"]) == (500, True)
    assert "secret" not in json.dumps(found)


def test_first_error_is_the_detail_and_the_others_are_counted() -> None:
    errors = {"a": [{"code": "x", "message": "m"}], "": [{"code": "y", "message": "n"}]}
    assert problem_details.problem_of_errors(400, errors)["detail"] == "a: m (and 1 more)"


def test_nested_errors_are_flattened() -> None:
    nested = {"rows": [{"name": [ErrorDetail("m", "c")]}], "non_field_errors": [ErrorDetail("n")]}
    response = problem_details.handle(ValidationError(nested), {})
    assert response is not None
    assert response.data["errors"] == {
        "rows[0].name": [{"code": "c", "message": "m"}],
        "": [{"code": "invalid", "message": "n"}],
    }
