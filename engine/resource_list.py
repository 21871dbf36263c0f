"""Resource lists, maps of name to quantity: add, subtract, mask, round up, compare by name.

Source: ``k8s.io/apiserver/pkg/quota/v1/resources.go``. Functions return new maps and do not change
their arguments; keys keep the order of the first argument, then of the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ResourceList = Mapping[str, Quantity]


def parse(texts: Mapping[str, object]) -> dict[str, Quantity]:
    """Read a JSON map of quantities; raises QuantityError at the first bad one."""
    return {name: Quantity.parse_json(value) for name, value in texts.items()}


def to_json(resources: ResourceList) -> dict[str, str]:
    """Render as JSON: each quantity as Kubernetes prints it, names in byte order."""
    return {name: str(resources[name]) for name in sorted(resources)}


def add(a: ResourceList, b: ResourceList) -> dict[str, Quantity]:
    """Add by name; a name in one list only keeps its amount."""
    summed = dict(a)
    for name, quantity in b.items():
        summed[name] = summed[name] + quantity if name in summed else quantity
    return summed


def subtract(a: ResourceList, b: ResourceList) -> dict[str, Quantity]:
    """Subtract by name; a name in ``b`` only turns negative."""
    remaining = dict(a)
    for name, quantity in b.items():
        remaining[name] = remaining[name] - quantity if name in remaining else -quantity
    return remaining


def subtract_with_non_negative_result(a: ResourceList, b: ResourceList) -> dict[str, Quantity]:
    """Subtract by name, down to zero at most; names of ``b`` only are zero."""
    return {
        name: quantity if quantity.nano > 0 else ZERO for name, quantity in subtract(a, b).items()
    }


def max_of(a: ResourceList, b: ResourceList) -> dict[str, Quantity]:
    """Take the larger amount by name; of two equal ones that of ``b``, as upstream does."""
    largest = dict(a)
    for name, quantity in b.items():
        if name not in largest or largest[name] <= quantity:
            largest[name] = quantity
    return largest


def mask(resources: ResourceList, names: Collection[str]) -> dict[str, Quantity]:
    """Keep only the entries whose name is among ``names``."""
    return {name: quantity for name, quantity in resources.items() if name in names}


def round_up(resources: ResourceList) -> dict[str, Quantity]:
    """Round every quantity away from zero to thousandths, as API defaulting does."""
    return {name: quantity.round_up_milli() for name, quantity in resources.items()}


def stored(resources: ResourceList) -> dict[str, Quantity]:
    """Return every quantity as read back after storage, which keeps only texts."""
    return {name: quantity.stored() for name, quantity in resources.items()}


def equals(a: ResourceList, b: ResourceList) -> bool:
    """Compare names and values, whatever the formats."""
    return dict(a) == dict(b)


def less_than_or_equal(a: ResourceList, b: ResourceList) -> tuple[bool, list[str]]:
    """Whether no amount of ``a`` exceeds that of ``b``, and the sorted names of those which do.

    Names that only one list has are not compared.
    """
    exceeded = sorted(name for name, bound in b.items() if name in a and a[name] > bound)
    return not exceeded, exceeded


def is_zero(resources: ResourceList) -> bool:
    """Whether all amounts are zero; so is an empty list."""
    return not any(quantity.nano for quantity in resources.values())


def negative_names(resources: ResourceList) -> list[str]:
    """List the names whose amount is below zero (upstream's ``IsNegative``)."""
    return sorted([name for name, quantity in resources.items() if quantity.nano < 0])


def remove_zeros(resources: ResourceList) -> dict[str, Quantity]:
    """Drop the zero entries."""
    return {name: quantity for name, quantity in resources.items() if quantity.nano}


def contains_prefix(prefixes: Iterable[str], name: str) -> bool:
    """Whether ``name`` begins with one of the prefixes."""
    return name.startswith(tuple(prefixes))


def intersection(a: Iterable[str], b: Iterable[str]) -> list[str]:
    """List the names that both have, sorted."""
    return sorted(set(a) & set(b))


def difference(a: Iterable[str], b: Iterable[str]) -> list[str]:
    """List the names of ``a`` that ``b`` lacks, sorted."""
    return sorted(set(a) - set(b))
