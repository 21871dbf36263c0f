"""Fields of a policy's manifest: normal form, changes, the manager of each. Pure, no Django."""

from policies.managed_fields.managers import (
    GIT,
    OBJECT,
    FieldManager,
    ManagedField,
    Managers,
    Merge,
    changed_fields,
    fields_of,
    managers_from_json,
    merge,
    others,
    overwritten,
    stamp,
)
from policies.managed_fields.normal_form import normal

__all__ = [
    "GIT",
    "OBJECT",
    "FieldManager",
    "ManagedField",
    "Managers",
    "Merge",
    "changed_fields",
    "fields_of",
    "managers_from_json",
    "merge",
    "normal",
    "others",
    "overwritten",
    "stamp",
]
