"""``counted`` and ``singular``: numbers with English nouns, "1 pod", "1,204 pods"."""

from __future__ import annotations

from typing import Final

_ES: Final = ("sses", "xes", "ches", "shes")


def counted(number: int, plural: str) -> str:
    """The number with its noun, given in the plural, as Kubernetes names resources.

    A group behind a dot stays: ``counted(1, "ingresses.networking.k8s.io")``.
    """
    noun, dot, group = plural.partition(".")
    return f"{number:,} {singular(noun) if number == 1 else noun}{dot}{group}"


def singular(plural: str) -> str:
    """The singular of a plural: Kubernetes' resources and our own words."""
    if plural.endswith("ies"):
        return f"{plural.removesuffix('ies')}y"
    if plural.endswith(_ES):
        return plural.removesuffix("es")
    return plural.removesuffix("s")
