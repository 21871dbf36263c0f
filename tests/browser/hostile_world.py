"""Hostile texts in all models and in the record that store text; run with the portal's code."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django must be set up first
from django.utils import timezone  # noqa: E402

from admission.models import AuditEvent, decision_id  # noqa: E402
from admission.record.redaction import escape  # noqa: E402
from policies import services  # noqa: E402
from policies.models import Cluster, PriorityClass  # noqa: E402
from sync.models import (  # noqa: E402
    ClusterAlert,
    ClusterConnection,
    SyncedObject,
    SyncResult,
    SyncRun,
    SyncState,
    WebhookHealth,
)
from tests.browser.demo_portal import PASSWORD  # noqa: E402
from tests.browser.hostile import TEXTS  # noqa: E402

NAME = "hostile"
HALF = len(TEXTS) // 2


def main() -> None:
    """Write all of them, and print their locations."""
    cluster = services.save_cluster(
        cluster=Cluster(name=NAME, description="\n".join(TEXTS)), user=TEXTS[0], reason=TEXTS[1]
    ).instance
    _policies(cluster)
    run = _sync(cluster)
    locations = {"decisions": _decisions(), "run": str(run.uid), "users": _users()}
    sys.stdout.write(json.dumps(locations))


def _policies(cluster: Cluster) -> None:
    """One policy of each kind; every text is an annotation and a reason of one of them."""
    specs: dict[str, dict[str, Any]] = {
        "LimitRange": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
        "ResourceQuota": {"hard": {"pods": "10"}},
        "MetadataPolicy": {"rules": [{"policyPredicate": {}, "policyAction": {"reject": False}}]},
    }
    for start in range(0, len(TEXTS), 10):
        some = TEXTS[start : start + 10]
        for kind, spec in specs.items():
            group = "policy.gatehouse.dev/v1alpha1" if kind == "MetadataPolicy" else "v1"
            notes = {f"example.com/note-{number}": text for number, text in enumerate(some)}
            metadata = {"name": "limits", "namespace": "team", "annotations": notes}
            manifest = {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}
            services.apply_manifest(
                cluster=cluster,
                manifest=manifest,
                user=some[0][:254],
                reason=some[1],
                create_namespace=True,
            )
    for number, text in enumerate(TEXTS):
        known = PriorityClass(cluster=cluster, name=f"p-{number}", value=number, description=text)
        services.save_priority_class(priority_class=known, user=text[:254], reason=text)


def _decisions() -> list[str]:
    now = datetime.now(UTC)
    return [_decision(now - timedelta(seconds=n), n, escape(t)) for n, t in enumerate(TEXTS)]


def _decision(moment: datetime, number: int, text: str) -> str:
    short = text[:253]
    policy = {"kind": "LimitRange", "namespace": short, "name": short, "revision": 1}
    found = {
        "reason": "MaxConstraint",
        "field": f"metadata.labels[{text}]",
        "message": text,
        "policy": policy,
        "rule": 0,
        "numbers": {"enforced": text, "limit": text},
    }
    step = {**found, "name": "LimitRangeCheck", "outcome": "violated", "detail": text}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": text,
            "namespace": text,
            "labels": {text: text, "app": text},
            "annotations": {text: text},
            "ownerReferences": [
                {"kind": text, "name": text, "apiVersion": text, "uid": text, "controller": True}
            ],
        },
        "spec": {"containers": [{"name": text, "image": text}], "priorityClassName": text},
    }
    event = AuditEvent(
        id=decision_id.encode(int(moment.timestamp() * 1000), number),
        duration_us=1000,
        cluster=NAME if number < HALF else short,
        phase="validate",
        request_uid=short,
        operation="CREATE",
        kind="Pod" if number % 2 else short,
        resource="pods",
        namespace=short,
        name=short,
        object_uid=short,
        user=short,
        groups=[text],
        client=f"10.0.0.1 {text}"[:253],
        verdict="denied",
        code=403,
        reason="Forbidden",
        message=text,
        reasons=f" {text} MaxConstraint ",
        policies=[policy],
        policy_names=f" LimitRange/{short}/{short} ",
        violations=[found],
        observed=[found],
        trace=[step],
        patch=[{"op": "add", "path": f"/metadata/labels/{text}", "value": {text: text}}],
        warnings=[text],
        charges=[{"quota": policy, "delta": {text: text}, "amounts": {text: text}}],
        request={"object": pod, "oldObject": pod, "operation": "CREATE", "namespace": text},
    )
    event.save()
    return event.id


def _sync(cluster: Cluster) -> SyncRun:
    now, whole = timezone.now(), " ".join(TEXTS)
    ClusterConnection.objects.create(
        cluster=cluster,
        server="https://127.0.0.1:1/" + "w" * 400,
        method="token",
        sealed=b"",
        key_id="none",
        is_paused=True,
        paused_since=now,
        paused_by=TEXTS[0],
        pause_reason=whole,
        state="unreachable",
        message=whole,
        server_version=TEXTS[2][:100],
    )
    SyncState.objects.create(cluster=cluster)
    WebhookHealth.objects.create(
        cluster=cluster, checked=now, canary_refused=False, canary_message=whole
    )
    run = SyncRun.objects.create(
        cluster=cluster, mode="sync", trigger="person", user=TEXTS[3], state="done", error=whole
    )
    for number, text in enumerate(TEXTS):
        side = {"metadata": {"labels": {text: text}, "annotations": {text: text}}}
        difference = {
            "field": f".metadata.labels[{text}]",
            "base": text,
            "ours": text,
            "theirs": text,
            "manager": text,
            "time": text,
        }
        names = {"kind": "LimitRange", "namespace": "team", "name": f"o-{number}"}
        SyncedObject.objects.create(
            cluster=cluster,
            state="drifted",
            base=side,
            theirs=side,
            live=side,
            differences=[difference],
            since=now,
            seen=now,
            **names,
        )
        SyncResult.objects.create(
            run=run,
            action="none",
            outcome="failed",
            message=text,
            differences=[difference],
            **names,
        )
        ClusterAlert.objects.create(
            cluster=cluster,
            kind="conflict",
            subject=text[:400],
            severity="warning",
            message=text,
            since=now,
            seen=now,
        )
    return run


def _users() -> list[str]:
    """Admins with hostile names; the top of every page shows them."""
    plain = [text for text in TEXTS if text == " ".join(text.split()) and text.isprintable()]
    names = [text[:150] for text in plain[::30]]
    for name in names:
        User.objects.create_superuser(name, password=PASSWORD)
    return names


main()
