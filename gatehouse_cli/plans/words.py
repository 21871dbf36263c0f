"""A plan in the terminal: a line an object, its changes in words, conflicts and the way on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from gatehouse_cli.objects.times import shown_moment
from gatehouse_cli.stories.parts import policy_title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatehouse_cli.client.answers import ManagedFieldJson, PlannedObjectJson, SetPlanJson

_SIGNS: Final = {
    "create": ("+", "green"),
    "change": ("~", "yellow"),
    "delete": ("-", "red"),
    "conflict": ("!", "magenta"),
}
_INDENT: Final = " " * 13
_UNCHANGED: Final = "unchanged"


def has_changes(plan: SetPlanJson) -> bool:
    """Whether carrying it out would change, or changed, anything."""
    return any(each["action"] != _UNCHANGED for each in plan["objects"])


def plan_lines(plan: SetPlanJson) -> Iterator[str]:
    """The lines of one plan."""
    commit = f", commit {plan['commit'][:12]}" if plan["commit"] else ""
    yield click.style(f"cluster {plan['cluster']}, set {plan['set']}{commit}", bold=True)
    for planned in plan["objects"]:
        if planned["action"] != _UNCHANGED:
            yield from _object_lines(planned)
    for left in plan["left"]:
        yield f"  the set has {policy_title(left)}, too, and no file has it; --prune deletes it"
    yield _summary(plan)
    for hint in plan["hints"]:
        yield f"hint: {hint}"
    for obstacle in plan["blocked"]:
        yield click.style(f"blocked: {obstacle['message']}", fg="magenta")


def way_on(plan: SetPlanJson) -> str:
    """What helps a person with a blocked plan; empty if it is not blocked."""
    codes = {obstacle["code"] for obstacle in plan["blocked"]}
    if not codes:
        return ""
    ways = []
    if "conflict" in codes:
        ways.append(
            "put the values of the other managers into the files, or take them over: --force"
        )
    if "prune-brake" in codes:
        number = plan["counts"]["delete"]
        ways.append(f"if so many deletions are meant: --confirm-deletions {number}")
    if "namespace-not-empty" in codes:
        ways.append("move or delete the policies of the namespace first")
    return f"nothing was written in {plan['cluster']}; {'; '.join(ways) or 'see above'}"


def _object_lines(planned: PlannedObjectJson) -> Iterator[str]:
    sign, colour = _SIGNS.get(planned["action"], ("?", "white"))
    yield click.style(
        f"  {sign} {planned['action']:<8} {policy_title({**planned, 'revision': 0})}", fg=colour
    )
    for words in planned["changes"]:
        yield f"{_INDENT}{words}"
    for conflict in planned["conflicts"]:
        yield f"{_INDENT}{_conflict_words(conflict)}"
    for kept in planned["kept"]:
        yield f"{_INDENT}{kept['field']} stays as {kept['manager'] or 'somebody'} set it"


def _conflict_words(conflict: ManagedFieldJson) -> str:
    field = conflict["field"] or "the object"
    done = "was removed by" if conflict["removed"] else "is managed by"
    commit = f", commit {conflict['commit'][:12]}" if conflict["commit"] else ""
    revision = f", revision {conflict['revision']}" if conflict["revision"] else ""
    when = f", {shown_moment(conflict['time'])}" if conflict["time"] else ""
    return f"{field} {done} {conflict['manager'] or 'somebody'}{commit}{revision}{when}"


def _summary(plan: SetPlanJson) -> str:
    counts, done = plan["counts"], plan["applied"]
    conflicts = [f"{counts['conflict']} in conflict"] if counts["conflict"] else []
    parts = [
        f"{counts['create']} {'created' if done else 'to create'}",
        f"{counts['change']} {'changed' if done else 'to change'}",
        f"{counts['delete']} {'deleted' if done else 'to delete'}",
        *conflicts,
        f"{counts['unchanged']} unchanged",
    ]
    proposed = "" if plan["change"] is None else f"change #{plan['change']}"
    return f"{proposed or ('applied' if done else 'plan')}: {', '.join(parts)}"
