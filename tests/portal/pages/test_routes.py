"""Every address there is, walked: what writes needs its token, looking writes nothing, headers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.apps import apps
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver

from admission.models import AuditEvent, SavedView, decision_id, partitions
from tests import factories, people
from tests.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db
DECISION: Final = decision_id.encode(1_780_000_000_000, 1)
NAMES: Final = {
    "cluster": "prod", "namespace": "team", "plural": "limitranges", "kind": "LimitRange",
    "number": "1", "uid": "0b6c3cb3-5d4c-4c5e-8d6d-000000000001", "form": "csv", "key": "key",
}  # fmt: skip
NOT_BROWSERS: Final = re.compile(r"^/(admission/|api/v1/token/)")
"""Where a cookie opens nothing: a credential does, or a name with its password."""
FOREIGN: Final = "x" * 64


def _patterns(found: list[Any], before: str = "") -> Iterator[str]:
    for each in found:
        route = before + str(each.pattern).replace("^", "").replace("$", "")
        if isinstance(each, URLResolver):
            yield from _patterns(each.url_patterns, route)
        elif isinstance(each, URLPattern):
            yield route


def _filled(route: str) -> str:
    route = re.sub(r"\(\?P<(\w+)>(?:\[[^]]*\]|\([^)]*\)|[^)])*\)|<(?:\w+:)?(\w+)>", _value, route)
    return "/" + re.sub(r"\\(.)", r"\1", route)


def _value(found: re.Match[str]) -> str:
    name = found[1] or found[2]
    if found.string.startswith("decisions/(") or "decisions/(" in found.string:
        return DECISION
    if name == "name":
        return next((it for part, it in OF.items() if part in found.string), "lr")
    return NAMES.get(name, "1")


OF: Final = {"priorityclasses/<": "high", "clusters/(?P": "prod", "limitedresources/(": "prod"}
ROUTES: Final = sorted({_filled(route) for route in _patterns(get_resolver().url_patterns)})
PAGES: Final = [each for each in ROUTES if not NOT_BROWSERS.match(each)]
OURS: Final = [each for each in PAGES if not each.startswith("/admin/")]


@pytest.fixture
def world(db: None) -> None:
    """One of what the addresses name."""
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}})
    factories.resource_quota({"pods": "3"})
    factories.priority_class()
    owner = people.person("root", role="admin")
    owner.is_staff = owner.is_superuser = True
    owner.save()
    SavedView.objects.create(owner=owner, name="v", query="kind=Pod")
    names = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    partitions.ensure(decision_id.moment(DECISION))
    AuditEvent(id=DECISION, duration_us=1, verdict="allowed", code=200, **names).save()


def signed_in(*, checks: bool = False) -> Client:
    client = Client(enforce_csrf_checks=checks, raise_request_exception=False)
    client.force_login(apps.get_model("auth", "User").objects.get(username="root"))
    return client


def tables() -> dict[str, list[dict[str, Any]]]:
    """All that is stored but who is signed in."""
    models = [each for each in apps.get_models() if each._meta.app_label != "sessions"]
    return {each.__name__: list(each._default_manager.order_by("pk").values()) for each in models}


def test_the_walk_finds_what_there_is() -> None:
    assert {"/", "/decisions/", f"/decisions/{DECISION}", "/people/"} <= set(OURS)
    assert {"/clusters/prod/namespaces/team/limitranges/lr/", "/accounts/login/"} <= set(OURS)
    assert len(ROUTES) > 60
    assert not [each for each in ROUTES if set(each) & set("<>()[]?")]


@pytest.mark.usefixtures("world")
def test_nothing_is_sent_without_the_token_of_this_site() -> None:
    client, before, taken = signed_in(checks=True), tables(), []
    ways: list[tuple[str, dict[str, str]]] = [
        ("", {}),
        ("y" * 32, {"x-csrftoken": FOREIGN}),
        ("y" * 32, {"x-csrftoken": "y" * 32, "origin": "https://evil.example"}),
    ]
    methods = [(each, "post") for each in PAGES]
    methods += [(each, name) for each in PAGES if "/api/" in each for name in ("put", "delete")]
    for (address, method), (cookie, headers) in product(methods, ways):
        client.cookies["csrftoken"] = cookie
        asked = {"content_type": "application/json", "headers": headers}
        status = getattr(client, method)(address, **asked).status_code
        if status not in {403, 404, 405}:
            taken.append((method, address, status))
    assert taken == []
    assert tables() == before


@pytest.mark.usefixtures("world")
def test_nothing_is_written_at_an_address_of_the_past() -> None:
    client, before, taken = signed_in(), tables(), []
    for address in PAGES:
        status = client.post(
            f"{address}?at=2026-01-01T00:00Z", headers={"accept": "*/*"}
        ).status_code
        refused = {400, 404, 405, 415} if address.startswith("/api/") else {409}
        if status not in refused:
            taken.append((address, status))
    assert taken == []
    assert tables() == before


@pytest.mark.usefixtures("world")
def test_a_token_does_not_help_from_a_foreign_site() -> None:
    client = signed_in(checks=True)
    client.cookies["csrftoken"] = "y" * 32
    own = {"x-csrftoken": "y" * 32}
    assert client.post("/decisions/views/", headers=own).status_code == 302
    for origin in ("https://evil.example", "null", "http://testserver.evil.example"):
        answer = client.post("/decisions/views/", headers={**own, "origin": origin})
        assert answer.status_code == 403


@pytest.mark.usefixtures("world")
def test_looking_writes_nothing() -> None:
    client, before = signed_in(), tables()
    found = {address: client.get(address).status_code for address in OURS}
    assert [each for each, status in found.items() if status >= 500] == []
    assert sum(status == 200 for status in found.values()) > 30
    assert tables() == before


def lacking(response: Any) -> list[str]:
    """Which headers that each page has are not there."""
    policy = response.get("Content-Security-Policy", "")
    kept = {
        "policy": "default-src 'none'" in policy and "unsafe" not in policy,
        "frame-ancestors": "frame-ancestors 'none'" in policy,
        "nosniff": response.get("X-Content-Type-Options") == "nosniff",
        "no-store": "no-store" in response.get("Cache-Control", ""),
        "referrer": response.get("Referrer-Policy") == "same-origin",
    }
    return [name for name, is_there in kept.items() if not is_there]


@pytest.mark.usefixtures("world")
@override_settings(ROOT_URLCONF="tests.portal.pages.failing_urls")
def test_every_answer_has_its_headers() -> None:
    client = signed_in()
    wrong = [*OURS, "/fails/", "/forbidden/", "/nowhere/", "/decisions/0000000000000000"]
    found = {address: lacking(client.get(address)) for address in wrong}
    assert {address: names for address, names in found.items() if names} == {}
    checked = signed_in(checks=True)
    assert lacking(checked.post("/decisions/views/")) == []


_HTTPS: Final = """
import json, django
django.setup()
from django.conf import settings
names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE",
         "SESSION_COOKIE_PATH", "SESSION_COOKIE_DOMAIN", "SESSION_COOKIE_HTTPONLY",
         "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS")
print(json.dumps({name: getattr(settings, name) for name in names}))
"""


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_cookies_and_transport_are_strict_where_there_is_tls(scheme: str) -> None:
    around = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    around |= {
        "GATEHOUSE_ENV_FILE": os.devnull,
        "GATEHOUSE_EXTERNAL_URL": f"{scheme}://portal.example",
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    words = [sys.executable, "-c", _HTTPS]
    told = subprocess.run(words, env=around, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
    found = json.loads(told.stdout)
    is_https = scheme == "https"
    prefix = "__Host-" if is_https else ""
    assert found["SESSION_COOKIE_NAME"] == f"{prefix}sessionid"
    assert found["CSRF_COOKIE_NAME"] == f"{prefix}csrftoken"
    assert (found["SESSION_COOKIE_PATH"], found["SESSION_COOKIE_DOMAIN"]) == ("/", None)
    assert found["SESSION_COOKIE_HTTPONLY"]
    for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT"):
        assert found[name] is is_https
    assert bool(found["SECURE_HSTS_SECONDS"]) is is_https


@pytest.mark.usefixtures("world")
@override_settings(SECURE_HSTS_SECONDS=60)
def test_over_tls_browsers_are_told_to_stay_there() -> None:
    response = signed_in().get("/nowhere/", secure=True)
    assert "max-age=60" in response["Strict-Transport-Security"]
