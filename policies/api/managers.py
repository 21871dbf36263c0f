"""Field managers over REST: the set of an object, and the manager of each of its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from policies import services
from policies.managed_fields import ManagedField, managers_from_json
from policies.models import Cluster

if TYPE_CHECKING:
    from policies.models import Recorded


class ManagedFieldSerializer(serializers.Serializer[Any]):
    """A field that somebody manages."""

    field = serializers.CharField(help_text="such as spec.hard[pods]; empty: the whole object")
    manager = serializers.CharField(
        help_text="git:SET, ui:USER, sync:CLUSTER, import:USER; empty: unknown"
    )
    commit = serializers.CharField()
    revision = serializers.IntegerField(help_text="the object's, of the manager's write")
    time = serializers.CharField(help_text="of that write; empty: unknown")
    removed = serializers.BooleanField(help_text="whether the manager removed the field")


class ObjectManagersSerializer(serializers.Serializer[Any]):
    """Who manages an object."""

    set = serializers.CharField(help_text="the set that the object belongs to; empty: none")
    fields = ManagedFieldSerializer(many=True)  # type: ignore[assignment]  # a field of the answer


def render_managed_field(managed: ManagedField) -> dict[str, Any]:
    """One field and its manager as JSON."""
    by = managed.manager
    return {
        "field": managed.field,
        "manager": by.manager,
        "commit": by.commit,
        "revision": by.revision,
        "time": by.time,
        "removed": by.removed,
    }


def render_managers(instance: Recorded) -> dict[str, Any]:
    """The set of an object, and the managers of its fields by path.

    Of a cluster it is its list of limited resources that has a manager.
    """
    key = (instance.kind, instance.namespace_name, instance.name)
    if isinstance(instance, Cluster):
        key = services.CONFIGURATION
    row = services.managers_of(instance.owner, [key]).get(key)
    managers = managers_from_json(row.fields) if row else {}
    managed = [ManagedField(field=field, manager=each) for field, each in managers.items()]
    return {"set": row.set if row else "", "fields": [render_managed_field(m) for m in managed]}
