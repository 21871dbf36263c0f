"""Journeys about quotas: which are near, a limit raised with a reason and undone, the panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.hands import HANDS, Clicks
from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page, Route

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
HIGHEST_ROW: Final = 320
TALLEST: Final = 2_000
MOST_CLICKS: Final = 4
LIMIT: Final = "hard:pods"


def row(page: Page, key: str) -> Locator:
    return page.locator(f'[data-rows] > tbody > tr[data-key="{key}"]')


def limit_of(page: Page) -> Locator:
    return page.locator(f'[data-panel] input[name="{LIMIT}"]')


def test_near_quotas_are_one_click_away(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/")
    clicks = Clicks(hand)
    clicks.press(page.locator('[data-nav="quotas"]'))
    page.wait_for_url("**/quotas/")
    first = page.locator("[data-rows] > tbody > tr").first
    box = first.bounding_box()
    assert box
    assert box["y"] <= HIGHEST_ROW
    assert "100" in first.locator(".col-bar .words").inner_text()
    assert clicks.number == 1
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST


def test_a_limit_is_raised_with_a_reason_and_undone(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("editor")
    page = visitor.go("/")
    clicks = Clicks(HANDS["mouse"])
    clicks.press(page.locator('[data-nav="quotas"]'))
    page.wait_for_url("**/quotas/")
    row(page, "demo/payments/critical").hover()
    clicks.press(row(page, "demo/payments/critical").locator("[data-edit]"))
    limit = limit_of(page)
    limit.wait_for()
    # What is proposed is chosen already: a click is needed for nothing but to save.
    page.locator(".changed-field:focus").wait_for()
    raised = limit.input_value()
    assert int(raised) > int(limit.get_attribute("data-stored") or "")
    page.locator("[data-panel]").get_by_label("Reason").fill("the second region needs more")
    clicks.press(page.locator("#save-limits"))
    toast = page.locator("[data-toasts] > .toast", has_text=f"→ {raised}")
    toast.wait_for()
    assert clicks.number <= MOST_CLICKS
    page.locator(f'[data-panel] input[name="{LIMIT}"][data-stored="{raised}"]').wait_for()
    # The list shows it, too: the quota is full no longer.
    full = row(page, "demo/payments/critical").locator(".quota-bar.full")
    full.wait_for(state="detached")
    toast.get_by_role("button", name="Undo").click()
    page.locator("[data-toasts] > .toast", has_text="as they were").wait_for()
    page.locator(f'[data-panel] input[name="{LIMIT}"][data-stored="20"]').wait_for()
    full.wait_for()


def test_a_limit_is_raised_by_keys_alone(visit: Callable[[str], Visitor]) -> None:
    page = visit("editor").go("/quotas/")
    for _ in range(20):
        if page.evaluate("document.activeElement.dataset.key ?? ''") == "demo/payments/critical":
            break
        page.keyboard.press("j")
    page.keyboard.press("e")
    limit_of(page).wait_for()
    page.locator(".changed-field:focus").wait_for()
    page.keyboard.insert_text("lots")
    page.keyboard.press("Enter")
    page.locator("[aria-invalid=true]:focus").wait_for()
    page.keyboard.press("Escape")  # leaves the field
    page.keyboard.press("Escape")  # closes the panel
    page.locator("[data-panel]").wait_for(state="detached")
    assert page.evaluate("document.activeElement.dataset.key") == "demo/payments/critical"


def test_typed_limits_are_tried_at_once(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/quotas/?open=demo/payments/critical")
    limit_of(page).fill("33")
    page.locator("#what-if .totals").wait_for()
    page.locator("#save-limits", has_text="Raise limit to 33").wait_for()
    page.locator('[data-panel] input[name="hard:requests.cpu"]').fill("1")
    page.locator("#what-if .warns").wait_for()
    page.locator("#save-limits", has_text="Save 2 limits").wait_for()
    page.get_by_role("button", name="Reset").click()
    page.locator("#what-if .totals").wait_for(state="detached")
    assert limit_of(page).input_value() == "20"


def test_an_answer_to_typed_limits_may_come_after_the_panel_is_closed(
    visit: Callable[[str], Visitor],
) -> None:
    page = visit("admin").go("/quotas/?open=demo/payments/critical")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/what-if/**", hold)
    with page.expect_request("**/what-if/**"):
        limit_of(page).fill("33")
    page.locator("[data-panel] [data-close]").click()
    page.locator("[data-panel]").wait_for(state="detached")
    with page.expect_response("**/what-if/**"):
        held[0].continue_()
    # Opened after the answer: what that did wrong would have been reported by now.
    row(page, "demo/payments/critical").locator("[data-open]").click()
    page.locator("#save-limits").wait_for()


def test_the_panel_follows_j_and_stays_in_the_address(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("viewer")
    page = visitor.go("/quotas/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("[data-panel]").wait_for()
    first = page.locator("[data-panel]").get_attribute("data-key")
    page.keyboard.press("j")
    page.locator(f'[data-panel]:not([data-key="{first}"])').wait_for()
    second = page.locator("[data-panel]").get_attribute("data-key")
    page.wait_for_url("**open=**")
    visitor.go(page.url.removeprefix(visitor.address))
    assert page.locator("[data-panel]").get_attribute("data-key") == second
    selected = page.locator('[data-rows] > tbody > tr[aria-selected="true"]')
    assert selected.get_attribute("data-key") == second


def test_tabs_of_the_panel_keep_what_is_typed(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("admin").go("/quotas/?open=demo/payments/critical")
    limit_of(page).fill("34")
    page.locator("#save-limits", has_text="Raise limit to 34").wait_for()
    hand.press(page.locator("#quota-tabs").get_by_role("link", name="Changes"))
    page.locator("#quota-tabs td", has_text="18 → 20").wait_for()
    assert limit_of(page).input_value() == "34"


def test_several_limits_are_raised_at_once(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/quotas/?q=pods-cluster-services")
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
    bar = page.get_by_role("form", name="Raise the limits of chosen quotas")
    bar.get_by_text("Raise 2 quotas").wait_for()
    bar.get_by_label("Reason for all").fill("more nodes")
    bar.get_by_role("button", name="Raise limits").click()
    page.locator("[data-toasts] > .toast", has_text="Raised 2 limits").wait_for()
    page.wait_for_url("**/quotas/?q=pods-cluster-services")
    assert page.locator(".col-amounts", has_text="0 / 11").count() == 2


def test_heads_sort_the_list(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/quotas/")
    hand.press(page.get_by_role("columnheader", name="Quota").get_by_role("link"))
    page.wait_for_url("**/quotas/?sort=name")
    names = page.locator("[data-rows] > tbody > tr").evaluate_all(
        "rows => rows.map((row) => row.dataset.key.split('/').slice(1).join('/'))"
    )
    assert names == sorted(names)


def test_on_a_phone_a_quota_is_a_page(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go("/quotas/")
    assert not page.get_by_label("Resource").is_visible()
    hand.press(page.get_by_role("button", name="Filters"))
    page.get_by_label("Resource").wait_for(state="visible")
    hand.press(row(page, "demo/payments/critical").locator("[data-open]"))
    page.wait_for_url("**/quotas/demo/payments/critical/")
    assert not visitor.overflow()
    visitor.look(theme="light", size=WIDE)
