"""`python -m bench sets`: a repository of 1,000 objects applied by API, and tested offline."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import connection
from rest_framework.test import APIClient

from bench import machine, report
from policies import services
from policies.manifests.render import render_documents
from policies.models import Cluster

OBJECTS: Final = 1_000
GOALS: Final = {"1,000 new": 6.0, "1,000 unchanged": 2.0, "gatehouse test, 1,000 files": 3.0}
"""Seconds."""
ROUNDS: Final = 3

Manifest = dict[str, Any]


def measure() -> int:
    """Apply, plan, test; print the median of the rounds. 0: every goal is met; 2: one was missed.

    A dry run creates the objects again in each round: planned is all that it does not store.
    """
    get_user_model().objects.create_superuser("bench", password="bench")  # noqa: S106 - nobody's
    services.save_cluster(cluster=Cluster(name="prod"), user="bench")
    found: dict[str, float] = {}
    new = repository("10")
    found["1,000 new, planned"] = median_of(lambda: apply(new, dryRun=True))
    found["1,000 new"] = timed(lambda: apply(new))
    found["1,000 unchanged"] = median_of(lambda: apply(new))
    changed = repository("11")
    found["250 quotas of 1,000 changed, planned"] = median_of(lambda: apply(changed, dryRun=True))
    found["250 quotas of 1,000 changed"] = timed(lambda: apply(changed))
    found["gatehouse test, 1,000 files"] = tested_offline()
    table = [["step", "seconds", ""]]
    for name, seconds in found.items():
        goal = GOALS.get(name)
        verdict = "" if goal is None else f"< {goal:.0f} {'PASS' if seconds < goal else 'FAIL'}"
        table.append([name, f"{seconds:.2f}", verdict])
    print(f"\n{connection.vendor}\n")
    print(report.table(table))
    report.save({"database": connection.vendor, "seconds": found}, name=f"sets-{connection.vendor}")
    return 2 if any(found[name] >= goal for name, goal in GOALS.items()) else 0


def timed(step: Any) -> float:
    """Seconds that it takes."""
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def median_of(step: Any) -> float:
    """The middle one of the rounds."""
    return sorted(timed(step) for _ in range(ROUNDS))[ROUNDS // 2]


def apply(documents: list[Manifest], **more: Any) -> None:
    """One request, whose documents are one text."""
    client = APIClient(SERVER_NAME="127.0.0.1")
    client.force_authenticate(get_user_model().objects.get(username="bench"))
    body = {"cluster": "prod", "set": "bench", "commit": "3f2a", **more}
    body["documents"] = render_documents(documents)
    answer = client.post(
        "/api/v1/apply/", json.dumps(body), content_type="application/json", secure=True
    )
    plan = json.loads(answer.content)
    is_done = answer.status_code == 200 and (plan["applied"] or more.get("dryRun"))  # noqa: PLR2004 - HTTP
    if not is_done:
        raise RuntimeError(answer.content[:2_000])


def repository(pods: str) -> list[Manifest]:
    """A namespace, a range, a quota and a metadata policy, so often that they are 1,000."""
    places = [f"team-{number}" for number in range(OBJECTS // 4)]
    rule = {
        "policyPredicate": {"labelSelector": {"matchLabels": {"tier": "front"}}},
        "policyAction": {"updatedAnnotations": {"example.com/scheduler": "fast"}},
    }
    in_namespace: list[tuple[str, str, Manifest]] = [
        ("v1", "LimitRange", {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}),
        ("v1", "ResourceQuota", {"hard": {"pods": pods, "requests.cpu": "40"}}),
        ("policy.gatehouse.dev/v1alpha1", "MetadataPolicy", {"rules": [rule]}),
    ]
    made: list[Manifest] = []
    for place in places:
        made.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
        made += [
            {
                "apiVersion": version,
                "kind": kind,
                "metadata": {"name": "policy", "namespace": place},
                "spec": spec,
            }
            for version, kind, spec in in_namespace
        ]
    return made


def tested_offline() -> float:
    """The whole command over a folder of 1,000 pods."""
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "", "namespace": "team-0"},
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "example.com/app:1",
                    "resources": {"requests": {"cpu": "10m"}},
                }
            ]
        },
    }
    with tempfile.TemporaryDirectory(prefix="gatehouse-bench-") as name:
        folder = Path(name)
        policies = folder / "policies.yaml"
        policies.write_text(render_documents(repository("10000")[:4]), encoding="utf-8")
        manifests = folder / "manifests"
        manifests.mkdir()
        for number in range(OBJECTS):
            named = {**pod, "metadata": {**pod["metadata"], "name": f"web-{number}"}}
            text = render_documents([named])
            (manifests / f"{number}.yaml").write_text(text, encoding="utf-8")
        words = [sys.executable, "-m", "gatehouse_cli", "test", "-f", str(policies), str(manifests)]

        def run() -> None:
            subprocess.run(words, cwd=machine.ROOT, check=True, capture_output=True)  # noqa: S603 - our own words

        return median_of(run)
