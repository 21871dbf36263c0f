"""``brake``: whether deletions are so many that a person must confirm them."""

from __future__ import annotations

from typing import Final

_FREE_DELETIONS: Final = 10
_LARGEST_SHARE: Final = 5


def brake(deletes: int, known: int) -> bool:
    """Whether a person must confirm deletions: more than 10, and more than a fifth of ``known``."""
    return deletes > _FREE_DELETIONS and deletes * _LARGEST_SHARE > known
