"""The commands: all or nothing, the same again changes nothing, and out comes what went in."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies import services
from policies.models import (
    Cluster,
    LimitedResource,
    LimitRange,
    Namespace,
    PolicyRevision,
    ResourceQuota,
)
from tests import people

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db

POLICIES = """\
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: web, labels: {b: "no", a: x}}
spec:
  limits:
  - type: Container
    max: {memory: 1Gi, cpu: 2}
    defaultRequests: {cpu: 0.5}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: web}
spec: {hard: {requests.cpu: "4", pods: 10}, scopes: [NotTerminating]}
---
apiVersion: policy.gatehouse.dev/v1alpha1
kind: MetadataPolicy
metadata: {name: names, namespace: web}
spec:
  rules:
  - policyPredicate: {labelSelector: {matchLabels: {team: "0x10"}}}
    PolicyAction: {updatedLabels: {seen: "true"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources: [{resource: pods, matchContains: [requests.cpu]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
"""
EXPORTED = """\
apiVersion: v1
kind: Namespace
metadata:
  name: web
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: high
value: 1000
---
apiVersion: v1
kind: LimitRange
metadata:
  name: limits
  namespace: web
  labels:
    a: x
    b: "no"
spec:
  limits:
  - type: Container
    max:
      cpu: "2"
      memory: "1Gi"
    defaultRequest:
      cpu: "0.5"
---
apiVersion: policy.gatehouse.dev/v1alpha1
kind: MetadataPolicy
metadata:
  name: names
  namespace: web
spec:
  rules:
  - policyPredicate:
      labelSelector:
        matchLabels:
          team: "0x10"
    policyAction:
      reject: false
      updatedLabels:
        seen: "true"
---
apiVersion: v1
kind: ResourceQuota
metadata:
  name: quota
  namespace: web
spec:
  hard:
    pods: "10"
    requests.cpu: "4"
  scopes:
  - NotTerminating
"""


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies.yaml"
    path.write_text(POLICIES)
    return path


def run(*args: Any, **options: Any) -> tuple[str, str]:
    if args[0] == "import_manifests":
        options.setdefault("create_namespaces", True)
    out, err = StringIO(), StringIO()
    call_command(*map(str, args), stdout=out, stderr=err, no_color=True, **options)
    return out.getvalue(), err.getvalue()


def test_import_writes_and_tells(cluster: Cluster, file: Path) -> None:
    people.person("ann", "admin")
    out, err = run("import_manifests", file, "--cluster=prod", "--reason=because", "--user=ann")
    assert "LimitRange web/limits: created\n" in out
    assert out.endswith("4 created, 1 changed, 0 unchanged\n")
    assert "left out, no policy: Deployment web" in err
    revision = PolicyRevision.objects.get(kind="ResourceQuota")
    assert (revision.user, revision.reason) == ("ann", "because")
    assert LimitedResource.objects.get(cluster=cluster).match_contains == ["requests.cpu"]


def test_import_acts_as_an_account_that_exists(cluster: Cluster, file: Path) -> None:
    people.person("ann", "admin")
    gone = people.person("gone", "admin")
    gone.is_active = False
    gone.save()
    for name, text in (("anna", "did you mean ann?"), ("gone", 'no active account "gone"')):
        with pytest.raises(CommandError, match=re.escape(text)) as refusal:
            run("import_manifests", file, "--cluster=prod", f"--user={name}")
        assert refusal.value.returncode == 2
    assert not PolicyRevision.objects.filter(kind="ResourceQuota").exists()


def test_second_import_changes_nothing(cluster: Cluster, file: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    count = PolicyRevision.objects.count()
    out, _ = run("import_manifests", file, "--cluster=prod")
    assert out.endswith("0 created, 0 changed, 5 unchanged\n")
    assert PolicyRevision.objects.count() == count


def test_import_does_not_set_back_an_edit_unless_forced(cluster: Cluster, file: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    file.write_text(POLICIES.replace("pods: 10", "pods: 11"))
    run("import_manifests", file, "--cluster=prod")
    stored = ResourceQuota.objects.get(name="quota").to_manifest()
    stored["spec"]["hard"]["pods"] = "20"
    services.apply_manifest(cluster=cluster, manifest=stored, user="anna")
    services.set_limited_resources(cluster=cluster, entries=[], user="anna")
    for more in ({}, {"dry_run": True}):
        with pytest.raises(CommandError) as refusal:
            run("import_manifests", file, "--cluster=prod", **more)
        assert f"{file}:13:34: spec.hard[pods]: was set by ui:anna in revision 3" in str(
            refusal.value
        )
        assert "limitedResources: was set by ui:anna" in str(refusal.value)
        assert "--force" in str(refusal.value)
    assert ResourceQuota.objects.get(name="quota").to_manifest() == stored
    out, _ = run("import_manifests", file, "--cluster=prod", "--force")
    assert out.endswith("0 created, 2 changed, 3 unchanged\n")


def test_export_is_canonical_and_stable(cluster: Cluster, file: Path, tmp_path: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    again = tmp_path / "again.yaml"
    run("export_manifests", "--cluster=prod", "-o", again)
    assert again.read_text() == EXPORTED
    other = Cluster.objects.create(name="other")
    run("import_manifests", again, "--cluster", other)
    assert run("export_manifests", "--cluster=other")[0] == EXPORTED


def test_export_may_be_narrowed(cluster: Cluster, file: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    out, _ = run("export_manifests", "--cluster=prod", "-n", "web", "--kind", "ResourceQuota")
    assert out == EXPORTED.rpartition("---\n")[2]
    assert run("export_manifests", "--cluster=prod", "-n", "shop")[0] == ""
    assert "PriorityClass" not in run("export_manifests", "--cluster=prod", "-n", "web")[0]


def test_limited_resources_are_exported_apart(cluster: Cluster, file: Path, tmp_path: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    target = tmp_path / "admission.yaml"
    run("export_manifests", "--cluster=prod", "--admission-configuration", "-o", target)
    Cluster.objects.create(name="other")
    run("import_manifests", target, "--cluster=other")
    out, _ = run("export_manifests", "--cluster=other", "--admission-configuration")
    assert out == target.read_text()
    assert "matchContains:\n      - requests.cpu\n" in out


def test_dry_run_shows_a_diff_and_writes_nothing(cluster: Cluster, file: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    file.write_text(POLICIES.replace("pods: 10", "pods: 12"))
    out, _ = run("import_manifests", file, "--cluster=prod", "--dry-run")
    assert '-    pods: "10"\n+    pods: "12"\n' in out
    assert out.endswith("0 created, 1 changed, 4 unchanged (dry run: nothing was written)\n")
    assert str(ResourceQuota.objects.get().rows.get(resource="pods").hard) == "10"


def test_dry_run_only_reads(cluster: Cluster, file: Path) -> None:
    with CaptureQueriesContext(connection) as queries:
        run("import_manifests", file, "--cluster=prod", "--dry-run")
    assert {query["sql"].split()[0] for query in queries} == {"SELECT"}


def test_dry_run_gives_the_hints_of_what_would_be_stored(cluster: Cluster, file: Path) -> None:
    bare = "metadata: {name: bare, namespace: bare}\nspec: {hard: {limits.cpu: 4}}\n"
    file.write_text(f"{POLICIES}---\napiVersion: v1\nkind: ResourceQuota\n{bare}")
    _, tried = run("import_manifests", file, "--cluster=prod", "--dry-run")
    _, done = run("import_manifests", file, "--cluster=prod")
    assert "hint: ResourceQuota bare/bare: spec.hard[limits.cpu]" in tried
    assert tried == done


def test_dry_run_of_something_new_leaves_no_trace(cluster: Cluster, file: Path) -> None:
    out, _ = run("import_manifests", file, "--cluster=prod", "--dry-run")
    assert "--- /dev/null\n+++ new/LimitRange web/limits\n" in out
    assert not Namespace.objects.exists()
    assert not PolicyRevision.objects.exists()


def test_one_error_and_nothing_is_written(cluster: Cluster, file: Path) -> None:
    file.write_text(POLICIES.replace("pods: 10", "pods: -1"))
    with pytest.raises(CommandError) as caught:
        run("import_manifests", file, "--cluster=prod")
    text = str(caught.value).replace(str(file), "FILE")
    assert text.startswith("FILE:13:34: spec.hard[pods]: Invalid value")
    assert text.endswith("1 problem; nothing was imported")
    assert caught.value.returncode == 1
    assert not LimitRange.objects.exists()


def test_what_only_the_models_refuse_is_told_at_its_place(cluster: Cluster, file: Path) -> None:
    run("import_manifests", file, "--cluster=prod")
    file.write_text(POLICIES.replace("[NotTerminating]", "[Terminating]").replace("1Gi", "2Gi"))
    with pytest.raises(CommandError) as caught:
        run("import_manifests", file, "--cluster=prod")
    assert "policies.yaml:13:45: spec.scopes: " in str(caught.value)
    assert "field is immutable" in str(caught.value)
    assert str(LimitRange.objects.get().rows.get(resource="memory").max) == "1Gi"


def test_hints_are_given_once_all_is_written(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {limits.cpu: 1}}\n"
    )
    _, err = run("import_manifests", path, "--cluster=prod")
    assert err.startswith("hint: ResourceQuota default/q: ")


@pytest.mark.parametrize("command", ["import_manifests -", "export_manifests"])
def test_unknown_cluster_is_named_with_those_there_are(cluster: Cluster, command: str) -> None:
    with pytest.raises(CommandError, match='no cluster "prd"; known: prod') as caught:
        run(*command.split(), "--cluster=prd")
    assert caught.value.returncode == 2


def test_export_to_nowhere_is_a_usage_error(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file") as caught:
        run("export_manifests", "--cluster=prod", "-o", tmp_path / "no" / "x")
    assert caught.value.returncode == 2


def test_validate_needs_no_database_and_counts(file: Path) -> None:
    assert run("validate", file)[0] == "4 objects, all valid, 1 of other kinds left out\n"


def test_validate_tells_errors_and_fails(file: Path) -> None:
    file.write_text(POLICIES.replace("pods: 10", "pods: ten"))
    out = StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("validate", str(file), stdout=out)
    assert caught.value.code == 1
    told = f'{file}:13:34: spec.hard[pods]: Invalid value: "ten": quantities must match'
    assert out.getvalue().startswith(told)


def test_validate_speaks_json(file: Path) -> None:
    good = json.loads(run("validate", file, "-o", "json")[0])
    assert (good["valid"], len(good["objects"]), good["others"]) == (True, 4, ["Deployment web"])
    file.write_text("kind: 5\n")
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("validate", str(file), output="json", stdout=out)
    (problem,) = json.loads(out.getvalue())["problems"]
    assert (problem["line"], problem["field"]) == (1, "kind")


@pytest.mark.parametrize("command", ["import_manifests", "export_manifests", "validate"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call_command(command, "--help")
    assert f"\n  manage.py {command} " in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "\n---\n# nothing\n", "[]", "kind: List\napiVersion: v1\n"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_validate_of_nothing_fails_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, output: str
) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text(text)
    with pytest.raises(SystemExit) as caught:
        call_command("validate", str(file), "-o", output)
    assert caught.value.code == 1
    assert "empty.yaml" in capsys.readouterr().out


def test_validate_of_a_folder_without_manifests_fails(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        call_command("validate", str(tmp_path), stdout=StringIO())
    assert caught.value.code == 1


def test_an_import_makes_no_namespace_that_nobody_asked_for(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(POLICIES)
    with pytest.raises(CommandError, match="there is no namespace") as caught:
        call_command("import_manifests", str(file), cluster="prod")
    assert caught.value.returncode == 1
    assert not Namespace.objects.exists()
    call_command("import_manifests", str(file), cluster="prod", create_namespaces=True)
    assert [found.name for found in Namespace.objects.all()] == ["web"]


def test_an_import_may_bring_its_namespace_as_a_manifest(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"{POLICIES}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: web}}\n")
    call_command("import_manifests", str(file), cluster="prod")
    assert Namespace.objects.filter(name="web").exists()
