"""What an outage of the portal does in each set-up: measured by ending the portal."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from sync.client import Client
from sync.installation.canary import CanaryResult
from sync.installation.compiled_canary import NAME, call_compiled_canary
from tests.cluster.api_client import ApiClient
from tests.cluster.portal import portal
from tests.cluster.test_client import credentials
from tests.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.portal import Portal
    from tests.cluster.servers import Cluster

pytestmark = pytest.mark.cluster

ALONE: Final = "alone"
COMPILED: Final = "compiled"
NATIVE: Final = "native"
LIMITS: Final = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
RULES: Final = {
    "rules": [
        {
            "policyPredicate": {"labelSelector": {"matchLabels": {"tier": "forbidden"}}},
            "policyAction": {"reject": True},
        },
        {"policyPredicate": {}, "policyAction": {"updatedLabels": {"seen": "yes"}}},
    ]
}
WRITE: Final = """
import json, sys
import django; django.setup()
from policies import services
from policies.models import Cluster
from sync.client import Client
from sync.installation.compiled_policies import write_compiled
from sync.values import Credentials
told = json.load(sys.stdin)
cluster = Cluster.objects.get(name="demo")
for manifest in told["manifests"]:
    services.apply_manifest(cluster=cluster, manifest=manifest, user="me", create_namespace=True)
with Client(Credentials(told["server"], told["ca"].encode(), "admin-token")) as client:
    first, second = [write_compiled(cluster, client, lambda key: True) for _ in range(2)]
print(json.dumps([first.counts(), second.counts()]))
"""


def policies(namespace: str) -> list[dict[str, Any]]:
    mode = "enforce" if namespace == COMPILED else "off"
    metadata = {
        "name": "bounds",
        "namespace": namespace,
        "annotations": {"policy.gatehouse.dev/in-api-server": mode},
    }
    return [
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": LIMITS},
        {
            "apiVersion": "policy.gatehouse.dev/v1alpha1",
            "kind": "MetadataPolicy",
            "metadata": metadata,
            "spec": RULES,
        },
    ]


def pod(cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    container = {"name": "c", "image": "registry.invalid/app:1", "resources": resources}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


GOOD: Final = pod("1")
TOO_LARGE: Final = pod("2")
FORBIDDEN: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "labels": {"tier": "forbidden"}},
}


def verdicts(api: ApiClient, namespace: str) -> tuple[bool, ...]:
    """Whether a good pod, one above the maximum, and a labelled object get in."""
    asked = (GOOD, TOO_LARGE, FORBIDDEN)
    return tuple(api.create(each, namespace, dry=True).is_allowed for each in asked)


def is_labelled(api: ApiClient, namespace: str) -> bool:
    """Whether a good pod gets the label that the metadata policy sets."""
    answer = api.create(GOOD, namespace, dry=True)
    return answer.is_allowed and answer.body["metadata"].get("labels") == {"seen": "yes"}


def fail_open(gatehouse: Portal, plane: Cluster) -> None:
    """Set the cluster's failure policy to Ignore, and install the webhooks during the outage.

    The portal refuses no configuration of webhooks; objects of the canary's namespace are refused.
    """
    words = ["--failure-policy", "Ignore", "--output", "json"]
    words += ["--ca-file", str(gatehouse.authority.certificate)]
    words += ["--key-file", str(gatehouse.folder / "demo.key")]
    items = json.loads(gatehouse.manage("cluster_manifests", "demo", *words))
    done = plane.kubectl("apply", "--server-side", "--filename", "-", stdin=items)
    assert "validatingwebhookconfiguration.admissionregistration.k8s.io/gatehouse" in done.stdout
    assert set(CALLS_THAT_FAILED.findall(done.stderr)) == {"validate.gatehouse.dev"}, done.stderr


def watch_canary(plane: Cluster, api: ApiClient) -> None:
    """The canary tells whether the API server evaluates compiled policies."""
    with Client(credentials(plane)) as client:
        wait_for(lambda: call_compiled_canary(client)[0] is CanaryResult.REFUSED)
        api.delete("ValidatingAdmissionPolicyBinding", "", NAME)
        wait_for(lambda: call_compiled_canary(client)[0] is CanaryResult.LET_THROUGH)
        assert "admission webhook" in call_compiled_canary(client)[1]


def set_up(gatehouse: Portal, bare: Cluster, plain: Cluster, namespaces: list[str]) -> Any:
    """Fill the portal, write the compiled policies, register the webhooks."""
    told = {
        "manifests": [each for name in namespaces for each in policies(name)],
        "server": bare.address,
        "ca": bare.authority.certificate.read_text(),
    }
    gatehouse.around["GATEHOUSE_CLUSTER_ADDRESSES"] = "127.0.0.0/8"
    counts = json.loads(gatehouse.run(WRITE, json.dumps(told)).splitlines()[-1])
    for plane in (bare, plain):
        gatehouse.enforce(plane, "demo")
    return counts


CALLS_THAT_FAILED: Final = re.compile(r'failed calling webhook "([\w.-]+)"')
UP: Final = (True, False, False)
REFUSED: Final = (False, False, False)
OPEN: Final = (True, True, True)


def test_outage_in_each_set_up(
    bare_cluster: Cluster, plain_cluster: Cluster, tmp_path: Path
) -> None:
    with (
        contextlib.ExitStack() as stack,
        contextlib.closing(ApiClient(bare_cluster)) as bare,
        contextlib.closing(ApiClient(plain_cluster)) as plain,
    ):
        places = {ALONE: bare, COMPILED: bare, NATIVE: plain}
        for namespace, api in places.items():
            metadata = {"name": namespace}
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        plain.create(policies(NATIVE)[0], NATIVE)
        with portal(tmp_path / "portal") as gatehouse:
            stack.callback(gatehouse.release)
            first, second = set_up(gatehouse, bare_cluster, plain_cluster, list(places))
            assert (first["compiled written"], second) == (8, {"compiled": 6})
            for namespace, api in places.items():
                wait_for(lambda n=namespace, a=api: verdicts(a, n) == UP)  # type: ignore[misc]
                assert is_labelled(api, namespace)
            watch_canary(bare_cluster, bare)
        # The portal is gone. Its validating webhook fails closed: nothing gets in, good or bad.
        for namespace, api in places.items():
            assert verdicts(api, namespace) == REFUSED
            assert "failed calling webhook" in api.create(GOOD, namespace, dry=True).message
        # Failing open, only what somebody else enforces holds.
        for plane in (bare_cluster, plain_cluster):
            fail_open(gatehouse, plane)
        wait_for(lambda: verdicts(bare, ALONE) == OPEN)
        assert verdicts(bare, COMPILED) == UP
        labelled = {name: is_labelled(api, name) for name, api in places.items()}
        assert labelled == {ALONE: False, COMPILED: True, NATIVE: False}
        wait_for(lambda: verdicts(plain, NATIVE) == (True, False, True))
        message = bare.create(TOO_LARGE, COMPILED, dry=True).message
        assert message.endswith("maximum cpu usage per Container is 1, but limit is 2")
        assert "ValidatingAdmissionPolicy 'gatehouse.compiled.limitrange.bounds'" in message
