"""Journey about changes: an edit put into one, submitted, published, looked at, reverted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.looks import look_around

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
NEW = "/clusters/demo/namespaces/payments/limitranges/new"


def test_an_edit_is_published_and_taken_back_as_a_change(
    visit: Callable[[str], Visitor], hand: Hand, axe: Path
) -> None:
    visitor, name = visit("editor"), f"ui-{type(hand).__name__.lower()}-proposed"
    page = visitor.go(NEW)
    hand.fill(page.get_by_label("Name", exact=True), name)
    amount = page.locator('[name="row-0-max"]')
    amount.wait_for()
    hand.fill(page.locator('[name="row-0-resource"]'), "cpu")
    hand.fill(amount, "64")
    page.wait_for_timeout(800)  # the typed text has been validated
    hand.press(visitor.main("button", "Save"))
    dialog = page.locator("#save-dialog[open]")
    dialog.wait_for()
    assert visitor.hindrances(axe) == []
    hand.fill(dialog.locator("#reason"), "to be published later")
    with page.expect_navigation():
        hand.press(dialog.get_by_role("button", name="Add to change"))
    assert page.get_by_role("heading", level=1).inner_text().endswith(f"Change LimitRange {name}")
    for button, state in (("Submit", "Approved"), ("Publish", "Done"), ("Revert", "Reverted")):
        hand.press(page.get_by_role("button", name=button, exact=True))
        confirm = page.locator("dialog[open]").get_by_role("button", name=button)
        if button != "Submit":
            hand.press(confirm)
        page.locator(f'[aria-current="step"]:text-is("{state}")').wait_for()
        visitor.check()
    look_around(visitor, axe)
    listed = visitor.go("/changes/?q=LimitRange").locator("[data-rows] > tbody > tr").first
    assert "reverted" in listed.inner_text()


def test_a_roll_out_is_planned_in_fields_and_what_is_wrong_is_beside_them(
    visit: Callable[[str], Visitor], hand: Hand, axe: Path, world: dict[str, Any]
) -> None:
    visitor = visit("editor")
    page = visitor.go(f"/changes/{world['change']}/rollout/")
    waves = page.locator(".plan-wave")
    before = waves.count()
    hand.fill(page.locator('[name="wave-0-enforce"]'), "soon")
    hand.press(page.get_by_role("button", name="Add wave"))
    waves.nth(before).wait_for()
    assert page.locator('[name="wave-0-enforce"]').input_value() == "soon"
    last = page.locator(f'[name="wave-{before}-namespaces"]')
    hand.fill(last, "nowhere-*")
    page.locator(".plan-places", has_text="a field is wrong").wait_for()
    hand.fill(page.locator('[name="wave-0-enforce"]'), "30m")
    page.locator(".plan-places", has_text="It covers nothing of this change").wait_for()
    hand.press(page.locator(f"#up-{before}"))
    page.locator(f'[name="wave-{before - 1}-namespaces"][value="nowhere-*"]').wait_for()
    hand.fill(page.locator('[name="wave-0-percent"]'), "200")
    with page.expect_navigation():
        hand.press(page.get_by_role("button", name="Save plan"))
    wrong = page.locator(".errorlist", has_text="from 1 to 100")
    wrong.wait_for()
    assert page.locator('[name="wave-0-percent"]').input_value() == "200"
    look_around(visitor, axe)
