"""The portal replaces the plugins: LimitRanger and ResourceQuota off, its webhooks on."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from engine.namespace_class import filled_in
from tests.cluster.portal import Portal, portal
from tests.processes import ROOT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from tests.cluster.servers import Cluster

pytestmark = pytest.mark.cluster

OURS = re.compile(
    r'admission webhook "[\w-]+\.gatehouse\.dev" denied the request: (.*)'
    r" \(decision \w+, https://127\.0\.0\.1:\d+/decisions/\w+\)"
)
RATIO = "cpu max limit to request ratio per Container is 4, but "
UNCOVERED = "insufficient quota to match these scopes: [{PriorityClass %s}]"
FULL = "exceeded quota: pods-cluster-services, requested: pods=1, used: pods=10, limited: pods=10"


def pod(name: str, resources: object = None, priority: str = "", **labels: str) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.invalid/app:1", "resources": resources or {}}
    spec = {"containers": [container], "priorityClassName": priority}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def create(
    cluster: Cluster, namespace: str, *manifests: dict[str, Any], dry: bool = False
) -> CompletedProcess[str]:
    items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    words = ["create", "--namespace", namespace, "--filename", "-"]
    return cluster.kubectl(*words, *(["--dry-run=server"] if dry else []), stdin=items)


def stored(cluster: Cluster, namespace: str, name: str) -> Any:
    shown = cluster.kubectl("get", "pod", name, "--namespace", namespace, "--output", "json")
    return json.loads(shown.stdout)


def seeds(file: str, *kinds: str) -> list[Any]:
    documents = YAML(typ="safe").load_all(ROOT / "portal" / "dev" / "demo" / file)
    return [document for document in documents if document["kind"] in kinds]


def refuses(cluster: Cluster, namespace: str, manifest: dict[str, Any]) -> bool:
    return create(cluster, namespace, manifest, dry=True).returncode != 0


@pytest.fixture(scope="module")
def gatehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with portal(tmp_path_factory.mktemp("portal")) as made:
        # The priority scenarios use this namespace.
        made.cover_kube_system()
        yield made


@pytest.fixture(scope="module")
def replaced(bare_cluster: Cluster, gatehouse: Portal) -> Iterator[Cluster]:
    """The API server without the plugins, the portal's webhooks on."""
    for name in ("demo", "scheduling", "elsewhere", "covered"):
        bare_cluster.kubectl("create", "namespace", name)
    # Applied, since other modules on the same API server have some of them.
    items = {"apiVersion": "v1", "kind": "List", "items": seeds("demo.yaml", "PriorityClass")}
    done = bare_cluster.kubectl("apply", "--server-side", "--filename", "-", stdin=items)
    assert done.returncode == 0, done.stderr
    gatehouse.enforce(bare_cluster, "demo")
    small = pod("probe", {"limits": {"cpu": "1m"}})
    wait_for(lambda: refuses(bare_cluster, "demo", small))
    yield bare_cluster
    gatehouse.release()


@pytest.fixture(scope="module")
def native(plain_cluster: Cluster) -> Cluster:
    """The API server with the plugins, and the same range."""
    create(plain_cluster, "default", *seeds("demo.yaml", "Namespace"))
    [standard] = seeds("demo.yaml", "NamespaceClass")
    defaults = {each["name"]: each["default"] for each in standard["spec"]["parameters"]}
    create(plain_cluster, "demo", filled_in(standard["spec"]["policies"][0], defaults))
    small = pod("probe", {"limits": {"cpu": "1m"}})
    wait_for(lambda: refuses(plain_cluster, "demo", small))
    return plain_cluster


RANGE_ROWS = {
    "nothing": ({}, ""),
    "limit-1": ({"limits": {"cpu": "1"}}, ""),
    "request-100m": ({"requests": {"cpu": "100m"}}, f"{RATIO}provided ratio is 5.000000"),
    "request-125m": ({"requests": {"cpu": "125m"}}, ""),
    "request-600m": (
        {"requests": {"cpu": "600m"}},
        'Invalid value: "600m": must be less than or equal to cpu limit of 500m',
    ),
    "both-50m": (
        {"requests": {"cpu": "50m"}, "limits": {"cpu": "50m"}},
        "minimum cpu usage per Container is 100m, but request is 50m",
    ),
    "limit-2": (
        {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
        "maximum cpu usage per Container is 1, but limit is 2",
    ),
    "far-apart": (
        {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}},
        f"maximum cpu usage per Container is 1, but limit is 2, {RATIO}provided ratio is 20.0",
    ),
    "memory-2gi": (
        {"limits": {"memory": "2Gi"}},
        "maximum memory usage per Container is 1Gi, but limit is 2Gi",
    ),
    "limit-0": ({"limits": {"cpu": "0"}}, f"{RATIO}no request is specified or request is 0"),
}


def kept(manifest: Any) -> Any:
    """The fields that LimitRanger sets."""
    annotations = manifest["metadata"].get("annotations", {})
    resources = [c["resources"] for c in manifest["spec"]["containers"]]
    return annotations.get("kubernetes.io/limit-ranger"), resources


@pytest.mark.parametrize(
    ("name", "resources", "text"), [(name, *row) for name, row in RANGE_ROWS.items()]
)
def test_ranges_act_as_limit_ranger_does(
    replaced: Cluster, native: Cluster, name: str, resources: Any, text: str
) -> None:
    theirs, ours = (create(c, "demo", pod(name, resources)) for c in (native, replaced))
    assert theirs.returncode == ours.returncode == bool(text)
    if text:
        assert text in ours.stderr
        # The plugin lists violations of one range in any order.
        assert sorted(OURS.sub(r"\1", ours.stderr)) == sorted(theirs.stderr)
    else:
        assert kept(stored(replaced, "demo", name)) == kept(stored(native, "demo", name))


def test_kubectl_names_the_webhook_and_links_the_decision(replaced: Cluster) -> None:
    done = create(replaced, "demo", pod("linked", {"limits": {"cpu": "2"}}))
    start = (
        'Error from server (Forbidden): error when creating "STDIN": admission webhook "validate'
    )
    assert done.stderr.startswith(start)
    assert OURS.search(done.stderr)


def test_resize_is_held_to_the_range(replaced: Cluster) -> None:
    create(replaced, "demo", pod("grows", {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}))
    patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}}
    words = ["patch", "pod", "grows", "--namespace", "demo", "--subresource", "resize"]
    done = replaced.kubectl(*words, "--patch", json.dumps(patch))
    assert done.returncode == 1
    assert "maximum cpu usage per Container is 1, but limit is 2" in done.stderr


@pytest.mark.parametrize(
    ("resources", "scheduler"),
    [
        ({}, "scheduler-2"),
        ({"requests": {"cpu": "1"}}, "scheduler-1"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "default-scheduler"),
    ],
)
def test_scheduler_follows_from_the_qos_class(
    replaced: Cluster, resources: Any, scheduler: str
) -> None:
    assert create(replaced, "scheduling", pod(scheduler, resources, team="a")).returncode == 0
    annotations = stored(replaced, "scheduling", scheduler)["metadata"]["annotations"]
    assert annotations["scheduler.alpha.kubernetes.io/name"] == scheduler


def test_missing_label_is_rejected_on_create_and_on_update(replaced: Cluster) -> None:
    text = "rejected by MetadataPolicy scheduling/scheduler-by-qos rule 3"
    assert text in create(replaced, "scheduling", pod("bare")).stderr
    assert create(replaced, "scheduling", pod("labelled", team="a")).returncode == 0
    done = replaced.kubectl("label", "pod", "labelled", "--namespace", "scheduling", "team-")
    assert done.returncode == 1
    assert f'pods "labelled" is forbidden: {text}' in done.stderr


def test_first_story_of_priority_in_quotas(replaced: Cluster) -> None:
    for name in ("", "other"):
        assert create(replaced, "elsewhere", pod(f"any{name}", priority=name)).returncode == 0
        assert create(replaced, "kube-system", pod(f"any{name}", priority=name)).returncode == 0
    done = create(replaced, "elsewhere", pod("uncovered", priority="cluster-services"))
    assert UNCOVERED % "In [cluster-services]" in done.stderr
    ten = [pod(f"service-{number}", priority="cluster-services") for number in range(10)]
    assert create(replaced, "kube-system", *ten).returncode == 0
    done = create(replaced, "kube-system", pod("one-more", priority="cluster-services"))
    assert f'pods "one-more" is forbidden: {FULL}' in done.stderr


@pytest.fixture
def second_story(replaced: Cluster, gatehouse: Portal) -> Iterator[Cluster]:
    gatehouse.enforce(replaced, "demo-priority")
    other = pod("probe", priority="other")
    wait_for(lambda: refuses(replaced, "elsewhere", other))
    yield replaced
    gatehouse.enforce(replaced, "demo")
    wait_for(lambda: not refuses(replaced, "elsewhere", other))


SECOND_STORY = {
    ("kube-system", ""): True,
    ("kube-system", "cluster-services"): True,
    ("kube-system", "other"): False,
    ("covered", ""): True,
    ("covered", "cluster-services"): True,
    ("covered", "other"): True,
    ("elsewhere", ""): True,
    ("elsewhere", "cluster-services"): False,
    ("elsewhere", "other"): False,
}


def test_second_story_of_priority_in_quotas(second_story: Cluster) -> None:
    done = {
        (namespace, priority): create(
            second_story, namespace, pod(f"two-{priority}x", priority=priority)
        )
        for namespace, priority in SECOND_STORY
    }
    assert {row: each.returncode == 0 for row, each in done.items()} == SECOND_STORY
    texts = [each.stderr for each in done.values() if each.returncode]
    assert all(UNCOVERED % "Exists []" in text for text in texts)
