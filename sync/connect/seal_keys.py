"""X25519 key files in PEM: read, created, published, dropped, replaced under a file lock.

Every process reads the public file, the sync worker alone the private one. Nothing is cached, so
that a rotation takes effect in all processes at once.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PEM_BLOCK: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)
_PEM: Final = serialization.Encoding.PEM
_PRIVATE_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o644


class KeyFileError(Exception):
    """A key file cannot be read, or holds something else than X25519 keys."""


def public_keys() -> list[X25519PublicKey]:
    """Read the public keys, the current one first; empty without a file. Raises KeyFileError."""
    public_file = Path(settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE)
    loaded_keys = _load_key_file(public_file, serialization.load_pem_public_key)
    x25519_keys = [key for key in loaded_keys if isinstance(key, X25519PublicKey)]
    if len(x25519_keys) < len(loaded_keys):
        raise KeyFileError(f"{public_file} holds something else than X25519 public keys")
    return x25519_keys


def private_keys() -> list[X25519PrivateKey]:
    """Read the private keys; empty without a readable file. Raises KeyFileError."""
    path = Path(settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE)
    loaded_keys = _load_key_file(path, partial(serialization.load_pem_private_key, password=None))
    x25519_keys = [key for key in loaded_keys if isinstance(key, X25519PrivateKey)]
    if len(x25519_keys) < len(loaded_keys):
        raise KeyFileError(f"{path} holds something else than X25519 private keys")
    return x25519_keys


def ensure_keys() -> bool:
    """Create the first pair of keys if there is none; returns whether it did.

    Raises KeyFileError, OSError.
    """
    if private_keys() or public_keys():
        return False
    with _key_files_locked():
        # Another process may have created the pair while this one waited for the lock.
        if private_keys() or public_keys():
            return False
        _write_key_files([X25519PrivateKey.generate()], [])
    return True


def add_key() -> X25519PublicKey:
    """Create a new pair, which becomes the current one. Raises KeyFileError, OSError."""
    with _key_files_locked():
        new_key = X25519PrivateKey.generate()
        _write_key_files([new_key, *private_keys()], public_keys())
    return new_key.public_key()


def publish_keys() -> None:
    """Rewrite the public file from the private one. Raises KeyFileError, OSError."""
    with _key_files_locked():
        _write_key_files(private_keys(), [])


def drop_keys(unwanted: Sequence[bytes]) -> None:
    """Drop keys by their public bytes from both files. Raises KeyFileError, OSError."""
    with _key_files_locked():
        kept_private = [key for key in private_keys() if raw(key.public_key()) not in unwanted]
        kept_public = [key for key in public_keys() if raw(key) not in unwanted]
        _write_key_files(kept_private, kept_public)


def raw(key: X25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _write_key_files(keys: Sequence[X25519PrivateKey], others: Sequence[X25519PublicKey]) -> None:
    """Write both files: all pairs, and public keys without a private one."""
    pkcs8, unencrypted = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private_pem = b"".join(key.private_bytes(_PEM, pkcs8, unencrypted) for key in keys)
    public_by_raw = {raw(key): key for key in (*(key.public_key() for key in keys), *others)}
    key_info = serialization.PublicFormat.SubjectPublicKeyInfo
    public_pem = b"".join(key.public_bytes(_PEM, key_info) for key in public_by_raw.values())
    # The private file first: nobody may seal with a key that nobody can open.
    _replace_file(Path(settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE), private_pem, _PRIVATE_MODE)
    _replace_file(Path(settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE), public_pem, _PUBLIC_MODE)


def _replace_file(path: Path, content: bytes, mode: int) -> None:
    """Replace a file atomically: a reader sees the old content or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In the same folder, since a rename is atomic within one file system only.
    key_draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    # The mode at creation: a later chmod would leave the private key readable for a moment.
    with os.fdopen(os.open(key_draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        # Otherwise a crash could leave the renamed file empty.
        os.fsync(file.fileno())
    key_draft.replace(path)


@contextmanager
def _key_files_locked() -> Iterator[None]:
    """Let one process at a time change the files."""
    # A file of its own: the key files are replaced, and with them any lock on them.
    path = Path(settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT
    with os.fdopen(os.open(path.with_name(f".{path.name}.lock"), flags, _PRIVATE_MODE)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _load_key_file(path: Path, load: Callable[[bytes], object]) -> list[object]:
    """Load all keys of a file, None for an invalid one; empty without a readable file."""
    try:
        pem_blocks = _PEM_BLOCK.findall(path.read_bytes())
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return []
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from error
    loaded_keys: list[object] = []
    for pem_block in pem_blocks:
        try:
            loaded_keys.append(load(pem_block))
        except (ValueError, TypeError):
            loaded_keys.append(None)
    return loaded_keys
