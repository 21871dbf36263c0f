"""Discover where a resource is served, by its group and plural name."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from sync.client.answers import is_name
from sync.errors import GarbageError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sync.values import Listing

    Ask = Callable[[str], dict[str, Any]]

_KEPT = ("name", "namespace", "uid", "resourceVersion")


def find(ask: Ask, group: str, resource: str) -> tuple[str, str]:
    """Give version and kind of a resource whose objects live in namespaces and can be listed.

    ``ask`` reads one path. The preferred version counts where it has the resource. Raises
    NotFoundError where no version has it, and as ``ask`` does.
    """
    if not is_name(resource) or (group and not is_name(group)):
        raise InvalidError(f"{resource}.{group} cannot be a resource")
    for version in _versions(ask, group):
        for one in _resources(ask, f"apis/{group}/{version}" if group else f"api/{version}"):
            if one.get("name") == resource and _can_be_listed(one):
                return version, str(one["kind"])
    whole = f"{resource}.{group}" if group else resource
    raise NotFoundError(f"no {whole} in namespaces here", code=404, reason="NotServed")


def without_the_rest(listing: Listing) -> Listing:
    """Forget labels, annotations and managers: annotations may repeat what an object contains."""
    items = tuple(
        {**one, "metadata": {name: one["metadata"].get(name, "") for name in _KEPT}}
        for one in listing.items
    )
    return dataclasses.replace(listing, items=items)


def _versions(ask: Ask, group: str) -> Iterator[str]:
    if not group:
        yield "v1"
        return
    found = ask(f"apis/{group}")
    preferred = found.get("preferredVersion")
    entries = [preferred, *(found.get("versions") or [])]
    names = [one.get("version") for one in entries if isinstance(one, dict)]
    for name in dict.fromkeys(names):
        if not is_name(name):
            raise GarbageError(f"no versions of {group}")
        yield str(name)


def _resources(ask: Ask, path: str) -> Iterator[dict[str, Any]]:
    found = ask(path).get("resources")
    if not isinstance(found, list):
        raise GarbageError(f"no resources at {path}")
    yield from (one for one in found if isinstance(one, dict))


def _can_be_listed(found: dict[str, Any]) -> bool:
    verbs, kind = found.get("verbs"), found.get("kind")
    is_listed = isinstance(verbs, list) and "list" in verbs
    return is_listed and found.get("namespaced") is True and isinstance(kind, str) and bool(kind)
