"""Public manifests: what Kubernetes accepts comes out equal, what it refuses is refused alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.limit_range import decode_limit_range
from engine.resource_quota import decode_resource_quota
from policies.manifests.bundle import Bundle, read_bundle
from policies.manifests.documents import ManifestError
from policies.manifests.render import render_manifests
from policies.manifests.sources import Source, read_sources

SHARED = Path(__file__).parents[4] / "shared"
CORPUS, VECTORS = SHARED / "corpus", SHARED / "vectors"
DECODERS: dict[str, Any] = {
    "LimitRange": decode_limit_range,
    "ResourceQuota": decode_resource_quota,
}
# kubectl refuses unknown fields (spec.containers, spec.limits) that a server alone would drop.
STRICT = {
    "resourcequota/BARADAMISHRA__k8s__limits-memory-pod.yaml doc 0",
    "resourcequota/stacksimplify__aws-eks-kubernetes-masterclass__README.yaml doc 0",
}
OLD_VERSION = "scheduling.k8s.io/v1beta1"

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="../shared/corpus is not there")


def judged() -> list[dict[str, Any]]:
    """Manifests of the corpus, and what a server said of each."""
    paths = (VECTORS / f"corpus_{kind}_oracle.json" for kind in ("limitrange", "quota"))
    return [case for path in paths if path.exists() for case in json.loads(path.read_text())]


def of_verdict(*, valid: bool) -> Any:
    """Judged manifests that were accepted, or were not."""
    found = [
        case
        for case in judged()
        if bool(case["expected"].get("valid") and case["name"] not in STRICT) is valid
    ]
    return pytest.mark.parametrize("case", found, ids=[case["name"] for case in found])


def read(text: str) -> Bundle:
    return read_bundle([Source("case", text)])


def decoded(bundle: Bundle) -> list[Any]:
    return [DECODERS[w.item.kind](w.manifest) for w in bundle.objects if w.item.kind in DECODERS]


@of_verdict(valid=True)
def test_accepted_object_is_read_and_written_equal(case: dict[str, Any]) -> None:
    bundle = read(json.dumps(case["manifest"]))
    text = render_manifests(w.manifest for w in bundle.objects)
    again = read(text)
    assert decoded(again) == decoded(bundle)
    assert render_manifests(w.manifest for w in again.objects) == text
    normalized = case["expected"]["normalized"]
    assert decoded(bundle) == [DECODERS[normalized["kind"]](normalized)]


@of_verdict(valid=False)
def test_refused_object_is_refused_at_the_same_fields(case: dict[str, Any]) -> None:
    with pytest.raises(ManifestError) as caught:
        read(json.dumps(case["manifest"]))
    if case["expected"]["decodes"] and case["name"] not in STRICT:
        found = {problem.field for problem in caught.value.problems}
        assert found == set(case["expected"]["errorFields"])


VERDICTS: dict[str, list[bool]] = {}
for known in judged():
    file = known["name"].rsplit(" doc ", 1)[0]
    ok = bool(known["expected"].get("valid") and known["name"] not in STRICT)
    VERDICTS.setdefault(file, []).append(ok)
FILES = sorted(file for file in VERDICTS if (CORPUS / file).exists())


@pytest.mark.parametrize("file", FILES)
def test_file_as_it_was_found_is_judged_alike(file: str) -> None:
    sources = read_sources([str(CORPUS / file)])
    if not all(VERDICTS[file]):
        with pytest.raises(ManifestError) as caught:
            read_bundle(sources)
        assert all(problem.line for problem in caught.value.problems)
        return
    bundle = read_bundle(sources)
    text = render_manifests(w.manifest for w in bundle.objects)
    assert sorted(decoded(read(text)), key=repr) == sorted(decoded(bundle), key=repr)


@pytest.mark.parametrize("path", sorted((CORPUS / "priorityclass").glob("*")), ids=lambda p: p.name)
def test_priority_class_is_read_and_written_equal(path: Path) -> None:
    if OLD_VERSION in path.read_text():
        with pytest.raises(ManifestError, match=r"write scheduling\.k8s\.io/v1"):
            read(path.read_text())
        return
    bundle = read(path.read_text())
    again = read(render_manifests(w.manifest for w in bundle.objects))
    assert {w.key: w.manifest for w in again.objects} == {w.key: w.manifest for w in bundle.objects}


def configurations() -> list[dict[str, Any]]:
    path = VECTORS / "quota_config.json"
    return json.loads(path.read_text()) if path.exists() else []


# Kubernetes starts with a scope it does not know, and then limits nothing: refused here.
UNKNOWN_SCOPE = "corpus admissionconfiguration/kubernetes__kubernetes.github.io__resource-quotas"


@pytest.mark.parametrize("case", configurations(), ids=lambda c: c["name"])
def test_limited_resources_configuration(case: dict[str, Any]) -> None:
    plugin = {"name": "ResourceQuota", "configuration": case["configuration"]}
    version = "apiserver.config.k8s.io/v1"
    file = {"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": [plugin]}
    source = Source("case.json", json.dumps(file))
    if not case["valid"] or case["name"].startswith(UNKNOWN_SCOPE):
        with pytest.raises(ManifestError, match=r"limitedResources|matchContains"):
            read_bundle([source])
        return
    found = read_bundle([source]).limited_resources
    if "limitedResources" in case:
        wanted = [{k: v for k, v in e.items() if v} for e in case["limitedResources"]]
        assert list(found or ()) == wanted
