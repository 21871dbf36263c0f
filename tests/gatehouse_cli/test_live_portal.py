"""The commands against a portal that runs in this process: real answers over real HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from admission import tasks
from admission.models import Replay
from gatehouse_cli import contexts
from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from gatehouse_cli.objects import replays
from policies.models import ApiToken, ResourceQuota
from tests import factories, people
from tests.builders import container, limit_range
from tests.reviews import new_pod, review

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from django.test import Client
    from pytest_django.live_server_helper import LiveServer


@pytest.fixture
def sign_in(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Signs in as an account with a role, by the environment; the portal has a few policies."""
    factories.resource_quota({"pods": "10", "requests.cpu": "2"}, name="compute")
    factories.limit_range({"type": "Container", "max": {"cpu": "1"}}, name="limits")
    unlike = {"labelSelector": {"matchLabels": {"tier": "none"}}}
    rule = {"policyPredicate": unlike, "policyAction": {"reject": True}}
    factories.metadata_policy(rule, name="labels")
    factories.priority_class()

    def sign_in(role: str = "viewer", **scope: Any) -> str:
        _, token = ApiToken.objects.create(
            user=people.person("ada", role, **scope), name="t", access="write"
        )
        monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
        monkeypatch.setenv("GATEHOUSE_TOKEN", token)
        return str(token)

    return sign_in


def test_every_kind_is_listed_and_described(
    sign_in: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in()
    names = {
        "clusters": "prod",
        "namespaces": "team",
        "limitranges": "limits",
        "metadatapolicies": "labels",
        "resourcequotas": "compute",
        "priorityclasses": "high",
        "limitedresources": "prod",
    }
    for kind, name in names.items():
        for words in (["get", kind], ["get", kind, name, "-o", "yaml"], ["describe", kind, name]):
            assert run(words) == ExitCode.OK
            assert name in capsys.readouterr().out
    for kind in ("revisions", "decisions"):
        assert run(["get", kind]) == ExitCode.OK
    assert "PriorityClass/high" in capsys.readouterr().out


def test_yaml_of_objects_is_the_export(
    sign_in: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in()
    assert run(["export", "--cluster", "prod"]) == ExitCode.OK
    exported = list(yaml.safe_load_all(capsys.readouterr().out))
    shown = []
    for kind in ("ns", "pc", "limits", "mdp", "quota"):
        assert run(["get", kind, "--cluster", "prod", "-o", "yaml"]) == ExitCode.OK
        shown += list(yaml.safe_load_all(capsys.readouterr().out))
    assert shown == exported
    assert len(exported) == 5


def test_refused_pod_is_explained(
    sign_in: Callable[..., str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in()
    asked = review(new_pod("web-1", container(limits={"cpu": "2"}), namespace="team"))
    asked["request"]["namespace"] = "team"
    headers = {"Authorization": f"Bearer {factories.webhook_secret()}"}
    answer = client.post(
        "/admission/prod/validate", asked, content_type="application/json", headers=headers
    )
    assert answer.json()["response"]["allowed"] is False
    assert run("why web -n team --cluster prod".split()) == ExitCode.OK
    story = capsys.readouterr().out
    for words in (
        ": denied, ",
        "alice asked to create Pod web-1 in namespace team of cluster prod and was refused",
        "maximum cpu usage per Container is 1, but limit is 2",
        "by LimitRange team/limits, revision 1",
        "The smallest change that would have passed",
        "it would be refused, as then",
    ):
        assert words in story
    assert run("get decisions --filter verdict=denied -o name".split()) == ExitCode.OK
    decision = capsys.readouterr().out.strip()
    assert run(["why", decision, "-o", "json"]) == ExitCode.OK
    explained = json.loads(capsys.readouterr().out)["explanation"]["decision"]
    assert f"decision/{explained}" == decision


def test_hidden_objects_are_not_there(
    sign_in: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in(cluster="elsewhere")
    assert run(["get", "quota", "compute"]) == ExitCode.ERROR
    assert "there is no resourcequota" in capsys.readouterr().err


def test_deletion_needs_a_role_and_is_on_record(
    sign_in: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in("viewer")
    assert run("delete quota compute --yes".split()) == ExitCode.ERROR
    assert "permission" in capsys.readouterr().err
    people.bind(ApiToken.objects.get().user, "admin")
    assert run("delete quota compute --dry-run".split()) == ExitCode.OK
    assert ResourceQuota.objects.exists()
    assert run("delete quota compute --yes --reason old".split()) == ExitCode.OK
    assert not ResourceQuota.objects.exists()
    capsys.readouterr()
    run("get revisions compute -o json --filter action=delete".split())
    (written,) = json.loads(capsys.readouterr().out)
    assert (written["user"], written["reason"]) == ("ada", "old")


def test_a_cluster_is_deleted_with_all_it_has(
    sign_in: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in("admin")
    assert run("delete cluster prod --dry-run".split()) == ExitCode.OK
    assert "cluster/prod would be deleted, with " in capsys.readouterr().out
    assert run("delete cluster prod --yes".split()) == ExitCode.OK
    assert not ResourceQuota.objects.exists()


def test_misspelt_selector_is_told_in_the_words_of_the_portal(
    sign_in: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in()
    assert run(["get", "quota", "-l", "a in (b"]) == ExitCode.ERROR
    assert "labelSelector: " in capsys.readouterr().err


def test_login_stores_what_the_portal_accepts(
    sign_in: Callable[..., str],
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    token = sign_in()
    monkeypatch.delenv("GATEHOUSE_URL")
    monkeypatch.delenv("GATEHOUSE_TOKEN")
    file = tmp_path / "token"
    for text, code in (("wrong", ExitCode.ERROR), (token, ExitCode.OK)):
        file.write_text(f"{text}\n", encoding="utf-8")
        with file.open(encoding="utf-8") as opened, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", opened)
            assert run(["login", live_server.url, "--token-stdin", "--cluster", "prod"]) == code
    assert [each.token for each in contexts.load().known] == [token]
    assert run(["get", "quota", "compute"]) == ExitCode.OK


def test_a_replay_is_carried_out_and_told(
    sign_in: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sign_in()
    proposed = limit_range({"type": "Container", "max": {"cpu": "500m"}}, name="limits")
    proposed["metadata"]["namespace"] = "team"
    (tmp_path / "limits.json").write_text(json.dumps(proposed), "utf-8")

    def work(_seconds: float) -> None:
        """What a worker does while the command waits."""
        for uid in Replay.objects.values_list("uid", flat=True):
            tasks.carry_out_replay(str(uid))

    monkeypatch.setattr(replays.time, "sleep", work)
    assert run(["replay", "-f", str(tmp_path), "--cluster", "prod"]) == ExitCode.OK
    assert "0 decisions, 0 replayed" in capsys.readouterr().out
    assert Replay.objects.get().namespaces == ["team"]
