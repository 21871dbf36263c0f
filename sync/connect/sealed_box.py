"""Sealed boxes: encrypt to a public key, decrypt with the private key. No database.

A box is ``version, ephemeral public key, ciphertext``: X25519 with a key pair of its own for each
box, HKDF-SHA256, AES-256-GCM. The associated data are the place where the box belongs and the id
of the key, so that a box which is moved to another place does not open there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sync.connect import seal_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION: Final = b"\x01"
_KEY: Final = 32
_NONCE: Final = 12
_HEAD: Final = len(_VERSION) + _KEY
_ID_DIGITS: Final = 16
_RAW: Final = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


class SealingError(Exception):
    """A box that could not be closed or opened; ``code`` says why.

    ``no-public-key`` and ``no-private-key``: this process has none; ``unknown-key``: not the one
    that is needed; ``not-authentic``: damaged, or put where it does not belong.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Sealed:
    """A closed box, and the id of the key that opens it."""

    key_id: str
    data: bytes


def key_id(key: X25519PublicKey) -> str:
    """Name a public key: 16 hex digits of its digest."""
    return hashlib.sha256(key.public_bytes(*_RAW)).hexdigest()[:_ID_DIGITS]


def current_key_id() -> str:
    """Name the key that boxes are closed with now; raises SealingError."""
    return key_id(_current())


def seal(plain: bytes, *, place: str) -> Sealed:
    """Close a box; it opens only at the same place. Raises SealingError without a public key."""
    return seal_to(_current(), plain, place=place)


def seal_to(recipient: X25519PublicKey, plain: bytes, *, place: str) -> Sealed:
    """Close a box for one public key."""
    name = key_id(recipient)
    ephemeral = X25519PrivateKey.generate()
    own = ephemeral.public_key().public_bytes(*_RAW)
    key, nonce = _derive(ephemeral.exchange(recipient), own, recipient)
    ciphertext = AESGCM(key).encrypt(nonce, plain, _associated(place, name))
    return Sealed(name, _VERSION + own + ciphertext)


def open_sealed(sealed: Sealed, *, place: str) -> bytes:
    """Open a box, for the sync worker alone: nobody else has a private key.

    Raises SealingError, ``not-authentic`` for one that was closed for another place.
    """
    return open_with(seal_keys.private_keys(), sealed, place=place)


def open_with(keys: Sequence[X25519PrivateKey], sealed: Sealed, *, place: str) -> bytes:
    """Open a box with one of some private keys."""
    if not keys:
        message = "there is no private key here: only the sync worker opens sealed credentials"
        raise SealingError("no-private-key", message)
    key = next((one for one in keys if key_id(one.public_key()) == sealed.key_id), None)
    if key is None:
        message = f"it was sealed with key {sealed.key_id}, which is not here"
        raise SealingError("unknown-key", message)
    return _open(key, sealed, place)


def _open(private: X25519PrivateKey, sealed: Sealed, place: str) -> bytes:
    data = bytes(sealed.data)
    try:
        own = data[len(_VERSION) : _HEAD]
        shared = private.exchange(X25519PublicKey.from_public_bytes(own))
        key, nonce = _derive(shared, own, private.public_key())
        return AESGCM(key).decrypt(nonce, data[_HEAD:], _associated(place, sealed.key_id, data[:1]))
    except (InvalidTag, ValueError):
        message = "the sealed credential is damaged, or was put where it does not belong"
        raise SealingError("not-authentic", message) from None


def _current() -> X25519PublicKey:
    keys = seal_keys.public_keys()
    if not keys:
        message = "there is no public key: run manage.py seal_keys create"
        raise SealingError("no-public-key", message)
    return keys[0]


def _derive(shared: bytes, own: bytes, recipient: X25519PublicKey) -> tuple[bytes, bytes]:
    """Make a key and a nonce that are used once: the ephemeral key makes them so."""
    salt = own + recipient.public_bytes(*_RAW)
    info = b"gatehouse sealed credential 1"
    made = HKDF(hashes.SHA256(), _KEY + _NONCE, salt, info).derive(shared)
    return made[:_KEY], made[_KEY:]


def _associated(place: str, name: str, version: bytes = _VERSION) -> bytes:
    return b"\0".join((version, name.encode(), place.encode()))
