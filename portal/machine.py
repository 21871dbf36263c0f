"""The machine, read before the settings: the checkout's path, processors, private files, keys.

Plain Python. Secrets are created at the first start, and only their owner may read them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
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


def keep_secret(path: Path, secret: str | None = None) -> str:
    """The secret in the file, made now when there is none.

    Two processes that start at once end up with one secret: the file is linked into place whole,
    and the first one wins. Raises OSError when the folder cannot be written.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        write_private(draft, secret or secrets.token_urlsafe(48))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="utf-8").strip()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")


def derive_key(secret_key: str, purpose: str) -> str:
    """A key for one purpose, from which neither the secret key nor another key can be derived."""
    return hmac.new(secret_key.encode(), purpose.encode(), hashlib.sha256).hexdigest()
