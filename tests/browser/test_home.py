"""Journeys from Home: the first task at once, its next step, and one cluster alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
TILES_AT, NEEDS_AT, CAUSES_AT = 100, 194, 488
WITHIN: Final = 4  # pixels
TALLEST: Final = 2_000


def top_of(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box
    return box["y"]


def test_boxes_are_where_they_are_looked_for(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/")
    assert abs(top_of(page, ".tiles") - TILES_AT) <= WITHIN
    assert abs(top_of(page, "section:has(> #needs)") - NEEDS_AT) <= WITHIN
    # Fewer lines than fit leave less above the causes.
    assert top_of(page, "section:has(> #causes)") <= CAUSES_AT + WITHIN
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST


def test_what_needs_attention_leads_to_its_next_step(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    page = visit("admin").go("/")
    full = page.locator(".needs > li", has_text="is full").first
    if not full.is_visible():
        # More urgent lines, of what other journeys did, stand before it.
        hand.press(page.locator(".more-needs > summary"))
    hand.press(full.get_by_role("link", name="Open quota"))
    page.wait_for_url("**/quotas/?open=*")
    page.locator("[data-panel]").wait_for()


def test_stuck_rollout_leads_to_its_cause_and_its_remedy(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor = visit("admin")
    page = visitor.go("/")
    stuck = page.locator(".needs > li", has_text="payments-api is stuck")
    assert "payments-api" in page.locator(".causes tbody").inner_text()
    hand.press(stuck.get_by_role("link", name="Why"))
    page.get_by_role("heading", name="Quota compute").wait_for()
    assert "raise the limit" in page.locator("#fix, main").first.inner_text().lower()
    page = visitor.go("/")
    hand.press(stuck.get_by_role("link", name="Raise limit"))
    page.wait_for_url("**/quotas/?open=demo%2Fpayments%2Fcompute*")


def test_figures_lead_to_their_lists(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/")
    hand.press(page.locator(".tiles").get_by_role("link", name="Denied"))
    page.wait_for_url("**/decisions/?verdict=denied")


def test_one_cluster_leaves_the_others_out(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/")
    hand.press(page.locator(".switcher > summary"))
    hand.press(page.locator(".switcher").get_by_role("link", name="demo", exact=True))
    page.wait_for_url("**/?cluster=demo")
    assert page.locator(".home-clusters tbody tr").count() == 1
    assert "demo-" not in page.locator("main").inner_text()
    hand.press(page.get_by_role("link", name="7 days", exact=True))
    page.wait_for_url("**/?cluster=demo&window=week")


def test_home_is_not_refreshed_under_a_reader(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/")
    page.locator(".denials summary").click()
    with page.expect_event("console", lambda line: "refused" in line.text):
        # The event that htmx sends before it asks: prevented, it asks for nothing.
        page.evaluate("""() => {
          const elt = document.getElementById("live");
          const event = new CustomEvent("htmx:beforeRequest", {
            bubbles: true, cancelable: true, detail: { elt },
          });
          console.info(elt.dispatchEvent(event) ? "asked" : "refused");
        }""")


def test_home_fits_a_phone(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    visitor.go("/")
    assert not visitor.overflow()
    visitor.look(theme="light", size=WIDE)
