"""People: signing in as one of the demo's, and who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.demo_portal import PASSWORD
from tests.browser.hands import Clicks
from tests.browser.visitor import PHONE, WIDE, Visitor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.demo_portal import Portal
    from tests.browser.hands import Hand

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


def test_editor_of_team_namespaces_takes_six_clicks(
    visit: Callable[[str], Visitor], hand: Hand
) -> None:
    page = visit("admin").go("/")
    name, clicks = "Priya Nair", Clicks(hand)
    clicks.press(page.locator('[data-nav="people"]'))
    page.wait_for_url("**/people/")
    clicks.press(page.get_by_role("link", name=name, exact=True))
    panel = page.get_by_role("complementary", name=name)
    clicks.press(panel.get_by_role("link", name="Give role"))
    clicks.select(panel.get_by_label("Role", exact=True), "editor")
    clicks.fill(panel.get_by_label("Namespace", exact=True), "team-*")
    clicks.press(panel.get_by_role("button", name="Give role"))
    assert clicks.number <= 6
    given = panel.get_by_role("region", name="Roles")
    row = given.get_by_role("listitem").filter(has_text="team-*")
    row.wait_for()
    assert "editor" in row.inner_text()
    hand.press(row.get_by_role("button", name="Revoke"))
    hand.press(page.get_by_role("dialog").get_by_role("button", name="Revoke"))
    row.wait_for(state="detached")


def test_question_is_answered_with_its_rule(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("admin").go("/people/?who=grace.mbeki")
    answer = page.locator("#answer")
    assert answer.inner_text().split() == "Yes. Role editor of payments*.".split()
    hand.fill(page.get_by_label("in", exact=True), "demo / web")
    hand.press(page.get_by_role("button", name="Ask"))
    answer.get_by_text("No.").wait_for()
    hand.select(page.get_by_label("Action"), "hold")
    page.locator("#answer.no").wait_for()
    assert page.get_by_role("row", name="demo / payments").locator("span.yes").count() == 3


def test_rows_open_by_keys_and_esc_returns(visit: Callable[[str], Visitor]) -> None:
    page = visit("admin").go("/people/")
    first = page.locator("#people-rows tbody tr").first.bounding_box()
    assert first
    assert first["y"] <= 320
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("complementary", name="Ada Okafor").wait_for()
    page.keyboard.press("j")
    page.get_by_role("complementary", name="admin").wait_for()
    page.keyboard.press("Escape")
    page.locator("#panel").wait_for(state="detached")
    # The policy of the page refuses functions that are given as text and asked again.
    page.locator("#row-admin:focus").wait_for()
    assert "who=" not in page.url


def test_list_is_searched_while_typing(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("admin").go("/people/")
    hand.fill(page.get_by_role("searchbox"), "payments-dev")
    page.locator("#people-rows tbody tr").nth(1).wait_for(state="detached")
    assert page.locator("#people-rows tbody tr").count() == 1


def test_person_is_invited_and_sets_a_password(
    visit: Callable[[str], Visitor], browser: Browser, portal: Portal, hand: Hand
) -> None:
    page = visit("admin").go("/people/")
    hand.press(page.get_by_role("link", name="Invite", exact=True))
    panel = page.get_by_role("complementary", name="Invite a person")
    name = f"eve.{type(hand).__name__.lower()}"
    hand.fill(panel.get_by_label("Username"), name)
    hand.fill(panel.get_by_label("E-mail"), f"{name}@example.com")
    first = panel.get_by_role("group", name="Role 1")
    hand.select(first.get_by_label("Role", exact=True), "editor")
    hand.fill(first.get_by_label("Namespace"), "team-*")
    hand.press(panel.get_by_role("button", name="Invite"))
    link = page.locator("#link").inner_text()
    assert "editor" in page.locator("#panel").inner_text()
    hand.press(page.get_by_role("button", name="Copy", exact=True))

    invited = Visitor(browser, portal.address)
    there = invited.go(link.removeprefix(portal.address))
    hand.fill(there.get_by_label("New password", exact=True), "wrong-mule-paper-clip")
    hand.fill(there.get_by_label("New password confirmation"), "wrong-mule-paper-clip")
    hand.press(there.get_by_role("button", name="Set the password"))
    there.wait_for_url(portal.address + "/")
    assert name in there.locator("details.user > summary").inner_text()
    invited.go(link.removeprefix(portal.address), status=410)
    invited.leave()


def test_picked_tokens_are_revoked_together(visit: Callable[[str], Visitor], hand: Hand) -> None:
    page = visit("admin").go("/account/")
    prefix = f"{type(hand).__name__.lower()} token"
    for number in (1, 2, 3):
        hand.fill(page.get_by_label("Name", exact=True), f"{prefix} {number}")
        hand.press(page.get_by_role("button", name="Create a token"))
        page.get_by_text("It is shown only once.").wait_for()
    page.goto("/people/tokens/")
    hand.fill(page.get_by_role("searchbox"), prefix)
    page.keyboard.press("Enter")
    page.wait_for_url("**q=**")
    bar = page.get_by_role("form", name="Selected tokens")
    assert not bar.is_visible()
    for number in (1, 3):
        hand.tick(page.get_by_label(f"Select {prefix} {number}"))
    assert "2 tokens selected" in bar.inner_text()
    hand.press(bar.get_by_role("button", name="Revoke"))
    question = page.get_by_role("dialog")
    assert "Revoke 2 tokens?" in question.inner_text()
    hand.press(question.get_by_role("button", name="Revoke"))
    page.get_by_text("Revoked: 2 tokens.").wait_for()
    rows = page.get_by_role("table", name="Tokens").locator("tbody tr")
    assert [f"{prefix} 2" in each for each in rows.all_inner_texts()] == [True]
    hand.press(rows.get_by_role("button", name="Revoke"))
    hand.press(page.get_by_role("dialog").get_by_role("button", name="Revoke"))
    page.get_by_role("heading", name="No token matches").wait_for()


def test_other_sessions_are_ended(
    visit: Callable[[str], Visitor], browser: Browser, portal: Portal, hand: Hand
) -> None:
    elsewhere = Visitor(browser, portal.address)
    elsewhere.sign_in("admin", PASSWORD, hand)
    page = visit("admin").go("/people/sign-ins/")
    hand.press(page.get_by_role("button", name="End sessions admin", exact=True))
    question = page.get_by_role("dialog")
    assert "all your sessions but this one" in question.inner_text()
    hand.press(question.get_by_role("button", name="End sessions"))
    page.get_by_text("of admin.").wait_for()
    assert page.url.endswith("/people/sign-ins/")
    assert "/accounts/login/" in elsewhere.go("/account/").url
    elsewhere.leave()


@pytest.mark.parametrize("tab", ["roles", "tokens", "activity"])
def test_tabs_of_the_panel_are_accessible(
    visit: Callable[[str], Visitor], axe: Path, tab: str
) -> None:
    visitor = visit("admin")
    for theme, size in (("light", WIDE), ("dark", PHONE)):
        visitor.look(theme=theme, size=size)
        page = visitor.go("/people/?who=grace.mbeki")
        page.get_by_role("navigation", name="Grace Mbeki").get_by_text(tab.capitalize()).click()
        page.get_by_role("region", name=tab.capitalize()).wait_for()
        assert visitor.hindrances(axe) == []
        assert visitor.overflow() == ""


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_panel_is_accessible_at_every_width(
    visit: Callable[[str], Visitor], axe: Path, width: int
) -> None:
    visitor = visit("admin")
    for theme in ("light", "dark"):
        visitor.look(theme=theme, size={"width": width, "height": 900})
        for query in ("who=grace.mbeki&give=1", "invite=1"):
            visitor.go(f"/people/?{query}")
            assert visitor.hindrances(axe) == []
            assert visitor.overflow() == ""
