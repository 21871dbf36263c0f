"""``give_back`` fields that somebody changed in one namespace: they follow the class again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError

from policies.managed_fields import OBJECT, managers_from_json
from policies.models import ClassPolicy, ObjectManagers
from policies.services.classes.carry_out import Given, give_classes, writer_of_class
from policies.services.classes.plan import exceptions_of
from policies.services.field_managers import managers_of
from policies.services.write import policy_write

if TYPE_CHECKING:
    from collections.abc import Collection

_GONE: Final = "that is no longer an exception: read the list again"


def give_back(
    *, policy: ClassPolicy, user: str, fields: Collection[str] | None = None, reason: str = ""
) -> Given:
    """Let a policy's fields follow its class again; None stands for all of its exceptions.

    What they have now is overwritten; a policy that was deleted is made again. Raises
    ``ValidationError`` where a field is no exception.
    """
    cluster = policy.namespace.cluster
    with policy_write(cluster):
        row = ClassPolicy.objects.filter(pk=policy.pk).first()
        listed = {each.field for each in exceptions_of(row)} if row else set()
        wanted = listed if fields is None else set(fields)
        if row is None or not wanted or not wanted <= listed:
            raise ValidationError({"fields": ValidationError(_GONE, code="no_exception")})
        if wanted == {OBJECT}:
            row.delete()
        else:
            _let_go(row, wanted)
        why = reason or f"given back to class {row.namespace_class.name}"
        return give_classes(cluster, [row.namespace], user=user, reason=why)


def _let_go(row: ClassPolicy, fields: Collection[str]) -> None:
    """Make the class the manager of fields, so that it may set them."""
    key = (row.kind, row.namespace.name, row.name)
    cluster = row.namespace.cluster
    stored = managers_of(cluster, [key]).get(key) or ObjectManagers(
        cluster=cluster, kind=row.kind, namespace=row.namespace.name, name=row.name
    )
    managers = managers_from_json(stored.fields)
    by = {"manager": writer_of_class(row.namespace_class.name).manager}
    stored.fields = {
        **{name: each.to_json() for name, each in managers.items()},
        **dict.fromkeys(fields, by),
    }
    stored.save()
