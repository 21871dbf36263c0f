"""The log of decisions: its density, filters, time, live tail, and its rows on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.cluster_side import review_pod, review_pod_twice
from tests.browser.visitor import MIDDLE, PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.demo_portal import Portal
    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
LOG = ".log > tbody > tr"
FIRST_ROW_AT_MOST = 300
REASON_AT_LEAST = 150
IS_FOCUSED = "part => part === document.activeElement"
GAP = "part => part.getBoundingClientRect().bottom - innerHeight"
MIDDLES = """parts => parts.map((part) => {
  const range = new Range();
  range.selectNodeContents(part.querySelector("time") ?? part);
  const { top, bottom } = range.getBoundingClientRect();
  return (top + bottom) / 2;
})"""
LEFT = """part => {
  const range = new Range();
  range.selectNodeContents(part);
  return range.getClientRects()[0].x;
}"""
HEIGHTS = f"[...new Set([...document.querySelectorAll('{LOG}')].map((row) => row.offsetHeight))]"


def top_of(page: Page, selector: str) -> float:
    found = page.locator(selector).first.bounding_box()
    assert found is not None
    return found["y"]


def test_rows_begin_high_and_have_one_line(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/decisions/")
    page.locator("[data-plot] canvas").wait_for()
    assert page.get_by_text("cluster alert open").is_visible()
    assert top_of(page, LOG) <= FIRST_ROW_AT_MOST
    assert page.evaluate(HEIGHTS) == [34]


def test_rows_have_two_lines_on_a_phone(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go("/decisions/")
    assert page.evaluate(HEIGHTS) == [60]
    row = page.locator(LOG).first
    object_, reason = row.locator(".object"), row.locator(".reason")
    assert object_.bounding_box()["y"] < reason.bounding_box()["y"]  # type: ignore[index]  # both are shown


@pytest.mark.parametrize("query", ["", "?group=priority", "?verdict=denied"])
def test_numbers_are_whole_on_a_phone(visit: Callable[[str], Visitor], query: str) -> None:
    visitor = visit("admin")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go(f"/decisions/{query}")
    total = page.locator(".log-bar .total")
    page.evaluate("document.querySelector('.total b').firstChild.data = '1,000,000'")
    assert total.evaluate("part => part.scrollWidth <= part.clientWidth")
    ends = total.evaluate("part => part.getBoundingClientRect().right")
    assert ends <= page.locator(".log-bar .end").bounding_box()["x"]  # type: ignore[index]  # it is shown
    assert page.locator(".log-bar").bounding_box()["height"] < 60  # type: ignore[index]  # the same
    assert visitor.overflow() == ""


def test_times_of_the_table_stand_in_line(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    page.locator(".log-plot > details > summary").click()
    row = page.locator(".log-plot .menu tbody tr").first
    texts = row.locator("td").evaluate_all(MIDDLES)
    assert max(texts) - min(texts) <= 1
    head = page.locator(".log-plot .menu th").first
    assert head.evaluate(LEFT) == row.locator("td time").first.evaluate(LEFT)


@pytest.mark.parametrize("size", [MIDDLE, PHONE], ids=["middle", "phone"])
def test_filters_are_a_sheet_in_narrow_windows(
    visit: Callable[[str], Visitor], hand: Hand, size: dict[str, int]
) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=size)
    page = visitor.go("/decisions/")
    sheet = page.get_by_role("dialog", name="Filters")
    opener = visitor.main("button", "Filters")
    assert not page.locator(".facet-column").is_visible()
    hand.press(opener)
    sheet.wait_for()
    hand.press(sheet.get_by_role("button", name="Close the filters"))
    sheet.wait_for(state="hidden")
    assert opener.evaluate(IS_FOCUSED)
    hand.press(opener)
    hand.press(sheet.get_by_role("link", name="denied"))
    page.wait_for_url("**/decisions/?verdict=denied")
    assert visitor.main("button", "Filters 1").is_visible()


def test_the_sheet_of_filters_keeps_the_focus_and_gives_it_back(
    visit: Callable[[str], Visitor],
) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go("/decisions/?cluster=demo&last=30d&exclude=ns:web verdict:allowed")
    opener = visitor.main("button", "Filters 3")
    sheet = page.get_by_role("dialog", name="Filters")
    opener.focus()
    page.keyboard.press("Enter")
    sheet.wait_for()
    stops = sheet.locator("a, button, summary")
    for key in ("Shift+Tab", *["Tab"] * (stops.count() + 3)):
        page.keyboard.press(key)
        # Behind the last part comes the window's own frame, which the page sees as its body.
        assert page.evaluate(
            "document.activeElement.closest('dialog, body > :not(dialog)')?.id"
        ) in ("filter-sheet", None)
    page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")
    assert opener.evaluate(IS_FOCUSED)
    visitor.look(theme="light", size=WIDE)
    assert page.locator(".list-page > .facet-column").is_visible()


def test_a_window_that_widens_has_its_filters_beside_the_log(
    visit: Callable[[str], Visitor],
) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=MIDDLE)
    page = visitor.go("/decisions/")
    visitor.main("button", "Filters").click()
    page.get_by_role("dialog", name="Filters").wait_for()
    visitor.look(theme="light", size=WIDE)
    page.locator(".list-page > .facet-column").wait_for()
    assert page.locator("dialog[open]").count() == 0


def test_facets_narrow_the_log_and_widen_it_again(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    page = visit("viewer").go("/decisions/?last=30d")
    column = page.get_by_role("complementary", name="Filters")
    hand.press(column.get_by_role("link", name="denied"))
    page.wait_for_url("**/decisions/?*verdict=denied*")
    words = page.locator(f"{LOG} .verdict").all_inner_texts()
    assert {each.strip() for each in words} == {"denied"}
    hand.press(column.get_by_role("link", name="denied"))
    page.wait_for_url("**/decisions/?last=30d")


def test_an_excluded_value_is_shown_again(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/decisions/?exclude=ns:web verdict:mutated&last=30d")
    column = page.get_by_role("complementary", name="Filters")
    left_out = column.locator("a:has(del)")
    assert left_out.locator("del").all_inner_texts() == ["mutated", "web"]
    hand.press(left_out.filter(has_text="web"))
    page.wait_for_url(lambda url: "exclude=verdict%3Amutated" in url and "web" not in url)
    assert left_out.count() == 1


def test_time_is_picked_and_moved(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/?cluster=demo")
    hand.press(page.locator("details.period > summary"))
    hand.press(visitor.main("link", "Last 24 hours"))
    page.wait_for_url("**/decisions/?cluster=demo&last=24h")
    hand.press(visitor.main("link", "Earlier period"))
    page.wait_for_url("**/decisions/?cluster=demo&since=*&until=*")
    hand.press(visitor.main("link", "Later period"))
    page.wait_for_url("**/decisions/?cluster=demo&since=*&until=*")


def test_times_are_typed_picked_and_drawn_in_local_time(
    visit: Callable[[str], Visitor], portal: Portal, hand: Hand
) -> None:
    visitor = visit("viewer")
    cookie = {"name": "zone", "value": "Asia/Kolkata", "url": portal.address}
    visitor.context.add_cookies([cookie])  # type: ignore[list-item]  # a dictionary of its kind
    page = visitor.go("/decisions/?cluster=demo")
    hand.press(page.locator("details.period > summary"))
    begin = page.locator(".span-form").get_by_label("From (UTC+5:30)")
    begin.fill("2026-01-01T05:30")
    hand.press(page.locator(".span-form").get_by_role("button", name="Apply"))
    page.wait_for_url("**/decisions/?cluster=demo&since=2026-01-01T00%3A00")
    assert page.locator("#query-bar").input_value() == ("cluster:demo since:2026-01-01T05:30")
    hand.press(page.locator("summary", has_text="All filters as a form"))
    form = page.locator("form.filter")
    assert form.get_by_label("From (UTC+5:30)").input_value() == "2026-01-01T05:30"
    form.get_by_label("From (UTC+5:30)").fill("2026-01-02T05:30")
    hand.press(form.get_by_role("button", name="Apply"))
    page.wait_for_url("**/decisions/?cluster=demo&since=2026-01-02T00%3A00")
    page.locator("[data-plot] .u-over").hover()
    page.locator(".tip.chart", has_text="UTC+5:30").wait_for()


def test_a_bar_selects_its_time(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/?cluster=demo")
    plot = page.locator("[data-plot] .u-over")
    plot.hover()
    tip = page.locator(".tip.chart")
    tip.wait_for()
    assert "denied" in tip.inner_text()
    plot.click()
    page.wait_for_url("**/decisions/?cluster=demo&since=*&until=*")


def test_newer_decisions_wait_until_they_are_asked_for(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/?namespace=search")
    first, rows = top_of(page, LOG), page.locator(LOG).count()
    hand.press(visitor.main("button", "Live"))
    for name in ("arrives-first", "arrives-second"):
        review_pod(visitor, world, name=name, namespace="search")
    button = page.locator("[data-new]")
    page.locator("[data-new]", has_text="2 new").wait_for()
    assert (top_of(page, LOG), page.locator(LOG).count()) == (first, rows)
    hand.press(button)
    page.locator(".log .arrived tr", has_text="arrives-second").wait_for()
    assert page.locator(LOG).first.evaluate("row => row === document.activeElement")
    assert "arrives-second" in page.locator(LOG).nth(0).inner_text()
    assert "arrives-first" in page.locator(LOG).nth(1).inner_text()
    assert not button.is_visible()


def test_two_calls_are_one_line_that_leads_to_both(
    visit: Callable[[str], Visitor], world: dict[str, Any], hand: Hand
) -> None:
    visitor = visit("viewer")
    name = f"both-calls-by-{type(hand).__name__.lower()}"
    review_pod_twice(visitor, world, name=name, namespace="search")
    page = visitor.go(f"/decisions/?namespace=search&name={name}")
    assert page.locator(LOG).count() == 1
    assert page.locator(".total b").inner_text() == "2 decisions"
    hand.press(page.locator(f"{LOG} [data-open]"))
    panel = page.get_by_role("complementary", name="The decision in short")
    hand.press(panel.locator("[data-other-call]"))
    page.wait_for_url("**/decisions/0*")
    other = page.url
    hand.press(page.locator("[data-other-call]"))
    page.wait_for_url(lambda url: url != other)
    assert page.get_by_role("heading", name=name).is_visible()


def test_columns_are_chosen_and_remembered(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/?namespace=payments")
    hand.press(page.locator("details.columns > summary"))
    hand.tick(page.get_by_label("Cluster", exact=True).locator("visible=true"))
    hand.press(page.locator(".columns-form").get_by_role("button", name="Apply"))
    page.wait_for_url("**/decisions/?namespace=payments&columns=cluster*")
    visitor.go("/decisions/?verdict=denied")
    heads = page.locator(".log th:visible").all_inner_texts()
    assert heads[4:] == ["Cluster", "User", "Operation", "Duration"]
    reason = page.locator(".log th.reason").bounding_box()
    assert reason is not None
    assert reason["width"] >= REASON_AT_LEAST


def test_the_oldest_come_first_if_asked(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/decisions/?namespace=payments")
    hand.press(page.locator(".log th.when a"))
    page.wait_for_url("**/decisions/?namespace=payments&sort=time")
    assert page.locator(".log th.when").get_attribute("aria-sort") == "ascending"
    moments = page.locator(".log td.when time").evaluate_all("all => all.map((t) => t.dateTime)")
    assert moments == sorted(moments)
    hand.press(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Newer"))
    page.wait_for_url("**/decisions/?*line=50*")
    later = page.locator(".log td.when time").first.get_attribute("datetime")
    assert later is not None
    assert later >= moments[-1]
    hand.press(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Older"))
    page.wait_for_url(lambda url: "line=50" not in url)
    shown = page.locator(".log td.when time").evaluate_all("all => all.map((t) => t.dateTime)")
    assert shown == moments


def test_groups_open_to_their_decisions(visit: Callable[[str], Visitor], hand: Hand) -> None:
    # No more than one sample: over a longer time, groups count only the newest decisions.
    page = visit("viewer").go("/decisions/?last=6h")
    hand.press(page.locator("details.group-by > summary"))
    hand.press(page.locator("details.group-by").get_by_role("link", name="Reason"))
    page.wait_for_url("**/decisions/?last=6h&group=reason")
    row = page.locator(".groups-table tbody tr", has=page.locator("a")).first
    assert top_of(page, ".groups-table tbody tr") <= FIRST_ROW_AT_MOST
    number = row.locator(".figure").first.inner_text()
    hand.press(row.locator("a"))
    page.wait_for_url("**/decisions/?*reason=*")
    assert page.locator(".total b").inner_text().removesuffix(" decisions") == number


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_looks_are_accessible(visit: Callable[[str], Visitor], axe: Path, theme: str) -> None:
    visitor = visit("viewer")
    for size in (WIDE, PHONE):
        visitor.look(theme=theme, size=size)
        page = visitor.go("/decisions/?sort=time")
        if size == WIDE:
            page.locator("details.columns > summary").click()
            assert visitor.hindrances(axe) == []
        page = visitor.go("/decisions/?group=owner")
        page.locator("details.group-by > summary").click()
        assert visitor.hindrances(axe) == []
        assert visitor.overflow() == ""


def test_a_view_is_saved_found_and_deleted(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/?verdict=denied")
    save = page.get_by_role("main").locator("summary", has_text="Save view")
    hand.press(save)
    hand.fill(page.get_by_label("Name", exact=True).first, "Refused")
    hand.press(visitor.main("button", "Save"))
    page.locator(".views > summary", has_text="Refused").wait_for()
    visitor.go("/decisions/")
    hand.press(page.locator(".views > summary"))
    hand.press(visitor.main("link", "Refused"))
    page.wait_for_url("**/decisions/?verdict=denied")
    hand.press(save)
    hand.press(visitor.main("button", "Delete Refused"))
    page.locator(".views").wait_for(state="detached")


def test_a_view_is_shared_with_everybody_and_deleted_by_an_admin(
    visit: Callable[[str], Visitor], axe: Path, hand: Hand
) -> None:
    owner = visit("viewer")
    name = f"Mutated by {type(hand).__name__}"
    page = owner.go("/decisions/?verdict=mutated")
    save = page.get_by_role("main").locator("summary", has_text="Save view")
    hand.press(save)
    hand.fill(page.get_by_label("Name", exact=True).locator("visible=true"), name)
    hand.press(owner.main("button", "Save"))
    page.locator(".views > summary", has_text=name).wait_for()
    hand.press(save)
    hand.press(owner.main("button", f"Share {name}"))
    page.locator(".toast").first.wait_for()
    owner.go("/decisions/?verdict=mutated")
    hand.press(save)
    owner.main("button", f"Stop sharing {name}").wait_for()
    assert owner.hindrances(axe) == []
    reader = visit("other")
    page = reader.go("/decisions/")
    hand.press(page.locator(".views > summary"))
    hand.press(page.locator(".views .menu a", has_text=name))
    page.wait_for_url("**/decisions/?verdict=mutated")
    hand.press(page.get_by_role("main").locator("summary", has_text="Save view"))
    assert reader.main("button", f"Delete {name}").count() == 0
    admin = visit("admin")
    page = admin.go("/decisions/")
    hand.press(page.get_by_role("main").locator("summary", has_text="Save view"))
    hand.press(admin.main("button", f"Delete {name}"))
    page.locator(".views").wait_for(state="detached")


def is_focused(page: Page, selector: str, number: int) -> bool:
    row = page.locator(selector).nth(number)
    return bool(row.evaluate("row => row === document.activeElement"))


def test_a_panel_follows_the_rows_and_gives_the_focus_back(
    visit: Callable[[str], Visitor],
) -> None:
    page = visit("viewer").go("/decisions/?verdict=denied")
    panel = page.get_by_role("complementary", name="The decision in short")
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    panel.get_by_role("heading", name="Request").wait_for()
    name = panel.locator("header b").inner_text()
    assert name == page.locator(f"{LOG} [data-open]").nth(1).inner_text()
    assert is_focused(page, LOG, 1)
    page.keyboard.press("j")
    third = page.locator(f"{LOG} [data-open]").nth(2).inner_text()
    panel.locator("header b", has_text=third).wait_for()
    assert page.locator(f"{LOG}[aria-selected=true]").count() == 1
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")
    assert is_focused(page, LOG, 2)
    assert page.locator(f"{LOG}[aria-selected=true]").count() == 0
    page.keyboard.press("k")
    assert is_focused(page, LOG, 1)
    assert not panel.is_visible()


def test_a_panel_is_opened_moved_and_closed(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    page = visitor.go("/decisions/?verdict=denied")
    links = page.locator(f"{LOG} [data-open]")
    panel = page.get_by_role("complementary", name="The decision in short")
    hand.press(links.first)
    hand.press(panel.get_by_role("button", name="Next decision"))
    panel.locator("header b", has_text=links.nth(1).inner_text()).wait_for()
    hand.press(panel.get_by_role("button", name="Previous decision"))
    panel.locator("header b", has_text=links.first.inner_text()).wait_for()
    hand.press(panel.get_by_role("button", name="Close"))
    panel.wait_for(state="detached")
    assert is_focused(page, LOG, 0)


def test_enter_on_the_shown_row_opens_the_whole_page(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/?verdict=denied")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("complementary", name="The decision in short").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="How to fix").wait_for()


def test_a_panel_ends_with_the_window(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/?verdict=denied")
    page.locator(LOG).first.click()
    footer = page.locator("#panel > footer")
    for scrolled in (0, 200, 9000):
        page.evaluate(f"scrollTo(0, {scrolled})")
        page.wait_for_timeout(200)  # for the event of the scroll
        assert abs(footer.evaluate(GAP)) <= 1
    assert footer.is_visible()


def test_rows_lead_to_the_page_on_a_phone(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("viewer")
    visitor.look(theme="light", size=PHONE)
    page = visitor.go("/decisions/?verdict=denied")
    page.locator(LOG).first.click()
    page.get_by_role("heading", name="How to fix").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("query", ["verdict=denied", "verdict=mutated", "verdict=allowed"])
def test_a_panel_is_accessible(
    visit: Callable[[str], Visitor], axe: Path, theme: str, query: str
) -> None:
    visitor = visit("admin")
    page = visitor.go(f"/decisions/?{query}")
    page.locator(LOG).first.click()
    page.get_by_role("complementary", name="The decision in short").wait_for()
    for width in (1440, 1000):
        visitor.look(theme=theme, size={"width": width, "height": 900})
        assert visitor.hindrances(axe) == []
        assert visitor.overflow() == ""
