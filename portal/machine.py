"""Paths of the checkout and processors of the machine; plain Python, read before the settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The checkout."""
LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")


def available(limit: Path = LIMIT) -> int:
    """Processors that this process may use; at least one.

    In a container the machine has more of them than that: the control group's quota counts.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(allowed or 1, _quota(limit) or allowed or 1))


def _quota(limit: Path) -> int:
    """Microseconds of each period, as whole processors; 0 without a limit."""
    try:
        share, period = limit.read_text(encoding="ascii").split()
        return -(-int(share) // int(period))
    except (OSError, ValueError):  # no such file, or "max"
        return 0
