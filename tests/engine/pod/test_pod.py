"""Pods: what is read, what API defaulting fills in, what they add up to, what is refused."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest

from engine.errors import DecodeError, FieldPath
from engine.patch import PatchBuilder
from engine.pod import (
    default_claim,
    default_pod,
    has_pod_level_resources,
    is_terminal,
    limit_range_totals,
    quota_totals,
    read_pod,
    validate_requirements,
    validate_resources,
)
from engine.pod.read import read_requirements
from engine.resource_list import to_json
from engine.wire import RawNumber, loads
from tests.builders import claim, container, pod

Manifest = dict[str, Any]


def with_spec(manifest: Manifest, **spec: Any) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], **spec}}


def sidecar(name: str, **resources: Manifest) -> Manifest:
    return {**container(name, **resources), "restartPolicy": "Always"}


# ---- reading


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"spec": None}, id="null spec"),
        pytest.param({"spec": {"containers": None}}, id="null containers"),
        pytest.param({"spec": {"containers": [], "overhead": None}}, id="no containers"),
    ],
)
def test_a_pod_may_lack_everything(manifest: Manifest) -> None:
    assert read_pod(manifest).all_containers == ()
    assert to_json(quota_totals(default_pod(manifest)).requests) == {}


def test_a_null_container_is_an_empty_one() -> None:
    spec = read_pod({"spec": {"containers": [None, {"name": "b", "resources": None}]}})
    assert [(c.name, c.path) for c in spec.containers] == [
        ("", "spec.containers[0]"),
        ("b", "spec.containers[1]"),
    ]


def test_a_null_quantity_is_zero_and_stays() -> None:
    requests, limits = read_requirements(
        container(requests={"cpu": None})["resources"], "resources", "resources"
    )
    assert to_json(requests) == {"cpu": "0"}
    assert limits == {}


GO = "json: cannot unmarshal {} into Go struct field {}"
SHAPES = [
    ({"spec": "x"}, "spec", "string", "Pod.spec of type v1.PodSpec"),
    (
        {"spec": {"containers": {}}},
        "spec.containers",
        "object",
        "PodSpec.spec.containers of type []v1.Container",
    ),
    (
        {"spec": {"initContainers": ["x"]}},
        "spec.initContainers[0]",
        "string",
        "PodSpec.spec.initContainers of type v1.Container",
    ),
    (
        {"spec": {"containers": [{"name": RawNumber("1")}]}},
        "spec.containers[0].name",
        "number",
        "Container.spec.containers.name of type string",
    ),
    (
        {"spec": {"initContainers": [{"restartPolicy": True}]}},
        "spec.initContainers[0].restartPolicy",
        "bool",
        "Container.spec.initContainers.restartPolicy of type v1.ContainerRestartPolicy",
    ),
    (
        {"spec": {"containers": [{"resources": []}]}},
        "spec.containers[0].resources",
        "array",
        "Container.spec.containers.resources of type v1.ResourceRequirements",
    ),
    (
        {"spec": {"containers": [{"resources": {"limits": "x"}}]}},
        "spec.containers[0].resources.limits",
        "string",
        "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
    ),
    (
        {"spec": {"resources": "x"}},
        "spec.resources",
        "string",
        "PodSpec.spec.resources of type v1.ResourceRequirements",
    ),
    (
        {"spec": {"overhead": ["x"]}},
        "spec.overhead",
        "array",
        "PodSpec.spec.overhead of type v1.ResourceList",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "field", "kind", "go_field"), SHAPES, ids=[case[1] for case in SHAPES]
)
def test_wrong_shapes_are_told_in_gos_words(
    manifest: Manifest, field: str, kind: str, go_field: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        read_pod(manifest)
    assert (caught.value.field, caught.value.detail) == (field, GO.format(kind, go_field))


DEFAULTED = [case for case in SHAPES if "name" not in case[1] and "Policy" not in case[1]]


@pytest.mark.parametrize(
    ("manifest", "field", "kind", "go_field"), DEFAULTED, ids=[case[1] for case in DEFAULTED]
)
def test_defaulting_tells_wrong_shapes_alike(
    manifest: Manifest, field: str, kind: str, go_field: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        default_pod(manifest)
    assert (caught.value.field, caught.value.detail) == (field, GO.format(kind, go_field))


@pytest.mark.parametrize("read", [read_pod, default_pod])
def test_the_first_bad_quantity_of_the_document_is_told(read: Any) -> None:
    limits_first = {"limits": {"cpu": "1", "memory": "1K"}, "requests": {"cpu": "one"}}
    with pytest.raises(DecodeError) as caught:
        read({"spec": {"containers": [{"resources": limits_first}]}})
    assert caught.value.field == "spec.containers[0].resources.limits[memory]"
    assert caught.value.detail == "unable to parse quantity's suffix"


def test_a_thousand_levels_of_nesting_are_just_a_wrong_shape() -> None:
    deep = loads('{"spec": {"containers": ' + "[" * 5000 + "]" * 5000 + "}}")
    with pytest.raises(DecodeError, match="cannot unmarshal array"):
        read_pod(deep)


# ---- defaulting


def test_requests_are_copied_from_limits_of_both_kinds_of_containers() -> None:
    limited = container("a", limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "0"})
    defaulted = default_pod(
        with_spec(pod(limited), initContainers=[container("i", limits={"cpu": "1"})])
    )
    assert defaulted["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "0",
        "memory": "1Gi",
    }
    assert defaulted["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_ephemeral_containers_are_only_rounded() -> None:
    ephemeral = container("e", limits={"cpu": "1u"})
    defaulted = default_pod(with_spec(pod(), ephemeralContainers=[ephemeral]))
    resources = defaulted["spec"]["ephemeralContainers"][0]["resources"]
    assert resources == {"limits": {"cpu": "1m"}}


def test_every_quantity_is_rounded_up_and_written_as_kubernetes_prints_it() -> None:
    status = {
        "containerStatuses": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": "1u"}},
                "allocatedResources": {"cpu": "2u"},
            },
            {"name": "d"},
        ],
        "initContainerStatuses": None,
    }
    odd = container(requests={"cpu": RawNumber("0.1"), "memory": None, "x/y": "1100u"})
    manifest = with_spec(pod(odd), overhead={"cpu": "100u"}) | {"status": status}
    defaulted = default_pod(manifest)
    resources = defaulted["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "100m", "memory": "0", "x/y": "2m"}
    assert type(resources["requests"]["cpu"]) is str
    assert defaulted["spec"]["overhead"] == {"cpu": "1m"}
    first, second = defaulted["status"]["containerStatuses"]
    assert first["resources"] == {"requests": {"cpu": "1m"}}
    assert first["allocatedResources"] == {"cpu": "1m"}
    assert second == {"name": "d"}


POD_LEVEL = [
    pytest.param({"limits": {"cpu": "2"}}, {"cpu": "300m"}, id="the containers' total"),
    pytest.param(
        {"limits": {"memory": "1Gi"}}, {"cpu": "300m", "memory": "1Gi"}, id="or else the limit"
    ),
    pytest.param(
        {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {"cpu": "1"}, id="its own if it has one"
    ),
    pytest.param(
        {"limits": {"hugepages-2Mi": "2Mi"}},
        {"cpu": "300m", "hugepages-2Mi": "2Mi"},
        id="huge pages copy the limit",
    ),
    pytest.param({"requests": {"memory": "1"}}, {"memory": "1"}, id="nothing without limits"),
    pytest.param({"limits": {}}, None, id="nor with empty ones"),
]


@pytest.mark.parametrize(("own", "requests"), POD_LEVEL)
def test_requests_of_the_pod_itself(own: Manifest, requests: Manifest | None) -> None:
    containers = pod(
        container("a", requests={"cpu": "100m"}), container("b", limits={"cpu": "200m"})
    )
    manifest = with_spec(
        containers, resources=own, initContainers=[container("i", limits={"vendor/x": "1"})]
    )
    assert default_pod(manifest)["spec"]["resources"].get("requests") == requests


PAGES = {"hugepages-2Mi": "6Mi"}
POD_LEVEL_PAGES = [
    pytest.param(
        {"limits": {"cpu": "2"}},
        {"limits": {"cpu": "2", **PAGES}, "requests": {"cpu": "2", **PAGES}},
        id="the containers' total",
    ),
    pytest.param(
        {"requests": {"cpu": "1"}},
        {"requests": {"cpu": "1", **PAGES}, "limits": PAGES},
        id="beside requests alone",
    ),
    pytest.param(
        {"requests": {"hugepages-2Mi": "8Mi"}},
        {"requests": {"hugepages-2Mi": "8Mi"}},
        id="no limit where there is a request",
    ),
    pytest.param(
        {"limits": {"hugepages-2Mi": "8Mi"}},
        {"limits": {"hugepages-2Mi": "8Mi"}, "requests": {"hugepages-2Mi": "8Mi"}},
        id="nor where there is a limit",
    ),
    pytest.param({"limits": {}}, {"limits": {}}, id="nor where nothing else is named"),
]


@pytest.mark.parametrize(("own", "expected"), POD_LEVEL_PAGES)
def test_huge_pages_of_the_pod_itself(own: Manifest, expected: Manifest) -> None:
    containers = pod(
        container("a", limits={"hugepages-2Mi": "4Mi"}),
        container("b", limits={"hugepages-2Mi": "2048Ki", "x/y": "1"}),
    )
    manifest = with_spec(containers, resources=own)
    defaulted = default_pod(manifest)["spec"]["resources"]
    assert defaulted == expected
    again = default_pod(with_spec(containers, resources=defaulted))
    assert again["spec"]["resources"] == expected


def test_the_total_is_summed_before_it_is_rounded() -> None:
    small = {"requests": {"cpu": "100u"}}
    manifest = with_spec(
        pod(container("a", **small), container("b", **small)), resources={"limits": {"cpu": "1"}}
    )
    assert default_pod(manifest)["spec"]["resources"]["requests"] == {"cpu": "1m"}


WHOLE = with_spec(
    pod(container("a", limits={"cpu": "100u", "memory": RawNumber("1")}, requests={"memory": "1"})),
    initContainers=[
        container("i", limits={"cpu": "1"}),
        container("j", requests=None, limits={"cpu": "1"}),
    ],
    resources={"limits": {"cpu": "1001u"}},
    overhead={"cpu": "1u"},
)


def test_defaulting_twice_is_defaulting_once() -> None:
    once = default_pod(WHOLE)
    assert default_pod(once) == once
    assert default_pod(once)["spec"] is once["spec"]


def test_the_given_pod_stays_and_unchanged_parts_are_shared() -> None:
    before = copy.deepcopy(WHOLE)
    plain = container("z")
    manifest = with_spec(WHOLE, containers=[*WHOLE["spec"]["containers"], plain])
    defaulted = default_pod(manifest)
    assert before == WHOLE
    assert defaulted["spec"]["containers"][1] is plain
    assert defaulted["metadata"] is WHOLE["metadata"]


def test_what_is_recorded_patches_the_given_pod() -> None:
    builder = PatchBuilder(WHOLE)
    defaulted = default_pod(WHOLE, builder.record)
    patched = jsonpatch.apply_patch(WHOLE, [op.to_json() for op in builder.operations])
    assert default_pod(patched) == defaulted
    assert "/spec/initContainers/0/resources/requests" in [op.path for op in builder.operations]


def test_a_spelling_is_not_recorded() -> None:
    builder = PatchBuilder({})
    default_pod(pod(container(requests={"cpu": RawNumber("0.5")})), builder.record)
    assert builder.operations == []


def test_claims_are_rounded_everywhere() -> None:
    manifest = claim("1u") | {"status": {"capacity": {"storage": "1u"}, "phase": "Bound"}}
    builder = PatchBuilder(manifest)
    defaulted = default_claim(manifest, builder.record)
    assert defaulted["spec"]["resources"]["requests"] == {"storage": "1m"}
    assert defaulted["status"] == {"capacity": {"storage": "1m"}, "phase": "Bound"}
    assert [op.path for op in builder.operations] == [
        "/spec/resources/requests/storage",
        "/status/capacity/storage",
    ]


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        pytest.param({"spec": []}, "spec", id="spec"),
        pytest.param({"spec": {"resources": "x"}}, "spec.resources", id="resources"),
        pytest.param(
            {"spec": {"resources": {"requests": {"storage": "x"}}}},
            "spec.resources.requests[storage]",
            id="quantity",
        ),
        pytest.param({"status": {"capacity": "x"}}, "status.capacity", id="capacity"),
    ],
)
def test_claims_of_a_wrong_shape_are_refused(manifest: Manifest, field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        default_claim(manifest)
    assert caught.value.field == field


def test_a_claim_may_lack_everything() -> None:
    assert default_claim({}) == {}


# ---- totals


def test_containers_are_summed_and_keep_the_format_of_the_first() -> None:
    spec = read_pod(
        pod(
            container("a", requests={"memory": "30Mi"}), container("b", requests={"memory": "30Mi"})
        )
    )
    assert to_json(limit_range_totals(spec).requests) == {"memory": "60Mi"}
    assert limit_range_totals(spec).limits == {}


def test_init_containers_run_one_by_one_beside_the_sidecars_before_them() -> None:
    manifest = with_spec(
        pod(container("a", requests={"cpu": "1"})),
        initContainers=[
            container("before", requests={"cpu": "3"}),
            sidecar("side", requests={"cpu": "1"}),
            container("after", requests={"cpu": "2500m"}),
        ],
    )
    assert to_json(limit_range_totals(read_pod(manifest)).requests) == {"cpu": "3500m"}


def test_sidecars_add_to_containers() -> None:
    manifest = with_spec(
        pod(container("a", requests={"cpu": "1"})),
        initContainers=[sidecar("s", requests={"cpu": "1"}), sidecar("t", requests={"cpu": "2"})],
    )
    assert to_json(limit_range_totals(read_pod(manifest)).requests) == {"cpu": "4"}


def test_of_equal_amounts_the_containers_text_stays() -> None:
    manifest = with_spec(
        pod(container("a", requests={"memory": "1Gi"})),
        initContainers=[container("i", requests={"memory": "1024Mi"})],
    )
    assert to_json(limit_range_totals(read_pod(manifest)).requests) == {"memory": "1Gi"}


OWN = {"requests": {"cpu": "5", "hugepages-2Mi": "8Mi", "x/y": "1"}, "limits": {"memory": "9Gi"}}


def test_the_pods_own_amounts_stand_in_for_the_sum() -> None:
    manifest = with_spec(pod(container("a", requests={"cpu": "1"})), resources=OWN)
    assert to_json(limit_range_totals(read_pod(manifest)).requests) == {"cpu": "5"}
    assert to_json(limit_range_totals(read_pod(manifest)).limits) == {"memory": "9Gi"}
    assert to_json(quota_totals(manifest).requests) == {"cpu": "5", "hugepages-2Mi": "8Mi"}


def test_quotas_count_overhead_and_limit_ranges_do_not() -> None:
    limits = {"cpu": "1", "memory": "0"}
    manifest = with_spec(
        pod(container("a", limits=limits)), overhead={"cpu": "250m", "memory": "1Mi"}
    )
    totals = quota_totals(manifest)
    assert to_json(totals.requests) == {"cpu": "250m", "memory": "1Mi"}
    assert to_json(totals.limits) == {"cpu": "1250m", "memory": "0"}
    assert to_json(limit_range_totals(read_pod(manifest)).limits) == {"cpu": "1", "memory": "0"}


def resizing(reason: str = "", **status: Any) -> Manifest:
    """A pod of one container and one sidecar, each of 1 cpu, that report other resources."""
    one = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    reported = {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}
    conditions = [{"type": "Ready"}, {"type": "PodResizePending", "reason": reason}]
    return with_spec(
        pod(container("a", **one)), initContainers=[sidecar("s", **one), container("i")]
    ) | {
        "status": {
            "containerStatuses": [{"name": "a", **reported}, {"name": "gone", **reported}],
            "initContainerStatuses": [{"name": "i"}, {"name": "s", **reported, **status}],
            "conditions": conditions if reason else None,
        }
    }


@pytest.mark.parametrize(
    ("manifest", "requests", "limits"),
    [
        pytest.param(resizing(), "4", "6", id="status above spec"),
        pytest.param(resizing(allocatedResources={"cpu": "7"}), "9", "6", id="allocated most"),
        pytest.param(resizing("Deferred"), "4", "6", id="deferred still counts the spec"),
        pytest.param(
            resizing("Infeasible", resources={"requests": {"cpu": "100m"}, "limits": {}}),
            "2100m",
            "3",
            id="infeasible leaves the spec out",
        ),
    ],
)
def test_quotas_count_the_larger_of_spec_and_status(
    manifest: Manifest, requests: str, limits: str
) -> None:
    totals = quota_totals(manifest)
    assert to_json(totals.requests) == {"cpu": requests}
    assert to_json(totals.limits) == {"cpu": limits}
    assert to_json(limit_range_totals(read_pod(manifest)).requests) == {"cpu": "2"}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "Pending"}, id="no statuses"),
        pytest.param({"containerStatuses": [{"name": "b", "resources": {}}]}, id="of others"),
    ],
)
def test_a_status_without_resources_changes_nothing(status: Manifest) -> None:
    manifest = pod(container("a", requests={"cpu": "1"})) | {"status": status}
    assert to_json(quota_totals(manifest).requests) == {"cpu": "1"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param({"requests": {"cpu": "1"}}, True, id="cpu"),
        pytest.param({"limits": {"hugepages-2Mi": "1"}}, True, id="huge pages"),
        pytest.param({"limits": {"x/y": "1"}}, False, id="others"),
        pytest.param({}, False, id="empty"),
    ],
)
def test_pod_level_resources_are_recognised(own: Manifest, *, expected: bool) -> None:
    assert has_pod_level_resources(read_pod(with_spec(pod(), resources=own))) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Failed"}, True),
        ({"phase": "Succeeded"}, True),
        ({"phase": "Running"}, False),
        (None, False),
        ("Failed", False),
    ],
)
def test_terminal_pods_have_ended(status: Any, *, expected: bool) -> None:
    assert is_terminal({"status": status}) is expected


# ---- validation


def refusals(manifest: Manifest) -> list[str]:
    return [str(error) for error in validate_resources(manifest)]


def test_a_default_limit_below_the_request_is_refused() -> None:
    manifest = pod(container("c", requests={"cpu": "600m"}, limits={"cpu": "500m"}))
    assert refusals(manifest) == [
        (
            'spec.containers[0].resources.requests: Invalid value: "600m": '
            "must be less than or equal to cpu limit of 500m"
        )
    ]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(
            {"requests": {"cpu": "1150m"}},
            'spec.resources.requests[cpu]: Invalid value: "1150m": '
            "must be greater than or equal to aggregate container requests of 1350m",
            id="request below the total",
        ),
        pytest.param(
            {"limits": {"cpu": "400m"}, "requests": {"cpu": "350m"}},
            'spec.resources.containers[0][cpu].limits: Invalid value: "500m": '
            "must be less than or equal to pod limits of 400m",
            id="limit below a container's",
        ),
        pytest.param(
            {"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"hugepages-2Mi": "2Mi"}},
            'spec.resources.limits[hugepages-2Mi]: Invalid value: "2Mi": '
            "must be greater than or equal to aggregate container limits of 4Mi",
            id="huge pages below the total",
        ),
    ],
)
def test_the_pods_own_resources_must_hold_the_containers(own: Manifest, expected: str) -> None:
    limits = {"cpu": "500m", "memory": "1Gi", "hugepages-2Mi": "4Mi"}
    requests = {"cpu": "1350m" if "limits" not in own else "350m", "x/y": "1"}
    containers = pod(container("c", requests=requests, limits=limits))
    found = refusals(with_spec(containers, resources=own))
    assert expected in found


@pytest.mark.parametrize(
    ("amounts", "text", "shown"),
    [
        pytest.param(("500Mi", "1000M"), "1524288000", "1524288000", id="binary first"),
        pytest.param(("1000M", "500Mi"), "1524288k", "1524288k", id="decimal first"),
        pytest.param(("1Gi", "1Gi"), "2Gi", "2Gi", id="in whole KiB"),
    ],
)
def test_a_sum_that_was_filled_in_keeps_its_format(
    amounts: tuple[str, str], text: str, shown: str
) -> None:
    first, second = (container(f"c{n}", requests={"memory": m}) for n, m in enumerate(amounts))
    manifest = with_spec(pod(first, second), resources={"limits": {"memory": "512Mi"}})
    defaulted = default_pod(copy.deepcopy(default_pod(manifest)))
    assert defaulted["spec"]["resources"]["requests"] == {"memory": text}
    assert f'"{shown}": must be less than or equal to memory limit' in refusals(defaulted)[0]
    assert str(limit_range_totals(read_pod(defaulted)).requests["memory"]) == shown


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            {"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"hugepages-2Mi": "2Mi"}},
            ["Forbidden: HugePages require cpu or memory"],
            id="huge pages alone",
        ),
        pytest.param(
            {"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}},
            ['Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi'],
            id="part of a page",
        ),
        pytest.param(
            {"limits": {"cpu": "1", "hugepages-2Q": "2"}},
            ['Invalid value: "2": 2 is not positive integer multiple of hugepages-2Q'],
            id="a page size that is none",
        ),
        pytest.param(
            {"limits": {"cpu": "1", "hugepages-0": "2"}},
            ['Invalid value: "2": 2 is not positive integer multiple of hugepages-0'],
            id="pages of nothing",
        ),
        pytest.param(
            {"requests": {"requests.x/y": "1"}, "limits": {"requests.x/y": "1"}},
            ['Invalid value: "requests.x/y": doesn\'t follow extended resource name standard'] * 2,
            id="extended name",
        ),
        pytest.param({"limits": {"a.kubernetes.io/b": "1500m"}}, [], id="native with a prefix"),
        pytest.param(
            {"limits": {"disk": "1"}},
            [
                'Invalid value: "disk": must be a standard resource type or fully qualified',
                'Invalid value: "disk": must be a standard resource for containers',
            ],
            id="unknown bare name",
        ),
        pytest.param(
            {"limits": {"x/y": "-1500m"}, "requests": {"x/y": "1"}},
            [
                'Invalid value: "-1500m": must be greater than or equal to 0',
                'Invalid value: "-1500m": must be an integer',
                'Invalid value: "1": must be equal to x/y limit of -1500m',
            ],
            id="negative part of a counted thing",
        ),
        pytest.param(
            {"requests": {"x/y": "1"}},
            ["Required value: Limit must be set for non overcommitable resources"],
            id="no limit for what cannot be overcommitted",
        ),
    ],
)
def test_requirements_beyond_the_vectors(resources: Manifest, expected: list[str]) -> None:
    requests, limits = read_requirements(resources, "resources", "resources")
    errors = validate_requirements(requests, limits, FieldPath("r"))
    assert [error.message for error in errors] == expected
