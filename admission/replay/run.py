"""``replay``: pieces of the record through the judge into a report, with progress in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from admission.replay.judge import ReplayJudge
from admission.replay.report import ReplayReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from admission.replay.policies import ReplayPolicies
    from admission.replay.recorded import PastDecision


def replay(
    pieces: Iterable[Sequence[PastDecision]], base: ReplayPolicies, draft: ReplayPolicies
) -> Iterator[ReplayReport]:
    """ReplayJudge recorded decisions, oldest first; yields the growing report after each piece.

    Pure: it reads nothing but the pieces. The last report is the whole; without any piece there is
    one empty report.
    """
    judge, report = ReplayJudge(base, draft), ReplayReport()
    yield report
    for piece in pieces:
        for recorded in piece:
            report.add(recorded, judge.compare(recorded))
        report.judged = judge.judged
        yield report
