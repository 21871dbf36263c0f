"""Random cases for the comparison with a live API server: values from a seed, nothing is asked.

A case is a line of ``manage.py admit --cases`` and what makes it: ``posted`` (the object as its
user writes it), or ``before`` (an object that was there before the policies) and ``changes`` to it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.amounts import Amounts, draw_list, value

if TYPE_CHECKING:
    from random import Random

Case = dict[str, Any]
PRIORITIES: Final = {"low": 10, "mid": 1000, "high": 100000, "cluster-services": 1000000}
"""Priority classes of the test cluster and their values."""
CLASSES: Final = ("gold", "expand")
"""Storage classes of the test cluster; claims of ``expand`` may grow."""
_TRACKED: Final = (
    "pods",
    "count/pods",
    "cpu",
    "requests.cpu",
    "limits.cpu",
    "memory",
    "requests.memory",
    "limits.memory",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "requests.vendor.io/fpga",
    "services",
    "count/services",
    "services.nodeports",
    "services.loadbalancers",
    "persistentvolumeclaims",
    "requests.storage",
    "expand.storageclass.storage.k8s.io/requests.storage",
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
    "configmaps",
    "count/configmaps",
    "count/deployments.apps",
)
_SCOPED: Final = _TRACKED[:8]
_SCOPES: Final = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "CrossNamespacePodAffinity",
)


def draw_priority_scope(random: Random) -> dict[str, Any]:
    """One expression about priority classes."""
    operator = random.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    found: dict[str, Any] = {"scopeName": "PriorityClass", "operator": operator}
    if operator in {"In", "NotIn"}:
        found["values"] = random.sample(list(PRIORITIES), random.randint(1, 2))
    return found


def draw_limited(random: Random) -> list[dict[str, Any]]:
    """What needs a covering quota on one API server."""
    by_scope = {"resource": "pods", "matchScopes": [draw_priority_scope(random)]}
    other = {"scopeName": random.choice(_SCOPES), "operator": "Exists"}
    choices: tuple[list[dict[str, Any]], ...] = (
        [by_scope],
        [{"resource": "pods", "matchScopes": [other]}, by_scope],
        [{"resource": "pods", "matchContains": [random.choice(("pods", "cpu", "fpga"))]}],
        [
            {"resource": "persistentvolumeclaims", "matchContains": ["requests.storage"]},
            {"resource": "services", "matchContains": ["nodeports", "loadbalancers"]},
            by_scope,
        ],
    )
    return random.choice(choices)


def draw_policies(random: Random) -> list[dict[str, Any]]:
    """The policies of one namespace: up to three ranges and three quotas, mostly valid."""
    ranges = random.choice((0, 1, 1, 1, 2, 3))
    quotas = random.choice((0, 1, 1, 2, 3)) if ranges else random.choice((1, 1, 2, 3))
    found = [_range(random, name) for name in sorted(random.sample("abcdef", ranges))]
    return found + [_quota(random, f"q{name}") for name in sorted(random.sample("abcdef", quotas))]


def _range(random: Random, name: str) -> dict[str, Any]:
    types = random.choice((["Container"], ["Container", "Pod"], ["Pod"], ["PersistentVolumeClaim"]))
    if random.random() < 0.2:
        types = ["Container", "Pod", "PersistentVolumeClaim"]
    items = [_item(random, kind) for kind in types]
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": metadata,
        "spec": {"limits": items},
    }


def _item(random: Random, kind: str) -> dict[str, Any]:
    amounts, item = Amounts(random), {"type": kind}
    if kind == "PersistentVolumeClaim":
        low, high = amounts.ordered("storage", 2)
        return {**item, **random.choice(({"min": {"storage": low}}, {"max": {"storage": high}}))}
    names = ["cpu", "memory", "ephemeral-storage", "vendor.io/fpga"]
    for name in random.sample(names, random.randint(1, 3)):
        for part, amount in _bounds(random, kind, name).items():
            item.setdefault(part, {})[name] = amount
    return item


def _bounds(random: Random, kind: str, name: str) -> dict[str, Any]:
    """Some of an item's maps for one resource, in an order that an API server takes."""
    amounts = Amounts(random)
    low, request, limit, high = sorted(amounts.bounds(name), key=value)
    if name == "vendor.io/fpga":
        request = limit
    found = {"min": low, "defaultRequest": request, "default": limit, "max": high}
    if kind == "Pod":
        found = {"min": low, "max": high}
    kept = {part: amount for part, amount in found.items() if random.random() < 0.4}
    if name == "vendor.io/fpga" and "defaultRequest" in kept:
        kept["default"] = limit
    if random.random() < 0.15:
        kept["maxLimitRequestRatio"] = random.choice(("1.5", "4", "10", "12500m", 40, "100"))
        # A ratio above max/min would be refused, and teach nothing about pods.
        kept.pop(random.choice(("min", "max")), None)
    return kept


def _quota(random: Random, name: str) -> dict[str, Any]:
    amounts, spec = Amounts(random), {}
    if random.random() < 0.45:
        spec, names = _scoping(random)
    else:
        names = random.sample(_TRACKED, random.randint(1, 6))
    hard = {each: amounts.hard(each) for each in names}
    used = {each: amounts.used(each) for each in names}
    status = {"hard": hard, "used": used}
    if random.random() < 0.06:
        status = random.choice(({"hard": {}, "used": {}}, {"hard": hard, "used": {}}))
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard, **spec},
        "status": status,
    }


def _scoping(random: Random) -> tuple[dict[str, Any], list[str]]:
    """Scopes or a selector, and names that an API server takes with them."""
    if random.random() < 0.6:
        expressions = [draw_priority_scope(random)]
        if random.random() < 0.3:
            expressions.append({"scopeName": random.choice(_SCOPES), "operator": "Exists"})
        spec: dict[str, Any] = {"scopeSelector": {"matchExpressions": expressions}}
        scopes = [each["scopeName"] for each in expressions]
    else:
        scopes = [random.choice(_SCOPES)]
        spec = {"scopes": scopes}
    if "BestEffort" in scopes:
        return spec, ["pods"]
    return spec, random.sample(_SCOPED, random.randint(1, 4))


def draw_pod(random: Random, name: str = "p") -> dict[str, Any]:
    """A pod as its user writes it."""
    containers = [_container(random, f"c{i}") for i in range(random.choice((1, 1, 1, 2, 3)))]
    spec: dict[str, Any] = {"containers": containers}
    if random.random() < 0.3:
        spec["initContainers"] = [_init(random, f"i{i}") for i in range(random.randint(1, 2))]
    if random.random() < 0.6:
        spec["priorityClassName"] = random.choice(list(PRIORITIES))
    if random.random() < 0.15:
        spec["activeDeadlineSeconds"] = 60
    if random.random() < 0.1:
        spec["affinity"] = _affinity(random)
    if random.random() < 0.08:
        spec["resources"] = _pod_level(random)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _container(random: Random, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "image": "registry.invalid/app:1"}
    resources = draw_list(random)
    return {**found, "resources": resources} if resources else found


def _init(random: Random, name: str) -> dict[str, Any]:
    sidecar = {"restartPolicy": "Always"} if random.random() < 0.4 else {}
    return {**_container(random, name), **sidecar}


def _pod_level(random: Random) -> dict[str, Any]:
    amounts = Amounts(random)
    request, limit = amounts.large("cpu")
    return random.choice(({"limits": {"cpu": limit}}, {"requests": {"cpu": request}}))


def _affinity(random: Random) -> dict[str, Any]:
    term: dict[str, Any] = {
        "labelSelector": {"matchLabels": {"a": "b"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    if random.random() < 0.7:
        term.update(random.choice(({"namespaces": ["other"]}, {"namespaceSelector": {}})))
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def draw_claim(random: Random, name: str = "data") -> dict[str, Any]:
    """A claim as its user writes it."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": Amounts(random).one("storage")}},
        "storageClassName": random.choice(CLASSES),
    }
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def _ports(random: Random) -> list[dict[str, Any]]:
    return [{"name": f"p{i}", "port": 80 + i} for i in range(random.randint(1, 3))]


def draw_service(random: Random, name: str = "svc") -> dict[str, Any]:
    """A service as its user writes it."""
    kind = random.choice(("ClusterIP", "NodePort", "LoadBalancer"))
    spec: dict[str, Any] = {"type": kind, "selector": {"a": "b"}, "ports": _ports(random)}
    if kind == "LoadBalancer" and random.random() < 0.4:
        spec["allocateLoadBalancerNodePorts"] = False
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _counted(random: Random) -> dict[str, Any]:
    """Something that only counts."""
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [_container(random, "c0")]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}
    return random.choice((deployment, config))


_DRAWN: Final = {"pod": draw_pod, "claim": draw_claim, "service": draw_service}
_OLD_NAMES: Final = {"pod": "old-pod", "claim": "old-claim", "service": "old-service"}
_SHARES: Final = {
    ("CREATE", "pod"): 58,
    ("CREATE", "claim"): 8,
    ("CREATE", "service"): 7,
    ("CREATE", "counted"): 3,
    ("UPDATE", "resize"): 12,
    ("UPDATE", "pod"): 4,
    ("UPDATE", "claim"): 5,
    ("UPDATE", "service"): 3,
}


def draw_before(random: Random) -> dict[str, dict[str, Any]]:
    """What the namespace held before it had policies, by kind."""
    found = {kind: _DRAWN[kind](random, _OLD_NAMES[kind]) for kind in _DRAWN}
    if random.random() < 0.8:
        # What has all its amounts can be resized: nothing would be added to it.
        found["pod"]["spec"].pop("initContainers", None)
        for container in found["pod"]["spec"]["containers"]:
            container["resources"] = _complete(random)
    return found


def _complete(random: Random) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for name in ("cpu", "memory", "ephemeral-storage"):
        pair = Amounts(random).ordered(name, 2)
        found["requests"][name], found["limits"][name] = pair
    return found


def draw_question(random: Random, before: dict[str, dict[str, Any]]) -> Case:
    """One request: something new, or a change of something that was there before."""
    operation, kind = random.choices(list(_SHARES), weights=list(_SHARES.values()))[0]
    if operation == "CREATE":
        posted = _counted(random) if kind == "counted" else _DRAWN[kind](random)
        return {"operation": operation, "posted": posted, "dryRun": random.random() < 0.8}
    subject = "pod" if kind == "resize" else kind
    case = {"operation": operation, "before": copy.deepcopy(before[subject]), "dryRun": True}
    return {**case, "changes": _changes(random, kind, before[subject])} | (
        {"subResource": "resize"} if kind == "resize" else {}
    )


def _changes(random: Random, kind: str, before: dict[str, Any]) -> list[list[Any]]:
    """Where to put what, in the object as it is stored."""
    spec = before["spec"]
    if kind == "resize":
        return _resized(random, spec["containers"])
    if kind == "claim":
        growth = Amounts(random).one("storage")
        label = [["metadata", "labels"], {"touched": "yes"}]
        storage = [["spec", "resources", "requests", "storage"], growth]
        return [label] if random.random() < 0.3 else [storage]
    if kind == "service":
        kinds = ("ClusterIP", "NodePort", "LoadBalancer")
        return [[["spec", "type"], random.choice(kinds)], [["spec", "ports"], _ports(random)]]
    if random.random() < 0.5:
        return [[["metadata", "labels"], {"touched": "yes"}]]
    return [[["spec", "activeDeadlineSeconds"], 30]]


def _resized(random: Random, containers: list[dict[str, Any]]) -> list[list[Any]]:
    """Change amounts that are there: others could not be added."""
    found = []
    for index, container in enumerate(containers):
        there = container.get("resources") or {}
        for name in ("cpu", "memory"):
            sides = [side for side in ("requests", "limits") if name in there.get(side, {})]
            amounts = Amounts(random).ordered(name, len(sides))
            for side, amount in zip(sides, amounts, strict=True):
                if random.random() < 0.8:
                    path = ["spec", "containers", index, "resources", side, name]
                    found.append([path, amount])
    return found or [[["metadata", "labels"], {"touched": "yes"}]]
