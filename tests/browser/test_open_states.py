"""Open states: dialogs, menus, sheets, tabs and rows, in both themes and three widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.looks import look_around
from tests.browser.pages import CLUSTER, PAGES
from tests.browser.visitor import PHONE, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ui
LOG = "/decisions/?exclude=ns:web verdict:allowed"
RANGE = PAGES["limit range"]
CLASS = PAGES["namespace class, edited"]
POLICIES = "/policies/"
QUEUE = f"{CLUSTER}/objects/"
FACETS = ("click [data-filters]", "dialog[open] .facet-column")
ROW_MENU = "click td .button[aria-label^=More]"
EDIT_MENU = "click .edit-head details > summary"
CHANGED = ("click [data-tab=form]", "fill #row-0-max", "#diff-count:text('1')")
STATES = {
    "palette": ("/", "press Control+k", "[data-palette] [role=option]"),
    "shortcuts": ("/", "press ?", "[data-shortcut-sheet][open]"),
    "drawer": ("/", "click .drawer-button", ".side nav"),
    "clusters to choose": ("/", "click .switcher > summary"),
    "zones": ("/", "click .zone > summary"),
    "account": ("/", "click .user > summary"),
    "alerts": (LOG, "click .alert-strip > summary"),
    "view to save": (LOG, "click .actions summary:text('Save view')"),
    "export": (LOG, "click .actions summary:text('Export')"),
    "period": (LOG, "click .period > summary"),
    "all filters": (LOG, "click .query-bar .end > :last-child > summary"),
    "plot as a table": (LOG, "click .log-plot summary"),
    "columns": (LOG, "click .columns > summary"),
    "groups to choose": (LOG, "click .group-by > summary"),
    "facets of decisions": (LOG, *FACETS),
    "facets of policies": (POLICIES, *FACETS),
    "facets of changes": ("/clusters/-/changes/", *FACETS),
    "menu of a policy": (POLICIES, ROW_MENU),
    "policies chosen": (POLICIES, "click .pick", ".bulk-bar"),
    "policy to clone": (POLICIES, ROW_MENU, "click .menu a:text('Clone to')", "#edit-sheet[open]"),
    "policy to delete": (POLICIES, ROW_MENU, "click .menu a:text('Delete')", "#edit-sheet[open]"),
    "editor's menu": (RANGE, EDIT_MENU),
    "to clone": (RANGE, EDIT_MENU, "click .menu a:text('Clone to')", "#clone-dialog[open]"),
    "to delete": (RANGE, EDIT_MENU, "click .menu a:text('Delete')", "#delete-dialog[open]"),
    "to save": (RANGE, *CHANGED, "press Control+s", "#save-dialog[open] #reason"),
    "tab YAML": (RANGE, "click [data-tab=yaml]", "#pane-yaml"),
    "tab Diff": (RANGE, *CHANGED, "click [data-tab=diff]", "#pane-diff"),
    "tab Impact": (RANGE, "click [data-tab=impact]", "#restarts .impact-words"),
    "tab Impact, refusals": (
        RANGE,
        *CHANGED,
        "click [data-tab=impact]",
        "#restarts .owner-line",
        "click .owner-lines summary",
    ),
    "tab Test": (RANGE, "click [data-tab=test]", "#pane-test"),
    "tab History": (RANGE, "click [data-tab=history]", "#pane-history"),
    "tab Impact of a class": (
        CLASS,
        "click [data-tab=form]",
        "fill #clusters",
        "#diff-count:text('2')",
        "click [data-tab=impact]",
        "#restarts .impact-figures",
    ),
    "tab Impact of a new class": (
        PAGES["new namespace class"],
        "click [data-tab=form]",
        "fill #names",
        "#matches .hint",
        "clear #names",
        "#matches .place-lines",
        "click [data-tab=impact]",
        "#restarts .effect-lines",
    ),
    "tab History of a class": (CLASS, "click [data-tab=history]", "#pane-history"),
    "class to save": (CLASS, "press Control+s", "#save-dialog[open] #reason"),
    "class to delete": (
        CLASS,
        EDIT_MENU,
        "click .menu a:text('Delete')",
        "#delete-dialog[open]",
    ),
    "sides of a drift": (QUEUE, "click [data-unfold]", "[data-unfold][aria-expanded=true]"),
    "how to settle": (QUEUE, "click .settle-menu > summary"),
    "quotas chosen": ("/quotas/", "click .pick", "#raise-many"),
    "quota beside the list": ("/quotas/", "click [data-open]", "[data-panel]"),
}
"""The address, and the steps: click, press, fill, or wait for a part."""
NARROW = {"drawer", "facets of changes", "facets of decisions", "facets of policies", "to save"}
"""States that a phone alone has; all tabs of an editor are opened there, too."""


def take(page: Page, step: str) -> None:
    act, _, rest = step.partition(" ")
    if act == "click":
        page.locator(rest).locator("visible=true").first.click()
    elif act == "press":
        page.keyboard.press(rest)
    elif act == "fill":
        page.locator(rest).fill("1")
    elif act == "clear":
        page.locator(rest).fill("")
    else:
        page.locator(step).first.wait_for()


@pytest.mark.sampled
@pytest.mark.parametrize("name", STATES)
def test_open_state_is_accessible(visit: Callable[[str], Visitor], axe: Path, name: str) -> None:
    visitor = visit("admin")
    address, *steps = STATES[name]
    is_narrow = name in NARROW or name.startswith("tab ")
    visitor.look(theme="light", size=PHONE if is_narrow else WIDE)
    page = visitor.go(address)
    for step in steps:
        take(page, step)
    look_around(visitor, axe)
