"""Objects as tables, YAML, JSON and names."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from gatehouse_cli.output import Column, OutputForm, output_option, print_object, print_objects

COLUMNS = (Column("kind", lambda each: each["kind"]), Column("name", lambda each: each["name"]))
OBJECTS: list[dict[str, Any]] = [
    {"kind": "LimitRange", "name": "limits"},
    {"kind": "ResourceQuota", "name": ""},
]


def printed(output: OutputForm, capsys: pytest.CaptureFixture[str]) -> str:
    print_objects(OBJECTS, output, columns=COLUMNS, name_of=lambda each: each["kind"].lower())
    return capsys.readouterr().out


def test_table_has_a_heading_and_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(OutputForm.TABLE, capsys).splitlines() == [
        "KIND            NAME",
        "LimitRange      limits",
        "ResourceQuota   -",
    ]


def test_json_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(OutputForm.JSON, capsys)) == OBJECTS


def test_yaml_is_a_document_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(yaml.safe_load_all(printed(OutputForm.YAML, capsys))) == OBJECTS


def test_names_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(OutputForm.NAME, capsys) == "limitrange\nresourcequota\n"


@pytest.mark.parametrize("output", [OutputForm.JSON, OutputForm.YAML])
def test_one_object_is_no_list(output: OutputForm, capsys: pytest.CaptureFixture[str]) -> None:
    print_object(OBJECTS[0], output)
    assert yaml.safe_load(capsys.readouterr().out) == OBJECTS[0]


def test_option_offers_only_the_given_forms() -> None:
    @click.command()
    @output_option(OutputForm.YAML, OutputForm.JSON)
    def show(output: OutputForm) -> None:
        click.echo(repr(output))

    assert CliRunner().invoke(show, []).output == f"{OutputForm.YAML!r}\n"
    refused = CliRunner().invoke(show, ["-o", "table"])
    assert refused.exit_code == 2
    assert "'yaml', 'json'" in refused.output
