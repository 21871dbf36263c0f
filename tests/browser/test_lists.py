"""Lists of the fleet as a person uses them: policies by kind, facet and column; a new policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
PLACES = """(rows) => rows.map((row) => {
  const { top, height } = row.getBoundingClientRect();
  return [Math.round(top + scrollY), Math.round(height)];
})"""


def test_policies_begin_high_and_have_a_line_each(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("viewer")
    for size, first, height in ((WIDE, 210, 36), (PHONE, 320, 60)):
        visitor.look(theme="light", size=size)
        rows = visitor.go("/policies/").locator(".policy-rows tbody tr")
        places = rows.evaluate_all(PLACES)
        assert places[0][1:] == [height]
        assert places[0][0] <= first
        assert {each for _, each in places} == {height}


def test_policies_are_narrowed_and_sorted(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/policies/")
    hand.press(page.get_by_role("link", name="ResourceQuotas"))
    page.wait_for_url("**/policies/?kind=ResourceQuota")
    facets = page.get_by_role("complementary", name="Facets")
    hand.press(facets.get_by_role("link", name="demo-priority"))
    page.wait_for_url("**/policies/?*cluster=demo-priority*")
    shown = page.locator(".policy-rows tbody tr")
    assert page.locator(".total").inner_text().startswith(f"{shown.count()} polic")
    by_name = page.get_by_role("columnheader", name="Name", exact=True).get_by_role("link")
    hand.press(by_name)
    page.wait_for_url("**/policies/?*order=name*")
    names = shown.locator("a[data-open]").all_inner_texts()
    assert names == sorted(names)
    assert names
    hand.press(by_name)
    page.wait_for_url("**/policies/?*order=-name*")
    assert shown.locator("a[data-open]").all_inner_texts() == names[::-1]


def test_new_policy_is_asked_for_its_place(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("editor")
    page = visitor.go("/policies/")
    hand.press(visitor.main("link", "New policy"))
    page.wait_for_url("**/policies/new/*")
    page.get_by_label("Kind").select_option("MetadataPolicy")
    hand.fill(page.get_by_label("Namespace"), "nowhere")
    hand.press(visitor.main("button", "Continue"))
    page.locator("[aria-invalid]").wait_for()
    hand.fill(page.get_by_label("Namespace"), "payments")
    hand.press(visitor.main("button", "Continue"))
    page.wait_for_url("**/clusters/demo/namespaces/payments/metadatapolicies/new")
