"""The matrix of roles: what each page, button and operation answers to everybody."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver, resolve

from policies.models import MetadataPolicy, Namespace, PriorityClass, ResourceQuota
from tests import api_document
from tests.portal.page_actions import ACTIONS
from tests.portal.roles import calls
from tests.portal.roles.world import ROLES, make_world, people_of_all_roles
from tests.portal.test_page_actions import routes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.django_db
FAMILIES: Final = re.compile(r"(?:changes|tests|replays|compare)/|clusters/-/changes/")
"""The addresses of pages whose every route is in the matrix."""
BESIDE: Final = {"decision-keep"}
API: Final = re.compile(r"/api/v1/(?:changes|approvalrule|replays|tests|compare)")
ANSWERS: Final = {
    line: answers.split()
    for answers, lines in calls.MATRIX.items()
    for line in lines.split("\n")[1:-1]
}


def parts_of(line: str) -> tuple[str, str, str]:
    """The method, the address and the form of a line."""
    method, address, *form = line.split(" ", 2)
    return method, address, form[0] if form else ""


def filled(value: Any, world: Mapping[str, Any]) -> Any:
    """A body with the values of the world."""
    if isinstance(value, dict):
        return {name: filled(each, world) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, world) for each in value]
    named = re.fullmatch(r"\{(\w+)\}", value) if isinstance(value, str) else None
    return world[named[1]] if named else value


def ask(client: Client, line: str, world: Mapping[str, Any]) -> str:
    """The status of a call, and of a list how many it has; nothing of it stays."""
    method, address, form = parts_of(line)
    options: dict[str, Any] = {}
    if address.startswith("/api/"):
        body = calls.BODIES.get(f"{method} {address.removeprefix('/api/v1/')}", {})
        if method != "GET":
            options = {"data": json.dumps(filled(body, world)), "content_type": "application/json"}
    elif method == "POST":
        options = {"data": dict(parse_qsl(form.format(**world), keep_blank_values=True))}
    with transaction.atomic():
        answer = getattr(client, method.lower())(address.format(**world), **options)
        transaction.set_rollback(True)
    is_read = answer.status_code == 200 and address.startswith("/api/")
    found = answer.json() if is_read else {}
    number = len(found["results"]) if "results" in found else None
    return str(answer.status_code) if number is None else f"{answer.status_code}:{number}"


@pytest.fixture
def world() -> dict[str, Any]:
    people = people_of_all_roles()
    return {
        **make_world(),
        "people": people,
        "space": Namespace.objects.get(name="team").pk,
        "quota": ResourceQuota.objects.get().pk,
        "mdp": MetadataPolicy.objects.get().pk,
        "priority": PriorityClass.objects.get().pk,
    }


@pytest.mark.sampled
@pytest.mark.parametrize("role", ROLES)
def test_every_call_answers_a_role_as_the_table_says(role: str, world: dict[str, Any]) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(world["people"][role])
    expected = {line: answers[ROLES.index(role)] for line, answers in ANSWERS.items()}
    assert {line: ask(client, line, world) for line in ANSWERS} == expected


def test_nobody_comes_in_without_signing_in(world: dict[str, Any]) -> None:
    client = Client()
    let_in = {line: ask(client, line, world) for line in ANSWERS}
    assert {line for line, status in let_in.items() if status not in ("302", "401")} == set()
    assert {line for line in let_in if " /api/" in line and let_in[line] != "401"} == set()


def test_every_page_about_changes_is_in_the_matrix() -> None:
    asked = {
        resolve(parts_of(line)[1].partition("?")[0].format(**ANY)).url_name for line in ANSWERS
    }
    routes = {
        pattern.name
        for address, pattern in routes_of(get_resolver().url_patterns)
        if FAMILIES.match(address)
    }
    assert routes
    assert (routes | BESIDE) - asked == set()


def test_every_button_about_changes_is_in_the_matrix() -> None:
    sent = {
        (resolve(address.partition("?")[0].format(**ANY)).url_name, _button(form))
        for method, address, form in map(parts_of, ANSWERS)
        if method == "POST" and not address.startswith("/api/")
    }
    routes = {route for route, _ in sent}
    offered = {
        (route, _control(control)) for names, _, control, _ in ACTIONS for route in names.split()
    }
    assert {each for each in offered if each[0] in routes} - sent - BY_ANOTHER == set()


BY_ANOTHER: Final = {("change", "do=replay"), ("replay-new", "cluster")}
"""Buttons whose form goes to another page, where they are."""
ANY: Final = {
    **dict.fromkeys(re.findall(r"\{(\w+)\}", " ".join(ANSWERS)), 1),
    "replay": "0b6c3cb3-5d4c-4c5e-8d6d-000000000001",
    "decision": "0" * 16,
    "then": "2026-01-01T00:00Z",
}


def _button(form: str) -> str:
    """What a form says of its button: the verb without what it is about."""
    name, _, value = form.partition("&")[0].partition("=")
    return _control(f"{name}={value}" if name == "do" else name)


def _control(control: str) -> str:
    name, _, value = control.partition("=")
    if name != "do":
        return name if name in NAMED else ""
    return f"do={value.partition(':')[0]}"


NAMED: Final = {"preset", "up", "down", "enable", "disable", "delete"}
"""Buttons that are told by their name alone."""


def test_every_operation_about_changes_and_the_past_is_in_the_matrix() -> None:
    known = {
        (method.upper(), path)
        for path, methods in api_document.document()["paths"].items()
        for method, operation in methods.items()
        if API.match(path) or any(each["name"] == "at" for each in operation.get("parameters", ()))
    }
    patterns = {
        (method, re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + r"(?:\?.*)?")): path
        for method, path in known
    }
    asked = {
        (method, path)
        for line in ANSWERS
        for (method, pattern), path in patterns.items()
        if parts_of(line)[0] == method and pattern.fullmatch(parts_of(line)[1])
    }
    assert len(known) > 50
    assert known - asked == set()
