"""Use of a page with a mouse, or by keyboard alone: each journey is written once for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

FARTHEST: Final = 250  # maximum number of tab stops on a page
_IS_FOCUSED: Final = "element => element === document.activeElement"
_SHOWS_FOCUS: Final = """element => {
  const around = element.closest("label, li, tr, fieldset, .cm-editor");
  const shown = [element, around, element.parentElement];
  return shown.some((each) => {
    const style = each && getComputedStyle(each);
    return style && ((style.outlineStyle !== "none" && style.outlineWidth !== "0px") ||
      style.boxShadow !== "none");
  });
}"""


class Hand(Protocol):
    """A user's actions on the parts of a page."""

    def press(self, part: Locator) -> None:
        """Activate a link, a button or a summary."""

    def fill(self, part: Locator, text: str) -> None:
        """Replace the text of a field."""

    def tick(self, part: Locator) -> None:
        """Select a radio button or checkbox."""

    def select(self, part: Locator, value: str) -> None:
        """Choose from a list by value."""


class Mouse:
    """Points and clicks."""

    def press(self, part: Locator) -> None:
        part.click()

    def fill(self, part: Locator, text: str) -> None:
        part.fill(text)

    def tick(self, part: Locator) -> None:
        part.check()

    def select(self, part: Locator, value: str) -> None:
        part.select_option(value)


class Keys:
    """Tab, Enter, Space, arrows and letters; the focused part must show its focus."""

    def press(self, part: Locator) -> None:
        self._reach(part)
        part.page.keyboard.press("Enter")

    def fill(self, part: Locator, text: str) -> None:
        self._reach(part)
        part.page.keyboard.press("ControlOrMeta+a")
        part.page.keyboard.press("Delete")
        part.page.keyboard.insert_text(text)

    def tick(self, part: Locator) -> None:
        if part.is_checked():
            return
        if part.get_attribute("type") == "radio":
            self._reach_in_group(part)
        else:
            self._reach(part)
        if not part.is_checked():
            part.page.keyboard.press("Space")

    def select(self, part: Locator, value: str) -> None:
        self._reach(part)
        values: list[str] = part.evaluate("list => [...list.options].map((each) => each.value)")
        there = values.index(part.input_value())
        key = "ArrowDown" if values.index(value) > there else "ArrowUp"
        for _ in range(abs(values.index(value) - there)):
            part.page.keyboard.press(key)
        assert part.input_value() == value

    def _reach(self, part: Locator) -> None:
        """Press Tab until the part has the focus."""
        part.wait_for(state="visible")
        for _ in range(FARTHEST):
            if part.evaluate(_IS_FOCUSED):
                self._see(part)
                return
            part.page.keyboard.press("Tab")
        raise AssertionError(f"no key leads to {part}")

    def _see(self, part: Locator) -> None:
        """Require a visible focus, in an editor after a moment."""
        for _ in range(20):
            if part.evaluate(_SHOWS_FOCUS):
                return
            part.page.wait_for_timeout(50)
        raise AssertionError(f"the focus cannot be seen on {part}")

    def _reach_in_group(self, part: Locator) -> None:
        """Press Tab until a group of radio buttons, then arrow keys."""
        name = part.get_attribute("name") or ""
        page: Page = part.page
        group = page.locator(f'input[type="radio"][name="{name}"]')
        for _ in range(FARTHEST):
            if page.evaluate("document.activeElement?.name") == name:
                break
            page.keyboard.press("Tab")
        for _ in range(group.count()):
            if part.evaluate(_IS_FOCUSED):
                return
            page.keyboard.press("ArrowDown")
        raise AssertionError(f"no key leads to {part}")


HANDS: Final = {"mouse": Mouse(), "keys": Keys()}


class Clicks:
    """A hand that counts what it presses, ticks and selects, and the fields that it goes into.

    Typing, and Enter behind what was typed, is no click.
    """

    def __init__(self, hand: Hand) -> None:
        self.hand, self.number = hand, 0

    def press(self, part: Locator) -> None:
        """Activate a part, and count it."""
        self.number += 1
        self.hand.press(part)

    def fill(self, part: Locator, text: str) -> None:
        """Go into a field, and type."""
        self.number += 1
        self.hand.fill(part, text)

    def tick(self, part: Locator) -> None:
        """Tick, and count it."""
        self.number += 1
        self.hand.tick(part)

    def select(self, part: Locator, value: str) -> None:
        """Choose from a list, and count it."""
        self.number += 1
        self.hand.select(part, value)

    def enter(self, part: Locator, text: str) -> None:
        """Type into a field that a letter leads to, and Enter."""
        self.hand.fill(part, text)
        part.page.keyboard.press("Enter")
