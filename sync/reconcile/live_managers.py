"""Manager of each field of a live object, from its ``managedFields``; used amounts by writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_FIELDS: Final = 20_000
_STEP_FORMATS: Final = {"f": ".{}", "k": "[{}]", "v": "[={}]", "i": "[{}]"}


class Manager(NamedTuple):
    """The name of a field manager, and its last write (RFC 3339 text); empty if not given."""

    manager: str
    time: str


def managers(live: Mapping[str, Any], *, subresource: str = "") -> dict[str, Manager]:
    """Map each field to its last manager, by writes of the object or of one ``subresource`` alone.

    Fields are named as in Difference; a list that is owned as a whole (``.spec.limits``) is one.
    """
    manager_of_field: dict[str, Manager] = {}
    managed_entries = (live.get("metadata") or {}).get("managedFields")
    for entry in managed_entries if isinstance(managed_entries, list) else []:
        if not isinstance(entry, dict) or (entry.get("subresource") or "") != subresource:
            continue
        who = Manager(_text_or_empty(entry.get("manager")), _text_or_empty(entry.get("time")))
        for field in _managed_field_paths(entry.get("fieldsV1")):
            # RFC 3339 times in UTC sort as texts.
            if field not in manager_of_field or manager_of_field[field].time <= who.time:
                manager_of_field[field] = who
    return manager_of_field


def used_by_others(live_quota: Mapping[str, Any], us: str) -> dict[str, Any]:
    """The used amounts in a quota's status that the field manager ``us`` did not write last.

    What we wrote is our own ledger: read back, it would confirm itself.
    """
    status = live_quota.get("status")
    used = status.get("used") if isinstance(status, dict) else None
    writers = managers(live_quota, subresource="status")
    ours = {field for field, writer in writers.items() if writer.manager == us}
    amounts = used if isinstance(used, dict) else {}
    return {name: amount for name, amount in amounts.items() if f".status.used.{name}" not in ours}


def _managed_field_paths(tree: Any) -> Iterator[str]:
    """Yield the fields that one manager owns, from its fieldsV1."""
    pending: list[tuple[str, Any]] = [("", tree)]
    # A loop with a bound, since a hostile cluster could send a tree of any size and depth.
    for _ in range(_MOST_FIELDS):
        if not pending:
            return
        path, subtree = pending.pop()
        inner = subtree if isinstance(subtree, dict) else {}
        # Kubernetes marks a node that is owned itself by "."; leaves are owned without it.
        if path and (not inner or "." in inner):
            yield path
        for key in inner:
            sort, _, name = key.partition(":")
            if key != ".":
                pending.append((path + _STEP_FORMATS.get(sort, ".{}").format(name), inner[key]))


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
