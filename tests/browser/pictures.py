"""``python -m tests.browser.pictures``: screenshots of demo data in docs/images, in both themes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import sync_playwright

from tests.browser import demo_portal
from tests.browser.conftest import ARGUMENTS
from tests.browser.hands import HANDS
from tests.browser.pages import PLACE
from tests.browser.png_palette import smaller
from tests.browser.visitor import Visitor
from tests.processes import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES: Final = ROOT / "docs" / "images"
SIZE: Final = {"width": 1280, "height": 1100}
SCREENS: Final = {
    "home": "/",
    "namespace": f"{PLACE}/?c=ledger-api&rc=500m&rm=1Gi&priority=critical&labels=team%3Dpayments",
    "editor": f"{PLACE}/limitranges/limits/",
    "explorer": "/decisions/",
    "why": "/decisions/{denied}",
    "quotas": "/quotas/",
}


def main() -> int:
    """Take all, or report missing programs."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.stderr.write("pictures: NO CHROMIUM HERE; on Debian: apt install chromium\n")
        return 1
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-pictures-") as folder,
        demo_portal.portal(Path(folder)) as portal,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=[*ARGUMENTS, *alone])
        _take_all(browser, portal)
        browser.close()
    return 0


def _take_all(browser: Browser, portal: demo_portal.Portal) -> None:
    world = portal.run("people")
    visitor = Visitor(browser, portal.address)
    visitor.sign_in("admin", demo_portal.PASSWORD, HANDS["mouse"])
    IMAGES.mkdir(exist_ok=True)
    for name, path in SCREENS.items():
        for theme in ("light", "dark"):
            _take(visitor, path.format(**world), IMAGES / f"{name}-{theme}.png", theme=theme)
    visitor.leave()


def _take(visitor: Visitor, path: str, image: Path, *, theme: Any) -> None:
    visitor.look(theme=theme, size=SIZE)
    visitor.go(path)
    visitor.page.evaluate("document.fonts.ready.then(() => true)")
    visitor.page.wait_for_timeout(400)  # charts and editors render asynchronously
    image.write_bytes(smaller(visitor.page.screenshot(animations="disabled", caret="hide")))
    sys.stdout.write(f"{image.relative_to(ROOT)}: {image.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    sys.exit(main())
