"""The API page: every address exists, and a token is issued as described."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.urls import resolve

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md").read_text("utf-8")
PLACEHOLDERS = {
    "<cluster>": "demo",
    "<id>": "0" * 16,
    "<uid>": "00000000-0000-4000-8000-000000000000",
    "<credential>": "secret",
    "<name>": "ci",
    "<number>": "7",
}


def addresses() -> list[str]:
    """All addresses of the tables; one without a leading slash is relative to the previous one."""
    found: list[str] = []
    for cell in re.findall(r"^\| (`[^|]*`[^|]*?) \|", PAGE, re.MULTILINE):
        for word in re.findall(r"(?:[A-Z]+ )?([/…a-z][^`, ]*)", cell):
            if word.startswith("…"):
                found.append(found[-1].rstrip("/") + word.removeprefix("…"))
            elif word.startswith("/") and not word.startswith(("/api/", "/admission/")):
                found.append(found[-1].rpartition("/")[0] + word)
            elif not word.startswith("/"):
                found.append(f"/api/v1/{word}")
            else:
                found.append(word)
    return found


@pytest.mark.parametrize("address", addresses())
def test_address_exists(address: str) -> None:
    path = address.partition("?")[0]
    for placeholder, text in PLACEHOLDERS.items():
        path = path.replace(placeholder, text)
    assert resolve(path)


def test_table_names_the_policies() -> None:
    assert {"/api/v1/limitranges/", "/api/v1/credentials/"} <= set(addresses())


@pytest.mark.django_db
def test_token_is_issued_for_the_shown_body(client: Client, django_user_model: User) -> None:
    django_user_model.objects.create_user("ada", password="a long enough password")
    (shown,) = re.findall(r"`POST /api/v1/token/` \| `(\{.*?\})` in, `(\{.*?\})` out", PAGE)
    body = dict(zip(json.loads(shown[0]), ("ada", "a long enough password"), strict=True))
    answer = client.post("/api/v1/token/", body, content_type="application/json")
    assert (answer.status_code, set(answer.json())) == (200, set(json.loads(shown[1])))


@pytest.mark.django_db
def test_token_is_not_issued_for_basic_authentication(
    client: Client, django_user_model: User
) -> None:
    django_user_model.objects.create_user("ada", password="a long enough password")
    words = base64.b64encode(b"ada:a long enough password").decode()
    answer = client.post(
        "/api/v1/token/",
        {},
        content_type="application/json",
        headers={"authorization": f"Basic {words}"},
    )
    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"username", "password"})
