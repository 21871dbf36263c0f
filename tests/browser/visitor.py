"""A user at the portal, signed in or not, whose pages are watched for errors."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

from tests.browser.watch import Watch

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Locator, Page

    from tests.browser.hands import Hand

WIDE: Final = {"width": 1440, "height": 900}
MIDDLE: Final = {"width": 1000, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
PATIENCE: Final = 15_000  # milliseconds; a busy machine is slow
SECONDS: Final = 60.0
_LOOKS_AGAIN: Final = 20
TAGS: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice")
_TOKEN: Final = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
_AXE: Final = """async ([tags, rules]) => {
  const { violations } = await axe.run(document, {
    runOnly: rules.length ? rules : tags, resultTypes: ["violations"], elementRef: true,
  });
  // What an open menu covers in part is to be pressed once the menu is closed.
  const menus = [...document.querySelectorAll("details[data-menu][open] > .menu")];
  const is_covered = (each) => menus.some((menu) => {
    const [over, under] = [menu.getBoundingClientRect(), each.getBoundingClientRect()];
    return !menu.contains(each) && over.left < under.right && under.left < over.right &&
      over.top < under.bottom && under.top < over.bottom;
  });
  // Behind an open drawer the page is inert: its landmarks and headings are there, and hidden.
  const is_behind = document.querySelector("main[inert]") !== null;
  const of_page = ["landmark-one-main", "page-has-heading-one"];
  return violations.flatMap(({ id, nodes }) => nodes
    .filter(({ element }) => id !== "target-size" || !is_covered(element))
    .filter(() => !(is_behind && of_page.includes(id)))
    .map(({ html, failureSummary }) => [id, html.slice(0, 160), failureSummary]));
}"""
_OVERFLOWS: Final = """() => {
  const root = document.documentElement;
  const [wide, limit] = [root.scrollWidth, root.clientWidth];
  if (wide <= limit) return "";
  const without = (each) => {
    const before = each.style.display;  // set by script alone: the policy forbids attributes
    each.style.setProperty("display", "none", "important");
    const left = root.scrollWidth;
    each.style.setProperty("display", before);
    return left;
  };
  const end = (each) => each.getBoundingClientRect().right;
  const name = (each) => `${each.tagName}.${each.className.baseVal ?? each.className} ` +
    `to ${end(each).toFixed(1)} "${(each.textContent || "").trim().slice(0, 60)}"`;
  let at = document.body;
  for (;;) {
    const [least, next] = [...at.children].map((each) => [without(each), each])
      .reduce((best, each) => each[0] < best[0] ? each : best, [wide]);
    if (least === wide) break;
    at = next;
  }
  const widest = [...at.querySelectorAll("*")].sort((a, b) => end(b) - end(a)).slice(0, 2);
  return `${wide} px instead of ${limit}: ${[at, ...widest].map(name).join(" > ")}`;
}"""
"""Names the innermost element without which the page is less wide, and its own widest parts.

An element's place alone does not tell: what is placed absolutely leaves the box that scrolls
around it, and what is drawn before or after an element has no place of its own.
"""


class Visitor:
    """One browser context with one page; ``leave`` fails on unexpected errors."""

    def __init__(self, browser: Browser, address: str, state: Any = None) -> None:
        self.address = address
        self.watch = Watch()
        self.context: BrowserContext = browser.new_context(
            base_url=address, storage_state=state, viewport=WIDE, reduced_motion="reduce"
        )
        self.context.set_default_timeout(PATIENCE)
        self.watch.over(self.context)
        self.page: Page = self.context.new_page()

    def leave(self) -> None:
        """Close the page; fails on any error that the test did not expect."""
        self.context.close()
        self.watch.check()

    def go(self, path: str, *, status: int = 200) -> Page:
        """Open an address of the portal and check the invariants of every page."""
        answer = self.page.goto(path, wait_until="load")
        assert answer is not None
        assert answer.status == status, f"{answer.status} at {path}"
        self.check()
        return self.page

    def check(self) -> None:
        """Check for errors since the last check."""
        self.watch.check()

    def sign_in(self, name: str, password: str, hand: Hand) -> None:
        """Sign in by the form."""
        self.go("/accounts/login/")
        hand.fill(self.page.get_by_label("Username"), name)
        hand.fill(self.page.get_by_label("Password", exact=True), password)
        hand.press(self.page.get_by_role("button", name="Sign in", exact=True))
        self.page.wait_for_url(lambda url: "/accounts/login/" not in url)

    def look(self, *, theme: str, size: dict[str, int]) -> None:
        """Show the same page in another theme and width."""
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        self.page.set_viewport_size({"width": size["width"], "height": size["height"]})

    def hindrances(self, axe: Path, *, only_colours: bool = False) -> list[str]:
        """The axe violations of the page as currently shown, one line each.

        ``only_colours``: only the rules that depend on the theme.
        """
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(axe.read_text(encoding="utf-8"))
        rules = ["color-contrast"] if only_colours else []
        found = self.page.evaluate(_AXE, [list(TAGS), rules])
        return [f"{rule}: {html} ({why.splitlines()[-1]})" for rule, html, why in found]

    def overflow(self) -> str:
        """The parts wider than the window; normally empty.

        Charts are drawn anew after the window has changed: what is too wide must stay so.
        """
        wide = ""
        for _ in range(_LOOKS_AGAIN):
            wide = self.page.evaluate(_OVERFLOWS)
            if not wide:
                break
            self.page.wait_for_timeout(100)
        return wide

    def main(self, role: Any, name: str) -> Locator:
        """A part of the page's own content, by its full name."""
        return self.page.get_by_role("main").get_by_role(role, name=name, exact=True).first

    def post(self, path: str, **fields: str) -> int:
        """Send a form that the page does not show; returns the answer's status."""
        found = _TOKEN.search(self.context.request.get("/account/").text())
        given = {**fields, "csrfmiddlewaretoken": found[1] if found else ""}
        answer = self.context.request.post(path, form=given, max_redirects=0)
        return answer.status

    def until(self, path: str, text: str) -> None:
        """Reload a page until it contains a text that a worker produces."""
        deadline = time.monotonic() + SECONDS
        while text not in self.go(path).get_by_role("main").inner_text():
            assert time.monotonic() < deadline, f"{path} never contains {text!r}"
            self.page.wait_for_timeout(250)
