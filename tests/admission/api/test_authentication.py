"""Who may ask: the matrix of credentials, paths and clusters."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from admission.models import AuditEvent
from policies import services
from policies.models import Cluster, WebhookCredential
from tests.reviews import review

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def other_secret(db: None) -> str:
    made = Cluster(name="other")
    services.save_cluster(cluster=made, user="root")
    return services.issue_webhook_credential(cluster=made, label="hook", user="root")[1]


def post(client: Client, address: str, **headers: str) -> Any:
    body = json.dumps(review())
    return client.post(address, body, content_type="application/json", headers=headers)


@pytest.mark.parametrize("phase", ["mutate", "validate"])
@pytest.mark.parametrize(
    ("named", "given", "status"),
    [
        pytest.param("demo", "own", 200, id="own"),
        pytest.param("demo", "other", 403, id="anothers"),
        pytest.param("demo", "wrong", 401, id="wrong"),
        pytest.param("demo", "", 401, id="missing"),
        pytest.param("unheard-of", "wrong", 401, id="unknown-cluster-wrong"),
        pytest.param("unheard-of", "", 401, id="unknown-cluster-missing"),
        pytest.param("unheard-of", "own", 403, id="unknown-cluster-own"),
        pytest.param("demo", "x" * 5000, 401, id="absurd"),
        pytest.param("demo", "\u00e9\u00e8", 401, id="not-ascii"),
    ],
)
def test_the_matrix(  # noqa: PLR0913 - a matrix has sides
    *,
    client: Client,
    secret: str,
    other_secret: str,
    phase: str,
    named: str,
    given: str,
    status: int,
) -> None:
    token = {"own": secret, "other": other_secret}.get(given, given)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    assert post(client, f"/admission/{named}/{phase}", **headers).status_code == status
    if token:
        by_path = post(client, f"/admission/{named}/{token}/{phase}")
        assert by_path.status_code == status
    assert AuditEvent.objects.count() == (2 if status == 200 else 0)


def test_a_401_asks_for_a_bearer_token_and_tells_nothing(client: Client, secret: str) -> None:
    known, unknown = (post(client, f"/admission/{name}/validate") for name in ("demo", "nope"))
    assert known["WWW-Authenticate"].startswith("Bearer ")
    assert known.content == unknown.content
    assert json.loads(known.content)["reason"] == "Unauthorized"


@pytest.mark.parametrize("cluster_named", ["demo", "other"])
def test_a_credential_in_the_path_is_never_logged(
    client: Client, secret: str, caplog: pytest.LogCaptureFixture, cluster_named: str
) -> None:
    address = f"/admission/{cluster_named}/{secret}/validate"
    client.post(address, b"{}", content_type="application/json")
    client.post(address.replace(secret, f"{secret}x"), b"{}", content_type="application/json")
    client.get(address)
    assert "an admission call was refused with 401" in caplog.text
    assert "django.request" not in {each.name for each in caplog.records}
    assert secret not in caplog.text


def test_an_address_that_leads_nowhere_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.post("/admission/demo/nowhere/mutat", b"{}", content_type="application/json")
    assert "django.request" in {each.name for each in caplog.records}


class _Untouchable:
    """A body that must not be read."""

    def read(self, *_args: Any) -> bytes:
        raise AssertionError("the body was read before the credential")

    readline = read


@pytest.mark.parametrize("headers", [{}, {"HTTP_AUTHORIZATION": "Bearer wrong"}])
def test_the_body_of_a_stranger_is_not_read(
    client: Client, secret: str, headers: dict[str, str]
) -> None:
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/admission/demo/validate",
        "CONTENT_LENGTH": "1000",
        "CONTENT_TYPE": "application/json",
        "wsgi.input": _Untouchable(),
        **headers,
    }
    assert client.request(**environ).status_code == 401


@pytest.mark.parametrize("header", ["Basic {}", "Bearer", "{}", "Token {}"])
def test_only_bearer_is_understood(client: Client, secret: str, header: str) -> None:
    response = post(client, "/admission/demo/validate", Authorization=header.format(secret))
    assert response.status_code == 401


def test_credentials_rotate_with_overlap(client: Client, cluster: Cluster, secret: str) -> None:
    _, fresh = services.issue_webhook_credential(cluster=cluster, label="new", user="root")
    ask = f"/admission/demo/{secret}/validate"
    assert post(client, ask).status_code == 200
    assert post(client, f"/admission/demo/{fresh}/validate").status_code == 200
    old = WebhookCredential.objects.get(label="hook")
    services.revoke_webhook_credential(credential=old, user="root")
    assert post(client, ask).status_code == 401
    assert post(client, f"/admission/demo/{fresh}/validate").status_code == 200


def test_an_expired_credential_is_none(
    client: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = timezone.now() + dt.timedelta(hours=1)
    _, secret = services.issue_webhook_credential(
        cluster=cluster, label="short", user="root", expires=soon
    )
    address = f"/admission/demo/{secret}/validate"
    assert post(client, address).status_code == 200
    monkeypatch.setattr("policies.snapshot.values.timezone.now", lambda: soon)
    assert post(client, address).status_code == 401
