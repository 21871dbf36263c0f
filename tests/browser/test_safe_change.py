"""Journey: tighten, replay, loosen, have it approved, roll out, trip a guard, revert, look back."""

from __future__ import annotations

import json
import urllib.request
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.cluster_side import review_large_pod
from tests.browser.demo_portal import PASSWORD
from tests.browser.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Locator, Page

    from tests.browser.demo_portal import Portal
    from tests.browser.hands import Hand

pytestmark = pytest.mark.ui
WAVES = ("search", "checkout", "payments")
FIRST, LAST = 0, 3600
"""Seconds: beat leaves the first wave by itself; the others are left by hand, or by a guard."""


@pytest.fixture(scope="module")
def story(portal: Portal, world: dict[str, Any]) -> dict[str, Any]:
    """Two clusters of this journey alone; ``world`` has come first, as people must."""
    assert world
    return portal.run("safe_change")


@pytest.fixture
def approver(
    portal: Portal, browser: Browser, story: dict[str, Any], hand: Hand
) -> Iterator[Visitor]:
    visitor = Visitor(browser, portal.address)
    visitor.sign_in(story["approver"], PASSWORD, hand)
    yield visitor
    visitor.leave()


def test_a_change_is_made_safely_and_found_a_month_later(
    visit: Callable[[str], Visitor],
    approver: Visitor,
    portal: Portal,
    story: dict[str, Any],
    hand: Hand,
) -> None:
    author, cluster = visit("admin"), f"story-{type(hand).__name__.lower()}"
    change = _propose(author, hand, cluster)
    assert _replay(author, hand, change) == "31 requests would be refused"
    _put_in(author, hand, f"/clusters/{cluster}/namespaces/checkout", "3Gi", change)
    assert _replay(author, hand, change) == "19 requests would be refused"

    _take(author.page, hand, "Submit", "In review")
    author.until(change, "19 verdicts")
    assert author.page.get_by_role("button", name="Approve", exact=True).count() == 0
    page = approver.go(change)
    assert page.locator("#replay").inner_text() == "19 requests would be refused"
    _take(page, hand, "Approve", "Approved")

    _plan(portal, story, change)
    _roll_out(author, hand, f"{change}rollout/")
    at_cluster = {"cluster": cluster, "credential": story["credentials"][cluster]}
    review_large_pod(author, at_cluster, name="api-0", namespace="payments", memory="3Gi")
    author.until(f"{change}rollout/", "It stopped by itself")
    assert "payments/api" in author.page.locator(".notice.warning").inner_text()
    page = author.go(change)
    hand.press(page.get_by_role("button", name="Revert", exact=True))
    _confirm(page, hand, "Revert")
    page.locator('[aria-current="step"]:text-is("Reverted")').wait_for()

    minute = portal.run("month_later", cluster)["minute"]
    _look_back(author, hand, f"/clusters/{cluster}/namespaces/payments/", minute)


def _propose(author: Visitor, hand: Hand, cluster: str) -> str:
    """A new change that tightens three namespaces; returns its address."""
    page = author.go("/changes/-/new/")
    hand.fill(page.get_by_label("Title"), f"Lower the memory maximum in {cluster}")
    hand.press(page.get_by_role("button", name="Make the change"))
    page.wait_for_url("**/changes/*/")
    change = page.url.removeprefix(author.address)
    for namespace in WAVES:
        _put_in(author, hand, f"/clusters/{cluster}/namespaces/{namespace}", "2Gi", change)
    assert page.locator(".change-contents > li").count() == 1
    return change


def _put_in(author: Visitor, hand: Hand, place: str, maximum: str, change: str) -> None:
    """Edit the range of a namespace, and put the edit into the change."""
    page = author.go(f"{place}/limitranges/limits/")
    amount = page.locator('[name="row-0-max"]')
    amount.wait_for()
    hand.fill(amount, maximum)
    page.wait_for_timeout(800)  # the typed text has been validated
    hand.press(author.main("button", "Save"))
    dialog = page.locator("#save-dialog[open]")
    hand.select(dialog.locator("#change"), change.strip("/").rpartition("/")[2])
    hand.press(dialog.get_by_role("button", name="Add to change"))
    page.wait_for_url(f"**{change}")
    author.check()


def _replay(author: Visitor, hand: Hand, change: str) -> str:
    """Replay the change; returns what it found."""
    page = author.go(change)
    hand.press(page.get_by_role("button", name="Replay"))
    page.wait_for_url(f"**{change}replay/")
    author.until(f"{change}replay/", "would be refused")
    return page.locator("#replay").inner_text()


def _take(page: Page, hand: Hand, button: str, state: str) -> None:
    hand.press(page.get_by_role("button", name=button, exact=True))
    page.locator(f'[aria-current="step"]:text-is("{state}")').wait_for()


def _confirm(page: Page, hand: Hand, button: str) -> None:
    with page.expect_navigation():
        hand.press(page.locator("dialog[open]").get_by_role("button", name=button))


def _roll_out(author: Visitor, hand: Hand, tab: str) -> None:
    """Start, until the third of three waves: beat leaves the first one, the author the second."""
    page = author.go(tab)
    hand.press(page.get_by_role("button", name="Start", exact=True))
    _confirm(page, hand, "Start")
    author.until(tab, "stage 2 of 3")
    hand.press(page.get_by_role("button", name="Advance now"))
    _confirm(page, hand, "Advance now")
    page.get_by_text("stage 3 of 3").wait_for()


def _look_back(author: Visitor, hand: Hand, place: str, minute: str) -> None:
    """From what a namespace is now to what it was in a minute, and to what differs."""
    page = author.go(place)
    assert "4Gi" in page.locator("main").inner_text()
    hand.press(page.locator(".look-back > summary"))
    _choose(hand, page.get_by_label("Show this page as of"), minute)
    hand.press(page.get_by_role("button", name="Look back"))
    page.wait_for_url("**at=*")
    assert "2Gi" in page.locator("main").inner_text()
    hand.press(page.get_by_role("link", name="Compare with now"))
    page.wait_for_url("**/compare/?*")
    assert "2Gi to 4Gi" in page.locator("main").inner_text()


def _choose(hand: Hand, field: Locator, minute: str) -> None:
    """Enter a date and a time; by keys, part by part, as the field is filled in."""
    hand.fill(field, minute)
    if field.input_value() != minute:
        moment = datetime.fromisoformat(minute)
        field.page.keyboard.type(f"{moment:%m%d%Y}")
        field.page.keyboard.press("ArrowRight")
        field.page.keyboard.type(f"{moment:%I%M%p}")
    assert field.input_value() == minute


def _plan(portal: Portal, story: dict[str, Any], change: str) -> None:
    """Plan three waves, as a pipeline does."""
    waves = [
        {"namespaces": [name], "stages": [{"mode": "enforce", "dwell": FIRST if n == 0 else LAST}]}
        for n, name in enumerate(WAVES)
    ]
    plan = {"waves": waves, "guards": [{"kind": "denials_per_owner", "above": 0}]}
    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{portal.address}/api/v1{change}rollout/",
        method="PUT",
        data=json.dumps(plan).encode(),
        headers={
            "Authorization": f"Token {story['token']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own address
        assert answer.status == 200
