"""What a browser fetches for one page, compressed as the portal sends it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path

_ASSET: Final = re.compile(
    r'<(?:script[^>]*\ssrc|link[^>]*\shref|img[^>]*\ssrc|use[^>]*\shref)="(/static/[^"#]+)'
)
_FACE: Final = re.compile(r"@font-face\s*\{[^}]*\}")
_FONT: Final = re.compile(r'url\("?([^")]+\.woff2)"?\)')
_RANGE: Final = re.compile(r"unicode-range:\s*([^;}]+)")
_LATIN: Final = re.compile(r"U\+0{1,4}-0{0,2}FF", re.IGNORECASE)


def weight(page: bytes, root: Path) -> int:
    """Bytes of the page, its style, scripts, icons and the fonts of its letters."""
    names = {
        urlsplit(address).path.removeprefix("/static/") for address in _ASSET.findall(page.decode())
    }
    files = {root / name for name in names}
    for style in [path for path in files if path.suffix == ".css"]:
        files |= set(_fonts(style))
    return len(page) + sum(_sent(path) for path in files)


def _fonts(style: Path) -> list[Path]:
    """Fonts for plain Latin: others are fetched when a letter asks for them."""
    found = []
    for face in _FACE.findall(style.read_text("utf-8")):
        letters, font = _RANGE.search(face), _FONT.search(face)
        if font and (not letters or _LATIN.search(letters[1])):
            found.append((style.parent / font[1]).resolve())
    return found


def _sent(path: Path) -> int:
    compressed = path.with_name(f"{path.name}.gz")
    return (compressed if compressed.exists() else path).stat().st_size
