"""The story of a change: what it does in words, what it needs and has, its checks, its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from gatehouse_cli.objects.times import age, shown_moment
from gatehouse_cli.stories.parts import aligned, part
from gatehouse_cli.stories.rollout import rollout_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatehouse_cli.client.answers import ChangeDetailJson, ChangeItemJson, RolloutJson

HASH_SHOWN: Final = 12
STEPS_SHOWN: Final = 8
_SIGNS: Final = {"add": "+", "change": "~", "delete": "-"}
_COLOURS: Final = {"done": "green", "approved": "green", "in_review": "yellow", "stopped": "red"}
_MARKS: Final = {"passed": "green", "warned": "yellow", "failed": "red"}


def change_lines(change: ChangeDetailJson, rollout: RolloutJson | None) -> Iterator[str]:
    """The lines of the story."""
    yield _head(change)
    yield from aligned(_facts(change))
    yield from part("Contents", _contents(change))
    yield from part("Needs", _needs(change))
    yield from part("Approvals", _approvals(change))
    yield from part("Checks", _checks(change))
    yield from part("Roll-out", rollout_lines(rollout) if rollout else ())
    yield from part("Last steps", _steps(change))


def standing_lines(change: ChangeDetailJson) -> Iterator[str]:
    """How a change stands after a step, and what it still needs."""
    yield _head(change)
    yield from (f"  {each['words']}" for each in change["review"]["needs"] if each["missing"])


def _head(change: ChangeDetailJson) -> str:
    state = change["state"].replace("_", " ")
    shown = click.style(state, fg=_COLOURS.get(change["state"]), bold=True)
    flag = "; published without approvals, nobody reviewed it" if change["unreviewed"] else ""
    return f"change #{change['id']} {change['title']}: {shown}{flag}"


def _facts(change: ChangeDetailJson) -> list[tuple[str, str]]:
    facts = [
        ("author", change["author"]),
        ("reason", " ".join(change.get("reason", "").split())),
        ("ticket", change.get("ticket", "")),
        ("content", change["content_hash"][:HASH_SHOWN]),
        ("created", shown_moment(change["created"])),
        ("next", ", ".join(each.replace("_", " ") for each in change["steps_allowed"])),
    ]
    return [(f"{name}:", text) for name, text in facts if text]


def _contents(change: ChangeDetailJson) -> Iterator[str]:
    for each in change["objects"]:
        yield f"{_SIGNS.get(each['action'], ' ')} {each['action']:6} {_object(each)}"
        yield from (f"    {words}" for words in each["changes"])
    if change["hidden"]:
        yield f"and {change['hidden']:,} objects in places that you do not see"


def _object(item: ChangeItemJson) -> str:
    return f"{item['kind']} {item['cluster']}/{item['namespace']}/{item['name']}"


def _needs(change: ChangeDetailJson) -> Iterator[str]:
    for each in change["review"]["needs"]:
        met = "" if each["missing"] or not each["approvers"] else " (met)"
        yield f"{each['words']}{met}, by the rule {each['rule']}"


def _approvals(change: ChangeDetailJson) -> Iterator[str]:
    for each in change["review"]["approvals"]:
        yield each["user"] if each["counts"] else f"{each['user']}, which counts for no need"


def _checks(change: ChangeDetailJson) -> list[str]:
    rows = [(each["kind"], each["state"], each["words"]) for each in change["review"]["checks"]]
    lines = aligned(rows) if rows else []
    colours = [_MARKS.get(state) for _, state, _ in rows]
    return [click.style(line, fg=fg) for line, fg in zip(lines, colours, strict=True)]


def _steps(change: ChangeDetailJson) -> list[str]:
    rows = [
        (
            age(each["created"]),
            each["user"],
            each["step"].replace("_", " "),
            " ".join(each["note"].split()),
        )
        for each in change["steps"][-STEPS_SHOWN:]
    ]
    return aligned(rows) if rows else []
