"""Namespace classes in files: checked with their lines, imported, exported, applied with a set."""

from __future__ import annotations

from typing import Any

import pytest

from policies.manifests import diff_in_words
from policies.manifests.bundle import read_bundle
from policies.manifests.documents import ManifestError
from policies.manifests.export import export_cluster
from policies.manifests.import_bundle import Author, ImportOptions, import_bundle
from policies.manifests.render import render_manifests
from policies.manifests.sources import Source
from policies.models import ClassPolicy, LimitRange, NamespaceClass
from policies.object_sets.apply import carry_out
from policies.object_sets.plan import SetOptions, plan
from tests import factories
from tests.namespace_classes import class_manifest, limits, quota, saved_class

TEXT = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: NamespaceClass
metadata:
  name: team
spec:
  selector: {names: ["team"]}
  parameters:
  - {name: most, type: quantity, default: 2}
  policies:
  - apiVersion: v1
    kind: LimitRange
    metadata: {name: lr}
    spec:
      limits:
      - {type: Container, max: {cpu: $(most)}}
"""


def read(text: str) -> Any:
    return read_bundle([Source("f.yaml", text)])


def problems_of(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(ManifestError) as refused:
        read(text)
    return [(each.line, each.field, each.hint) for each in refused.value.problems]


def test_a_class_is_read_beside_the_objects_of_the_cluster() -> None:
    bundle = read(TEXT)
    assert [wanted.key for wanted in bundle.classes] == [("NamespaceClass", "", "team")]
    assert bundle.objects == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "hint"),
    [
        ("  selector:", "  selecter:", 6, "spec.selecter", "did you mean selector?"),
        ("limits:", "limit:", 14, "spec.policies[0].spec.limit", "did you mean limits?"),
        ("$(most)", "$(mosst)", 15, "spec.policies[0].spec.limits[0].max.cpu", ""),
        ("v1alpha1", "v1", 1, "apiVersion", "write policy.gatehouse.dev/v1alpha1"),
        ("{type: Container", "{type: 3", 15, "spec.policies[0].spec.limits[0].type", ""),
    ],
)
def test_a_problem_has_its_line_and_a_suggestion(
    old: str, new: str, line: int, field: str, hint: str
) -> None:
    found = problems_of(TEXT.replace(old, new, 1))
    assert any(each[:2] == (line, field) and each[2].startswith(hint) for each in found), found


@pytest.mark.django_db
def test_a_file_makes_namespaces_their_own_policies_and_a_class() -> None:
    own = render_manifests(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
            {**limits("5", name="lr"), "metadata": {"name": "lr", "namespace": "team"}},
        ]
    )
    cluster, author = factories.cluster(), Author(user="ann")
    dry = import_bundle(
        read(f"{TEXT}---\n{own}"),
        cluster=cluster,
        author=author,
        options=ImportOptions(dry_run=True),
    )
    assert not NamespaceClass.objects.exists()
    report = import_bundle(read(f"{TEXT}---\n{own}"), cluster=cluster, author=author)
    assert [change.verb for change in report.changes] == ["created"] * 3
    assert [change.title for change in report.changes] == [change.title for change in dry.changes]
    # What the file itself says of the namespace is an exception from the class.
    assert ClassPolicy.objects.get().exception_count == 1
    again = import_bundle(read(TEXT), cluster=cluster, author=author)
    assert [change.verb for change in again.changes] == ["unchanged"]


@pytest.mark.django_db
def test_classes_are_exported_where_they_are_asked_for() -> None:
    saved_class(clusters=["prod"])
    saved_class("other", clusters=["dev"])
    cluster = factories.cluster()
    assert export_cluster(cluster) == ""
    text = export_cluster(cluster, kinds=["NamespaceClass"])
    assert [wanted.manifest for wanted in read(text).classes] == [class_manifest(clusters=["prod"])]


@pytest.mark.django_db
def test_a_set_applies_a_class_and_never_prunes_it() -> None:
    factories.namespace("team")
    cluster = factories.cluster()
    planned = plan(cluster, read(TEXT), SetOptions(name="repo"))
    assert [(each.key[0], each.action) for each in planned.objects] == [
        ("NamespaceClass", "create")
    ]
    carry_out(cluster, planned, user="ann")
    assert LimitRange.objects.get().name == "lr"
    assert plan(cluster, read(TEXT), SetOptions(name="repo")).having("unchanged")


def test_a_change_is_told_in_words() -> None:
    before = class_manifest(policies=[limits("1")], names=["a"])
    after = class_manifest(policies=[limits("2"), quota()], names=["b"], clusters=["c"])
    assert diff_in_words.changes(before, after) == [
        "cluster pattern c added",
        "name pattern a removed",
        "name pattern b added",
        "LimitRange defaults: cpu default limit of Container raised from 1 to 2",
        "ResourceQuota amounts added",
    ]
