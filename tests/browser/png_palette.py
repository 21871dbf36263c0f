"""Reduces a PNG to at most 256 colours, a third of its size, in plain Python."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = b"\x89PNG\r\n\x1a\n"
MOST: Final = 256


def smaller(png: bytes) -> bytes:
    """The same picture with its most frequent colours; the others become the nearest ones."""
    chunks = dict[bytes, bytes]()
    for kind, data in _chunks(png):
        chunks[kind] = chunks.get(kind, b"") + data
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if depth != 8 or colour not in (2, 6):
        return png
    size = 3 if colour == 2 else 4
    lines = list(_lines(zlib.decompress(chunks[b"IDAT"]), width * size, height, size))
    pixels = [[bytes(line[i : i + 3]) for i in range(0, len(line), size)] for line in lines]
    counts = Counter(pixel for line in pixels for pixel in line)
    palette = [pixel for pixel, _ in counts.most_common(MOST)]
    places = {pixel: number for number, pixel in enumerate(palette)}
    for pixel in counts:
        if pixel not in places:
            places[pixel] = places[_nearest(pixel, palette)]
    raw = b"".join(b"\0" + bytes(places[pixel] for pixel in line) for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(raw, 9)))
    return _HEAD + b"".join(_chunk(*each) for each in (*parts, (b"IEND", b"")))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_HEAD)
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        yield kind, png[place + 8 : place + 8 + length]
        place += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _lines(raw: bytes, width: int, height: int, size: int) -> Iterator[bytearray]:
    """Undo the filter of each line."""
    above = bytearray(width)
    for number in range(height):
        begin = number * (width + 1)
        line = bytearray(raw[begin + 1 : begin + 1 + width])
        _unfilter(raw[begin], line, above, size)
        yield line
        above = line


def _unfilter(kind: int, line: bytearray, above: bytearray, size: int) -> None:
    for place in range(len(line) if kind else 0):
        left = line[place - size] if place >= size else 0
        corner = above[place - size] if place >= size else 0
        up = above[place]
        guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        line[place] = (line[place] + guess) & 255


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))


def _nearest(pixel: bytes | bytearray, palette: list[bytes]) -> bytes:
    return min(
        palette, key=lambda each: sum((a - b) ** 2 for a, b in zip(pixel, each, strict=True))
    )
