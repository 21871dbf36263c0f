"""The names under which figures are kept: subject, then load."""

from __future__ import annotations

from typing import Final

RAW: Final = "raw WSGI echo"
LEAN: Final = "DRF-lean echo"
DEFAULT: Final = "DRF-default echo"
ENGINE: Final = "engine only"
PRODUCT: Final = "Gatehouse"
LARGE: Final = "Gatehouse, 50,000 policies"
LOADED: Final = "ORM baseline, policies loaded"
CACHED: Final = "ORM baseline, policies cached"
GO: Final = "Go net/http echo"
OPA_OFF: Final = "OPA, log off"
OPA_ON: Final = "OPA, log on"
WRITER: Final = "writer alone"
INSERT: Final = "one INSERT per transaction"
PER_REQUEST: Final = "raw SQL per request"

SPREAD: Final = "spread"
HOT: Final = "hot"
CLOSED: Final = "c32"
FEW: Final = "c8"
QUIET: Final = "200/s"
HALF: Final = "half saturation"
SLOW: Final = "2 ms commits"


def key(subject: str, *words: str) -> str:
    """``key(PRODUCT, HOT, CLOSED)`` is ``"Gatehouse | hot | c32"``."""
    return " | ".join((subject, *words))
