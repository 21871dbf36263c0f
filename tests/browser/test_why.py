"""Why it was decided so: one screen with verdict, ways out and trace; tabs, rows, the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
TABS_AT_MOST = 412
FIRST_STEP_AT_MOST = 480


def top(part: Locator) -> float:
    box = part.bounding_box()
    assert box
    return box["y"]


def test_verdict_remedy_and_trace_need_no_scrolling(
    visit: Callable[[str], Visitor], world: dict[str, Any]
) -> None:
    page = visit("viewer").go(f"/decisions/{world['denied']}")
    verdict, ways = page.locator(".why-card").all()
    assert top(verdict) == top(ways) <= 130
    assert top(page.locator(".why-tabs")) <= TABS_AT_MOST
    assert top(page.locator(".why-trace tbody tr").first) <= FIRST_STEP_AT_MOST
    opened = page.locator(".why-trace tbody.is-open")
    assert opened.locator(".word.denied").count() == 1
    assert opened.locator(".figures-table tbody tr").first.is_visible()
    assert page.locator("main table.rows-table").count() == 1


def test_rows_of_the_trace_open_and_close(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    page = visit("viewer").go(f"/decisions/{world['denied']}")
    closed = page.locator("[data-step-row]:not(.is-open)").first
    button = page.get_by_role("button", name="Details of step 2, limits")
    assert not closed.locator(".step-more").is_visible()
    hand.press(button)
    assert button.get_attribute("aria-expanded") == "true"
    page.locator("[data-step-row]").first.locator(".step-more").wait_for(state="visible")
    hand.press(button)
    assert button.get_attribute("aria-expanded") == "false"


def test_tabs_show_the_object_copies_and_the_record(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    page = visit("viewer").go(f"/decisions/{world['denied']}")
    tabs = page.get_by_role("navigation", name="The decision")
    for name, heading in (
        ("Object", "What would have passed, 1 of 2"),
        ("Reproduce", "kubectl"),
        ("Raw", "The object as judged, without secrets"),
    ):
        hand.press(tabs.get_by_role("link", name=name))
        page.get_by_role("heading", name=heading).wait_for()
        assert tabs.locator("[aria-current=page]").inner_text() == name
        assert page.get_by_role("heading", name="How to fix").is_visible()
    hand.press(tabs.get_by_role("link", name="Trace"))
    page.get_by_role("table", name="Trace, step by step").wait_for()


def test_the_change_that_set_a_limit_is_one_click_away(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    page = visit("viewer").go(f"/decisions/{world['denied']}")
    hand.press(page.locator(".why-trace .is-open .set-by-words a").first)
    page.wait_for_url("**/resourcequotas/compute/revisions/2/")


def test_a_limit_is_raised_by_who_may(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    path = f"/decisions/{world['denied']}"
    assert visit("viewer").go(path).get_by_role("link", name="Raise limit").count() == 0
    page = visit("editor").go(path)
    hand.press(page.get_by_role("link", name="Raise limit"))
    page.wait_for_url("**/resourcequotas/compute/")


def test_a_decision_leads_to_those_beside_it_in_the_list(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/?verdict=denied")
    second = page.locator(".log [data-open]").nth(1).get_attribute("href")
    hand.press(page.locator(".log [data-open]").first)
    hand.press(visitor.main("link", "Open why"))
    hand.press(page.get_by_role("link", name="Next decision of the list"))
    page.wait_for_url(f"**{second}")
    assert page.locator("[data-place]").inner_text().startswith("2 of ")


def test_a_phone_has_the_link_and_the_decisions_beside(
    visit: Callable[[str], Visitor], axe: Path, hand: Hand
) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go("/decisions/?verdict=denied")
    hand.press(page.locator(".log [data-open]").nth(1))
    for name, number in (("Next", 3), ("Previous", 2)):
        hand.press(page.get_by_role("link", name=f"{name} decision of the list"))
        page.wait_for_load_state("load")
        assert page.locator("[data-place]").text_content().startswith(f"{number} of ")  # type: ignore[union-attr]  # it is there
    assert page.get_by_role("button", name="Copy link").is_visible()
    assert top(page.locator(".why-title .actions")) < top(page.locator(".why-facts"))
    assert visitor.overflow() == ""
    assert visitor.hindrances(axe) == []


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_all_rows_open_are_accessible(
    visit: Callable[[str], Visitor], axe: Path, world: dict[str, Any], size: dict[str, int]
) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=size)
    page = visitor.go(f"/decisions/{world['denied']}")
    page.locator("[data-toggle][aria-expanded=false]").evaluate_all(
        "all => all.forEach((button) => button.click())"
    )
    assert page.locator("[data-step-row]:not(.is-open)").count() == 0
    assert visitor.overflow() == ""
    assert visitor.hindrances(axe) == []
