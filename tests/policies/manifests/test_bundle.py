"""Files as a whole: which objects they hold, what is refused, and where."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from policies.manifests.bundle import Bundle, read_bundle
from policies.manifests.documents import ManifestError
from policies.manifests.sources import Source, read_sources

QUOTA = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: 1}}\n"
RANGE = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec:\n  limits:\n"
ADMISSION = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
POLICY = "apiVersion: policy.gatehouse.dev/v1alpha1\nkind: MetadataPolicy\nmetadata: {name: m}\n"
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: c}\n"


def bundle(*texts: str, **options: Any) -> Bundle:
    sources = [Source(f"{i}.yaml", text) for i, text in enumerate(texts)]
    return read_bundle(sources, **options)


def problems(*texts: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        bundle(*texts)
    return [str(problem) for problem in caught.value.problems]


def test_kinds_come_in_the_order_in_which_they_can_be_written() -> None:
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
    found = bundle(f"{QUOTA}---\n{CLASS}value: 5\n", space)
    assert [w.item.kind for w in found.objects] == ["Namespace", "PriorityClass", "ResourceQuota"]


def test_namespace_is_that_of_the_command_unless_the_object_says_so() -> None:
    said = QUOTA.replace("name: q", "name: r, namespace: web")
    keys = [w.key for w in bundle(QUOTA, said, namespace="shop").objects]
    assert keys == [("ResourceQuota", "shop", "q"), ("ResourceQuota", "web", "r")]


def test_what_servers_and_clients_add_is_left_out() -> None:
    text = QUOTA.replace(
        "{name: q}",
        "{name: q, uid: u, resourceVersion: '1', managedFields: [{}], creationTimestamp: null,"
        " annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}",
    )
    (wanted,) = bundle(f"{text}status: {{used: {{pods: 1}}}}\n").objects
    assert wanted.manifest["metadata"] == {"name": "q", "namespace": "default"}
    assert wanted.manifest["status"] == {"used": {"pods": "1"}}


@pytest.mark.parametrize(
    ("status", "kept"), [("Terminating", {"phase": "Terminating"}), ("Active", None)]
)
def test_of_a_namespace_only_its_end_is_kept(status: str, kept: object) -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web, namespace: x}\nspec: {a: 1}\n"
    (wanted,) = bundle(f"{text}status: {{phase: {status}}}\n").objects
    assert wanted.manifest.get("status") == kept
    assert wanted.manifest["metadata"] == {"name": "web"}
    assert "spec" not in wanted.manifest


def test_lists_are_opened_and_their_entries_have_places() -> None:
    inner = "  - {apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {x: 1}}}\n"
    (found,) = {p.partition(": Invalid")[0] for p in problems(f"kind: List\nitems:\n{inner}")}
    assert found == "0.yaml:3:78: items[0].spec.hard[x]"


def test_entries_of_a_typed_list_need_no_kind_and_lists_may_be_nested() -> None:
    text = (
        "kind: List\nitems:\n- kind: ResourceQuotaList\n  items:\n"
        "  - {metadata: {name: q}, spec: {hard: {pods: 1}}}\n  - {kind: Pod}\n- kind: List\n"
    )
    found = bundle(text)
    assert [w.manifest["kind"] for w in found.objects] == ["ResourceQuota"]
    assert found.others == ("Pod ",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: List\nitems: 5\n", "0.yaml:2:1: items: must be a list (begin entries with a dash)"),
        ("kind: List\nitems: [5]\n", "0.yaml:2:9: items[0]: must be a map with apiVersion"),
        ("- a\n", "0.yaml:1:1: must be a map with apiVersion and kind (is there a dash too many?)"),
        ("a: b\n", "0.yaml:1:1: kind: Required value"),
        ("kind: Limitrange\n", 'unknown kind "Limitrange" (did you mean LimitRange?)'),
        (QUOTA.replace("v1", "v2"), 'in version "v2" (write v1)'),
        (
            QUOTA.replace("hard", "hrad"),
            'unknown field "hrad" (did you mean hard? known: hard, scopes, scopeSelector)',
        ),
        (
            QUOTA.replace("pods: 1", "pods: yes"),
            "0.yaml:4:15: spec.hard[pods]: Invalid value: true: quantities must",
        ),
        (QUOTA.replace("pods: 1", "pods: 1e99"), "an amount beyond all bounds"),
        (QUOTA.replace("name: q", "labels: {a: no}"), "metadata.labels[a]: must be text, not fal"),
        (QUOTA.replace("name: q", "generateName: q"), "metadata.name: Required value: give it"),
        (QUOTA.replace("name: q", "name: q, namespace: A"), "metadata.namespace: Invalid value"),
        (QUOTA.replace("name: q", "name: q, labels: {a b: c}"), "metadata.labels: Invalid value"),
        (QUOTA.replace("1}}", '1}, scopes: ["\\0"]}'), "NUL or a lone surrogate"),
        (f"{QUOTA}status: {{used: 5}}\n", "status.used: json: cannot unmarshal number into Go"),
        (f"{RANGE}  - {{type: Pod, min: {{cpu: 2}}, max: {{cpu: 1}}}}\n", "min value 2 is greater"),
        (
            f"{RANGE}  - {{type: Pod, defaultRequest: {{}}, defaultRequests: {{}}}}\n",
            "spec.limits[0].defaultRequests: defaultRequests is an old name of defaultRequest",
        ),
        (
            f"{POLICY}spec: {{rules: [{{policyAction: {{}}, PolicyAction: {{}}}}]}}\n",
            "PolicyAction is an old name of policyAction (give only one)",
        ),
        (f"{CLASS}value: 1.5\n", "value: must be a whole number, not the number 1.5"),
        (f"{CLASS}value: 2000000000\n", "value: Forbidden: maximum allowed value"),
        (f"{CLASS}preemptionPolicy: Maybe\n", "preemptionPolicy: Unsupported value"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}\n", "metadata.name: Invalid"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {}\n", "metadata.name: Required value"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: 5\n", "metadata: must be a map, not the num"),
        (
            QUOTA.replace("name: q", "name: q, annotations: {policy.gatehouse.dev/enforcement: x}"),
            "must be one of: enforce, warn, audit",
        ),
    ],
)
def test_error_is_told_with_its_place_and_the_way_out(text: str, expected: str) -> None:
    assert expected in "\n".join(problems(text))


def test_seeds_names_are_read() -> None:
    text = f"{RANGE}  - {{type: Pod, limitRequestRatio: {{cpu: 2}}}}\n"
    assert [w.item.title for w in bundle(text).objects] == ["LimitRange l"]


def test_all_problems_of_all_files_are_told_at_once() -> None:
    found = problems("a: [", "kind: Lists\n", QUOTA.replace("pods", "pds"))
    assert [p.partition(":")[0] for p in found] == ["0.yaml", "1.yaml", "2.yaml", "2.yaml"]


def test_the_same_object_twice_is_refused() -> None:
    assert problems(QUOTA, QUOTA) == [
        "1.yaml:3:12: metadata.name: the same object as at 0.yaml:3 (keep one)"
    ]


PLUGIN = (
    f"{ADMISSION}plugins:\n- name: Other\n- 5\n- name: ResourceQuota\n  configuration:\n"
    "    apiVersion: apiserver.config.k8s.io/v1\n    kind: ResourceQuotaConfiguration\n"
    "    limitedResources:\n    - {resource: pods, matchContains: [cpu]}\n"
)


def test_limited_resources_are_found() -> None:
    assert bundle(PLUGIN).limited_resources == ({"resource": "pods", "matchContains": ["cpu"]},)
    assert bundle(QUOTA).limited_resources is None
    assert bundle(f"{ADMISSION}plugins: [{{name: ResourceQuota}}]").limited_resources == ()
    alone = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n"
    assert bundle(alone).limited_resources == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLUGIN.replace("resource: pods, ", ""), "limitedResources[0].resource: Required value"),
        (PLUGIN.replace("matchContains", "matchContain"), "did you mean matchContains?"),
        (PLUGIN.replace("    kind: ResourceQuotaC", "    kind: C"), 'no kind "Configuration" is'),
        (PLUGIN.replace("  configuration:", "  path: x\n  configuration:"), "a second file is not"),
        (f"{PLUGIN}---\n{PLUGIN}", "a second configuration of the quota plugin (keep one)"),
        (PLUGIN.replace("config.k8s.io/v1", "config.k8s.io/v1alpha1", 1), "in version"),
        (f"{ADMISSION}plugins: [{{name: ResourceQuota, kind: x}}]", "indent it under configurat"),
    ],
)
def test_configuration_is_checked(text: str, expected: str) -> None:
    assert expected in "\n".join(problems(text))


def test_files_of_a_mounted_config_map_are_read_once(tmp_path: Path) -> None:
    stamped = tmp_path / "..2026_01_02_03_04_05.123"
    stamped.mkdir()
    (stamped / "a.yaml").write_text("kind: a", encoding="utf-8")
    (tmp_path / "..data").symlink_to(stamped.name)
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    assert [source.name for source in read_sources([str(tmp_path)])] == [str(tmp_path / "a.yaml")]


def test_folders_are_read_deep_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/z.json", "a.yml", "c.txt", "b.yaml"):
        (tmp_path / name).write_text("{}")
    names = [Path(s.name).name for s in read_sources([str(tmp_path)])]
    assert names == ["a.yml", "b.yaml", "z.json"]


def test_files_that_cannot_be_read_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x: 1\ny: \xff")
    (tmp_path / "b").write_bytes(b" " * (8 * 1024 * 1024 + 1))
    with pytest.raises(ManifestError) as caught:
        read_sources([str(tmp_path / name) for name in ("a", "b", "c")])
    found = [str(p).replace(f"{tmp_path}/", "") for p in caught.value.problems]
    assert found == [
        "a:2:4: not UTF-8 (save it as UTF-8)",
        "b: larger than 8 MiB",
        "c: no such file or directory",
    ]


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO("\ufeff{}".encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read_sources(["-"]) == [Source("<stdin>", "{}")]
