"""``python -m tests.browser.pictures [FOLDER]``: each screen in both themes and on a phone."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

from tests.browser import demo_portal
from tests.browser.conftest import ARGUMENTS
from tests.browser.hands import HANDS
from tests.browser.pages import CLUSTER, PLACE
from tests.browser.visitor import PHONE, WIDE, Visitor
from tests.processes import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES: Final = ROOT / "docs" / "images"
LOOKS: Final = (("light", WIDE), ("dark", WIDE), ("phone", PHONE))
"""What follows the name of a picture, and the size of its window; phones are light."""
SCREENS: Final = {
    "home": "/",
    "decisions": "/decisions/?verdict=denied",
    "why": "/decisions/{denied}",
    "policies": "/policies/",
    "editor": f"{PLACE}/limitranges/limits/",
    "quotas": "/quotas/",
    "changes": "/changes/",
    "change-review": "/changes/{review}/",
    "change-diff": "/changes/{review}/diff/",
    "change-replay": "/changes/{review}/replay/",
    "change-tests": "/changes/{review}/tests/",
    "change-rollout": "/changes/{rolling}/rollout/",
    "change-plan": "/changes/{change}/rollout/",
    "change-effect": "/changes/{done}/effect/",
    "change-timeline": "/changes/{review}/timeline/",
    "changes-week": "/changes/-/week/",
    "approval-rules": "/changes/-/rules/",
    "approval-rule": "/changes/-/rules/{rule}/",
    "kept-tests": "/tests/",
    "kept-test": "/tests/{kept}/",
    "past": f"{PLACE}/?at={{week_ago}}",
    "comparison": "/compare/?cluster=demo&from={week_ago}",
    "replay": "/replays/{replay}/",
    "history": "/clusters/-/changes/",
    "namespace": f"{PLACE}/",
    "cluster": f"{CLUSTER}/",
    "drift": f"{CLUSTER}/objects/",
    "connect": "/clusters/-/connect/",
    "people": "/people/",
    "parts": "/parts/",
    "api": "/api/docs/",
}
QUALITY: Final = 85
SIGN_IN: Final = "/accounts/login/"


def main(folder: Path) -> int:
    """Take all into a folder, or report missing programs."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.stderr.write("pictures: NO CHROMIUM HERE; on Debian: apt install chromium\n")
        return 1
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-pictures-") as data,
        demo_portal.portal(Path(data)) as portal,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=[*ARGUMENTS, *alone])
        _take_all(browser, portal, folder)
        browser.close()
    return 0


def _take_all(browser: Browser, portal: demo_portal.Portal, folder: Path) -> None:
    world = {**portal.run("people"), **portal.run("change_pictures")}
    folder.mkdir(exist_ok=True)
    visitor = Visitor(browser, portal.address)
    _take(visitor, SIGN_IN, folder, "sign-in")
    visitor.sign_in("admin", demo_portal.PASSWORD, HANDS["mouse"])
    for name, path in SCREENS.items():
        _take(visitor, path.format(**world), folder, name)
    visitor.leave()


def _take(visitor: Visitor, path: str, folder: Path, name: str) -> None:
    for look, size in LOOKS:
        visitor.look(theme="dark" if look == "dark" else "light", size=size)
        visitor.go(path)
        visitor.page.evaluate("document.fonts.ready.then(() => true)")
        visitor.page.wait_for_load_state("networkidle")
        visitor.page.wait_for_timeout(400)  # charts and editors render asynchronously
        # Playwright itself writes PNG and JPEG only; WebP is a third of the size.
        browser = visitor.context.new_cdp_session(visitor.page)
        taken = browser.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        browser.detach()
        image = folder / f"{name}-{look}.webp"
        image.write_bytes(base64.b64decode(taken["data"]))
        sys.stdout.write(f"{image.name}: {image.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES))
