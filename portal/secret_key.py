"""Secrets created at the first start: kept under ``var/``, readable by their owner alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
