"""Compute the usage of a pod, service, volume claim or device claim under names of quotas.

Source: ``pkg/quota/v1/evaluator/core/{pods,services,persistent_volume_claims,resource_claims}.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.cache import once
from engine.fields import (
    MICRO,
    expect_bool,
    expect_map,
    expect_objects,
    expect_resource_list,
    expect_string,
    expect_string_map,
    parse_time,
    read_integer,
    read_time,
)
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.names import is_extended_resource, is_hugepage
from engine.pod import (
    PodSpec,
    PodTotals,
    has_pod_level_resources,
    is_terminal,
    quota_totals,
    read_pod,
)
from engine.quantity import Quantity
from engine.resource_list import add, max_of
from engine.resource_quota.evaluators import (
    CLAIMS,
    CLASS_CLAIMS,
    CLASS_DEVICES,
    CLASS_STORAGE,
    DEVICE_CLASS_REQUEST,
    PODS,
    RESOURCE_CLAIMS,
    SERVICES,
    count_names,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.pod import Container
    from engine.request import GroupVersionResource
    from engine.resource_list import ResourceList

ONE: Final = Quantity.from_int(1)
ZERO: Final = Quantity.from_int(0)
_CHARGED_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_DEVICE_CLASS: Final = DEVICE_CLASS_REQUEST.removeprefix(_REQUESTS)
MUST_SPECIFY: Final = frozenset(
    {
        *("cpu", "memory", "requests.cpu", "requests.memory"),
        *("limits.cpu", "limits.memory"),
    }
)
"""Names that every container must state once a quota bounds them."""
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_CLAIM: Final = "PersistentVolumeClaim"
_ALL_DEVICES: Final = 32  # upstream's limit of devices in one claim


def usage_of(
    obj: Mapping[str, Any],
    resource: GroupVersionResource,
    *,
    now: str | int | None = None,
    spec: PodSpec | None = None,
    version: KubernetesVersion = DEFAULT_VERSION,
) -> dict[str, Quantity]:
    """Compute the usage of a stored object by name, zero amounts included.

    ``now`` is RFC 3339 text or whole seconds since 1970; without it no pod exceeds its grace
    period. ``spec`` is the pod's, where it was read already. Raises DecodeError.
    """
    name = str(resource)
    if name == PODS:
        if is_terminal(obj) or _is_past_grace(obj, now):
            return {"count/pods": ONE}
        # A copy: the fact is shared by all pods with these totals.
        return dict(_running_usage(quota_totals(obj, spec, version)))
    if name == SERVICES:
        return _service_usage(obj)
    if name == CLAIMS:
        return _claim_usage(obj)
    if name == RESOURCE_CLAIMS:
        usage = _resource_claim_usage(obj)
        return {**usage, **_as_extended(usage)} if version.counts_devices_as_extended else usage
    return dict.fromkeys(count_names(resource), ONE)


@once
def _running_usage(totals: PodTotals) -> dict[str, Quantity]:
    return {"count/pods": ONE, "pods": ONE, **_compute_usage(totals.requests, totals.limits)}


def _compute_usage(requests: ResourceList, limits: ResourceList) -> dict[str, Quantity]:
    """Rename requests and limits to the names of quotas; absent amounts stay absent."""
    usage: dict[str, Quantity] = {}
    for name, quantity in requests.items():
        if name in _CHARGED_COMPUTE or is_hugepage(name):
            usage[name] = quantity
            usage[_REQUESTS + name] = quantity
        # Without overcommitment limits equal requests, so that quotas bound only requests.
        elif is_extended_resource(name) or name.startswith(_DEVICE_CLASS):
            usage[_REQUESTS + name] = quantity
    for name in _CHARGED_COMPUTE:
        if name in limits:
            usage[_LIMITS + name] = limits[name]
    return usage


def _is_past_grace(pod: Mapping[str, Any], now: str | int | None) -> bool:
    """Whether a pod's grace period after its deletion is over."""
    metadata = expect_map(pod.get("metadata"), "metadata", "Pod.metadata of type v1.ObjectMeta")
    deletion = read_time(metadata, "deletionTimestamp", "metadata")
    go_field = "ObjectMeta.metadata.deletionGracePeriodSeconds"
    grace = read_integer(metadata, "deletionGracePeriodSeconds", "metadata", go_field)
    if deletion is None or grace is None or now is None:
        return False
    # The timestamp includes the grace period already; upstream adds it once more.
    now_micros = now * MICRO if isinstance(now, int) else parse_time(now, "now")
    return now_micros > deletion + grace * MICRO


def missing_names(
    pod: Mapping[str, Any] | PodSpec, names: Collection[str]
) -> dict[str, list[Container]]:
    """Find containers that do not state bounded names, by name in byte order.

    Containers come before init containers. Zero counts as stated. A pod with resources of its own
    exempts its containers. Raises DecodeError.
    """
    spec = read_pod(pod)
    must_state = sorted(MUST_SPECIFY.intersection(names) - _need_not_state(spec))
    if not must_state:
        return {}
    missing: dict[str, list[Container]] = {}
    for container in spec.all_containers:
        stated = _compute_usage(container.requests, container.limits)
        for name in must_state:
            if name not in stated:
                missing.setdefault(name, []).append(container)
    return {name: missing[name] for name in must_state}


@once
def _need_not_state(spec: PodSpec) -> frozenset[str]:
    """Find the names that every container states, or all where the pod itself has resources."""
    if has_pod_level_resources(spec):
        return MUST_SPECIFY
    stated = [
        _compute_usage(container.requests, container.limits) for container in spec.all_containers
    ]
    return MUST_SPECIFY.intersection(*stated)


def must_specify_text(missing: Mapping[str, list[Container]]) -> str:
    """Word the result of ``missing_names`` as Kubernetes does."""
    lacking = (
        f"{name} for: {','.join(sorted({container.name for container in containers}))}"
        for name, containers in sorted(missing.items())
    )
    return f"must specify {'; '.join(lacking)}"


def _service_usage(service: Mapping[str, Any]) -> dict[str, Quantity]:
    spec = expect_map(service.get("spec"), "spec", "Service.spec of type v1.ServiceSpec")
    ports = expect_objects(
        spec.get("ports"), "spec.ports", "ServiceSpec.spec.ports", "v1.ServicePort"
    )
    service_type = expect_string(
        spec.get("type"), "spec.type", "ServiceSpec.spec.type of type v1.ServiceType"
    )
    is_balanced = service_type == "LoadBalancer"
    node_ports = 0
    if is_balanced or service_type == "NodePort":
        # A load balancer gets a node port for every port unless it declines.
        path = "spec.allocateLoadBalancerNodePorts"
        allocates = spec.get("allocateLoadBalancerNodePorts") if is_balanced else None
        is_declined = allocates is not None and not expect_bool(
            allocates, path, f"ServiceSpec.{path} of type bool"
        )
        node_ports = _given_node_ports(ports) if is_declined else len(ports)
    return {
        "count/services": ONE,
        "services": ONE,
        "services.loadbalancers": ONE if is_balanced else ZERO,
        "services.nodeports": Quantity.from_int(node_ports),
    }


def _given_node_ports(ports: list[Mapping[str, Any]]) -> int:
    go_field = "ServicePort.spec.ports.nodePort"
    numbers = (
        read_integer(port, "nodePort", f"spec.ports[{position}]", go_field)
        for position, port in enumerate(ports)
    )
    return sum(1 for number in numbers if number)


def _claim_usage(claim: Mapping[str, Any]) -> dict[str, Quantity]:
    usage = dict.fromkeys((f"count/{CLAIMS}", CLAIMS), ONE)
    spec = expect_map(claim.get("spec"), "spec", f"{_CLAIM}.spec of type v1.{_CLAIM}Spec")
    storage_class = _storage_class(claim, spec)
    if storage_class:
        usage[storage_class + CLASS_CLAIMS] = ONE
    storage = _claim_storage(claim, spec)
    if storage is not None:
        usage["requests.storage"] = storage
        if storage_class:
            usage[storage_class + CLASS_STORAGE] = storage
    return usage


def _storage_class(claim: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Read the storage class, which an older annotation overrides; empty for none."""
    metadata = expect_map(
        claim.get("metadata"), "metadata", f"{_CLAIM}.metadata of type v1.ObjectMeta"
    )
    path = "metadata.annotations"
    go_type = f"ObjectMeta.{path} of type map[string]string"
    annotations = expect_string_map(metadata.get("annotations"), path, go_type)
    if _CLASS_ANNOTATION in annotations:
        return annotations[_CLASS_ANNOTATION]
    path = "spec.storageClassName"
    return expect_string(spec.get("storageClassName"), path, f"{_CLAIM}Spec.{path} of type string")


def _claim_storage(claim: Mapping[str, Any], spec: Mapping[str, Any]) -> Quantity | None:
    """Compute the storage of a claim: the requested one, or the allocated one if that is more."""
    path = "spec.resources"
    go_type = f"{_CLAIM}Spec.{path} of type v1.VolumeResourceRequirements"
    resources = expect_map(spec.get("resources"), path, go_type)
    path = "spec.resources.requests"
    go_type = f"VolumeResourceRequirements.{path}"
    storage = expect_resource_list(resources.get("requests"), path, go_type).get("storage")
    if storage is None:
        return None
    go_type = f"{_CLAIM}.status of type v1.{_CLAIM}Status"
    status = expect_map(claim.get("status"), "status", go_type)
    path = "status.allocatedResources"
    go_type = f"{_CLAIM}Status.{path}"
    allocated = expect_resource_list(status.get("allocatedResources"), path, go_type).get("storage")
    storage = _whole_bytes(storage)
    if allocated is None:
        return storage
    return max(storage, _whole_bytes(allocated))


def _whole_bytes(quantity: Quantity) -> Quantity:
    """Round up to whole bytes; whole amounts keep their text."""
    rounded = Quantity.from_int(quantity.ceil(), quantity.format)
    return quantity if rounded == quantity else rounded


def _resource_claim_usage(claim: Mapping[str, Any]) -> dict[str, Quantity]:
    spec = expect_map(claim.get("spec"), "spec", "ResourceClaim.spec of type v1.ResourceClaimSpec")
    path = "spec.devices"
    devices = expect_map(
        spec.get("devices"), path, f"ResourceClaimSpec.{path} of type v1.DeviceClaim"
    )
    usage: dict[str, Quantity] = {f"count/{RESOURCE_CLAIMS}": ONE}
    path = "spec.devices.requests"
    device_requests = expect_objects(
        devices.get("requests"), path, f"DeviceClaim.{path}", "v1.DeviceRequest"
    )
    for position, request in enumerate(device_requests):
        usage = add(usage, _device_usage(request, f"{path}[{position}]", path))
    return usage


def _as_extended(usage: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Name the devices of each class as the extended resource by which pods ask for them."""
    return {
        DEVICE_CLASS_REQUEST + name.removesuffix(CLASS_DEVICES): number
        for name, number in usage.items()
        if name.endswith(CLASS_DEVICES) and name != CLASS_DEVICES and not number.is_zero
    }


def _device_usage(request: Mapping[str, Any], path: str, go_path: str) -> dict[str, Quantity]:
    """Count the devices of one request; with alternatives the maximum for each class."""
    alternatives = expect_objects(
        request.get("firstAvailable"),
        f"{path}.firstAvailable",
        f"DeviceRequest.{go_path}.firstAvailable",
        "v1.DeviceSubRequest",
    )
    most_devices: dict[str, Quantity] = {}
    for position, alternative in enumerate(alternatives):
        device_path = f"{path}.firstAvailable[{position}]"
        go_field = f"DeviceSubRequest.{go_path}.firstAvailable"
        most_devices = max_of(most_devices, _count_devices(alternative, device_path, go_field))
    if alternatives or request.get("exactly") is None:
        return most_devices
    go_field = f"DeviceRequest.{go_path}.exactly of type v1.ExactDeviceRequest"
    exactly = expect_map(request["exactly"], f"{path}.exactly", go_field)
    return _count_devices(exactly, f"{path}.exactly", f"ExactDeviceRequest.{go_path}.exactly")


def _count_devices(asked: Mapping[str, Any], path: str, go_field: str) -> dict[str, Quantity]:
    """Count devices of one class: a number (1 by default), or the limit for all."""
    places = {
        "deviceClassName": f"{go_field}.deviceClassName of type string",
        "allocationMode": f"{go_field}.allocationMode of type v1.DeviceAllocationMode",
    }
    name, mode = (
        expect_string(asked.get(key), f"{path}.{key}", go_type) for key, go_type in places.items()
    )
    if mode == "All":
        return {name + CLASS_DEVICES: Quantity.from_int(_ALL_DEVICES)}
    if mode not in ("", "ExactCount"):
        return {}  # upstream counts nothing for a mode of a newer release
    count = read_integer(asked, "count", path, f"{go_field}.count")
    # Go cannot distinguish zero from an absent count, which means one.
    return {name + CLASS_DEVICES: Quantity.from_int(count or 1)}
