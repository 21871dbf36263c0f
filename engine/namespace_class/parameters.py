"""Parameters of a class: a namespace's values from its annotations, ``$(NAME)`` filled in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.namespace_class.definition import ParameterType
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.namespace_class.definition import ClassParameter, NamespaceClass

PARAMETER_PREFIX: Final = "policy.gatehouse.dev/parameter."
"""Before a parameter's name: the annotation with which a namespace sets it."""
_REFERENCE: Final = re.compile(r"\$\(([^()]*)\)")
_FIXED: Final = frozenset({"apiVersion", "kind", "name", "namespace"})
"""Members that are never filled in: what an object is, and its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterValues:
    """The values of a class's parameters in one namespace.

    ``problems`` are annotations that could not be used: there the default stands.
    """

    values: Mapping[str, str]
    problems: tuple[str, ...] = ()


def parameter_values(
    namespace_class: NamespaceClass, annotations: Mapping[str, str]
) -> ParameterValues:
    """The values that a namespace's annotations set, and the defaults of the others."""
    values: dict[str, str] = {}
    problems: list[str] = []
    for parameter in namespace_class.parameters:
        given = annotations.get(f"{PARAMETER_PREFIX}{parameter.name}")
        values[parameter.name] = parameter.default
        if given is None:
            continue
        if problem := value_problem(parameter, given):
            problems.append(
                f"annotation {PARAMETER_PREFIX}{parameter.name}: {problem};"
                f" the default {parameter.default} stands"
            )
        else:
            values[parameter.name] = given
    return ParameterValues(values=values, problems=tuple(problems))


def value_problem(parameter: ClassParameter, value: str) -> str:
    """Why a text is no value of a parameter; empty if it is one."""
    if parameter.type is ParameterType.STRING:
        return ""
    try:
        quantity = Quantity.parse(value)
    except QuantityError as error:
        return error.detail
    return "an amount beyond all bounds" if quantity.is_infinite else ""


def filled_in(policy: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """A policy's manifest with the values in place of ``$(NAME)``; shares what has none."""
    filled: dict[str, Any] = _filled(policy, values)
    return filled


def _filled(value: Any, values: Mapping[str, str], member: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _filled(inner, values, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str) or member in _FIXED:
        return value
    reference = _REFERENCE.fullmatch(value)
    return values.get(reference[1], value) if reference else value


def references(value: Any, path: str = "", member: str = "") -> Iterator[tuple[str, str, bool]]:
    """The references in a manifest: path, parameter's name, whether one may stand there.

    It may where it is the whole value, and no name of an object.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            is_key = "." in name or "/" in name
            below = f"{path}[{name}]" if is_key else f"{path}.{name}".lstrip(".")
            yield from references(inner, below, name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from references(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        for found in _REFERENCE.finditer(value):
            yield path, found[1], found[0] == value and member not in _FIXED
