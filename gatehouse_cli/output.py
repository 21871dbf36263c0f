"""``-o table|yaml|json|name``: the option, and objects printed in each of these forms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click

from policies.manifests.render import render_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_GAP = "   "


class OutputForm(StrEnum):
    """The forms in which objects are printed."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its heading, and the text that it shows of an object."""

    heading: str
    text_of: Callable[[Mapping[str, Any]], str]


def output_option(*forms: OutputForm) -> Callable[[Any], Any]:
    """Declare ``-o/--output``, passed as ``output``; the first form is the default.

    Without forms, all four are offered.
    """
    offered = forms or tuple(OutputForm)
    return click.option(
        "-o",
        "--output",
        type=click.Choice([form.value for form in offered]),
        default=offered[0].value,
        show_default=True,
        callback=lambda _context, _parameter, given: OutputForm(given),
        help="The form of the output.",
    )


def print_objects(
    objects: Sequence[dict[str, Any]],
    output: OutputForm,
    *,
    columns: Sequence[Column],
    name_of: Callable[[Mapping[str, Any]], str],
) -> None:
    """Print a list of objects: lines of a table, YAML documents, a JSON list, or names."""
    if output is OutputForm.JSON:
        click.echo(json.dumps(objects, indent=2, ensure_ascii=False))
    elif output is OutputForm.YAML:
        click.echo(render_documents(objects), nl=False)
    elif output is OutputForm.NAME:
        for each in objects:
            click.echo(name_of(each))
    else:
        print_table(columns, objects)


def print_object(value: dict[str, Any], output: OutputForm) -> None:
    """Print one object as YAML or JSON."""
    if output is OutputForm.JSON:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        click.echo(render_documents([value]), nl=False)


def print_table(columns: Sequence[Column], objects: Sequence[Mapping[str, Any]]) -> None:
    """Print a table as kubectl does: headings in capitals, no lines; nothing is cut off."""
    lines = [[column.heading.upper() for column in columns]]
    lines += [[_one_line(column.text_of(each)) for column in columns] for each in objects]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for number, cells in enumerate(lines):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        line = _GAP.join(padded).rstrip()
        click.echo(line if number else click.style(line, bold=True))


def _one_line(text: str) -> str:
    return " ".join(text.split()) or "-"
