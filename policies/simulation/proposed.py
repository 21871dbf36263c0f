"""``with_proposed``: the policies of a namespace as a change would leave them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from policies.simulation.simulate import POLICY_SET_FIELDS, with_unsaved

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from engine.policy import PolicySet


def with_proposed(
    policies: PolicySet,
    *,
    contents: Sequence[Mapping[str, Any]],
    gone: Collection[tuple[str, str]] = (),
) -> PolicySet:
    """Put contents in place of policies, and leave those out whose kind and name are gone.

    Raises ``DecodeError`` for a content that cannot be read.
    """
    left: dict[str, Any] = {
        field: tuple(each for each in getattr(policies, field) if (kind, each.name) not in gone)
        for kind, field in POLICY_SET_FIELDS.items()
    }
    return with_unsaved(dataclasses.replace(policies, **left), contents)
