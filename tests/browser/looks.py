"""The looks of a page: both themes, three widths; ``PAGE_LOOKS`` of them at random, or all."""

from __future__ import annotations

import os
import random
from random import Random
from typing import TYPE_CHECKING

from tests.browser.visitor import MIDDLE, PHONE, WIDE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.visitor import Visitor

LOOKS = [(theme, size) for size in (WIDE, MIDDLE, PHONE) for theme in ("light", "dark")]
PAGE_LOOKS = int(os.environ.get("PAGE_LOOKS", len(LOOKS)))


def look_around(visitor: Visitor, axe: Path) -> None:
    """Check the open page in PAGE_LOOKS random combinations; fails with all findings."""
    found = []
    for theme, size in Random(f"{random.random()} {visitor.page.url}").sample(LOOKS, PAGE_LOOKS):  # noqa: S311  no secret
        visitor.look(theme=theme, size=size)
        wide = visitor.overflow()
        found_here = visitor.hindrances(axe, only_colours=theme == "dark")
        errors = [*found_here, *([f"overflow: {wide}"] if wide else [])]
        found += [f"{theme} {size['width']}: {each}" for each in errors]
    assert not found, "\n".join(found)
