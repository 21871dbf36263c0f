"""Keys change under sealed credentials: killed at any row, a second run finishes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from sync.connect import connections, key_rotation, sealed_box
from sync.connect import seal_keys as connect_seal_keys
from sync.connect.kubeconfig import parse
from sync.models import ClusterAlert, ClusterConnection
from tests import factories
from tests.sync.kubeconfigs import TOKEN, text

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

pytestmark = pytest.mark.django_db
NAMES = ("a", "b", "c")


@pytest.fixture(autouse=True)
def _connected(settings: SettingsWrapper, tmp_path: Path) -> None:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "seal" / "public.pem"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "seal" / "private.pem"
    connect_seal_keys.ensure_keys()
    for name in NAMES:
        connections.connect(factories.cluster(name), parse(text()), "tester")


class KilledError(BaseException):
    """The process ends here."""


def seal_keys(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("seal_keys", *words, stdout=out)
    except CommandError as error:
        return error.returncode, out.getvalue() + str(error)
    return 0, out.getvalue()


def key_ids() -> set[str]:
    return set(ClusterConnection.objects.values_list("key_id", flat=True))


def test_rotation_seals_all_rows_with_a_new_key() -> None:
    before = key_ids()
    assert seal_keys("rotate")[0] == 0
    assert key_ids() == {sealed_box.current_key_id()} != before
    for connection in ClusterConnection.objects.all():
        assert connections.credentials_of(connection).token == TOKEN


@pytest.mark.parametrize("row", range(1, len(NAMES) + 1))
def test_rotation_killed_at_a_row_is_finished(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(1, 10))

    def kill(*words: Any, **named: Any) -> sealed_box.Sealed:
        if next(calls) == row:
            raise KilledError
        return seal_to(*words, **named)

    seal_to = sealed_box.seal_to
    with monkeypatch.context() as patch:
        patch.setattr(sealed_box, "seal_to", kill)
        with pytest.raises(KilledError):
            key_rotation.rotate()
    assert len(connect_seal_keys.private_keys()) == 2
    rotation = key_rotation.rotate()
    assert (rotation.is_new, len(rotation.done)) == (False, len(NAMES) - row + 1)
    assert key_ids() == {sealed_box.current_key_id()}
    assert len(key_rotation.retire()) == 1
    assert all(connections.credentials_of(one).token for one in ClusterConnection.objects.all())


def test_rotation_killed_between_the_files_is_finished(
    settings: SettingsWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = Path(settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE)
    before = public.read_bytes()
    connect_seal_keys.add_key()
    public.write_bytes(before)
    rotation = key_rotation.rotate()
    assert not rotation.is_new
    assert key_ids() == {sealed_box.current_key_id()}
    assert len(connect_seal_keys.private_keys()) == 2


def test_key_that_rows_need_is_not_dropped() -> None:
    old = key_ids().pop()
    connect_seal_keys.add_key()
    code, said = seal_keys("retire", old)
    assert (code, "3 clusters" in said) == (1, True)
    assert seal_keys("retire", sealed_box.current_key_id())[0] == 1
    assert seal_keys("retire", "nothing")[0] == 1


def test_old_key_goes_after_the_rotation() -> None:
    old = key_ids().pop()
    seal_keys("rotate")
    assert seal_keys("retire") == (0, f"dropped: {old}\n")
    assert len(connect_seal_keys.private_keys()) == len(connect_seal_keys.public_keys()) == 1


def test_row_that_does_not_open_is_alarmed_and_the_others_go_on() -> None:
    ClusterConnection.objects.filter(cluster__name="b").update(server="https://evil.example.com")
    code, said = seal_keys("rotate")
    assert (code, "do not open, connect again: b" in said) == (1, True)
    assert ClusterAlert.objects.get(kind="sealed-credential").cluster.name == "b"
    assert ClusterConnection.objects.filter(key_id=sealed_box.current_key_id()).count() == 2


def test_keys_are_shown_with_those_that_need_them() -> None:
    seal_keys("rotate")
    shown = json.loads(seal_keys("show", "-o", "json")[1])
    assert [(one["is_current"], one["has_private"], one["rows"]) for one in shown] == [
        (True, True, 3),
        (False, True, 0),
    ]
    assert seal_keys("show")[1].count("\n") == 2


def test_web_process_cannot_rotate(settings: SettingsWrapper) -> None:
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = Path("/dev/null")
    assert seal_keys("rotate")[0] == 1


def test_first_pair_is_made_once() -> None:
    assert seal_keys("create") == (0, "there are keys already\n")
