"""Journeys about namespace classes: the list, a class, its editor from a name to Delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from tests.browser.demo_portal import Portal
    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
CLEAR: Final = """
from policies import services
from policies.models import NamespaceClass
for stored in NamespaceClass.objects.filter(name__startswith="ui-"):
    services.delete_class(stored=stored, user="tests", reason="the journeys are over")
"""
HIGHEST_ROW: Final = 320
TALLEST: Final = 2_000
NEW: Final = "/namespace-classes/-/new/"
EDIT: Final = "/namespace-classes/standard/edit/"


@pytest.fixture(scope="module", autouse=True)
def left_as_found(portal: Portal) -> Iterator[None]:
    """Classes of these journeys must not stand in the lists of other journeys."""
    yield
    portal.manage("shell", "-c", CLEAR)


def show(page: Page, hand: Hand, tab: str) -> None:
    """Open a tab beside the form."""
    tabs = page.get_by_role("navigation", name="Views of the policy")
    hand.press(tabs.get_by_role("link", name=tab))


def save(visitor: Visitor, hand: Hand, reason: str) -> None:
    """Open the dialog and save with a reason; the page of the class follows."""
    page = visitor.page
    hand.press(visitor.main("button", "Save"))
    dialog = page.locator("#save-dialog[open]")
    dialog.wait_for()
    hand.fill(dialog.locator("#reason"), reason)
    with page.expect_navigation():
        hand.press(dialog.get_by_role("button", name="Save", exact=True))
    visitor.check()


def test_a_class_is_found_and_opened(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("admin")
    page = visitor.go("/namespace-classes/")
    first = page.locator("[data-rows] > tbody > tr").first
    box = first.bounding_box()
    assert box
    assert box["y"] <= HIGHEST_ROW
    first.locator("[data-open]").click()
    page.wait_for_url("**/namespace-classes/standard/")
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST
    page.locator('main a[href$="/edit/"]').click()
    page.wait_for_url("**/edit/")
    assert page.evaluate("document.documentElement.scrollHeight") <= WIDE["height"]


def test_a_class_is_written_by_form_and_looked_at_before_it_is_saved(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor, name = visit("admin"), f"ui-{type(hand).__name__.lower()}"
    page = visitor.go(NEW)
    hand.fill(page.get_by_label("Name", exact=True).first, name)
    hand.fill(page.locator("#names"), "web")
    page.get_by_text("1 namespace of demo: web").wait_for()
    show(page, hand, "Impact")
    page.get_by_role("group", name="Policies that would change").get_by_text("make").wait_for()
    hand.fill(page.locator("#names"), "nobody-is-called-so")
    page.get_by_text("Matches no namespace now").wait_for()
    hand.press(page.get_by_role("button", name="ResourceQuota"))
    page.locator("#policy-1-name").wait_for()
    show(page, hand, "YAML")
    page.locator(".cm-content", has_text="amounts").wait_for()
    save(visitor, hand, "first")
    assert page.url.endswith(f"/namespace-classes/{name}/")


def test_a_class_is_edited_and_deleted(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor, name = visit("admin"), f"ui-{type(hand).__name__.lower()}-edited"
    page = visitor.go(NEW)
    hand.fill(page.get_by_label("Name", exact=True).first, name)
    hand.fill(page.locator("#names"), "nobody-is-called-so")
    page.get_by_text("Matches no namespace now").wait_for()
    save(visitor, hand, "first")
    page = visitor.go(f"/namespace-classes/{name}/edit/")
    hand.fill(page.locator("#parameter-0-default"), "2")
    page.locator("#edit-status", has_text="1 change").wait_for()
    show(page, hand, "Diff")
    words = page.get_by_role("list", name="Changes in words")
    words.get_by_text("parameter cpu changed from 500m to 2").wait_for()
    save(visitor, hand, "second")
    page = visitor.go(f"/namespace-classes/{name}/edit/")
    show(page, hand, "History")
    page.locator("#pane-history").get_by_text("Version 2").wait_for()
    hand.press(page.get_by_label("More actions"))
    hand.press(page.get_by_role("link", name="Delete…"))
    hand.fill(page.locator("#delete-reason"), "tried")
    with page.expect_navigation():
        hand.press(page.get_by_role("button", name=f"Delete {name}"))
    assert page.url.endswith("/namespace-classes/")
    visitor.check()


@pytest.mark.parametrize(
    ("field", "text"), [("#labels", "a >"), ("#parameter-0-default", "much"), (".cm-content", "a:")]
)
def test_save_leads_to_the_first_error(
    visit: Callable[[str], Visitor], field: str, text: str
) -> None:
    visitor = visit("admin")
    page = visitor.go(EDIT)
    page.locator(field).fill(text)
    page.locator("#edit-status", has_text="problem").wait_for()
    page.locator("h1").click()
    page.locator('[data-tab="history"]').click()
    page.keyboard.press("Control+s")
    page.locator(f"{field}:focus").wait_for()
    assert page.locator("#save-dialog[open]").count() == 0
    visitor.check()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_save_is_in_sight_on_every_tab(
    visit: Callable[[str], Visitor], size: dict[str, int]
) -> None:
    visitor = visit("admin")
    visitor.look(theme="light", size=size)
    page = visitor.go(EDIT)
    for tab in page.locator("[data-tab]").locator("visible=true").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST
        assert not visitor.overflow()
        for place in ("0", "document.documentElement.scrollHeight"):
            page.evaluate(f"scrollTo(0, {place})")
            box = visitor.main("button", "Save").bounding_box()
            assert box
            assert 0 <= box["y"] <= size["height"] - box["height"]
