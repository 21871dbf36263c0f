"""The story of a replay: counts, flips by owner, what else changes, what was not replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gatehouse_cli.stories.parts import aligned, part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatehouse_cli.client.answers import (
        ChangeGroupJson,
        ReplayedQuotaJson,
        ReplayReportJson,
        ReplayVerdictsJson,
    )

_HEADINGS: Final = ("OWNER", "TO DENIED", "TO ALLOWED", "OLDEST", "NEWEST", "WHY")
_NONE: Final = "-"
_WAITS_SHOWN: Final = 3


def replay_lines(report: ReplayReportJson) -> Iterator[str]:
    """The report as lines of text."""
    verdicts = report["verdicts"]
    record = verdicts["record"]
    yield (
        f"{verdicts['decisions']:,} decisions, {verdicts['replayed']:,} replayed;"
        f" the present policies repeat {record['repeated']:,}"
    )
    yield from part("Verdicts that flip", _flips(verdicts))
    yield from part("Else", _others(verdicts))
    yield from part("Not replayed", _not_replayed(verdicts))
    yield from part("Quotas over time", _quotas(report["quotas"]))


def _flips(verdicts: ReplayVerdictsJson) -> list[str]:
    """The flips by owner, those with most first."""
    denied, allowed = (verdicts["changes"][kind] for kind in ("to_denied", "to_allowed"))
    by_owner: dict[str, list[ChangeGroupJson | None]] = {}
    for position, changed in enumerate((denied, allowed)):
        for group in changed["by"]["owner"]["groups"]:
            by_owner.setdefault(group["key"], [None, None])[position] = group
    rows = [_row(owner, *groups) for owner, groups in by_owner.items()]
    left_out = sum(each["by"]["owner"]["groups_left_out"] for each in (denied, allowed))
    more = [f"and {left_out:,} owners more"] if left_out else []
    return [*aligned([_HEADINGS, *rows]), *more] if rows else []


def _row(
    owner: str, denied: ChangeGroupJson | None, allowed: ChangeGroupJson | None
) -> tuple[str, ...]:
    groups = [group for group in (denied, allowed) if group]
    numbers = [f"{group['number']:,}" if group else _NONE for group in (denied, allowed)]
    ends = min(group["oldest"] for group in groups), max(group["newest"] for group in groups)
    return owner, *numbers, *ends, groups[0]["text"]


def _others(verdicts: ReplayVerdictsJson) -> Iterator[str]:
    changes = verdicts["changes"]
    words = {
        "patch": "patches differ",
        "new_warning": "get a new warning",
        "vanished_warning": "lose a warning",
    }
    numbers = (changes["patch"], changes["new_warning"], changes["vanished_warning"])
    for text, found in zip(words.values(), numbers, strict=True):
        if found["number"]:
            yield f"{found['number']:,} {text}, such as {found['newest']}"


def _not_replayed(verdicts: ReplayVerdictsJson) -> list[str]:
    return [
        f"{found['number']:,} {cause}, such as {found['newest']}"
        for cause, found in sorted(verdicts["not_replayed"].items())
    ]


def _quotas(quotas: list[ReplayedQuotaJson]) -> Iterator[str]:
    for each in quotas:
        title = f"{each['namespace']}/{each['quota']}"
        report = each["report"]
        if report is None:
            yield f"{title}: {each['state']}, the journal tells nothing"
            continue
        peak = ", ".join(
            f"{name} {amount} of {report['hard'][name]}"
            for name, amount in sorted(report["peak"].items())
        )
        waited = sum(report["waits"].values())
        yield f"{title}: highest {peak or 'nothing'}; {waited:,} requests would have waited"
        for wait in report["longest_waits"][:_WAITS_SHOWN]:
            yield f"  {wait['name']}: {wait['seconds']:,} s from {wait['begin']}, {wait['ended']}"
