"""Fields of a policy's manifest: normal form, changes, the manager of each. Pure, no Django."""

from policies.managed_fields.managers import (
    CLASS,
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
    merge_where_free,
    others,
    overwritten,
    stamp,
)
from policies.managed_fields.normal_form import normal

__all__ = [
    "CLASS",
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
    "merge_where_free",
    "normal",
    "others",
    "overwritten",
    "stamp",
]
