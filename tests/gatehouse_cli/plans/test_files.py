"""Files joined to one text: every line is found again, and the text says what the files say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.exit_codes import CliError
from gatehouse_cli.plans.files import read_files
from policies.manifests.bundle import read_bundle
from policies.manifests.sources import Source

if TYPE_CHECKING:
    from pathlib import Path


def range_named(name: str, head: str = "") -> str:
    return f"{head}apiVersion: v1\nkind: LimitRange\nmetadata:\n  name: {name}"


TEXTS = {
    "a.yaml": range_named("a"),
    "b.yaml": range_named("b", "---\n") + "\n...\n",
    "c.yaml": range_named("c", "%YAML 1.1\n---\n") + "\n---\n" + range_named("c2"),
    "d.json": '{"apiVersion": "v1", "kind": "LimitRange", "metadata":\n{"name": "d"}}',
    "e.yaml": "# nothing but a comment\n",
    "f.yaml": range_named("f", "\ufeff") + "\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_joined_text_has_the_objects_of_all_files(folder: Path) -> None:
    files = read_files([str(folder)])
    joined = read_bundle([Source("documents", files.text)])
    assert joined.objects
    assert [each.manifest for each in joined.objects] == [
        each.manifest for each in files.bundle.objects
    ]


def test_every_line_is_found_again(folder: Path) -> None:
    files = read_files([str(folder)])
    for wanted in read_bundle([Source("documents", files.text)]).objects:
        line, _ = wanted.item.document.place_of("metadata.name")
        name, line_in_file = files.place(line)
        assert (
            f"{wanted.key[2]}"
            in ((folder / name).read_text(encoding="utf-8-sig").splitlines()[line_in_file - 1])
        )


def test_every_problem_of_every_file_is_told(folder: Path) -> None:
    (folder / "a.yaml").write_text("a: [", encoding="utf-8")
    (folder / "b.yaml").write_text(range_named("b") + "\nspecc: {}\n", encoding="utf-8")
    with pytest.raises(CliError) as caught:
        read_files([str(folder)])
    told = str(caught.value)
    assert (f"{folder}/a.yaml:" in told, f"{folder}/b.yaml:5:1: specc" in told) == (True, True)


def test_files_without_a_policy_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="there is no policy in "):
        read_files([str(tmp_path)])
