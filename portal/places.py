"""Where the checkout is; plain Python, for what runs before the settings are read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
