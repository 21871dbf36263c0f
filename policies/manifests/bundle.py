"""Bundle of Wanted objects of all sources: metadata, status stripped; repeated ones refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies.manifests.checks import configuration_problems, limited_resources, object_problems
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.objects import (
    API_VERSIONS,
    CLUSTER_KINDS,
    BundleContents,
    BundleObject,
    find_objects,
)
from policies.manifests.sources import parse_documents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.manifests.sources import Source

DEFAULT_NAMESPACE = "default"
_CLIENT_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT_METADATA = ("name", "namespace", "labels", "annotations")
_KIND_ORDER = {kind: position for position, kind in enumerate(API_VERSIONS)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object to store, without fields that servers and clients add, and where it was read."""

    manifest: dict[str, Any]
    item: BundleObject

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        metadata = self.manifest["metadata"]
        return self.item.kind, metadata.get("namespace", ""), metadata["name"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Objects in the order in which they can be written, and the quota plugin's configuration.

    ``limited_resources`` are its entries as manifests, None without a configuration. ``others``
    are the titles of objects that are no policies and were left out.
    """

    objects: tuple[Wanted, ...] = ()
    configuration: BundleObject | None = None
    limited_resources: tuple[dict[str, Any], ...] | None = None
    others: tuple[str, ...] = ()


def read_bundle(sources: Iterable[Source], *, namespace: str = DEFAULT_NAMESPACE) -> Bundle:
    """Read texts; raises ManifestError with every problem of all of them.

    Objects without a namespace are put into ``namespace``.
    """
    problems: list[Problem] = []
    contents = BundleContents()
    for source in sources:
        try:
            more = find_objects(parse_documents(source.text, source.name))
        except ManifestError as error:
            problems += error.problems
            continue
        contents.objects += more.objects
        contents.configurations += more.configurations
        contents.others += more.others
        contents.problems += more.problems
    problems += contents.problems
    for item in contents.objects:
        problems += object_problems(item)
    for item in contents.configurations:
        problems += configuration_problems(item)
    if problems:
        raise ManifestError(problems)
    return _build_bundle(contents, namespace)


def _build_bundle(contents: BundleContents, namespace: str) -> Bundle:
    wanted = [Wanted(stripped(item, namespace), item) for item in contents.objects]
    problems = _repeated_objects(wanted)
    problems += [
        item.problem("", "a second configuration of the quota plugin", "keep one")
        for item in contents.configurations[1:]
    ]
    if problems:
        raise ManifestError(problems)
    configuration = next(iter(contents.configurations), None)
    return Bundle(
        objects=tuple(sorted(wanted, key=lambda w: _KIND_ORDER[w.item.kind])),
        configuration=configuration,
        limited_resources=limited_resources(configuration) if configuration else None,
        others=tuple(item.title for item in contents.others),
    )


def _repeated_objects(wanted: list[Wanted]) -> list[Problem]:
    """Find objects that appear twice: only one of them could be stored."""
    first: dict[tuple[str, str, str], BundleObject] = {}
    problems: list[Problem] = []
    for one in wanted:
        if one.key in first:
            line = first[one.key].document.place_of(first[one.key].at("metadata.name"))[0]
            place = f"{first[one.key].document.source}:{line}"
            problems.append(
                one.item.problem("metadata.name", f"the same object as at {place}", "keep one")
            )
        first.setdefault(one.key, one.item)
    return problems


def stripped(item: BundleObject, namespace: str) -> dict[str, Any]:
    """Remove what only servers and clients write, and fill in the namespace."""
    metadata = {name: item.metadata[name] for name in _KEPT_METADATA if item.metadata.get(name)}
    annotations = dict(metadata.pop("annotations", {}))
    # kubectl stores the whole manifest in it: it would repeat every change.
    annotations.pop(_CLIENT_ANNOTATION, None)
    if annotations:
        metadata["annotations"] = annotations
    if item.kind in CLUSTER_KINDS:
        metadata.pop("namespace", None)
    else:
        metadata.setdefault("namespace", namespace)
    left = {k: v for k, v in item.value.items() if k not in ("metadata", "status")}
    if item.kind == "Namespace":
        left.pop("spec", None)
    return {**left, "metadata": metadata, **_kept_status(item)}


def _kept_status(item: BundleObject) -> dict[str, Any]:
    """Keep a quota's used amounts, and the phase of a namespace that is being deleted."""
    status = item.value.get("status")
    if not isinstance(status, dict):
        return {}
    if item.kind == "ResourceQuota":
        return {"status": status}
    is_ending = item.kind == "Namespace" and status.get("phase") == "Terminating"
    return {"status": {"phase": "Terminating"}} if is_ending else {}
