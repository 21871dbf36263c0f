"""``PlanReader`` reads the members of a plan from JSON, and collects what is wrong with them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from enum import StrEnum

    Word = TypeVar("Word", bound=StrEnum)

LONGEST_NAME: Final = 253
# Kubernetes' names and labels, and * in patterns; nothing that a page or a query could mistake.
_NAME: Final = re.compile(r"[A-Za-z0-9*]([A-Za-z0-9*_./-]*[A-Za-z0-9*])?")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """What is wrong with one member of a plan."""

    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class PlanError(ValueError):
    """A plan that cannot be read, or not be carried out."""

    def __init__(self, problems: Sequence[PlanProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class PlanReader:
    """Reads members, each with a default where it is not given; ``problems`` are all that it found.

    A member that is wrong is read as its default, so that one mistake is one problem.
    """

    def __init__(self) -> None:
        self.problems: list[PlanProblem] = []

    def refuse(self, path: str, code: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(PlanProblem(path, code, message))

    def members(self, raw: object, path: str, known: Sequence[str]) -> Mapping[str, Any]:
        """An object's members; unknown ones are problems, with a suggestion."""
        if not isinstance(raw, dict):
            self.refuse(path, "invalid", "must be an object")
            return {}
        for name in raw:
            if name not in known:
                close = get_close_matches(str(name), known, n=1)
                hint = f": did you mean {close[0]}?" if close else ""
                shown = ascii(str(name)[:LONGEST_NAME])[1:-1]
                self.refuse(_joined(path, shown), "unknown_field", f"is no member{hint}")
        return raw

    def items(
        self,
        members: Mapping[str, Any],
        name: str,
        path: str,
        *,
        most: int,
        default: Sequence[Any] = (),
    ) -> list[Any]:
        """A list."""
        found = members.get(name, default)
        if not isinstance(found, list | tuple):
            self.refuse(_joined(path, name), "invalid", "must be a list")
            return []
        if len(found) > most:
            self.refuse(_joined(path, name), "too_many", f"must have at most {most}")
            return []
        return list(found)

    def names(
        self, members: Mapping[str, Any], name: str, path: str, *, most: int
    ) -> tuple[str, ...]:
        """A list of names."""
        names = []
        for index, each in enumerate(self.items(members, name, path, most=most)):
            if isinstance(each, str) and len(each) <= LONGEST_NAME and _NAME.fullmatch(each):
                names.append(each)
            else:
                self.refuse(f"{_joined(path, name)}[{index}]", "invalid", "must be a name")
        return tuple(names)

    def labels(
        self, members: Mapping[str, Any], name: str, path: str, *, most: int
    ) -> dict[str, str]:
        """Labels with their values."""
        found = members.get(name, {})
        if not isinstance(found, dict) or len(found) > most:
            self.refuse(_joined(path, name), "invalid", f"must be a map of at most {most} labels")
            return {}
        for text in (*found, *found.values()):
            is_text = isinstance(text, str) and len(text) <= LONGEST_NAME
            if not is_text or _UNSTORABLE.search(text):
                self.refuse(_joined(path, name), "invalid", "must be a map of strings to strings")
                return {}
        return dict(found)

    def choice(
        self,
        members: Mapping[str, Any],
        name: str,
        path: str,
        words: type[Word],
        *,
        default: Word | None,
    ) -> Word:
        """One of some words; ``default`` None: it must be given."""
        found = members.get(name, default)
        known = [each.value for each in words]
        if not isinstance(found, str) or found not in known:
            self.refuse(
                _joined(path, name), "invalid_choice", f"must be one of: {', '.join(known)}"
            )
            return default or next(iter(words))
        return words(found)

    def whole(
        self,
        members: Mapping[str, Any],
        name: str,
        path: str,
        *,
        bounds: tuple[int, int],
        default: int,
    ) -> int:
        """A whole number within bounds."""
        lowest, highest = bounds
        found = members.get(name, default)
        if type(found) is int and lowest <= found <= highest:
            return found
        message = f"must be a whole number from {lowest} to {highest}"
        self.refuse(_joined(path, name), "invalid", message)
        return default

    def number(
        self, members: Mapping[str, Any], name: str, path: str, *, highest: int, default: int
    ) -> float:
        """A number from 0 on."""
        found = members.get(name, default)
        if type(found) in (int, float) and math.isfinite(found) and 0 <= found <= highest:
            return float(found)
        self.refuse(_joined(path, name), "invalid", f"must be a number from 0 to {highest}")
        return float(default)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
