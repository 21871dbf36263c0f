"""``manage.py admit``: from files and cases, in three forms, with exit codes to rely on."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from admission import offline
from engine.policy_manifests import build_policy_set
from policies import services
from tests import factories
from tests.builders import container, limit_range, pod, resource_quota

if TYPE_CHECKING:
    from pathlib import Path

    from engine.policy import PolicySet

Shape = dict[str, Any]
BIG = pod(container(requests={"cpu": "3"}, limits={"cpu": "3"}))
LIMITS = limit_range({"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "500m"}})


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def make(name: str, *documents: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n---\n".join(json.dumps(document) for document in documents))
        return str(path)

    return make


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("admit", *arguments, stdout=out)
    return out.getvalue()


def run_denied(*arguments: str) -> str:
    out = io.StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("admit", *arguments, stdout=out)
    assert caught.value.code == 1
    return out.getvalue()


def test_allowed_pod_shows_verdict_trace_and_object(write: Any) -> None:
    quota = resource_quota({"pods": "2"})
    text = run("-f", write("p.yaml", LIMITS, quota), write("pod.yaml", pod()))
    assert text.startswith("verdict: allowed\n")
    assert "LimitRange limits" in text
    assert "  quota: pods=1\n" in text
    assert "kubernetes.io/limit-ranger: " in text


def test_denied_pod_shows_why_and_exits_with_one(write: Any) -> None:
    text = run_denied("-f", write("p.yaml", LIMITS), write("pod.yaml", BIG))
    assert "verdict: denied (403 Forbidden)" in text
    assert 'message: pods "p" is forbidden: maximum cpu usage per Container is 2' in text


def test_json_is_for_machines(write: Any) -> None:
    result = json.loads(
        run_denied("-f", write("p.yaml", LIMITS), write("p.json", BIG), "-o", "json")
    )
    assert (result["allowed"], result["code"]) == (False, 403)
    assert result["violations"][0]["policy"] == {"kind": "LimitRange", "name": "limits"}
    assert {"trace", "patch", "object", "warnings", "used"} <= set(result)


def test_yaml_can_be_read_back(write: Any) -> None:
    assert run(write("pod.yaml", pod()), "-o", "yaml").startswith("allowed: true\n")


def test_policies_come_from_folders_and_lists(write: Any, tmp_path: Path) -> None:
    write("set/deep/p.yaml", {"kind": "List", "items": [LIMITS]})
    write("set/notes.txt", "not a manifest")
    run_denied("-f", str(tmp_path / "set"), write("pod.yaml", BIG))


def test_update_is_judged_with_the_old_object(write: Any) -> None:
    text = run(
        "-f", write("p.yaml", LIMITS), write("pod.yaml", BIG), "--old", write("old.yaml", pod())
    )
    assert "only pods that are created or resized" in text


def test_warnings_are_shown(write: Any) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": BIG["spec"]}},
    }
    files = (write("p.yaml", LIMITS), write("d.yaml", deployment))
    text = run("-f", files[0], files[1], "-n", "ns")
    assert "warning: pods of this Deployment would be refused: maximum cpu" in text


SCOPE = {"resource": "pods", "matchScopes": [{"scopeName": "PriorityClass", "operator": "Exists"}]}
CONFIGURATION = {"kind": "ResourceQuotaConfiguration", "limitedResources": [SCOPE]}


@pytest.mark.parametrize(
    "document",
    [
        [SCOPE],
        CONFIGURATION,
        {
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "X"}, {"name": "ResourceQuota", "configuration": CONFIGURATION}],
        },
    ],
    ids=["list", "configuration", "whole"],
)
def test_limited_resources_are_read(write: Any, document: Any) -> None:
    obj = pod()
    obj["spec"]["priorityClassName"] = "high"
    text = run_denied("--limited-resources", write("l.yaml", document), write("pod.yaml", obj))
    assert "insufficient quota to match these scopes" in text


def test_policies_come_from_the_database(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def load(cluster: str, namespace: str) -> PolicySet:
        asked.append((cluster, namespace))
        return build_policy_set([LIMITS], namespace=namespace)

    monkeypatch.setattr("policies.snapshot.load", load)
    monkeypatch.setattr("policies.snapshot.has_cluster", "demo".__eq__)
    run_denied("--cluster", "demo", write("pod.yaml", BIG))
    assert asked == [("demo", "ns")]


@pytest.mark.django_db
def test_unknown_cluster_is_not_taken_for_an_empty_one(write: Any) -> None:
    with pytest.raises(CommandError, match="there is no cluster nowhere here") as caught:
        run("--cluster", "nowhere", write("pod.yaml", pod()))
    assert caught.value.returncode == 2


def test_database_that_cannot_be_read_is_said(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> bool:
        raise OperationalError("no such table")

    monkeypatch.setattr("policies.snapshot.has_cluster", fail)
    with pytest.raises(CommandError, match="run manage"):
        run("--cluster", "demo", write("pod.yaml", pod()))


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ((), "exactly one object"),
        ((pod(), pod()), "exactly one object"),
        ((["x"],), "exactly one object"),
    ],
    ids=["none", "two", "no object"],
)
def test_object_must_be_one(write: Any, documents: Any, said: str) -> None:
    with pytest.raises(CommandError, match=said) as caught:
        run(write("pod.yaml", *documents))
    assert caught.value.returncode == 2


def test_unusable_arguments_exit_with_two(write: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    obj = write("pod.yaml", pod())
    invalid = write("invalid.yaml", resource_quota({"pods": "-1"}))
    bad_policy = write("bad.yaml", {"kind": "LimitRange", "spec": []})
    empty = write("empty.yaml", "text", {"a": 1}, {"kind": "AdmissionConfiguration"})
    for arguments in (
        (),
        ("missing.yaml",),
        (str(broken),),
        ("-f", bad_policy, obj),
        ("-f", invalid, obj),
        ("--limited-resources", empty, obj),
    ):
        with pytest.raises(CommandError) as caught:
            run(*arguments)
        assert caught.value.returncode == 2


def case(**changes: Any) -> Shape:
    return {
        "name": "one",
        "policies": [LIMITS],
        "request": {"object": BIG, "operation": "CREATE"},
        "phase": "both",
        **changes,
    }


def test_cases_are_answered_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl.gz"
    lines = [json.dumps(case()), "", "{broken", json.dumps(case(name="two", policies=[]))]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = [json.loads(line) for line in run("--cases", str(path)).splitlines()]
    assert [answer["name"] for answer in found] == ["one", None, "two"]
    assert [answer.get("allowed") for answer in found] == [False, None, True]
    assert set(found[0]) == {
        *("name", "allowed", "code", "reason", "message"),
        *("violations", "patch", "object", "warnings", "used"),
    }


def test_cases_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(case()).encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert json.loads(run("--cases", "-"))["allowed"] is False


def test_object_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(pod()).encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert "verdict: allowed" in run("-")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([], ""),
        (case(request=[]), "request"),
        (case(request={"operation": "PATCH", "object": BIG}), "request.operation"),
        (case(request={}), "request.kind.kind"),
        (case(request={"kind": "Pod"}), "request.kind"),
        (case(policies={}), "policies"),
        (case(policies=["x"]), "policies[0]"),
        (
            case(policies=[{"kind": "LimitRange", "spec": {"limits": {}}}]),
            "policies[0].spec.limits",
        ),
        (case(limitedResources={}), "limitedResources"),
        (case(phase="never"), "phase"),
    ],
)
def test_unreadable_case_names_its_field(given: Any, field: str) -> None:
    assert offline.answer_case(given)["error"]["field"] == field


def test_enforcement_is_read_from_the_annotation() -> None:
    lax = {
        **LIMITS,
        "metadata": {"name": "l", "annotations": {"policy.gatehouse.dev/enforcement": "audit"}},
    }
    answer = offline.answer_case(case(policies=[lax], now="2026-01-01T00:00:00Z"))
    assert answer["allowed"] is True


def test_object_without_namespace_goes_where_the_policies_are(write: Any) -> None:
    homeless = {**BIG, "metadata": {"name": "p"}}
    run_denied("-f", write("p.yaml", LIMITS), write("pod.yaml", homeless))
    run("-f", write("p.yaml", LIMITS), write("pod.yaml", homeless), "-n", "elsewhere")


# ---- versions

OWNING = {**pod(), "spec": {**pod()["spec"], "resources": {"limits": {"cpu": "2"}}}}
DEFAULTS = limit_range(
    {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "250m"}}
)
ONE_CPU = resource_quota({"requests.cpu": "1"})


def test_the_version_of_the_cluster_decides(write: Any) -> None:
    policies, manifest = write("p.yaml", DEFAULTS, ONE_CPU), write("pod.yaml", OWNING)
    run_denied("-f", policies, manifest)
    run_denied("-f", policies, "--kubernetes-version", "1.36", manifest)
    run("-f", policies, "--kubernetes-version", "1.37", manifest)


def test_an_unknown_version_is_wrong_usage(write: Any) -> None:
    with pytest.raises(CommandError, match=r"1\.35.*1\.36.*1\.37"):
        run("--kubernetes-version", "1.38", write("pod.yaml", pod()))


@pytest.mark.django_db
def test_a_clusters_own_version_decides_unless_another_is_given(write: Any) -> None:
    factories.limit_range(*DEFAULTS["spec"]["limits"])
    factories.resource_quota({"requests.cpu": "1"})
    asked = ("--cluster", "prod", "-n", "team", write("pod.yaml", OWNING))
    run_denied(*asked)
    services.set_kubernetes_version(cluster=factories.cluster(), version="1.37", user="x")
    run(*asked)
    run_denied(*asked, "--kubernetes-version", "1.36")


def test_each_case_may_state_its_version(tmp_path: Path) -> None:
    case = {"policies": [DEFAULTS, ONE_CPU], "request": {"object": OWNING, "namespace": "ns"}}
    stated = [case, {**case, "kubernetesVersion": "1.37"}, {**case, "kubernetesVersion": "1.36"}]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, stated)))
    answers = [json.loads(line)["allowed"] for line in run("--cases", str(path)).splitlines()]
    assert answers == [False, True, False]
    told = run("--cases", str(path), "--kubernetes-version", "1.37").splitlines()
    assert [json.loads(line)["allowed"] for line in told] == [True, True, False]


@pytest.mark.parametrize("version", ["1.38", "1.36.3", 1.37, ["1.37"], {}, True])
def test_a_case_of_an_unknown_version_is_an_error_of_its_field(version: Any) -> None:
    answer = offline.answer_case({"request": {"object": pod()}, "kubernetesVersion": version})
    assert answer["error"]["field"] == "kubernetesVersion"
    assert "1.35, 1.36, 1.37" in answer["error"]["message"]
