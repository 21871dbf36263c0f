"""Before the settings: checkout ROOT, processors by cgroup, private secret files, derived keys.

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

    A container sees all processors of its machine, so the control group's quota counts, too.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        # Microseconds of each period, rounded up to whole processors.
        cpu_share, cpu_period = limit.read_text(encoding="ascii").split()
        cpu_quota = -(-int(cpu_share) // int(cpu_period))
    except (OSError, ValueError):  # no such file, or "max"
        cpu_quota = 0
    return max(1, min(allowed or 1, cpu_quota or allowed or 1))


def keep_secret(secret_file: Path, secret: str | None = None) -> str:
    """The secret in the file, created now if there is none.

    Raises OSError if the folder cannot be written.
    """
    if not secret_file.exists():
        secret_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        drafted = secret_file.with_name(f".{secret_file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        write_private(drafted, secret or secrets.token_urlsafe(48))
        # Two processes that start at once must end up with one secret. A link appears with its
        # whole content, and only the first one succeeds.
        try:
            os.link(drafted, secret_file)
        except FileExistsError:
            pass
        finally:
            drafted.unlink()
    return secret_file.read_text(encoding="utf-8").strip()


def write_private(private_file: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    private_flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(private_file, private_flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")


def derive_key(secret_key: str, purpose: str) -> str:
    """A key for one purpose, which reveals neither the secret key nor any other derived key."""
    return hmac.new(secret_key.encode(), purpose.encode(), hashlib.sha256).hexdigest()
