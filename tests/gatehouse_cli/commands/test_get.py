"""Lists and single objects, in every form; kinds, filters and typos."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from gatehouse_cli import contexts
from gatehouse_cli.contexts import Context, Contexts
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli import api_objects

if TYPE_CHECKING:
    from tests.gatehouse_cli.fake_portal import FakePortal

QUOTAS = "/api/v1/resourcequotas/"


def test_table_shows_what_is_used(portal: FakePortal, capsys: pytest.CaptureFixture[str]) -> None:
    portal.page(QUOTAS, api_objects.quota(), api_objects.quota("objects", namespace="b"))
    assert run(["get", "quota"]) == ExitCode.OK
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [" ".join(cells[:4]) for cells in lines] == [
        "CLUSTER NAMESPACE NAME ENFORCEMENT",
        "prod team compute enforce",
        "prod b objects enforce",
    ]
    assert lines[1][-2:] == ["pods:", "4/10"]


def test_what_is_not_counted_yet_is_unknown(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    hard = {"pods": "10", "limits.nvidia.com/gpu": "1"}
    status = {"hard": hard, "used": {}}
    portal.page(QUOTAS, api_objects.quota(spec={"hard": hard}, status=status))
    assert run(["get", "quota"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "limits.nvidia.com/gpu: not counted/1, pods: unknown/10" in printed


@pytest.mark.parametrize("kind", ["resourcequotas", "ResourceQuota", "quota", "quotas"])
def test_every_name_of_a_kind_means_it(portal: FakePortal, kind: str) -> None:
    portal.page(QUOTAS)
    assert run(["get", kind]) == ExitCode.OK


def test_place_labels_and_filters_are_sent(portal: FakePortal) -> None:
    portal.page(QUOTAS)
    run([*"get quota -n team --cluster prod -l app=web --filter".split(), "ordering=-updated"])
    assert portal.asked[0].query == {
        "cluster": "prod",
        "namespace": "team",
        "labelSelector": "app=web",
        "ordering": "-updated",
        "limit": "500",
    }


def test_nothing_is_said_where_nothing_is_found(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(QUOTAS)
    assert run(["get", "quota", "-n", "team"]) == ExitCode.OK
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "no resourcequotas found in namespace team\n")


def test_json_is_what_the_api_answers(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(QUOTAS, api_objects.quota())
    run(["get", "quota", "-o", "json"])
    assert json.loads(capsys.readouterr().out) == [api_objects.quota()]


def test_yaml_is_a_manifest_as_export_writes_it(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(QUOTAS, api_objects.quota(enforcement="warn"))
    run(["get", "quota", "compute", "-o", "yaml"])
    assert yaml.safe_load(capsys.readouterr().out) == {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": "compute",
            "namespace": "team",
            "annotations": {"policy.gatehouse.dev/enforcement": "warn"},
        },
        "spec": {"hard": {"pods": "10"}},
    }


def test_namespace_becomes_a_manifest_too(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page("/api/v1/namespaces/", api_objects.namespace(phase="Terminating"))
    run(["get", "ns", "-o", "yaml"])
    assert yaml.safe_load(capsys.readouterr().out) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team"},
        "status": {"phase": "Terminating"},
    }


def test_names_are_as_kubectl_writes_them(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(QUOTAS, api_objects.quota())
    portal.page("/api/v1/revisions/", api_objects.revision())
    run(["get", "quota", "-o", "name"])
    run(["get", "revisions", "-o", "name"])
    assert capsys.readouterr().out == "resourcequota/compute\nrevision/43\n"


def test_missing_object_is_an_error_with_the_closest_name(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(QUOTAS)
    portal.page(QUOTAS, api_objects.quota())
    assert run(["get", "quota", "compte", "-n", "team"]) == ExitCode.ERROR
    assert capsys.readouterr().err == (
        'gatehouse: there is no resourcequota "compte" in namespace team; did you mean compute?\n'
    )


def test_name_in_several_places_is_asked_about(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page(QUOTAS, api_objects.quota(), api_objects.quota(cluster="test"))
    assert run(["get", "quota", "compute"]) == ExitCode.ERROR
    assert 'several resourcequotas named "compute": prod/team, test/team' in capsys.readouterr().err


def test_newest_rows_of_a_record_are_shown(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page("/api/v1/decisions/", *[api_objects.decision()] * 3)
    assert run(["get", "decisions", "--limit", "2"]) == ExitCode.OK
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err == "there are more; the first 2 are shown (--limit 0: all)\n"


def test_decision_is_found_by_its_id(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {**api_objects.decision(), "trace": []}
    portal.answer(f"/api/v1/decisions/{found['id']}/", found)
    assert run(["get", "decisions", found["id"], "-o", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == found


def test_decisions_are_found_by_the_beginning_of_a_name_as_long_as_an_id(
    portal: FakePortal,
) -> None:
    portal.page("/api/v1/decisions/", api_objects.decision("webwebwebwebweb1"))
    assert run(["get", "decisions", "webwebwebwebweb1"]) == ExitCode.OK
    assert portal.asked[-1].query["name"] == "webwebwebwebweb1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("get quotta", 'no kind "quotta"; did you mean quota? known: clusters, namespaces'),
        ("get pods", 'no kind "pods"; '),
        ("get quota --filter nam=x", 'no filter "nam"; did you mean name? known: '),
        ("get quota --filter fields=id", 'no filter "fields"'),
        ("get quota --filter name", "not of the form PARAMETER=VALUE"),
        ("get quota --filter name=a --filter name=b", "--filter name is given twice"),
        ("get pc -n team", "priorityclasses: they are in no namespace"),
        ("get decisions -l a=b", "decisions: they have no labels"),
        ("get clusters --cluster prod", "--cluster does not go with a list of clusters"),
        ("get quota --cluster a --all-clusters", "--cluster does not go with --all-clusters"),
        ("get quota --namspace a", "Did you mean"),
        ("get quota -o tabel", "is not one of"),
    ],
)
def test_typos_are_refused_before_anything_is_asked(
    portal: FakePortal, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == ExitCode.ERROR
    assert message in capsys.readouterr().err
    assert portal.asked == []


def test_cluster_of_the_context_is_the_default(
    portal: FakePortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GATEHOUSE_URL")
    monkeypatch.delenv("GATEHOUSE_TOKEN")
    contexts.save(Contexts("a", (Context(name="a", url=portal.url, token="t", cluster="east"),)))
    portal.page(QUOTAS)
    portal.page("/api/v1/clusters/")
    for words in ("get quota", "get quota --all-clusters", "get clusters"):
        assert run(words.split()) == ExitCode.OK
    assert [asked.query.get("cluster") for asked in portal.asked] == ["east", None, None]


def test_error_of_the_portal_is_printed(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.refuse(QUOTAS, 400, title="Bad", errors={"labelSelector": [{"message": "unclosed"}]})
    assert run(["get", "quota", "-l", "a in ("]) == ExitCode.ERROR
    assert capsys.readouterr().err == "gatehouse: Bad (400)\n  labelSelector: unclosed\n"
