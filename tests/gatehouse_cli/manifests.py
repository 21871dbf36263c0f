"""Policies, workloads and trial runs for the tests of ``gatehouse test``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatehouse_cli.trials.judge import Judge
from gatehouse_cli.trials.trial import TrialRun
from gatehouse_cli.trials.trial_objects import TrialObjects
from policies.manifests.bundle import read_bundle
from policies.manifests.policy_files import PolicyFiles
from policies.manifests.sources import Source, parse_documents

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import ManifestTrial

LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: shop}
spec:
  limits:
  - type: Container
    max: {cpu: "2"}
"""
THREE_PODS = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: pods, namespace: shop}
spec: {hard: {pods: "3"}}
"""
OWNER = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: MetadataPolicy
metadata: {name: owner, namespace: shop}
spec:
  rules:
  - policyPredicate:
      labelSelector:
        matchExpressions: [{key: owner, operator: DoesNotExist}]
    policyAction: {reject: true}
"""


def deployment(cpu: str = "1", *, name: str = "web", replicas: int = 1, **annotations: str) -> str:
    """A Deployment whose container may use this much CPU; annotations of our own prefix."""
    noted = "".join(
        f'\n    policy.gatehouse.dev/{key.replace("_", "-")}: "{value}"'
        for key, value in annotations.items()
    )
    metadata = f"\n  annotations:{noted}" if annotations else ""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  namespace: shop{metadata}
spec:
  replicas: {replicas}
  template:
    spec:
      containers:
      - name: web
        image: nginx
        resources:
          limits:
            cpu: "{cpu}"
"""


def documents(*texts: str) -> str:
    """One text of several documents."""
    return "\n---\n".join(text.rstrip("\n") for text in texts)


def policies(*texts: str) -> PolicyFiles:
    """Policies as they are read from files."""
    bundle = read_bundle([Source("policies.yaml", documents(*texts))], namespace="")
    manifests = tuple(wanted.manifest for wanted in bundle.objects)
    return PolicyFiles(manifests, bundle.limited_resources)


def candidates(*texts: str, file: str = "shop/web.yaml") -> TrialObjects:
    """What is found in one file."""
    found = TrialObjects()
    found.add(parse_documents(documents(*texts), file))
    return found


def run_of(policy_files: PolicyFiles, *texts: str, file: str = "shop/web.yaml") -> TrialRun:
    """The trials of one file's objects."""
    found, judge = candidates(*texts, file=file), Judge(policy_files, "shop")
    assert found.problems == []
    return TrialRun([judge.judge(each) for each in found.objects], found.skipped)


def trial_of(policy_files: PolicyFiles, text: str) -> ManifestTrial:
    """The trial of one object."""
    [trial] = run_of(policy_files, text).trials
    return trial
