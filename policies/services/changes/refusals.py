"""``ItemsRefusedError`` names each object of a change set that cannot be written, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policies.services.write import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemProblem:
    """Why one object cannot be written; ``path`` is the member at fault, empty for all of it."""

    cluster: str
    key: Key
    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        kind, namespace, name = self.key
        at = f"{self.path}: " if self.path else ""
        return f"{kind} {namespace}/{name} of {self.cluster}: {at}{self.message}"


class ItemsRefusedError(Exception):
    """Objects of a change set cannot be written; nothing was."""

    def __init__(self, problems: Sequence[ItemProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


def no_such_item() -> ValidationError:
    """The error of an object that is not in the change set."""
    message = "the object is not in the change: read it again"
    return ValidationError(message, code="no_such_object")


def problems_of(cluster: str, key: Key, error: ValidationError) -> Iterator[ItemProblem]:
    """The problems that one object's own rules find."""
    for path, errors in errors_by_path(error).items():
        for each in errors:
            yield ItemProblem(
                cluster=cluster, key=key, code=each["code"], message=each["message"], path=path
            )
