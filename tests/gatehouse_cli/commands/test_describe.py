"""The story of one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli import api_objects
from tests.gatehouse_cli.plan_answers import CONFLICT

if TYPE_CHECKING:
    import pytest

    from tests.gatehouse_cli.fake_portal import FakePortal

EFFECTIVE = {
    "authority": "portal",
    "limitedResources": [],
    "policies": [
        {"enforcement": "enforce", "manifest": {"kind": kind, "metadata": {"name": name}}}
        for kind, name in (("LimitRange", "limits"), ("ResourceQuota", "compute"))
    ],
}


def described(
    portal: FakePortal, capsys: pytest.CaptureFixture[str], *, authority: str = "portal"
) -> str:
    portal.page("/api/v1/resourcequotas/", api_objects.quota(enforcement="warn"))
    portal.page("/api/v1/namespaces/", api_objects.namespace())
    portal.answer("/api/v1/namespaces/7/effective/", {**EFFECTIVE, "authority": authority})
    fields = [{**CONFLICT, "field": f"spec.hard[{name}]"} for name in ("pods", "services")]
    fields.append({**CONFLICT, "manager": "git:platform", "commit": "3f2a", "removed": True})
    managers = {"set": "platform", "fields": fields}
    portal.answer("/api/v1/resourcequotas/7/managers/", managers)
    portal.page("/api/v1/revisions/", api_objects.revision(3), api_objects.revision(2))
    assert run("describe quota compute -n team --cluster prod".split()) == ExitCode.OK
    return capsys.readouterr().out


def test_a_policy_with_its_effect_and_history(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    text = described(portal, capsys)
    words = [" ".join(line.split()) for line in text.splitlines()]
    assert "ResourceQuota: compute" in words
    assert "in: prod/team" in words
    assert "enforcement: warn" in words
    assert 'pods: "10"' in words
    assert "pods 4 of 10" in words
    assert "decides as number 2 of 2 policies in its namespace" in words
    assert "set: platform" in words
    assert "ui:anna spec.hard[pods], spec.hard[services]" in words
    assert "git:platform, commit 3f2a spec.hard[pods] (removed)" in words
    written = "3 update by anna git:platform, commit 3f2a91c0ffee 2026-01-02"
    assert any(line.startswith(written) for line in words)
    assert words[-1].endswith("more room")


def test_history_is_that_of_the_object(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    described(portal, capsys)
    assert portal.asked[-1].query == {"uid": "5f0c", "ordering": "-created", "limit": "5"}


def test_native_authority_is_said(portal: FakePortal, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the API server enforces" in described(portal, capsys, authority="native")


def test_a_namespace_lists_what_decides_in_it(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.page("/api/v1/namespaces/", api_objects.namespace())
    portal.answer("/api/v1/namespaces/7/effective/", EFFECTIVE)
    portal.answer("/api/v1/namespaces/7/managers/", {"set": "", "fields": []})
    portal.page("/api/v1/revisions/")
    assert run("describe ns team".split()) == ExitCode.OK
    effect = capsys.readouterr().out.partition("Effect\n")[2].splitlines()
    assert effect == ["  1. LimitRange limits (enforce)", "  2. ResourceQuota compute (enforce)"]


def test_a_cluster_has_no_effect_of_its_own(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = {**api_objects.RECORDED, "name": "prod", "description": "the big one"}
    portal.page("/api/v1/clusters/", cluster)
    portal.answer("/api/v1/clusters/prod/managers/", {"set": "", "fields": []})
    portal.page("/api/v1/revisions/")
    assert run("describe cluster prod".split()) == ExitCode.OK
    text = capsys.readouterr().out
    assert ("the big one" in text, "Effect" in text) == (True, False)


def test_records_are_refused_with_the_known_kinds(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("describe decision x".split()) == ExitCode.ERROR
    assert "decisions are records, not objects; known: clusters" in capsys.readouterr().err


def test_what_is_not_counted_yet_is_unknown(
    portal: FakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    status = {"hard": {"pods": "10"}, "used": {}}
    portal.page("/api/v1/resourcequotas/", api_objects.quota(status=status))
    portal.page("/api/v1/namespaces/", api_objects.namespace())
    portal.answer("/api/v1/namespaces/7/effective/", EFFECTIVE)
    portal.answer("/api/v1/resourcequotas/7/managers/", {"set": "", "fields": []})
    portal.page("/api/v1/revisions/")
    assert run("describe quota compute -n team --cluster prod".split()) == ExitCode.OK
    words = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "pods unknown of 10" in words
