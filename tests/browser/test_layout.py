"""Where things stand on a screen of 1440 x 900: first rows, heights, the button that saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.browser.pages import PAGES, STATUSES
from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
FIRST_ROW_AT_MOST: Final = 320
HEIGHT_AT_MOST: Final = 2000
LISTS: Final = {
    "proposed change, its tests",
    "decisions",
    "refusals",
    "clusters",
    "objects",
    "runs",
    "namespaces",
    "quota board",
    "changes",
    "proposed changes",
    "policies",
    "policies of a cluster",
    "policies of a namespace",
    "priority classes",
    "all namespaces",
    "drift",
    "enforcement",
    "people",
    "service accounts",
    "roles",
    "tokens",
    "people, sign-ins",
    "replays",
    "namespace classes",
    "search results",
}
EDITORS: Final = {
    "new limit range",
    "new quota",
    "new metadata policy",
    "limit range",
    "quota",
    "metadata policy",
    "new priority class",
    "priority class",
    "limited resources",
    "new namespace class",
    "namespace class, edited",
}
SAVING: Final = EDITORS | {
    "account",
    "connect",
    "decisions, wrong filter",
    "drift, settled",
    "edit of policies",
    "import",
    "namespace, simulated",
    "namespace, simulator",
    "new hold",
    "new policy",
    "new policy, not known where",
    "new service account",
    "object, drifted",
    "object, in conflict",
    "ownership",
    "ownership, previewed",
    "password",
    "people, a role for anybody",
    "people, a role given",
    "people, an invitation",
    "policy applied elsewhere",
    "quota board, one open",
    "quota, its denials",
    "quota, its usage",
    "service account",
    "version",
}
"""Pages with a form that is sent by a primary button."""
WIDE_FORMS: Final = {"decisions, wrong filter"}
"""Their form is not offered on a phone."""
BELOW_ROWS: Final = {"objects, all states"}
"""Their primary button acts on the rows above it that were chosen."""
PHONE_PAGES: Final = (
    "account",
    "enforcement",
    "holds",
    "namespace",
    "object, drifted",
    "object, in conflict",
    "service account",
)
_FIRST_ROW: Final = """() => {
  const rows = "main :is(table > tbody > tr, .row-list > li, [data-rows] > *)";
  const row = [...document.querySelectorAll(rows)].find((each) => each.checkVisibility());
  return row ? row.getBoundingClientRect().top : -1;
}"""

_SAVES: Final = """() => {
  const [first] = [...document.querySelectorAll("main form :is(button.primary, [data-save])")]
    .filter((each) => each.type === "submit" && each.checkVisibility({visibilityProperty: true}));
  if (!first) return "none";
  const {left, top, right, bottom} = first.getBoundingClientRect();
  const isInside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  const isOnTop = first.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
  return isInside && isOnTop ? "in sight" : `${first.textContent.trim()} at ${top} to ${bottom}`;
}"""
"""Where the first button that saves stands: in the window, and behind nothing."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_begins_near_the_top(
    visit: Callable[[str], Visitor], world: dict[str, Any], name: str
) -> None:
    page = visit("admin").go(PAGES[name].format(**world))
    top = page.evaluate(_FIRST_ROW)
    assert 0 < top <= FIRST_ROW_AT_MOST


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(set(PAGES) - LISTS))
def test_a_page_is_not_a_scroll(
    visit: Callable[[str], Visitor], world: dict[str, Any], name: str
) -> None:
    page = visit("admin").go(PAGES[name].format(**world), status=STATUSES.get(name, 200))
    assert page.evaluate("document.documentElement.scrollHeight") <= HEIGHT_AT_MOST


@pytest.mark.parametrize("name", PHONE_PAGES)
def test_a_page_is_not_a_scroll_on_a_phone(
    visit: Callable[[str], Visitor], world: dict[str, Any], name: str
) -> None:
    visitor = visit("admin")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go(PAGES[name].format(**world))
    assert page.evaluate("document.documentElement.scrollHeight") <= HEIGHT_AT_MOST


@pytest.mark.parametrize("name", sorted(EDITORS))
def test_save_is_always_in_sight(
    visit: Callable[[str], Visitor], world: dict[str, Any], name: str
) -> None:
    page = visit("admin").go(PAGES[name].format(**world))
    save = page.get_by_role("button", name="Save").first
    for place in ("0", "document.documentElement.scrollHeight"):
        page.evaluate(f"scrollTo(0, {place})")
        box = save.bounding_box()
        assert box is not None
        assert 0 <= box["y"] <= page.viewport_size["height"] - box["height"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(PAGES.keys() - BELOW_ROWS))
def test_the_button_that_saves_is_in_sight_before_anybody_scrolls(
    visit: Callable[[str], Visitor], world: dict[str, Any], name: str
) -> None:
    visitor = visit("admin")
    page = visitor.go(PAGES[name].format(**world), status=STATUSES.get(name, 200))
    for size, saving in ((WIDE, SAVING), (PHONE, SAVING - WIDE_FORMS)):
        visitor.look(theme="light", size=size)
        found = page.evaluate(_SAVES)
        assert found == "in sight" or (found == "none" and name not in saving)


@pytest.mark.parametrize("name", ["people, sign-ins", "runs", "holds"])
def test_the_current_tab_is_in_sight_on_a_phone(visit: Callable[[str], Visitor], name: str) -> None:
    visitor = visit("admin")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go(PAGES[name])
    tab = page.locator(".tabs [aria-current]").bounding_box()
    assert tab is not None
    assert tab["x"] >= 0
    assert tab["x"] + tab["width"] <= PHONE["width"]
