"""Journey about namespace classes: the list, a class, its editor with Save in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
HIGHEST_ROW: Final = 320
TALLEST: Final = 2_000


def test_a_class_is_found_opened_and_previewed(visit: Callable[[str], Visitor]) -> None:
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
    page.locator("[data-save]").click()
    page.locator('[data-save][value="save"]').wait_for()
    for size in (WIDE, PHONE):
        visitor.look(theme="light", size=size)
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        box = page.locator("[data-save]").bounding_box()
        assert box
        assert 0 <= box["y"] <= size["height"] - box["height"]
        assert page.locator(".cm-editor").is_visible()
        assert not visitor.overflow()
    visitor.look(theme="light", size=WIDE)
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST
