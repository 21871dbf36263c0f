"""Key files of sealed credentials: read, create and retire keys.

The public file is for every process, the private one for the sync worker alone. Nothing is kept
in memory between two uses.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLOCK: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)
_PEM: Final = serialization.Encoding.PEM
_PRIVATE_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o644


class KeyFileError(Exception):
    """A key file that holds something else than X25519 keys, or cannot be read."""


def public_keys() -> list[X25519PublicKey]:
    """Read the public keys, the current one first; empty where there is no file.

    Raises KeyFileError.
    """
    path = Path(settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE)
    return [_public(block, path) for block in _blocks(path)]


def private_keys() -> list[X25519PrivateKey]:
    """Read the private keys; empty where there is no file or it may not be read.

    Raises KeyFileError.
    """
    path = Path(settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE)
    return [_private(block, path) for block in _blocks(path)]


def ensure_keys() -> bool:
    """Make the first pair of keys where there is none; returns whether it did.

    Two processes that start at once end up with one pair. Raises KeyFileError, OSError.
    """
    if private_keys() or public_keys():
        return False
    with _held():
        if private_keys() or public_keys():
            return False
        _write([X25519PrivateKey.generate()], [])
    return True


def add_key() -> X25519PublicKey:
    """Make a new pair, which is the current one from now on. Raises KeyFileError, OSError."""
    with _held():
        made = X25519PrivateKey.generate()
        _write([made, *private_keys()], public_keys())
    return made.public_key()


def publish_keys() -> None:
    """Write the public file anew from the private one. Raises KeyFileError, OSError."""
    with _held():
        _write(private_keys(), [])


def drop_keys(unwanted: Sequence[bytes]) -> None:
    """Drop keys by their public bytes from both files. Raises KeyFileError, OSError."""
    with _held():
        kept = [key for key in private_keys() if raw(key.public_key()) not in unwanted]
        others = [key for key in public_keys() if raw(key) not in unwanted]
        _write(kept, others)


def raw(key: X25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _write(keys: Sequence[X25519PrivateKey], others: Sequence[X25519PublicKey]) -> None:
    """Write both files, the private one first: a box must never be closed that nobody opens."""
    shape, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = b"".join(key.private_bytes(_PEM, shape, none) for key in keys)
    public = {raw(key): key for key in (*(key.public_key() for key in keys), *others)}
    written = b"".join(_public_pem(key) for key in public.values())
    _replace(Path(settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE), private, _PRIVATE_MODE)
    _replace(Path(settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE), written, _PUBLIC_MODE)


def _public_pem(key: X25519PublicKey) -> bytes:
    return key.public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _replace(path: Path, content: bytes, mode: int) -> None:
    """Put a file into place whole, so that a reader sees the old one or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def _held() -> Iterator[None]:
    """Let one process at a time change the files."""
    path = Path(settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT
    with os.fdopen(os.open(path.with_name(f".{path.name}.lock"), flags, _PRIVATE_MODE)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _blocks(path: Path) -> list[bytes]:
    try:
        return _BLOCK.findall(path.read_bytes())
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return []
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error


def _public(block: bytes, path: Path) -> X25519PublicKey:
    try:
        key = serialization.load_pem_public_key(block)
    except ValueError:
        key = None
    if not isinstance(key, X25519PublicKey):
        raise KeyFileError(f"{path} holds something else than X25519 public keys")
    return key


def _private(block: bytes, path: Path) -> X25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(block, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, X25519PrivateKey):
        raise KeyFileError(f"{path} holds something else than X25519 private keys")
    return key
