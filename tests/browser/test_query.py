"""The query of the log: terms that it offers, and what it excludes."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.cluster_side import review_pod
from tests.browser.hands import HANDS, Clicks
from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
LOG = ".log > tbody > tr"
MOST_TABS = 12


def query_of(page: Page) -> Locator:
    return page.get_by_label("Query")


def offered(page: Page, name: str) -> Locator:
    return page.get_by_role("listbox", name="Terms").get_by_role("option", name=name, exact=True)


def verdicts(page: Page) -> set[str]:
    return {words.strip() for words in page.locator(f"{LOG} .verdict").all_inner_texts()}


def test_a_minus_excludes(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/decisions/")
    assert "mutated" in verdicts(page)
    hand.fill(query_of(page), "-verdict:allowed -verdict:mutated")
    page.keyboard.press("Enter")
    page.wait_for_url("**/decisions/?exclude=*")
    assert not verdicts(page) & {"allowed", "mutated"}
    assert "denied" in verdicts(page)
    hand.fill(query_of(page), "-nmspc:web")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("-nmspc:").wait_for()


def test_terms_are_taken_by_keys(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    field = query_of(page)
    page.keyboard.press("/")
    page.keyboard.type("ver")
    page.locator(".terms code", has_text="verdict:").first.wait_for()
    assert field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")
    offered(page, "verdict:denied").wait_for()
    page.keyboard.type("de")
    offered(page, "verdict:mutated").wait_for(state="detached")
    page.keyboard.press("ArrowDown")
    chosen = field.get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert field.input_value() == "verdict:denied "
    page.keyboard.type("-ns:")
    offered(page, "-ns:payments").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("listbox", name="Terms").wait_for(state="hidden")
    assert field.evaluate("field => field === document.activeElement")
    page.keyboard.type("pay")
    offered(page, "-ns:payments").wait_for()
    page.keyboard.press("Tab")
    assert field.input_value() == "verdict:denied -ns:payments "
    page.keyboard.press("Enter")
    page.wait_for_url("**/decisions/?verdict=denied&exclude=ns*payments")
    assert page.locator(f"{LOG} .place", has_text="payments").count() == 0


def test_terms_are_taken_by_mouse(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    query_of(page).fill("user:x ve")
    page.locator(".terms code", has_text="verdict:").first.click()
    offered(page, "verdict:would-deny").click()
    assert query_of(page).input_value() == "user:x verdict:would-deny "
    assert query_of(page).evaluate("field => field === document.activeElement")


def test_words_within_a_query_are_completed(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    field = query_of(page)
    field.fill("kind:Pod ns:pay verdict:denied")
    field.evaluate("field => field.setSelectionRange(15, 15)")
    page.keyboard.press("ArrowDown")
    offered(page, "ns:payments").click()
    assert field.input_value() == "kind:Pod ns:payments verdict:denied"


def test_terms_follow_the_caret(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    field = query_of(page)
    field.fill("ns:pay verdict:de")
    offered(page, "verdict:denied").wait_for()
    field.evaluate("field => field.setSelectionRange(6, 6)")
    offered(page, "ns:payments").click()
    assert field.input_value() == "ns:payments verdict:de"


def test_the_query_does_not_hold_the_focus(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/?namespace=payments")
    field = query_of(page)
    field.focus()
    page.keyboard.press("ArrowDown")
    page.locator(".terms [role=option]").first.wait_for()
    page.keyboard.press("Tab")
    assert not field.evaluate("field => field === document.activeElement")
    page.get_by_role("listbox", name="Terms").wait_for(state="hidden")


def test_values_are_those_that_the_reader_sees(visit: Callable[[str], Visitor]) -> None:
    page = visit("editor").go("/decisions/")
    query_of(page).fill("ns:")
    offered(page, "ns:payments").wait_for()
    assert page.locator(".terms [role=option]").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_terms_are_accessible(visit: Callable[[str], Visitor], axe: Path, theme: str) -> None:
    visitor = visit("admin")
    page = visitor.go("/decisions/")
    query_of(page).fill("verdict:")
    page.keyboard.press("ArrowDown")
    offered(page, "verdict:denied").wait_for()
    page.keyboard.press("ArrowDown")
    for size in (WIDE, {"width": 1000, "height": 900}, PHONE):
        visitor.look(theme=theme, size=size)
        assert visitor.hindrances(axe) == []
        assert visitor.overflow() == ""


def test_marks_of_the_plot_lead_to_revisions(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("admin")
    page = visitor.go("/decisions/")
    mark = page.locator(".plot-marks > a:not(.bare)").first
    mark.wait_for()
    number = mark.inner_text().rpartition("#")[2]
    hand.press(page.locator(".log-plot > details > summary"))
    listed = page.locator(".marked-changes a")
    assert listed.count() == page.locator(".plot-marks > a").count()
    address = mark.get_attribute("href") or ""
    hand.press(page.locator(f'.marked-changes a[href="{address}"]'))
    page.wait_for_url(f"**/revisions/{number}/")


def test_a_mark_is_pressed(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/decisions/")
    mark = page.locator(".plot-marks > a:not(.bare)").first
    mark.hover()
    page.get_by_role("tooltip").wait_for()
    mark.click()
    page.wait_for_url("**/revisions/*/")


def test_a_crowd_of_marks_says_what_it_is(
    visit: Callable[[str], Visitor], world: dict[str, Any]
) -> None:
    visitor = visit("admin")
    # A place of its own: changes of other journeys would stand among these. Without a decision
    # there would be no plot.
    review_pod(visitor, world, name="crowded", namespace="team-search")
    place = "/clusters/demo/namespaces/team-search/limitranges/new"
    visitor.go("/decisions/")
    for number in range(3):
        limits = [{"type": "PersistentVolumeClaim", "max": {"storage": f"{number + 1}Ti"}}]
        made = {"metadata": {"name": f"crowd-{number}"}, "spec": {"limits": limits}}
        text = json.dumps({"apiVersion": "v1", "kind": "LimitRange", **made})
        assert visitor.post(place, do="save", yaml=text, reason="x") == HTTPStatus.FOUND
    page = visitor.go("/decisions/?last=1h&namespace=team-search")
    page.locator(".plot-marks > a").first.wait_for()
    named = page.locator(".plot-marks > a:not(.bare)", has_text="crowd-")
    assert named.count() == 1
    assert named.bounding_box()["width"] > 40


def test_cells_filter_for_and_out(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/?verdict=denied")
    row = page.locator(LOG).first
    user = row.get_attribute("data-user") or ""
    row.locator(".user").hover()
    page.get_by_role("link", name=f"Filter for user {user}", exact=True).click()
    page.wait_for_url(lambda url: "user=" in url)
    rows = page.locator(LOG)
    users = rows.evaluate_all("rows => rows.map((row) => row.dataset.user)")
    assert all(each.startswith(user) for each in users)
    namespace = rows.first.get_attribute("data-place")
    rows.first.locator(".place").hover()
    page.get_by_role("link", name=f"Filter out namespace {namespace}", exact=True).click()
    page.wait_for_url("**/decisions/?*exclude=*")
    assert query_of(page).input_value().endswith(f"verdict:denied -ns:{namespace}")
    places = page.locator(LOG).evaluate_all("rows => rows.map((row) => row.dataset.place)")
    assert namespace not in places


def test_cells_add_no_tab_stops(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/decisions/")
    page.locator(f"{LOG} .user").first.hover()
    pair = page.locator(".cell-filters.floating a")
    assert pair.count() == 2
    assert pair.evaluate_all("links => links.every((link) => link.tabIndex === -1)")
    page.locator("h1").hover()
    pair.first.wait_for(state="detached")


def test_the_panel_filters_by_keyboard_as_well(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("viewer").go("/decisions/?verdict=denied")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="The decision in short")
    hand.press(panel.get_by_role("link", name="Filter out reason"))
    page.wait_for_url("**/decisions/?verdict=denied&exclude=reason*")
    assert "-reason:" in query_of(page).input_value()
    page.locator(LOG).first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_filters_of_cells_are_accessible(
    visit: Callable[[str], Visitor], axe: Path, theme: str
) -> None:
    visitor = visit("admin")
    page = visitor.go("/decisions/?verdict=denied")
    visitor.look(theme=theme, size=WIDE)
    page.locator(f"{LOG} .user").first.hover()
    page.locator(".cell-filters.floating").wait_for()
    assert visitor.hindrances(axe) == []
    page.locator(LOG).first.click()
    page.locator(".panel-filters").wait_for()
    assert visitor.hindrances(axe) == []


def test_why_a_pod_was_refused_takes_two_clicks(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    page = visit("viewer").go("/")
    clicks = Clicks(hand)
    clicks.press(page.locator('[data-nav="decisions"]'))
    page.wait_for_url("**/decisions/")
    clicks.enter(query_of(page), "settlement verdict:denied")
    page.wait_for_url("**/decisions/?name=settlement&verdict=denied")
    clicks.press(page.locator(f"{LOG} [data-open]").first)
    panel = page.get_by_role("complementary", name="The decision in short")
    panel.get_by_role("heading", name="How to fix").wait_for()
    assert clicks.number == 2


def test_all_decisions_of_a_user_take_two_clicks(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/")
    clicks = Clicks(HANDS["mouse"])
    clicks.press(page.locator('[data-nav="decisions"]'))
    page.wait_for_url("**/decisions/")
    row = page.locator(LOG).first
    user = row.get_attribute("data-user") or ""
    row.locator(".user").hover()
    clicks.press(page.get_by_role("link", name=f"Filter for user {user}", exact=True))
    page.wait_for_url(lambda url: "user=" in url)
    assert query_of(page).input_value() == f"user:{user}"
    assert clicks.number == 2


def test_all_decisions_of_a_user_are_found_by_keys(visit: Callable[[str], Visitor]) -> None:
    page = visit("viewer").go("/")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/decisions/")
    page.keyboard.press("/")
    page.keyboard.type("user:ci-d")
    offered(page, "user:ci-deployer").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/decisions/?user=ci-deployer")


def test_denials_of_a_week_are_a_file_in_three_clicks(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    page = visit("viewer").go("/")
    clicks = Clicks(hand)
    clicks.press(page.locator('[data-nav="decisions"]'))
    page.wait_for_url("**/decisions/")
    clicks.enter(query_of(page), "verdict:denied last:7d")
    page.wait_for_url("**/decisions/?verdict=denied&last=7d")
    clicks.press(page.locator(".actions summary", has_text="Export"))
    with page.expect_download() as download:
        clicks.press(page.get_by_role("link", name="CSV"))
    rows = download.value.path().read_text().splitlines()
    assert len(rows) > 1
    assert all(",denied," in row for row in rows[1:] if row[:2].isalnum())
    assert clicks.number == 3


def test_the_first_decision_is_a_few_tabs_away(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/decisions/")
    tabs = 0
    while not page.evaluate("document.activeElement.matches('.log > tbody > tr')"):
        page.keyboard.press("Tab")
        tabs += 1
        assert tabs <= MOST_TABS
        if page.evaluate("document.activeElement.textContent") == "Skip to the decisions":
            page.keyboard.press("Enter")
