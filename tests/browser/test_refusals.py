"""The journey of a refused user: find the decision, read the reason, apply the fix, see it pass."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.hands import Hand
    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
NAMESPACE = "/clusters/demo/namespaces/payments/simulate/"


@pytest.mark.parametrize("name", ["viewer", "editor", "admin"])
def test_a_denial_is_found_understood_and_fixed(
    visit: Callable[[str], Visitor], hand: Hand, name: str
) -> None:
    visitor = visit(name)
    page = visitor.go("/")
    hand.press(page.get_by_role("navigation", name="Main").get_by_role("link", name="Decisions"))
    hand.fill(page.get_by_role("combobox", name="Query"), "verdict:denied name:sidecar-test")
    hand.press(visitor.main("button", "Search"))
    page.wait_for_url("**/decisions/?*name=sidecar-test*")
    hand.press(page.locator(".log [data-open]").first)
    hand.press(visitor.main("link", "Open why"))
    page.get_by_role("heading", name="How to fix").wait_for()
    assert "minimum cpu usage per Container is 50m" in page.get_by_role("main").inner_text()
    command = page.locator("#way-1").text_content() or ""
    changed = "\n".join(command.strip().splitlines()[1:-1])  # the suggested change
    page = visitor.go(NAMESPACE)
    hand.press(page.get_by_text("Paste an object of any kind instead"))
    hand.fill(page.get_by_label("YAML or JSON, one object"), changed)
    with page.expect_navigation():
        hand.press(visitor.main("button", "Simulate the pasted object"))
    outcome = page.locator("#outcome").inner_text()
    assert outcome.startswith("admitted"), f"{changed}\n{outcome}"


def test_a_pod_is_tried_before_it_is_created(visit: Callable[[str], Visitor], hand: Hand) -> None:
    visitor = visit("editor")
    page = visitor.go(NAMESPACE)
    hand.fill(page.get_by_label("CPU limit").first, "3")
    hand.fill(page.get_by_label("CPU request").first, "3")
    hand.press(visitor.main("button", "Simulate the pod"))
    page.locator("#outcome").get_by_text("MaxConstraint").first.wait_for()


@pytest.mark.parametrize("name", ["other", "approver"])
def test_denials_of_others_are_hidden(
    visit: Callable[[str], Visitor], world: dict[str, str], name: str
) -> None:
    visitor = visit(name)
    visitor.go(f"/decisions/{world['denied']}", status=404)
    visitor.go(NAMESPACE, status=404)
    visitor.go("/quotas/demo/payments/", status=404)
    found = visitor.go("/decisions/?namespace=payments").get_by_role("main").inner_text()
    assert "sidecar-test" not in found


def test_an_export_has_the_result_and_no_formulas(
    visit: Callable[[str], Visitor],
) -> None:
    visitor = visit("editor")
    visitor.go("/decisions/?verdict=denied")
    answer = visitor.context.request.get("/decisions/export.csv?verdict=denied")
    rows = list(csv.reader(io.StringIO(answer.text())))
    assert len(rows) > 100
    assert {row[rows[0].index("namespace")] for row in rows[1:]} == {"payments"}
