"""Errors of a KeptTest that can be read: names, lengths, objects that fit its operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import ErrorType, FieldError
from engine.names import dns1123_subdomain_errors
from engine.policy_manifests import is_cluster_scoped
from engine.request import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.kept_tests.definition import KeptTest

LONGEST_NAME: Final = 253
LONGEST_TEXT: Final = 512
MOST_QUOTAS: Final = 50
MOST_OPERATIONS: Final = 200


def validate_kept_test(test: KeptTest) -> tuple[FieldError, ...]:
    """List the errors of a test."""
    return tuple(_errors(test))


def _errors(test: KeptTest) -> Iterator[FieldError]:
    for text in dns1123_subdomain_errors(test.name):
        yield FieldError(ErrorType.INVALID, "metadata.name", test.name, text)
    texts = {"user": test.user, "decision": test.decision, "subResource": test.sub_resource}
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT:
            detail = f"must have at most {LONGEST_TEXT} characters"
            yield FieldError(ErrorType.TOO_LONG, f"spec.{name}", text[:40], detail)
    yield from _object_errors(test)
    if len(test.used) > MOST_QUOTAS:
        detail = f"must have at most {MOST_QUOTAS} items"
        yield FieldError(ErrorType.TOO_MANY, "spec.used", len(test.used), detail)
    if len(test.expected.patch or ()) > MOST_OPERATIONS:
        detail = f"must have at most {MOST_OPERATIONS} items"
        yield FieldError(ErrorType.TOO_MANY, "spec.expect.patch", None, detail)


def _object_errors(test: KeptTest) -> Iterator[FieldError]:
    if test.operation is Operation.UPDATE and test.old_object is None:
        detail = "an update needs the object before it"
        yield FieldError(ErrorType.REQUIRED, "spec.oldObject", None, detail)
    if test.operation is Operation.CREATE and test.old_object is not None:
        detail = "a new object has none before it"
        yield FieldError(ErrorType.FORBIDDEN, "spec.oldObject", None, detail)
    if is_cluster_scoped(test.object.get("kind")):
        detail = "policies of a namespace judge no object outside namespaces"
        yield FieldError(ErrorType.INVALID, "spec.object.kind", test.object.get("kind"), detail)
