"""The export of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run

if TYPE_CHECKING:
    import pytest

    from tests.gatehouse_cli.fake_portal import FakePortal


def test_text_is_printed_as_it_comes(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer(
        "/api/v1/clusters/prod/export/", b"kind: Namespace\n", media_type="application/yaml"
    )
    words = "export --cluster prod --kind quota --kind limits -n team"
    assert run(words.split()) == ExitCode.OK
    assert capsys.readouterr().out == "kind: Namespace\n"
    assert portal.asked[0].query == {"kind": "LimitRange", "namespace": "team"}


def test_a_cluster_must_be_named(portal: FakePortal, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export"]) == ExitCode.ERROR
    assert "name a cluster with --cluster" in capsys.readouterr().err
    assert portal.asked == []


def test_kinds_without_manifests_are_refused(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("export --cluster prod --kind decisions".split()) == ExitCode.ERROR
    assert "decisions are not exported; known: namespaces, limitranges" in capsys.readouterr().err
