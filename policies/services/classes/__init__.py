"""Namespace classes: what namespaces get from them, in the transaction that makes it known."""

from policies.services.classes.carry_out import WINDOW, Given, give_classes
from policies.services.classes.exceptions import give_back
from policies.services.classes.plan import exceptions_of
from policies.services.classes.preview import (
    ClassPreview,
    PolicyEffect,
    matched_namespaces,
    preview_class,
    preview_deletion,
    read_class,
)
from policies.services.classes.versions import (
    BRAKED,
    SavedClass,
    classes_written,
    confirm_leaving,
    delete_class,
    held_deletions,
    save_class,
)

__all__ = [
    "BRAKED",
    "WINDOW",
    "ClassPreview",
    "Given",
    "PolicyEffect",
    "SavedClass",
    "classes_written",
    "confirm_leaving",
    "delete_class",
    "exceptions_of",
    "give_back",
    "give_classes",
    "held_deletions",
    "matched_namespaces",
    "preview_class",
    "preview_deletion",
    "read_class",
    "save_class",
]
