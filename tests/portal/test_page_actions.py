"""What pages can do, the API can do, too: every action has its operation, or says why not."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import URLPattern, get_resolver

from tests import api_document
from tests.conftest import ROOT
from tests.portal.page_actions import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATES = ROOT / "templates"
WRITES = ("post", "put", "patch", "delete")
FOR_MACHINES = ("api/", "admission/")
ADMIN = "admin/"
"""Django's own: operators' repair of rows, which no page leads to."""
_FORM = re.compile(r"<form\b[^>]*>", re.IGNORECASE)
_NOT_SENT = re.compile(r"<form\b[^>]*method=\"(?:get|dialog)\".*?</form>", re.DOTALL)
_BUTTON = re.compile(r"<button\b((?:[^>{]|\{\{.*?\}\}|\{%.*?%\})*)>", re.DOTALL)
_ATTRIBUTE = re.compile(r"\b(name|value|type)=\"([^\"]*)\"")
_ROW_FORM = re.compile(r"include \"parts/_row_form.html\" with[^%]*?\bname=\"([^\"]*)\"")
_OTHER_REQUEST = re.compile(r"<(?!form\b|button\b)\w+\b[^>]*\bhx-(?:post|put|patch|delete)=")
SCRIPTED = {"portal/pages/quotas/quotas.js"}
"""Scripts that send by themselves: the undo of a saved quota, in the row of ``quota``."""
_SCRIPTED = re.compile(r"\bmethod:|XMLHttpRequest|sendBeacon|htmx\.ajax")


def routes_of(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield address, pattern
        else:
            yield from routes_of(pattern.url_patterns, address)


def takes_writes(pattern: URLPattern) -> bool:
    view: Any = getattr(pattern.callback, "view_class", None)
    # A function may take anything.
    return view is None or any(
        method in view.http_method_names and hasattr(view, method) for method in WRITES
    )


def written_routes() -> set[str]:
    return {
        pattern.name or address
        for address, pattern in routes_of(get_resolver().url_patterns)
        if takes_writes(pattern) and not address.startswith((*FOR_MACHINES, ADMIN))
    }


def controls_in(text: str) -> Iterator[str]:
    """The controls of a template that send something to be done."""
    sent = _NOT_SENT.sub("", text)
    yield from _ROW_FORM.findall(sent)
    for match in _BUTTON.finditer(sent):
        given = dict(_ATTRIBUTE.findall(match[1]))
        if given.get("type") in ("button", "reset"):
            continue
        name, value = given.get("name", ""), re.sub(r"\{\{.*?\}\}", "*", given.get("value", ""))
        yield f"{name}={value}" if value else name


def offered_controls() -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for path in TEMPLATES.rglob("*.html"):
        name = str(path.relative_to(TEMPLATES))
        # Its name and value are those that other templates include it with.
        if name != "parts/_row_form.html":
            found.update((name, control) for control in controls_in(path.read_text("utf-8")))
    return found


def operations_of(cell: str) -> list[tuple[str, str]]:
    words = [] if cell.strip().startswith("-") else cell.split("+")
    return [(method, path) for method, path in (each.split() for each in words)]


def test_every_route_that_takes_writes_is_in_the_table() -> None:
    assert {route for routes, *_ in ACTIONS for route in routes.split()} == written_routes()


def test_every_control_is_in_the_table_as_often_as_pages_offer_it() -> None:
    assert Counter((template, control) for _, template, control, _ in ACTIONS) == offered_controls()


@pytest.mark.parametrize(
    "operation", sorted({each for *_, cell in ACTIONS for each in operations_of(cell)})
)
def test_a_named_operation_is_in_the_schema(operation: tuple[str, str]) -> None:
    method, path = operation
    assert method.lower() in api_document.document()["paths"].get(path, {})


def test_what_has_no_operation_says_why() -> None:
    reasons = [cell for *_, cell in ACTIONS if not operations_of(cell)]
    assert [reason for reason in reasons if len(reason.split()) < 5] == []


def test_forms_and_buttons_alone_send_something_to_be_done() -> None:
    """Whatever else could do it would stand in no row."""
    pages = [path.read_text("utf-8") for path in TEMPLATES.rglob("*.html")]
    assert not [text for text in pages if _OTHER_REQUEST.search(text)]
    assert not [form for text in pages for form in _FORM.findall(text) if "method=" not in form]
    built = ("node_modules", "static")
    scripts = [path for path in (ROOT / "portal").rglob("*.js") if not set(built) & set(path.parts)]
    assert scripts
    sending = [path for path in scripts if _SCRIPTED.search(path.read_text("utf-8"))]
    assert {str(path.relative_to(ROOT)) for path in sending} == SCRIPTED


@pytest.mark.parametrize(
    ("text", "controls"),
    [
        ('<form method="get"><button name="a" value="b">x</button></form>', []),
        ('<button type="button" name="a">x</button>', []),
        ('<button type="reset" name="a">x</button>', []),
        ('<form method="post"><button class="x">x</button></form>', [""]),
        ('<button name="do" value="save">x</button>', ["do=save"]),
        ('<button name="do" value="drop:{{ row }}:{{ n }}">x</button>', ["do=drop:*:*"]),
        ('<button{% if a > b %} class="x"{% endif %} name="do" value="y">x</button>', ["do=y"]),
        ('{% include "parts/_row_form.html" with question="?" name="take" value=a %}', ["take"]),
    ],
)
def test_controls_are_found(text: str, controls: list[str]) -> None:
    assert list(controls_in(text)) == controls
