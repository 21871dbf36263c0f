"""Elements of every page: signing in and out, the skip link, themes, the palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.demo_portal import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
FOCUSED = "document.activeElement.id || document.activeElement.className"


def test_signing_in_and_out(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("nobody")
    visitor.go("/clusters/demo/")
    assert "/accounts/login/" in visitor.page.url
    hand.fill(visitor.page.get_by_label("Username"), "viewer")
    hand.fill(visitor.page.get_by_label("Password"), "wrong")
    hand.press(visitor.page.get_by_role("button", name="Sign in"))
    visitor.page.get_by_role("alert").wait_for()
    hand.fill(visitor.page.get_by_label("Password"), PASSWORD)
    hand.press(visitor.page.get_by_role("button", name="Sign in"))
    visitor.page.wait_for_url("**/clusters/demo/")
    hand.press(visitor.page.locator("details.user > summary"))
    hand.press(visitor.page.get_by_role("button", name="Sign out"))
    visitor.page.wait_for_url("**/accounts/login/")


def test_the_first_stop_leads_past_the_navigation(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "content"


def test_a_chosen_theme_is_kept(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size={"width": 1440, "height": 900})
    visitor.go("/")
    hand.press(visitor.page.get_by_role("button", name="Dark theme"))
    visitor.go("/clusters/")
    assert visitor.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_palette_leads_to_a_cluster(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    page.keyboard.press("Control+k")
    page.keyboard.type("demo-conn")
    page.get_by_role("option", name="demo-connected").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/clusters/demo-connected/")


def test_the_palette_hides_forbidden_objects(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("other")
    visitor.go("/find/?q=demo-connected")
    assert visitor.page.get_by_role("option").count() == 0
    visitor.go("/find/?q=payments")
    assert visitor.page.get_by_role("option").count() == 0
    visitor.go("/find/?q=web")
    assert visitor.page.get_by_role("option").count() > 0


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("viewer", "/clusters/demo-connected/", 200),
        ("viewer", "/people/", 403),
        ("editor", "/clusters/demo-connected/", 404),
        ("editor", "/clusters/demo-connected/runs/", 404),
        ("editor", "/decisions/{denied}", 200),
        ("other", "/decisions/{denied}", 404),
        ("other", "/clusters/demo-connected/objects/", 404),
        ("approver", "/decisions/{denied}", 404),
        ("approver", "/clusters/demo-priority/", 404),
        ("approver", "/clusters/demo-connected/ownership/", 200),
    ],
)
def test_forbidden_objects_are_not_found(
    visit: Callable[[str], Visitor], world: dict[str, str], name: str, path: str, status: int
) -> None:
    visit(name).go(path.format(**world), status=status)
