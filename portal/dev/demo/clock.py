"""Write history with dates of the past."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from django.utils import timezone

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator


@contextmanager
def at(moment: dt.datetime) -> Iterator[None]:
    """Have Django's clock, which dates what is stored, stand still at a moment."""
    with patch.object(timezone, "now", return_value=moment):
        yield
