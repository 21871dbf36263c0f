"""Plan, diff and apply against a portal in this process: the life of a set of files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from policies import services
from policies.models import ApiToken, LimitRange, ResourceQuota
from tests import factories, people

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.live_server_helper import LiveServer

QUOTA = """apiVersion: v1
kind: ResourceQuota
metadata: {name: compute, namespace: team}
spec: {hard: {pods: "10"}}
"""
LIMITS = """apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: team}
spec: {limits: [{type: Container, max: {cpu: "1"}}]}
"""


@pytest.fixture
def files(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with two policies, and an admin's token in the environment."""
    _, token = ApiToken.objects.create(user=people.person("ada", "admin"), name="t", access="write")
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", token)
    factories.namespace("team")
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "quota.yaml").write_text(QUOTA, encoding="utf-8")
    (folder / "limits.yaml").write_text(LIMITS, encoding="utf-8")
    return folder


def of(folder: Path, command: str, *more: str) -> list[str]:
    return [command, "-f", str(folder), "--set", "platform", "--cluster", "prod", *more]


def test_life_of_a_set(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(of(files, "plan", "--detailed-exitcode")) == 2
    assert "plan: 2 to create, 0 to change, 0 to delete, 0 unchanged" in capsys.readouterr().out
    assert run(of(files, "diff")) == ExitCode.FOUND
    assert '+    pods: "10"' in capsys.readouterr().out
    assert not ResourceQuota.objects.exists()
    assert run(of(files, "apply", "--commit", "3f2a91c", "--reason", "first")) == ExitCode.OK
    assert "applied: 2 created" in capsys.readouterr().out
    # Nothing more to do, ever: no perpetual difference.
    assert run(of(files, "plan", "--detailed-exitcode")) == 0
    assert run(of(files, "diff")) == ExitCode.OK
    (files / "quota.yaml").write_text(QUOTA.replace("10", "20"), encoding="utf-8")
    assert run(of(files, "plan", "--detailed-exitcode")) == 2
    planned = capsys.readouterr().out
    assert "  ~ change   ResourceQuota team/compute" in planned
    assert "raised from 10 to 20" in planned
    assert run(of(files, "apply")) == ExitCode.OK
    assert run("describe quota compute --cluster prod".split()) == ExitCode.OK
    described = " ".join(capsys.readouterr().out.split())
    assert ("set: platform" in described, "git:platform spec.hard[pods]" in described) == (
        True,
        True,
    )
    (files / "limits.yaml").unlink()
    assert run(of(files, "plan")) == ExitCode.OK
    assert "the set has LimitRange team/limits, too, and no file has it" in capsys.readouterr().out
    assert run(of(files, "apply", "--prune")) == ExitCode.OK
    assert not LimitRange.objects.exists()


def test_whole_set_is_deleted_only_if_its_number_is_confirmed(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(of(files, "apply")) == ExitCode.OK
    for file in files.iterdir():
        file.unlink()
    assert run(of(files, "apply", "--prune")) == ExitCode.ERROR
    assert "there is no policy in" in capsys.readouterr().err
    assert ResourceQuota.objects.exists()
    assert run(of(files, "apply", "--prune", "--confirm-deletions", "2")) == ExitCode.OK
    assert "applied: 0 created, 0 changed, 2 deleted" in capsys.readouterr().out
    assert not ResourceQuota.objects.exists()


def test_edit_of_a_person_is_a_conflict_until_it_is_taken_over(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(of(files, "apply")) == ExitCode.OK
    edited = factories.manifest("ResourceQuota", {"hard": {"pods": "5"}}, name="compute")
    services.apply_manifest(cluster=factories.cluster(), manifest=edited, user="anna")
    capsys.readouterr()
    assert run(of(files, "apply", "-o", "json")) == ExitCode.HELD
    printed = capsys.readouterr()
    (plan,) = json.loads(printed.out)
    conflicts = [found for each in plan["objects"] for found in each["conflicts"]]
    assert [(each["field"], each["manager"]) for each in conflicts] == [
        ("spec.hard[pods]", "ui:anna")
    ]
    assert "--force" in printed.err
    assert run(of(files, "plan")) == ExitCode.HELD
    assert "spec.hard[pods] is managed by ui:anna" in capsys.readouterr().out
    assert run(of(files, "apply", "--force")) == ExitCode.OK
    assert run(of(files, "plan", "--detailed-exitcode")) == 0


def test_what_get_prints_can_be_applied(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(of(files, "apply"))
    capsys.readouterr()
    assert run("get quota compute --cluster prod -o yaml".split()) == ExitCode.OK
    (files / "quota.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert run(of(files, "plan", "--detailed-exitcode")) == 0


def test_error_that_only_the_portal_sees_is_told_at_its_place(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LIMITS.replace("name: limits", "name: more").replace("team", "taem")
    (files / "z.yaml").write_text(f"# a comment\n{text}", encoding="utf-8")
    assert run(of(files, "apply")) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert f"{files}/z.yaml:4:" in told
    assert "(--create-namespaces makes it)" in told
    assert not ResourceQuota.objects.exists()


def test_misspelt_cluster_is_an_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-f", str(files), "--set", "platform", "--cluster", "prdo"]
    assert run([*words, "--detailed-exitcode"]) == 1
    assert "there is no cluster prdo" in capsys.readouterr().err


def test_two_clusters_edited_on_all_sides_lose_nothing(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factories.namespace("team", in_cluster="test")
    (files / "limits.yaml").unlink()
    names = [f"q{number}" for number in range(200)]
    text = "---\n".join(QUOTA.replace("compute", name) for name in names)
    (files / "quota.yaml").write_text(text, encoding="utf-8")
    both = ("--cluster", "test")
    assert run(of(files, "apply", *both, "--commit", "c1")) == ExitCode.OK
    edits = {
        "ui:anna": ("prod", "anna", "q1", "5"),
        "sync:test": ("test", "cluster:test", "q2", "7"),
    }
    for cluster, user, name, pods in edits.values():
        edited = factories.manifest("ResourceQuota", {"hard": {"pods": pods}}, name=name)
        services.apply_manifest(cluster=factories.cluster(cluster), manifest=edited, user=user)
    (files / "quota.yaml").write_text(
        text.replace("name: q3,", "name: q3, labels: {a: b},"), "utf-8"
    )
    capsys.readouterr()
    assert run(of(files, "apply", *both, "--commit", "c2", "-o", "json")) == ExitCode.HELD
    plans = json.loads(capsys.readouterr().out)
    found = {
        conflict["manager"]: (plan["cluster"], each["name"], conflict["field"], plan["applied"])
        for plan in plans
        for each in plan["objects"]
        for conflict in each["conflicts"]
    }
    assert found == {
        manager: (cluster, name, "spec.hard[pods]", False)
        for manager, (cluster, _, name, _) in edits.items()
    }
    hard = {
        (quota.namespace.cluster.name, quota.name): quota.to_manifest()["spec"]["hard"]["pods"]
        for quota in ResourceQuota.objects.select_related("namespace__cluster")
    }
    assert (hard["prod", "q1"], hard["test", "q2"], len(hard)) == ("5", "7", 400)
    assert sorted(hard.values()) == ["10"] * 398 + ["5", "7"]
    assert run(of(files, "apply", *both, "--commit", "c2", "--force")) == ExitCode.OK
    assert run(of(files, "plan", *both, "--detailed-exitcode")) == 0
