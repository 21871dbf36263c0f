"""Journeys of namespaces: found in a list, what is wrong is seen, a pod is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.test_pages import look_around

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
PLACE = "/clusters/demo/namespaces/payments/"


def test_what_is_refused_is_found_from_the_list_in_three_clicks(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    visitor = visit("viewer")
    page = visitor.go("/namespaces/")
    hand.press(visitor.main("link", "Denied 24 h"))
    page.wait_for_url("**sort=-denied")
    first = page.locator("main tbody tr").first.get_by_role("link").first
    assert first.inner_text() == "payments"
    hand.press(first)
    page.wait_for_url(f"**{PLACE}")
    hand.press(page.locator(".ns-needs").get_by_role("link", name="Why").first)
    page.wait_for_url("**/decisions/*")


def test_a_pod_is_simulated_in_an_empty_tab(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("editor")
    page = visitor.go(PLACE)
    hand.press(visitor.main("link", "Simulate"))
    page.wait_for_url(f"**{PLACE}simulate/")
    page.get_by_text("Nothing simulated yet").wait_for()
    hand.fill(page.get_by_label("CPU limit"), "3")
    page.locator("#outcome").get_by_text("MaxConstraint").first.wait_for()
    assert "lc=3" in page.url


def test_a_row_leads_to_its_policy_by_keys(visit: Callable[[str], Visitor]) -> None:
    page = visit("editor").go(PLACE)
    row = page.locator(".in-force tbody tr").nth(1)
    name = row.get_by_role("link").first.inner_text()
    page.locator(".in-force tbody tr").first.focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{name}/")


def test_the_overview_is_accessible_with_its_late_line(
    visit: Callable[[str], Visitor], axe: Path
) -> None:
    visitor = visit("admin")
    visitor.go(PLACE).get_by_text("would be refused if recreated").first.wait_for()
    look_around(visitor, axe)
