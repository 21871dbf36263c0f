"""People: signing in as one of the demo's, and who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui


def test_demo_signs_in_one_of_its_people(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("nobody")
    page = visitor.go("/people/")
    hand.press(page.get_by_role("button", name="Ada Okafor"))
    page.wait_for_url("**/people/")
    assert "ada.okafor" in page.locator("details.user > summary").inner_text()
    visitor.check()


def test_sign_in_is_one_column_of_384(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("nobody")
    visitor.look(theme="light", size=WIDE)
    page = visitor.go("/accounts/login/")
    boxes = [each.bounding_box() for each in page.locator("main > .card").all()]
    assert [(box["x"], box["width"]) for box in boxes if box] == [(528, 384)] * 2


def test_typed_password_can_be_shown(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("nobody").go("/accounts/login/")
    field = page.get_by_label("Password", exact=True)
    hand.fill(field, "a secret")
    hand.press(page.get_by_role("button", name="Show the password"))
    assert field.get_attribute("type") == "text"
    hand.press(page.get_by_role("button", name="Show the password"))
    assert field.get_attribute("type") == "password"


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_lost_page_leads_on(
    visit: Callable[[str], Visitor], axe: Path, size: dict[str, int], hand: Hand
) -> None:
    visitor = visit("viewer")
    visitor.look(theme="dark", size=size)
    page = visitor.go("/no-such-page/", status=404)
    assert visitor.hindrances(axe) == []
    hand.press(page.get_by_role("main").get_by_role("link", name="Decisions"))
    page.wait_for_url("**/decisions/")
