"""Policies of files: which hold in a namespace, and what they limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies.manifests.documents import ManifestError
from policies.manifests.policy_files import PolicyFiles, read_policy_files

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {{name: {name}{namespace}}}
spec: {{limits: [{{type: Pod}}]}}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
CONFIGURATION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - {resource: pods, matchContains: [pods]}
"""


def limits(name: str, namespace: str = "") -> str:
    return LIMITS.format(name=name, namespace=f", namespace: {namespace}" if namespace else "")


def read(folder: Path, *texts: str) -> PolicyFiles:
    for old in folder.iterdir():
        old.unlink()
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text, "utf-8")
    return read_policy_files([str(folder)])


def test_policy_holds_in_its_namespace_and_without_one_everywhere(tmp_path: Path) -> None:
    found = read(tmp_path, limits("a", "shop"), limits("b"), limits("c", "other"))
    assert [each.name for each in found.policy_set("shop").limit_ranges] == ["a", "b"]
    assert [each.name for each in found.policy_set("new").limit_ranges] == ["b"]


def test_namespace_is_the_one_that_all_policies_share(tmp_path: Path) -> None:
    assert read(tmp_path, limits("a", "shop"), limits("b", "shop")).namespace == "shop"
    assert read(tmp_path, limits("c", "other")).namespace == "other"
    assert PolicyFiles().namespace == "default"


def test_limited_resources_are_those_of_the_files_or_the_given_ones(tmp_path: Path) -> None:
    found = read(tmp_path, CONFIGURATION)
    assert [each.resource for each in found.policy_set("shop").limited_resources] == ["pods"]
    assert found.policy_set("shop", []).limited_resources == ()


def test_files_without_policies_are_empty(tmp_path: Path) -> None:
    assert read(tmp_path, NAMESPACE).are_empty
    assert not read(tmp_path, CONFIGURATION).are_empty
    assert not read(tmp_path, limits("a")).are_empty


def test_mistakes_are_named_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"0\.yaml:4:8: spec\.limit: unknown field"):
        read(tmp_path, limits("a").replace("limits:", "limit:"))
