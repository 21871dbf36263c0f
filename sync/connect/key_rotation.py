"""Rotation of seal keys: KeyState, rows sealed again with the newest key, old keys retired."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import transaction

from policies.plurals import counted
from sync.connect import seal_keys, sealed_box
from sync.connect.connections import alert_unusable_credential, place_of
from sync.models import ClusterConnection

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey


class RetireError(Exception):
    """The key is still needed, or does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """One key: whether it seals now, whether it can open here, and how many rows need it."""

    key_id: str
    is_current: bool
    has_private: bool
    rows: int


@dataclass(slots=True)
class Rotation:
    """The result of a rotation: clusters sealed again, and those whose credential does not open."""

    key_id: str
    is_new: bool
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def key_states() -> list[KeyState]:
    """List all keys in files and rows, the current one first."""
    public_ids = [sealed_box.key_id(key) for key in seal_keys.public_keys()]
    private_ids = {sealed_box.key_id(key.public_key()) for key in seal_keys.private_keys()}
    used_ids = list(ClusterConnection.objects.values_list("key_id", flat=True))
    return [
        KeyState(
            key_id=sealing_key,
            is_current=sealing_key in public_ids[:1],
            has_private=sealing_key in private_ids,
            rows=used_ids.count(sealing_key),
        )
        for sealing_key in dict.fromkeys((*public_ids, *sorted(private_ids), *sorted(used_ids)))
    ]


def rotate() -> Rotation:
    """Seal all credentials with a new key, or finish a rotation that was killed.

    Raises SealingError without a private key; KeyFileError, OSError if files cannot be written.
    """
    private_keys = seal_keys.private_keys()
    if not private_keys:
        raise sealed_box.SealingError("no-private-key", "only who has the private keys can rotate")
    newest_id = sealed_box.key_id(private_keys[0].public_key())
    is_new = not ClusterConnection.objects.exclude(key_id=newest_id).exists()
    if is_new:
        newest_id = sealed_box.key_id(seal_keys.add_key())
    elif sealed_box.current_key_id() != newest_id:
        # The rotation was killed between the two files: the private one is written first.
        seal_keys.publish_keys()
    return _reseal_rows(Rotation(newest_id, is_new=is_new), seal_keys.private_keys())


def _reseal_rows(rotation: Rotation, keys: list[X25519PrivateKey]) -> Rotation:
    newest_key = next(key for key in keys if sealed_box.key_id(key.public_key()) == rotation.key_id)
    rows_to_seal = ClusterConnection.objects.exclude(key_id=rotation.key_id)
    # A transaction for each row: whatever a killed rotation has sealed stays sealed.
    for pk in rows_to_seal.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            connection_row = ClusterConnection.objects.select_for_update(of=("self",)).get(pk=pk)
            place = place_of(connection_row)
            try:
                old_box = sealed_box.Sealed(connection_row.key_id, bytes(connection_row.sealed))
                unsealed = sealed_box.open_with(keys, old_box, place=place)
            except sealed_box.SealingError as error:
                alert_unusable_credential(connection_row, str(error))
                rotation.failed.append(connection_row.cluster.name)
                continue
            resealed = sealed_box.seal_to(newest_key.public_key(), unsealed, place=place)
            ClusterConnection.objects.filter(pk=pk, key_id=connection_row.key_id).update(
                sealed=resealed.data, key_id=resealed.key_id
            )
        rotation.done.append(connection_row.cluster.name)
    return rotation


def retire(key_id: str = "") -> list[str]:
    """Drop a key (default: all old ones) from both files; returns the ids of dropped keys.

    Raises RetireError for a key that rows need, for the current one, and for an unknown one.
    """
    states = {state.key_id: state for state in key_states()}
    if key_id and key_id not in states:
        raise RetireError(f"there is no key {key_id}")
    wanted = [states[key_id]] if key_id else [one for one in states.values() if not one.is_current]
    for state in wanted:
        if state.is_current:
            raise RetireError(f"{state.key_id} is the current key: rotate first")
        if state.rows:
            raise RetireError(
                f"{state.key_id} is needed by {counted(state.rows, 'clusters')}: rotate first"
            )
    retired = [state.key_id for state in wanted]
    known = [*seal_keys.public_keys()]
    known += [key.public_key() for key in seal_keys.private_keys()]
    seal_keys.drop_keys([seal_keys.raw(key) for key in known if sealed_box.key_id(key) in retired])
    return retired
