"""Elements of every page: signing in and out, the skip link, themes, the palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.demo_portal import PASSWORD
from tests.browser.visitor import PHONE

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
    hand.fill(visitor.page.get_by_label("Password", exact=True), "wrong")
    hand.press(visitor.page.get_by_role("button", name="Sign in", exact=True))
    visitor.page.get_by_role("alert").wait_for()
    hand.fill(visitor.page.get_by_label("Password", exact=True), PASSWORD)
    hand.press(visitor.page.get_by_role("button", name="Sign in", exact=True))
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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_the_api_follows_the_theme(visit: Callable[[str], Visitor], theme: str) -> None:
    visitor = visit("viewer")
    visitor.look(theme=theme, size={"width": 1440, "height": 900})
    page = visitor.go("/api/docs/")
    page.get_by_role("heading", name="Gatehouse").wait_for()
    painted = page.evaluate(
        "getComputedStyle(document.querySelector('.swagger-ui')).backgroundColor"
    )
    assert painted == {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 19, 25)"}[theme]


def test_the_palette_leads_to_a_cluster(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    page.keyboard.press("Control+k")
    page.keyboard.type("demo-conn")
    # What the first letters found is replaced: the chosen line is that of all of them.
    page.get_by_role("option", name="demo-connected", selected=True).wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/clusters/demo-connected/")


def test_shortcuts_lead_to_pages_and_rows(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/policies/")
    page.keyboard.press("?")
    page.get_by_role("heading", name="Shortcuts").wait_for()
    page.keyboard.press("Escape")
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    row = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_url("**/clusters/*/namespaces/*/*/*/")
    assert page.url.split("/")[-2] in row
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/decisions/?cluster=*")
    page.keyboard.press("/")
    assert page.evaluate(FOCUSED) == "query-bar"


def test_chosen_cluster_is_kept(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/quotas/")
    hand.press(page.locator(".switcher > summary"))
    hand.press(page.locator(".switcher").get_by_role("link", name="demo", exact=True))
    page.wait_for_url("**/quotas/?cluster=demo")
    navigation = page.get_by_role("navigation", name="Main")
    hand.press(navigation.get_by_role("link", name="All policies"))
    page.wait_for_url("**/policies/?cluster=demo")
    hand.press(navigation.get_by_role("link", name="Decisions"))
    page.wait_for_url("**/decisions/?cluster=demo")


def test_local_time_is_a_choice(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    page = visitor.go("/")
    menu = page.locator("details.zone")
    assert menu.locator("summary").inner_text().strip().endswith("UTC")
    page.context.add_cookies([{"name": "zone", "value": "Asia/Kolkata", "url": visitor.address}])
    visitor.go("/")
    assert menu.locator("summary").inner_text().strip().endswith("UTC+5:30")
    hand.press(menu.locator("summary"))
    hand.press(menu.get_by_role("button", name="UTC", exact=True))
    menu.locator("summary", has_text="UTC+5:30").wait_for(state="detached")


def test_navigation_is_a_drawer_on_a_phone(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go("/")
    navigation = page.get_by_role("navigation", name="Main")
    assert not navigation.is_visible()
    hand.press(page.get_by_role("button", name="Menu"))
    hand.press(navigation.get_by_role("link", name="Quotas"))
    page.wait_for_url("**/quotas/")


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
