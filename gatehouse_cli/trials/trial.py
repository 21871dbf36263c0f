"""ManifestTrial, the verdict on one object with Remarks at lines of its file; TrialRun, all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from policies.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.decision import Violation
    from gatehouse_cli.trials.trial_objects import TrialObject
    from policies.manifests.objects import BundleObject

UNMET: Final = "ExpectationNotMet"
"""The reason of a remark about a verdict that differs from the expected one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing to say about a field of an object; ``line`` and ``column`` count from 1.

    ``policy`` is kind and name of the policy that says it, empty for others.
    """

    file: str
    line: int
    column: int
    field: str
    reason: str
    message: str
    policy: str = ""

    @property
    def place(self) -> str:
        """``file:line:column``, as editors and terminals link it."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def origin(self) -> str:
        """The policy, where one says it, and the reason."""
        return f"{self.policy}, {self.reason}" if self.policy else self.reason


def remark_at(item: BundleObject, field: str, *, reason: str, message: str) -> Remark:
    """Make a remark at the line of a field, or of what contains it."""
    line, column = item.document.place_of(item.at(field))
    return Remark(
        file=item.document.source,
        line=line,
        column=column,
        field=field,
        reason=reason,
        message=message,
    )


def refusal_at(item: BundleObject, field: str, violation: Violation, prefix: str = "") -> Remark:
    """Make a remark about a violation, with its policy, at the line of a field."""
    policy = violation.policy
    message = prefix + violation.message
    remark = remark_at(item, field, reason=violation.reason.value, message=message)
    return replace(remark, policy=f"{policy.kind} {policy.name}" if policy else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTrial:
    """One candidate with its refusals, the warnings of policies that only warn, and the result.

    ``failures`` is why it fails the run; empty where the verdict is the expected one.
    """

    candidate: TrialObject
    refusals: tuple[Remark, ...] = ()
    warnings: tuple[Remark, ...] = ()
    failures: tuple[Remark, ...] = ()

    @property
    def is_denied(self) -> bool:
        """Whether a cluster would refuse the object, or pods of it."""
        return bool(self.refusals)

    @property
    def passes(self) -> bool:
        """Whether the verdict is the expected one; without expectation, that it is allowed."""
        return not self.failures


@dataclass(frozen=True)
class TrialRun:
    """All trials, in the order of the files, and the number of skipped objects by kind."""

    trials: Sequence[ManifestTrial]
    skipped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def failed(self) -> list[ManifestTrial]:
        """The trials that fail the run."""
        return [trial for trial in self.trials if not trial.passes]

    @property
    def sentence(self) -> str:
        """The numbers in one sentence."""
        passed = len(self.trials) - len(self.failed)
        tested = counted(len(self.trials), "objects")
        text = f"{tested} tested: {passed:,} passed, {len(self.failed):,} failed"
        if self.skipped:
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in self.skipped.most_common())
            text += f"; {self.skipped.total():,} skipped ({kinds})"
        return text
