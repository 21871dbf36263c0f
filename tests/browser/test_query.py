"""The query of the log: what it excludes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
LOG = ".log > tbody > tr"


def verdicts(page: Page) -> set[str]:
    return {words.strip() for words in page.locator(f"{LOG} .verdict").all_inner_texts()}


def test_a_minus_excludes(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/")
    assert "allowed" in verdicts(page)
    hand.fill(page.get_by_label("Query"), "-verdict:allowed -verdict:mutated")
    page.keyboard.press("Enter")
    page.wait_for_url("**/decisions/?exclude=*")
    assert not verdicts(page) & {"allowed", "mutated"}
    assert "denied" in verdicts(page)
    hand.fill(page.get_by_label("Query"), "-nmspc:web")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("-nmspc:").wait_for()
