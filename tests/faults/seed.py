"""Policies of the databases under test; run as a separate process: ``python -m …seed``.

Prints the secrets of the clusters as JSON; only the named clusters are created. Each namespace is
one kind of load:

hot     one quota of ``HARD`` pods
five    five quotas that overlap: any pod counts in three, four or five of them
roomy   a quota that never fills
busy    a thousand rules
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

HARD: Final = 500
FIVE: Final = {
    "all": None,
    "any": ("Exists", []),
    "low-mid": ("In", ["low", "mid"]),
    "mid-high": ("In", ["mid", "high"]),
    "low-high": ("In", ["low", "high"]),
}
PRIORITIES: Final = ("low", "mid", "high", "")
RULES: Final = 1000
RULES_EACH: Final = 50


def manifests() -> dict[str, list[dict[str, Any]]]:
    """The policies of each cluster."""
    roomy = {"pods": "1000000000", "requests.cpu": "1000000000"}
    everything = [
        _quota("hot", "hot", {"pods": str(HARD)}),
        *(_quota(f"five-{name}", "five", {"pods": str(HARD // 2)}, s) for name, s in FIVE.items()),
        _quota("roomy", "roomy", roomy),
    ]
    busy = [_rules(number) for number in range(RULES // RULES_EACH)]
    other = [_quota("other-roomy", "roomy", roomy)]
    return {"prod": everything, "other": other, "busy": busy}


def _quota(
    name: str, namespace: str, hard: dict[str, str], scope: tuple[str, list[str]] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"hard": hard}
    if scope:
        operator, values = scope
        expression = {"scopeName": "PriorityClass", "operator": operator}
        spec["scopeSelector"] = {
            "matchExpressions": [{**expression, **({"values": values} if values else {})}]
        }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def _rules(number: int) -> dict[str, Any]:
    """One of the policies that together hold ``RULES`` rules."""
    rules = [
        {
            "policyPredicate": {"labelSelector": {"matchLabels": {f"label-{i}": "refused"}}},
            "policyAction": {"reject": True},
        }
        for i in range(number * RULES_EACH, (number + 1) * RULES_EACH)
    ]
    metadata = {"name": f"rules-{number}", "namespace": "busy"}
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": metadata,
        "spec": {"rules": rules, "strict": True},
    }


def main() -> None:
    """Migrate, create the named clusters with policies and credentials; print the secrets."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django  # noqa: PLC0415 - the settings' name comes first

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - needs settings

    from policies import services  # noqa: PLC0415 - the same
    from policies.models import Cluster  # noqa: PLC0415 - the same

    call_command("migrate", interactive=False, verbosity=0)
    secrets = {}
    for name in sys.argv[1:]:
        cluster = services.save_cluster(cluster=Cluster(name=name), user="root").instance
        for manifest in manifests()[name]:
            services.apply_manifest(
                cluster=cluster, manifest=manifest, user="root", create_namespace=True
            )
        _, secrets[name] = services.issue_webhook_credential(
            cluster=cluster, label="hook", user="root"
        )
    sys.stdout.write(json.dumps(secrets))


if __name__ == "__main__":
    main()
