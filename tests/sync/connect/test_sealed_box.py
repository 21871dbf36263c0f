"""Sealed boxes: what closes them, what opens them, and where they do not open."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import NoEncryption

from sync.connect import seal_keys, sealed_box
from sync.connect.sealed_box import Sealed, SealingError, open_sealed, seal
from tests.sync.kubeconfigs import key_pem

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

PLAIN = b"canary-token"


@pytest.fixture(autouse=True)
def keys(settings: SettingsWrapper, tmp_path: Path) -> Path:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "seal" / "public-keys.pem"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "seal" / "private-keys.pem"
    assert seal_keys.ensure_keys()
    return tmp_path / "seal" / "private-keys.pem"


def code(sealed: Sealed, place: str = "a/token") -> str:
    with pytest.raises(SealingError) as caught:
        open_sealed(sealed, place=place)
    return caught.value.code


def test_box_opens_where_it_was_closed() -> None:
    sealed = seal(PLAIN, place="a/token")
    assert PLAIN not in sealed.data
    assert open_sealed(sealed, place="a/token") == PLAIN


def test_two_boxes_of_one_secret_differ() -> None:
    assert seal(PLAIN, place="a").data != seal(PLAIN, place="a").data


@pytest.mark.parametrize("place", ["b/token", "a/key", "", "a/token\0"])
def test_box_does_not_open_elsewhere(place: str) -> None:
    assert code(seal(PLAIN, place="a/token"), place) == "not-authentic"


@pytest.mark.parametrize("index", [0, 1, 32, 33, -1])
def test_changed_box_does_not_open(index: int) -> None:
    sealed = seal(PLAIN, place="a/token")
    data = bytearray(sealed.data)
    data[index] ^= 1
    assert code(Sealed(sealed.key_id, bytes(data))) == "not-authentic"


@pytest.mark.parametrize("length", [0, 1, 33, 40])
def test_cut_box_does_not_open(length: int) -> None:
    sealed = seal(PLAIN, place="a/token")
    assert code(Sealed(sealed.key_id, sealed.data[:length])) == "not-authentic"


def test_web_process_seals_and_cannot_open(settings: SettingsWrapper) -> None:
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = Path("/dev/null")
    assert code(seal(PLAIN, place="a/token")) == "no-private-key"


def test_nothing_is_sealed_without_a_public_key(settings: SettingsWrapper) -> None:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = Path("/dev/null")
    with pytest.raises(SealingError) as caught:
        seal(PLAIN, place="a")
    assert caught.value.code == "no-public-key"


def test_key_of_another_portal_opens_nothing() -> None:
    sealed = seal(PLAIN, place="a/token")
    assert code(Sealed("0" * 16, sealed.data)) == "unknown-key"


def test_new_key_is_the_current_one_and_the_old_one_still_opens() -> None:
    old = seal(PLAIN, place="a/token")
    added = seal_keys.add_key()
    assert sealed_box.current_key_id() == sealed_box.key_id(added) != old.key_id
    assert open_sealed(old, place="a/token") == PLAIN
    assert seal(PLAIN, place="a/token").key_id == sealed_box.key_id(added)


def test_dropped_key_opens_nothing() -> None:
    old = seal(PLAIN, place="a/token")
    gone = seal_keys.raw(seal_keys.public_keys()[0])
    seal_keys.add_key()
    seal_keys.drop_keys([gone])
    assert code(old) == "unknown-key"
    assert len(seal_keys.public_keys()) == len(seal_keys.private_keys()) == 1


def test_keys_are_made_once_and_for_their_owner_alone(keys: Path) -> None:
    before = keys.read_bytes()
    assert not seal_keys.ensure_keys()
    assert keys.read_bytes() == before
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.parent.stat().st_mode) == 0o700


def test_public_file_holds_no_private_key(settings: SettingsWrapper) -> None:
    assert b"PRIVATE" not in Path(settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE).read_bytes()


def test_key_of_another_kind_is_refused(keys: Path) -> None:
    keys.write_bytes(key_pem(generate_private_key(SECP256R1()), NoEncryption()))
    with pytest.raises(seal_keys.KeyFileError):
        seal_keys.private_keys()
