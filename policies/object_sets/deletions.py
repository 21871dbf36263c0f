"""Objects of a set that its documents lack: ``find_deletions``, ``delete`` in a safe order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies import services
from policies.managed_fields import managers_from_json
from policies.models import KeptTest, Namespace, PriorityClass

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from policies.managed_fields import Managers
    from policies.models import Cluster
    from policies.services.field_managers import Key

_ORDER: Final = (
    *("PolicyTest", "LimitRange", "MetadataPolicy", "ResourceQuota"),
    *("PriorityClass", "Namespace"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A stored object that a set manages and no longer lists.

    ``others_inside``: policies of a namespace that would go with it, and that the set does not
    manage or still lists.
    """

    key: Key
    stored: Any
    managers: Managers
    others_inside: tuple[str, ...] = ()


def find_deletions(cluster: Cluster, name: str, *, listed: Collection[Key]) -> list[Deletion]:
    """Find what pruning the set would delete, in the order of deletion."""
    rows = services.keys_of_set(cluster, name)
    missing = {key: row for key, row in rows.items() if key not in listed and key[0] in _ORDER}
    stored = services.stored_by_key(cluster, missing)
    going = {key for key in missing if key in stored}
    deletions = [
        Deletion(
            key=key,
            stored=stored[key],
            managers=managers_from_json(missing[key].fields),
            others_inside=_others_inside(cluster, key, going) if key[0] == "Namespace" else (),
        )
        for key in going
    ]
    return sorted(deletions, key=lambda each: (_ORDER.index(each.key[0]), each.key))


def _others_inside(cluster: Cluster, key: Key, going: set[Key]) -> tuple[str, ...]:
    """The policies of a namespace that do not go by themselves."""
    inside = (
        (kind, key[2], name)
        for kind, model in services.OF_NAMESPACE.items()
        for name in model.objects.filter(
            namespace__cluster=cluster, namespace__name=key[2]
        ).values_list("name", flat=True)
    )
    return tuple(f"{kind} {name}" for kind, _, name in inside if (kind, key[2], name) not in going)


def delete(deletions: Sequence[Any], *, user: str, reason: str) -> None:
    """Delete stored objects, each with a revision of its own."""
    for stored in deletions:
        if isinstance(stored, Namespace):
            services.delete_namespace(namespace=stored, user=user, reason=reason)
        elif isinstance(stored, PriorityClass):
            services.delete_priority_class(priority_class=stored, user=user, reason=reason)
        elif isinstance(stored, KeptTest):
            services.delete_kept_test(test=stored, user=user, reason=reason)
        else:
            services.delete_policy(policy=stored, user=user, reason=reason)
