"""Sealed boxes: X25519, HKDF, AES-GCM bound to a place; key ids, SealingError. No database.

A box is ``version, ephemeral public key, ciphertext``: X25519 with a new key pair for each box,
HKDF-SHA256, AES-256-GCM. The associated data are the place where the box belongs and the id of
the key, so that a box does not open at another place.
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

_FORMAT_VERSION: Final = b"\x01"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_HEAD_BYTES: Final = len(_FORMAT_VERSION) + _KEY_BYTES
_ID_DIGITS: Final = 16
_RAW: Final = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


class SealingError(Exception):
    """A box could not be sealed or opened; ``code`` is the cause.

    ``no-public-key`` and ``no-private-key``: this process has none; ``unknown-key``: it has not
    the required one; ``not-authentic``: the box is damaged, or at another place.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed box, and the id of the key that opens it."""

    key_id: str
    data: bytes


def key_id(key: X25519PublicKey) -> str:
    """The id of a public key: 16 hex digits of its digest."""
    return hashlib.sha256(key.public_bytes(*_RAW)).hexdigest()[:_ID_DIGITS]


def current_key_id() -> str:
    """The id of the key that seals now; raises SealingError without one."""
    return key_id(_current_public_key())


def seal(plain: bytes, *, place: str) -> Sealed:
    """Seal bytes for one place. Raises SealingError without a public key."""
    return seal_to(_current_public_key(), plain, place=place)


def seal_to(recipient: X25519PublicKey, plain: bytes, *, place: str) -> Sealed:
    """Seal bytes to one public key."""
    recipient_id = key_id(recipient)
    ephemeral = X25519PrivateKey.generate()
    ephemeral_bytes = ephemeral.public_key().public_bytes(*_RAW)
    key, nonce = _derive_key_and_nonce(ephemeral.exchange(recipient), ephemeral_bytes, recipient)
    ciphertext = AESGCM(key).encrypt(nonce, plain, _associated_data(place, recipient_id))
    return Sealed(recipient_id, _FORMAT_VERSION + ephemeral_bytes + ciphertext)


def open_sealed(sealed: Sealed, *, place: str) -> bytes:
    """Open a box with the private keys, which the sync worker alone has.

    Raises SealingError, ``not-authentic`` for a box that was sealed for another place.
    """
    return open_with(seal_keys.private_keys(), sealed, place=place)


def open_with(keys: Sequence[X25519PrivateKey], sealed: Sealed, *, place: str) -> bytes:
    """Open a box with the private key that it names."""
    if not keys:
        message = "there is no private key here: only the sync worker opens sealed credentials"
        raise SealingError("no-private-key", message)
    private_key = next((one for one in keys if key_id(one.public_key()) == sealed.key_id), None)
    if private_key is None:
        message = f"it was sealed with key {sealed.key_id}, which is not here"
        raise SealingError("unknown-key", message)
    box = bytes(sealed.data)
    ephemeral_bytes = box[len(_FORMAT_VERSION) : _HEAD_BYTES]
    associated_data = _associated_data(place, sealed.key_id, box[:1])
    try:
        shared_secret = private_key.exchange(X25519PublicKey.from_public_bytes(ephemeral_bytes))
        key, nonce = _derive_key_and_nonce(shared_secret, ephemeral_bytes, private_key.public_key())
        return AESGCM(key).decrypt(nonce, box[_HEAD_BYTES:], associated_data)
    except (InvalidTag, ValueError):
        message = "the sealed credential is damaged, or was put where it does not belong"
        raise SealingError("not-authentic", message) from None


def _current_public_key() -> X25519PublicKey:
    sealing_keys = seal_keys.public_keys()
    if not sealing_keys:
        no_key_message = "there is no public key: run manage.py seal_keys create"
        raise SealingError("no-public-key", no_key_message)
    return sealing_keys[0]


def _derive_key_and_nonce(
    shared: bytes, ephemeral_bytes: bytes, recipient: X25519PublicKey
) -> tuple[bytes, bytes]:
    """Derive a key and a nonce; the ephemeral key makes both unique to one box."""
    salt = ephemeral_bytes + recipient.public_bytes(*_RAW)
    info = b"gatehouse sealed credential 1"
    key_and_nonce = HKDF(hashes.SHA256(), _KEY_BYTES + _NONCE_BYTES, salt, info).derive(shared)
    return key_and_nonce[:_KEY_BYTES], key_and_nonce[_KEY_BYTES:]


def _associated_data(place: str, name: str, version: bytes = _FORMAT_VERSION) -> bytes:
    return b"\0".join((version, name.encode(), place.encode()))
