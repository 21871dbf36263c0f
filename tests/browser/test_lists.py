"""Lists of the fleet as a person uses them: policies found, picked, edited in bulk; a new one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.hands import Clicks
from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
WRITES: Final = re.compile(r"^Change \d")
"""The button of an edit of many that writes: it names how many."""
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


def test_policies_are_found_by_values_grouped_and_shown_in_chosen_columns(
    visit: Callable[[str], Visitor], hand: Hand, axe: Path
) -> None:
    visitor = visit("viewer")
    page = visitor.go("/policies/")
    hand.fill(page.get_by_role("searchbox"), "pods>=1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/policies/?*words=pods*")
    kinds = page.locator(".policy-rows tbody .kind")
    assert {each.inner_text().split()[0] for each in kinds.all()} == {"RQ"}
    toolbar = page.get_by_role("search", name="Policies")
    for menu, choice, query in (
        ("Columns", "Version", "columns="),
        ("Group", "cluster", "group=cluster"),
    ):
        hand.press(toolbar.locator("summary", has_text=menu))
        # What an open menu covers in part is no target while it is open.
        found = visitor.hindrances(axe)
        assert [each for each in found if not each.startswith("target-size")] == []
        hand.press(toolbar.get_by_role("link", name=choice, exact=True))
        page.wait_for_url(f"**/policies/?*{query}*")
    assert page.get_by_role("columnheader", name="Version").count() == 0
    groups = page.locator(".policy-rows [data-group]")
    numbers = [int(each.inner_text().split()[-1]) for each in groups.all()]
    assert sum(numbers) == page.locator("input[name=pick]").count()
    assert visitor.hindrances(axe) == []
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.querySelector('[data-open]') !== null")
    hand.press(page.get_by_role("complementary").locator("summary", has_text="Changed by"))
    who = page.get_by_role("complementary").locator("a[href*='user=']").first
    number = int(who.inner_text().split()[-1])
    hand.press(who)
    page.wait_for_url("**/policies/?*user=*")
    assert page.locator("input[name=pick]").count() == number
    assert "columns=" in page.url


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


def test_picked_namespaces_get_one_policy(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("admin").go("/clusters/demo/namespaces/")
    bar = page.get_by_role("form", name="Selected namespaces")
    assert not bar.is_visible()
    for name in ("payments", "web"):
        hand.tick(page.get_by_role("checkbox", name=f"Select {name}", exact=True))
    hand.press(bar.get_by_role("button", name="New policy in these"))
    page.wait_for_url("**/policies/new/*")
    assert page.get_by_label("Namespace").input_value() == "payments, web"
    page.get_by_label("Kind").select_option("LimitRange")
    hand.press(page.get_by_role("button", name="Continue"))
    page.wait_for_url("**/namespaces/payments/limitranges/new?also=web")
    assert page.locator(".place-chip").all_inner_texts() == ["payments", "web"]


def test_many_policies_change_mode_and_back(
    visit: Callable[[str], Visitor], hand: Hand, axe: Path
) -> None:
    visitor = visit("admin")
    page = visitor.go("/policies/?cluster=demo-priority&kind=ResourceQuota&order=name")
    boxes = page.get_by_role("checkbox", name="Select", exact=False)
    picks = page.locator("input[name=pick]")
    bar = page.get_by_role("form", name="Selected policies")
    assert not bar.is_visible()
    hand.tick(boxes.first)
    number = picks.count()
    assert bar.get_by_role("status").inner_text() == f"{number} selected"
    assert page.locator("tr[aria-selected=true]").count() == number
    place = bar.bounding_box()
    assert place is not None
    assert 830 <= place["y"] <= 850
    hand.press(bar.get_by_text("Change mode"))
    hand.press(bar.get_by_role("button", name="warn"))
    sheet = page.get_by_role("dialog")
    sheet.get_by_text("enforce").first.wait_for()
    assert visitor.hindrances(axe) == []
    hand.fill(sheet.get_by_label("Reason (kept on record)"), "only to see")
    with page.expect_navigation():
        hand.press(sheet.get_by_role("button", name=WRITES))
    assert page.locator("tbody .mode").all_inner_texts() == ["warn"] * number
    page.get_by_role("button", name="Undo").focus()  # while it has the focus, the toast stays
    with page.expect_navigation():
        page.keyboard.press("Enter")
    visitor.go("/policies/?cluster=demo-priority&kind=ResourceQuota")
    assert page.locator("tbody .mode").all_inner_texts() == ["enforce"] * number


def test_rows_are_picked_by_keys_and_in_ranges(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/policies/?order=name")
    status = page.locator("[data-picked]")
    for key in ("j", "x", "j", "j", "X"):
        page.keyboard.press(key)
    assert status.inner_text() == "3 selected"
    page.keyboard.press("x")
    assert status.inner_text() == "2 selected"
    page.locator("input[name=pick]").nth(4).click(modifiers=["Shift"])
    assert status.inner_text() == "5 selected"
    page.get_by_role("button", name="Clear the selection").click()
    assert page.locator("input[name=pick]:checked").count() == 0


def test_a_policy_is_cloned_from_its_row(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("admin").go("/policies/?cluster=demo&namespace=payments&kind=LimitRange")
    hand.press(page.locator("tbody .menu-cell summary").first)
    hand.press(page.get_by_role("link", name="Clone to…").first)
    sheet = page.get_by_role("dialog")
    name = f"cloned-by-{type(hand).__name__.lower()}"
    hand.fill(sheet.get_by_label("Name there"), name)
    hand.fill(sheet.get_by_label("Namespaces", exact=True), "web no-such")
    sheet.get_by_text("left out").wait_for()
    sheet.get_by_role("button", name="Write 1 policy").wait_for()
    hand.fill(sheet.get_by_label("Reason (kept on record)"), "the same in web")
    with page.expect_navigation():
        hand.press(sheet.get_by_role("button", name="Write 1 policy"))
    page.goto(f"/policies/?words={name}")
    assert page.locator("tbody tr").count() == 1
    hand.press(page.locator("tbody .menu-cell summary").first)
    hand.press(page.get_by_role("link", name="Delete…").first)
    hand.fill(sheet.get_by_label("Reason (kept on record)"), "enough")
    with page.expect_navigation():
        hand.press(sheet.get_by_role("button", name="Delete 1 policy"))
    page.goto(f"/policies/?words={name}")
    assert page.locator("tbody tr").count() == 0


def test_who_changed_it_is_read_and_taken_back(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("admin")
    page = visitor.go("/policies/?cluster=demo&namespace=web&words=limits&kind=LimitRange")
    page.locator("input[name=pick]").first.check()
    page.get_by_role("form", name="Selected policies").get_by_text("Change mode").click()
    page.get_by_role("button", name="audit").click()
    page.get_by_role("dialog").get_by_label("Reason (kept on record)").fill("a mistake")
    with page.expect_navigation():
        page.get_by_role("dialog").get_by_role("button", name=WRITES).click()
    visitor.go("/")
    clicks = Clicks(hand)
    clicks.press(page.get_by_role("navigation", name="Main").get_by_role("link", name="History"))
    page.wait_for_url("**/changes/**")
    row = page.locator(".change-rows tbody tr").first
    assert "admin" in row.inner_text()
    assert "a mistake" in row.inner_text()
    clicks.press(row.get_by_role("link", name="Restore…", exact=False))
    page.wait_for_url("**/revisions/**")
    hand.fill(page.get_by_label("Reason (kept on record)"), "it was one")
    with page.expect_navigation():
        clicks.press(page.get_by_role("button", name="Restore version", exact=False))
    visitor.go("/policies/?cluster=demo&namespace=web&words=limits&kind=LimitRange")
    assert page.locator("tbody .mode").all_inner_texts() == ["enforce"]
    assert clicks.number <= 4


def test_history_begins_high_and_is_narrowed(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("viewer")
    for size, first, height in ((WIDE, 210, 36), (PHONE, 320, 60)):
        visitor.look(theme="light", size=size)
        rows = visitor.go("/clusters/-/changes/").locator(".change-rows tbody tr")
        places = rows.evaluate_all(PLACES)
        assert places[0][0] <= first
        assert {each for _, each in places} == {height}
    visitor.look(theme="light", size=WIDE)
    page = visitor.go("/clusters/-/changes/")
    facets = page.get_by_role("complementary", name="Facets")
    chosen = facets.get_by_role("link", name="ResourceQuota")
    number = int(chosen.inner_text().split()[-1])
    hand.press(chosen)
    page.wait_for_url("**/changes/?kind=ResourceQuota")
    assert page.locator(".total").inner_text().startswith(f"{number} change")


def test_policies_are_imported(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("admin")
    page = visitor.go("/")
    name = f"imported-by-{type(hand).__name__.lower()}"
    clicks = Clicks(hand)
    clicks.press(page.get_by_role("navigation", name="Main").get_by_role("link", name="Import"))
    page.wait_for_url("**/import/")
    clicks.press(page.get_by_role("main").get_by_role("link", name="demo", exact=True))
    page.wait_for_url("**/clusters/demo/import/")
    field = page.locator(".cm-content")
    field.focus()
    page.keyboard.insert_text(
        "apiVersion: v1\nkind: ResourceQuota\n"
        f"metadata: {{name: {name}, namespace: web}}\nspec: {{hard: {{pods: 90}}}}\n"
    )
    with page.expect_navigation():
        clicks.press(visitor.main("button", "Preview the changes"))
    assert name in page.get_by_role("main").get_by_role("table").inner_text()
    hand.fill(page.get_by_label("Reason (kept on record)"), "moved here")
    with page.expect_navigation():
        clicks.press(visitor.main("button", "Save all 1"))
    page.wait_for_url("**/policies/?cluster=demo")
    visitor.go(f"/policies/?words={name}")
    assert page.locator(".policy-rows tbody tr").count() == 1
    assert clicks.number <= 6


def test_clusters_are_picked_by_keys_and_in_ranges(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/clusters/")
    status = page.locator("[data-picked]")
    for key in ("j", "x", "j", "j", "X"):
        page.keyboard.press(key)
    assert status.inner_text() == "3 selected"
    page.get_by_role("button", name="Clear the selection").click()
    assert page.locator("input[name=pick]:checked").count() == 0
