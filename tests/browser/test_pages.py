"""Every page in both themes and three widths: no axe violation, and no overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from tests.browser.looks import look_around
from tests.browser.pages import FOREIGN, NO_PAGES, PAGES, PUBLIC, STATUSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
OWN = {
    "/accounts/logout/",
    "/account/",
    "/account/password/",
    "/decisions/views/",
    "/clusters/demo/namespaces/payments/simulate/",
    "/changes/{change}/",
    "/changes/{change}/timeline/",
}
"""The forms that everyone may send: about one's own account, dry runs, a comment on a change."""
FOR_ADMINS = {
    *(name for name in PAGES if name.startswith("people")),
    "decision, kept as a test",
    "kept test, a new one",
    "roles",
    "tokens",
    "tokens, none",
    "service accounts",
    "new service account",
    "service account",
    "holds",
    "new hold",
    "import",
    "edit of policies",
    "pause of clusters",
    "policy applied elsewhere",
    "new change",
    "approval rules",
    "new approval rule",
    "approval rule",
    "new policy",
    "new policy, not known where",
    "new limit range",
    "new quota",
    "new metadata policy",
    "new priority class",
    "parts",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_in_all_its_forms(
    visit: Callable[[str], Visitor], axe: Path, world: dict[str, Any], name: str
) -> None:
    visitor = visit("admin")
    visitor.go(PAGES[name].format(**world), status=STATUSES.get(name, 200))
    look_around(visitor, axe)


def test_an_open_quota_is_accessible(visit: Callable[[str], Visitor], axe: Path) -> None:
    visitor = visit("admin")
    visitor.go("/quotas/?needs=attention")
    row = visitor.page.locator("[data-rows] > tbody > tr").first
    row.hover()
    row.locator("[data-edit]").click()
    visitor.page.locator("[data-panel] .totals").wait_for()
    look_around(visitor, axe)


@pytest.mark.parametrize("name", PUBLIC)
def test_page_for_everybody_is_accessible(
    visit: Callable[[str], Visitor], axe: Path, world: dict[str, Any], name: str
) -> None:
    visitor = visit("nobody")
    visitor.go(PUBLIC[name].format(**world), status=STATUSES.get(name, 200))
    look_around(visitor, axe)


@pytest.mark.parametrize("name", ["403.html", "403_csrf.html", "404.html", "500.html"])
def test_error_page_is_accessible(
    visit: Callable[[str], Visitor], axe: Path, world: dict[str, Any], name: str
) -> None:
    visitor = visit("nobody")
    page = world["errors"][name]
    visitor.page.route(
        "**/fails/", lambda route: route.fulfill(body=page, content_type="text/html")
    )
    visitor.go("/fails/")
    assert visitor.page.locator("h1").count() == 1
    look_around(visitor, axe)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in PAGES if name not in FOR_ADMINS])
def test_viewer_sees_the_page_without_forbidden_actions(
    visit: Callable[[str], Visitor], world: dict[str, Any], name: str
) -> None:
    visitor = visit("viewer")
    visitor.go(PAGES[name].format(**world), status=STATUSES.get(name, 200))
    # Dry runs and replays write nothing: every user who sees the page may send them.
    sent = visitor.page.locator('form[method="post"]:not([data-tries])')
    addresses = sent.evaluate_all("all => all.map((each) => new URL(each.action).pathname)")
    assert set(addresses) <= {address.format(**world) for address in OWN}


def routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for each in resolver.url_patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLPattern):
            yield route
        else:
            yield from routes(each, route)


def test_no_page_is_forgotten() -> None:
    """A new page must be added to ``pages``."""
    known = {
        str(resolve(path.partition("?")[0].format(**ANY)).route)
        for path in (*PAGES.values(), *PUBLIC.values())
    }
    ours = {route for route in routes(get_resolver()) if not route.startswith(FOREIGN)}
    assert ours - known - set(NO_PAGES) == set()


ANY = {
    "invitation": "/accounts/invitation/MQ/c1-2/",
    "run": "00000000-0000-0000-0000-000000000000",
    "denied": "0" * 16,
    "mutated": "0" * 16,
    "replay": "00000000-0000-0000-0000-000000000000",
    "kept": 1,
    "rule": "1",
    "change": "1",
    "rolled": "1",
    "drifted": "1",
    "conflict": "2",
}
