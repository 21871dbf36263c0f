"""``staged`` says what a stage writes of a proposed object; ``unobservable``, why it may not.

Nothing that is in force may stop refusing while its successor is only observed, and nothing that is
only observed may be enforced by an API server (decision 19).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.policy import Enforcement, decode_enforcement
from policies.change_sets.rollout.plan import MODE_ORDER
from policies.object_rules import with_enforcement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.change_sets.content import ProposedContent

_OBSERVED_KINDS: Final = frozenset({"MetadataPolicy"})
"""Kinds that no API server enforces by itself, in whatever mode they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """What a stage writes of an object; without content it deletes it, if it writes at all."""

    content: Mapping[str, Any] | None = None
    is_written: bool = True


def staged(item: ProposedContent, mode: Enforcement) -> Staged:
    """What a stage of this mode writes; ``enforce`` stands for the object as proposed."""
    if mode is Enforcement.ENFORCE:
        return Staged(content=item.content)
    before = _mode(item.base)
    if item.content is None or before is Enforcement.ENFORCE:
        # It takes away or loosens what is in force: there is nothing to observe before.
        return Staged(is_written=False)
    strict = mode if before is None else max(mode, before, key=MODE_ORDER.index)
    own = _mode(item.content) or Enforcement.ENFORCE
    least = min(strict, own, key=MODE_ORDER.index)
    return Staged(content=with_enforcement(item.content, least))


def unobservable(item: ProposedContent) -> str:
    """Why an object has no stage in audit or warn mode, in words; empty where it may have one."""
    if item.content is None:
        return ""
    if item.kind not in _OBSERVED_KINDS:
        return (
            "a cluster that has it enforces it in every mode, so it is not observed first: "
            "give its wave only the stage enforce"
        )
    if _mode(item.base) is _mode(item.content) is Enforcement.ENFORCE:
        return (
            "the policy is in force, and would refuse nothing while it is observed: "
            "give its wave only the stage enforce"
        )
    return ""


def _mode(manifest: Mapping[str, Any] | None) -> Enforcement | None:
    """The enforcement of a manifest; None where there is none."""
    return decode_enforcement(manifest["metadata"].get("annotations")) if manifest else None
