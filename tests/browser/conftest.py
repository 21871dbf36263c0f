"""One portal and one Chromium for all browser tests; without Chromium they are skipped."""

from __future__ import annotations

import os
import shutil
import zlib
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.browser import demo_portal
from tests.browser.hands import HANDS, Hand
from tests.browser.visitor import Visitor
from tests.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

AXE: Final = ROOT / "node_modules" / "axe-core" / "axe.min.js"
ARGUMENTS: Final = (
    # No name resolves: a request to another host fails, and the watch detects it.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--font-render-hinting=none",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests are sampled, make each journey with one hand, drawn by the random seed."""
    if config.getoption("one_in") == 1:
        return
    seed = config.getoption("randomly_seed", 0)
    left_out = {item for item in items if _hand_of(item) not in {None, _drawn_hand(item, seed)}}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _hand_of(item: pytest.Item) -> str | None:
    hand: str | None = _parameters(item).get("hand")
    return hand


def _drawn_hand(item: pytest.Item, seed: int) -> str:
    others = {name: value for name, value in _parameters(item).items() if name != "hand"}
    journey = f"{seed} {item.nodeid.partition('[')[0]} {others}"
    return list(HANDS)[zlib.crc32(journey.encode()) % len(HANDS)]


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}


@pytest.fixture(scope="session")
def chromium() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    if not found:
        pytest.skip("NO CHROMIUM HERE: pages are not tested; on Debian: apt install chromium")
    if not AXE.exists():
        pytest.skip(
            "NO FRONT-END PACKAGES HERE: pages are not tested; if npm reaches a registry: npm ci"
        )
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is used

    # As root, for example in containers, Chromium has no sandbox.
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=[*ARGUMENTS, *alone])
        yield started
        started.close()


@pytest.fixture(scope="session")
def portal(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[demo_portal.Portal]:
    with demo_portal.portal(tmp_path_factory.mktemp("portal")) as started:
        yield started


@pytest.fixture(scope="session")
def world(portal: demo_portal.Portal) -> dict[str, Any]:
    """People of all roles, and the names for addresses."""
    return portal.run("people")


@pytest.fixture(scope="session")
def states(portal: demo_portal.Portal, world: dict[str, Any], browser: Browser) -> dict[str, Any]:
    """The cookies of signed-in users, by name; nobody has none."""
    found: dict[str, Any] = {"nobody": None}
    for name in (*world["people"], "admin"):
        visitor = Visitor(browser, portal.address)
        visitor.sign_in(name, demo_portal.PASSWORD, HANDS["mouse"])
        found[name] = visitor.context.storage_state()
        visitor.leave()
    return found


@pytest.fixture
def visit(
    portal: demo_portal.Portal, browser: Browser, states: dict[str, Any]
) -> Iterator[Callable[[str], Visitor]]:
    """A function that opens a page as a user; the test fails on any error of its pages."""
    here: list[Visitor] = []

    def come(name: str) -> Visitor:
        here.append(Visitor(browser, portal.address, states[name]))
        return here[-1]

    yield come
    for visitor in here:
        visitor.leave()


@pytest.fixture(params=list(HANDS))
def hand(request: pytest.FixtureRequest) -> Hand:
    """Each journey with a mouse, and by keyboard alone."""
    return HANDS[request.param]


@pytest.fixture(scope="session")
def axe() -> Path:
    return AXE
