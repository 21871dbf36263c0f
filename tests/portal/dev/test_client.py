"""The client of the command: written from the schema as it is served today, and used in full."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.client import operations
from gatehouse_cli.client.shape import ApiOperation
from portal.dev import client
from portal.machine import ROOT
from tests import api_document

if TYPE_CHECKING:
    from pathlib import Path

OPERATIONS = [name for name, value in vars(operations).items() if isinstance(value, ApiOperation)]


@pytest.mark.parametrize("path", [client.FOLDER / "operations.py", client.FOLDER / "answers.py"])
def test_written_client_is_that_of_the_schema(path: Path) -> None:
    written = client.rendered(api_document.document())[path]
    assert path.read_text(encoding="utf-8") == written, "run: make client"


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_used(name: str) -> None:
    used = (path.read_text("utf-8") for path in (ROOT / "gatehouse_cli").rglob("*.py"))
    assert any(f"operations.{name}" in text for text in used)


def test_members_that_an_answer_may_lack_are_marked() -> None:
    written = (client.FOLDER / "answers.py").read_text(encoding="utf-8")
    patch_operation = written.partition("class PatchOperationJson")[2].partition("class ")[0]
    assert re.findall(r"^    (\w+: .*)", patch_operation, re.MULTILINE) == [
        "op: str",
        "path: str",
        "value: NotRequired[Any]",
    ]


def test_lists_that_are_repeated_and_those_with_commas_are_told_apart() -> None:
    assert operations.CLUSTERS_EXPORT_RETRIEVE.repeated == "kind namespace"
    assert "cluster__in" in operations.DECISIONS_LIST.query.split()


def test_unknown_operation_is_named() -> None:
    document = {"paths": {}, "components": {"schemas": {}}}
    with pytest.raises(KeyError, match="apply_create"):
        client.rendered(document)
