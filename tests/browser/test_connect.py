"""The wizard that connects a cluster: tested first, stored then, in few clicks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.hands import Clicks
from tests.browser.test_clusters import kubeconfig
from tests.sync.fake_api import fake_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui


def test_cluster_is_tested_then_connected(
    visit: Callable[[str], Visitor], hand: Hand, axe: Path
) -> None:
    visitor, clicks, name = visit("admin"), Clicks(hand), f"wizard-{type(hand).__name__.lower()}"
    with fake_api() as api:
        page = visitor.go("/clusters/-/connect/")
        clicks.fill(page.get_by_label("Name", exact=True), name)
        clicks.fill(page.get_by_role("textbox", name="Kubeconfig"), kubeconfig(api))
        api.inject("status-401", times=50)
        hand.press(visitor.main("button", "Test"))
        failed = page.locator(".checks .failed")
        failed.wait_for()
        assert "create token" in failed.inner_text()
        assert visitor.hindrances(axe) == []
        assert page.get_by_role("button", name="Connect", exact=True).count() == 0
        api.faults.clear()
        clicks.press(page.get_by_role("button", name="Test again"))
        passed = page.locator(".checks .passed")
        passed.nth(5).wait_for()
        box = passed.first.bounding_box()
        assert box
        assert box["height"] == 44
        clicks.press(page.get_by_role("button", name="Connect", exact=True))
        page.wait_for_url(f"**/clusters/{name}/setup/")
    clicks.press(page.get_by_role("button", name="Take ownership"))
    clicks.press(page.get_by_role("dialog").get_by_role("button", name="Take ownership"))
    page.wait_for_url(f"**/clusters/{name}/ownership/")
    # The first test failed on purpose, and is not counted.
    assert clicks.number <= 6
