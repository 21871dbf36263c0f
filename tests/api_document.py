"""The API's OpenAPI document as it is served, and the check of an exchange against it.

It is stricter than the document: a member that is not declared is an error.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.test import RequestFactory
from jsonschema import Draft202012Validator, FormatChecker
from rest_framework.test import APIClient

if TYPE_CHECKING:
    import pytest

_BODIES = ("content", "application/json", "schema")


@cache
def document() -> dict[str, Any]:
    client = APIClient()
    client.force_authenticate(User(username="reader"))
    answer = client.get("/api/schema/?format=json")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = json.loads(answer.content)
    return found


def component(name: str) -> dict[str, Any]:
    found: dict[str, Any] = document()["components"]["schemas"][name]
    return found


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check every exchange of a test client with the API that succeeds."""
    document()
    send = RequestFactory.generic

    def checked(self: Any, method: str, path: str, data: Any = "", *args: Any, **more: Any) -> Any:
        answer = send(self, method, path, data, *args, **more)
        # With ?fields= an answer lacks members on purpose.
        is_whole = path.startswith("/api/v1/") and "fields=" not in path + str(more)
        if is_whole and getattr(answer, "status_code", 500) < 300:
            check_exchange(method, path, data, answer)
        return answer

    monkeypatch.setattr(RequestFactory, "generic", checked)


def check_exchange(method: str, path: str, data: str | bytes, answer: Any) -> None:
    """Raise ``ValidationError`` if the body that was sent or the answer is not as described."""
    operation = operation_of(method, path)
    described = operation["responses"][str(answer.status_code)]
    if answer.content and "application/json" in described["content"]:
        _validator(json.dumps(_schema_in(described))).validate(json.loads(answer.content))
    if data and "requestBody" in operation:
        schema = _schema_in(operation["requestBody"])
        sent = json.loads(data)
        # What is read only may be sent back, and is ignored.
        answered = _members(_schema_in(described)) - _members(schema)
        body = {name: member for name, member in sent.items() if name not in answered}
        _validator(json.dumps(schema)).validate(body)


def operation_of(method: str, path: str) -> dict[str, Any]:
    address = path.partition("?")[0]
    paths = document()["paths"]
    # A whole address wins over one with a part to fill in, as in Django's own patterns.
    for template, operations in sorted(paths.items(), key=lambda each: each[0] != address):
        if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), address):
            found: dict[str, Any] = operations[method.lower()]
            return found
    raise LookupError(address)


def _schema_in(described: dict[str, Any]) -> dict[str, Any]:
    found = described
    for name in _BODIES:
        found = found[name]
    return found


def _members(schema: dict[str, Any]) -> set[str]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return set(component(name)["properties"]) if name else set()


@cache
def _validator(schema: str) -> Draft202012Validator:
    whole = {**json.loads(schema), "components": _strict(document()["components"])}
    return Draft202012Validator(whole, format_checker=FormatChecker())


def _strict(schema: Any) -> Any:
    """A schema of OpenAPI 3.0 as one of JSON Schema that allows only declared members."""
    if isinstance(schema, list):
        return [_strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(part) for name, part in schema.items()}
    if isinstance(strict.get("properties"), dict) and strict.get("type") == "object":
        strict["additionalProperties"] = False
    if strict.pop("nullable", None) is True:
        return {"anyOf": [strict, {"type": "null"}]}
    return strict
