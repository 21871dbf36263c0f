"""Random cases for the comparison with a live API server, drawn from a seed without requests.

A case is a line of ``manage.py admit --cases`` and its source: ``posted`` (the object as its
user writes it), or ``before`` (an object older than the policies) and ``changes`` to it.
If ``room`` is given, amounts are drawn within it, so that few policies refuse them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.amounts import DEVICE, PAGES, UNIT, Amounts, draw_list, spell, value
from tests.cluster.rules import ATTRIBUTES, CLASSES, PRIORITIES

if TYPE_CHECKING:
    from random import Random

    from tests.cluster.amounts import Room

Case = dict[str, Any]
OVERHEAD: Final = {"cpu": "250m", "memory": "64Mi"}
RUNTIME: Final = "boxed"
"""The runtime class of the test cluster, which adds this overhead."""
SHARES: Final = {
    ("CREATE", "pod"): 48,
    ("CREATE", "claim"): 9,
    ("CREATE", "service"): 8,
    ("CREATE", "counted"): 5,
    ("UPDATE", "resize"): 12,
    ("UPDATE", "pod"): 6,
    ("UPDATE", "claim"): 6,
    ("UPDATE", "service"): 6,
}
"""The kinds of requests, and their weights in percent."""
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def draw_pod(random: Random, name: str = "p", room: Room | None = None) -> dict[str, Any]:
    """A pod as its user writes it."""
    # BestEffort quotas only count pods without any request.
    is_bare = random.random() < 0.12
    several = random.choice((1, 1, 1, 2, 3))
    containers = [_container(random, f"c{i}", room, is_bare=is_bare) for i in range(several)]
    spec: dict[str, Any] = {"containers": containers}
    if random.random() < 0.3:
        many = range(random.randint(1, 3))
        spec["initContainers"] = [_init(random, f"i{i}", room, is_bare=is_bare) for i in many]
    if random.random() < 0.6:
        spec["priorityClassName"] = random.choice(list(PRIORITIES))
    if random.random() < 0.2:
        spec["activeDeadlineSeconds"] = 60
    if random.random() < 0.1:
        spec["affinity"] = _affinity(random)
    if random.random() < 0.1:
        spec["resources"] = _pod_level(random)
    if random.random() < 0.1:
        spec |= {"runtimeClassName": RUNTIME, "overhead": dict(OVERHEAD)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _container(random: Random, name: str, room: Room | None, *, is_bare: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "image": "registry.invalid/app:1"}
    resources = {} if is_bare else draw_list(random, room)
    return {**found, "resources": resources} if resources else found


def _init(random: Random, name: str, room: Room | None, *, is_bare: bool) -> dict[str, Any]:
    sidecar = {"restartPolicy": "Always"} if random.random() < 0.5 else {}
    return {**_container(random, name, room, is_bare=is_bare), **sidecar}


def _pod_level(random: Random) -> dict[str, Any]:
    """Pod-level resources, often more than the sum of the containers, one side or both."""
    amounts = Amounts(random)
    sides: dict[str, dict[str, Any]] = {}
    if random.random() < 0.1:
        return sides
    for name in random.choice((["cpu"], ["memory"], ["cpu", "memory"], ["cpu", PAGES])):
        large = {"cpu": ("12", "16"), "memory": ("32Gi", "64Gi"), PAGES: ("64Mi", "64Mi")}[name]
        request, limit = large if random.random() < 0.8 else amounts.ordered(name, 2)
        part = random.choice(("requests", "limits", "both"))
        if part != "limits" and name != PAGES:
            sides.setdefault("requests", {})[name] = request
        if part != "requests" or name == PAGES:
            sides.setdefault("limits", {})[name] = limit
    return sides


def _affinity(random: Random) -> dict[str, Any]:
    term: dict[str, Any] = {
        "labelSelector": {"matchLabels": {"a": "b"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    if random.random() < 0.7:
        term.update(random.choice(({"namespaces": ["other"]}, {"namespaceSelector": {}})))
    side = random.choice(("podAffinity", "podAntiAffinity"))
    if random.random() < 0.5:
        return {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = [{"weight": 1, "podAffinityTerm": term}]
    return {side: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def draw_claim(random: Random, name: str = "data", room: Room | None = None) -> dict[str, Any]:
    """A claim as its user writes it."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": Amounts(random, room).one("storage")}},
        "storageClassName": random.choice(CLASSES),
    }
    metadata: dict[str, Any] = {"name": name}
    if random.random() < 0.1:
        # The deprecated way to name a class, which takes precedence.
        metadata["annotations"] = {_BETA_CLASS: spec.pop("storageClassName")}
    if random.random() < 0.4:
        spec["volumeAttributesClassName"] = random.choice(ATTRIBUTES)
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": metadata, "spec": spec}


def draw_ports(random: Random) -> list[dict[str, Any]]:
    """The ports of a service."""
    return [{"name": f"p{i}", "port": 80 + i} for i in range(random.randint(1, 4))]


def draw_service(random: Random, name: str = "svc", room: Room | None = None) -> dict[str, Any]:
    """A service as its user writes it."""
    del room  # it has no amounts
    kind = random.choice(("ClusterIP", "NodePort", "LoadBalancer"))
    spec: dict[str, Any] = {"type": kind, "selector": {"a": "b"}, "ports": draw_ports(random)}
    if kind == "LoadBalancer" and random.random() < 0.4:
        spec["allocateLoadBalancerNodePorts"] = False
        if random.random() < 0.5:
            # Only ports with explicit numbers count then.
            spec["ports"][0]["nodePort"] = random.randint(20000, 60000)
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _counted(random: Random, name: str = "n", room: Room | None = None) -> dict[str, Any]:
    """An object that quotas only count."""
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [_container(random, "c0", room, is_bare=False)]},
    }
    selector = {"matchLabels": {"a": "b"}}
    shapes: tuple[dict[str, Any], ...] = (
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "Secret"},
    )
    found = {**random.choice(shapes), "metadata": {"name": name}}
    if found["kind"] == "Deployment":
        found["spec"] = {"selector": selector, "template": template}
    return found


_DRAWN: Final = {"pod": draw_pod, "claim": draw_claim, "service": draw_service, "counted": _counted}
_OLD_NAMES: Final = {"pod": "old-pod", "claim": "old-claim", "service": "old-service"}


def draw_before(random: Random) -> dict[str, dict[str, Any]]:
    """The objects of the namespace before it had policies, by kind."""
    some = {"storage": (UNIT, 10**12 * UNIT)}
    found = {kind: _DRAWN[kind](random, name, some) for kind, name in _OLD_NAMES.items()}
    if random.random() < 0.8:
        found["claim"]["spec"]["storageClassName"] = "expand"
        found["claim"]["metadata"].pop("annotations", None)
    if random.random() < 0.8:
        # A pod with all its amounts can be resized, because defaults add nothing.
        spec = found["pod"]["spec"]
        spec.pop("initContainers", None)
        spec.pop("resources", None)
        for container in spec["containers"]:
            container["resources"] = _complete(random)
    found["pod"]["spec"].pop("activeDeadlineSeconds", None)
    if random.random() < 0.4:
        found["pod"]["status"] = _running(random, found["pod"]["spec"])
    found["claim"]["status"] = _bound(random, found["claim"])
    return found


def _bound(random: Random, claim: dict[str, Any]) -> dict[str, Any]:
    """The status of a claim: only a bound one may grow, and shrink again to its capacity."""
    requested = claim["spec"]["resources"]["requests"]["storage"]
    has = (
        spell(random, value(requested) // 2 // UNIT * UNIT) if random.random() < 0.5 else requested
    )
    status = {"phase": "Bound", "capacity": {"storage": has}}
    if random.random() < 0.3:
        status["allocatedResources"] = {"storage": Amounts(random, {}).one("storage")}
    if random.random() < 0.3:
        status["currentVolumeAttributesClassName"] = random.choice(ATTRIBUTES)
    return status


def _running(random: Random, spec: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod in the middle of a resize, as its node reports it."""
    status: dict[str, Any] = {
        key: [
            _reported(random, each["name"]) for each in spec.get(group, ()) if random.random() < 0.7
        ]
        for key, group in (
            ("containerStatuses", "containers"),
            ("initContainerStatuses", "initContainers"),
        )
    }
    if random.random() < 0.3:
        reason = random.choice(("Infeasible", "Deferred"))
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
        status["conditions"] = [pending]
    return status


def _reported(random: Random, name: str) -> dict[str, Any]:
    status = {"name": name, "image": "registry.invalid/app:1", "imageID": "", "ready": True}
    status["restartCount"] = 0
    sides: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}, "allocated": {}}
    for resource in ("cpu", "memory"):
        request, limit = Amounts(random, {}).ordered(resource, 2)
        for side, amount in (("requests", request), ("limits", limit), ("allocated", request)):
            if random.random() < 0.7:
                sides[side][resource] = amount
    allocated = sides.pop("allocated")
    if random.random() < 0.8:
        status["resources"] = {side: amounts for side, amounts in sides.items() if amounts}
    return {**status, "allocatedResources": allocated} if allocated else status


def _complete(random: Random) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for name in ("cpu", "memory", *(["ephemeral-storage"] if random.random() < 0.7 else [])):
        pair = Amounts(random, {}).ordered(name, 2)
        found["requests"][name], found["limits"][name] = pair
    if random.random() < 0.15:
        found["limits"] |= random.choice(({DEVICE: "2"}, {PAGES: "2Mi"}))
    return found


def draw_case(
    random: Random,
    operation: str,
    kind: str,
    before: dict[str, dict[str, Any]],
    room: Room | None = None,
) -> Case:
    """One request: a new object, or a change of an older one."""
    if operation == "CREATE":
        posted = _DRAWN[kind](random, kind[:1], room)
        if random.random() < 0.1:
            posted["metadata"]["generateName"] = posted["metadata"].pop("name") + "-"
        return {"operation": operation, "posted": posted, "dryRun": random.random() < 0.8}
    subject = "pod" if kind == "resize" else kind
    case = {"operation": operation, "before": copy.deepcopy(before[subject]), "dryRun": True}
    return {**case, "changes": _changes(random, kind, before[subject], room)} | (
        {"subResource": "resize"} if kind == "resize" else {}
    )


def _changes(
    random: Random, kind: str, before: dict[str, Any], room: Room | None
) -> list[list[Any]]:
    """Values and their paths in the stored object."""
    spec = before["spec"]
    if kind == "resize":
        return _resized(random, spec["containers"], room)
    if kind == "claim":
        return _grown(random, spec, room)
    if kind == "service":
        kinds = ("ClusterIP", "NodePort", "LoadBalancer")
        return [[["spec", "type"], random.choice(kinds)], [["spec", "ports"], draw_ports(random)]]
    if random.random() < 0.25:
        return [[["metadata", "labels"], {"touched": "yes"}]]
    return [[["spec", "activeDeadlineSeconds"], 30]]


def _grown(random: Random, spec: dict[str, Any], room: Room | None) -> list[list[Any]]:
    """Change a claim's request: mostly increase it."""
    chance = random.random()
    if chance < 0.15:
        return [[["metadata", "labels"], {"touched": "yes"}]]
    if chance < 0.25 and "volumeAttributesClassName" in spec:
        return [[["spec", "volumeAttributesClassName"], random.choice(ATTRIBUTES)]]
    requested = value(spec["resources"]["requests"]["storage"])
    amount = Amounts(random, room).one("storage")
    if value(amount) < requested and random.random() < 0.8:
        # A decrease is refused regardless of the policies.
        amount = spell(random, requested + value(amount))
    return [[["spec", "resources", "requests", "storage"], amount]]


def _resized(
    random: Random, containers: list[dict[str, Any]], room: Room | None
) -> list[list[Any]]:
    """Change existing amounts: a resize cannot add others."""
    found = []
    for index, container in enumerate(containers):
        there = container.get("resources") or {}
        for name in ("cpu", "memory"):
            sides = [side for side in ("requests", "limits") if name in there.get(side, {})]
            amounts = Amounts(random, room).ordered(name, len(sides))
            for side, amount in zip(sides, amounts, strict=True):
                if random.random() < 0.9 or room is not None:
                    path = ["spec", "containers", index, "resources", side, name]
                    found.append([path, amount])
    return found or [[["metadata", "labels"], {"touched": "yes"}]]
