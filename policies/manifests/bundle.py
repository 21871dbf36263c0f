"""Bundle of Wanted objects of all sources: stripped metadata, kept status; repetitions refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.names import LAST_APPLIED
from policies.manifests.checks import (
    class_problems,
    configuration_problems,
    limited_resources,
    object_problems,
)
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.objects import (
    API_VERSIONS,
    CLUSTER_KINDS,
    BundleObject,
    find_objects,
)
from policies.manifests.sources import parse_documents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.manifests.documents import Document
    from policies.manifests.objects import BundleContents
    from policies.manifests.sources import Source

DEFAULT_NAMESPACE = "default"
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
        wanted_metadata = self.manifest["metadata"]
        return self.item.kind, wanted_metadata.get("namespace", ""), wanted_metadata["name"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Objects in the order in which they can be written, and the quota plugin's configuration.

    ``classes`` are the namespace classes, which are for all clusters.
    ``limited_resources`` are its entries as manifests, None without a configuration. ``others``
    are the titles of objects that are no policies and were left out.
    """

    objects: tuple[Wanted, ...] = ()
    classes: tuple[Wanted, ...] = ()
    configuration: BundleObject | None = None
    limited_resources: tuple[dict[str, Any], ...] | None = None
    others: tuple[str, ...] = ()


def read_bundle(sources: Iterable[Source], *, namespace: str = DEFAULT_NAMESPACE) -> Bundle:
    """Read texts; raises ManifestError with every problem of all of them.

    Objects without a namespace are put into ``namespace``.
    """
    bundle_problems: list[Problem] = []
    documents: list[Document] = []
    for source in sources:
        try:
            documents += parse_documents(source.text, source.name)
        except ManifestError as error:
            bundle_problems += error.problems
    return bundle_of(documents, namespace=namespace, problems=bundle_problems)


def bundle_of(
    documents: Iterable[Document],
    *,
    namespace: str = DEFAULT_NAMESPACE,
    problems: Iterable[Problem] = (),
) -> Bundle:
    """Sort and check documents; raises ManifestError, which begins with ``problems``."""
    contents = find_objects(documents)
    bundle_problems = [*problems, *contents.problems]
    for bundle_object in contents.objects:
        bundle_problems += object_problems(bundle_object)
    for bundle_object in contents.classes:
        bundle_problems += class_problems(bundle_object)
    for bundle_object in contents.configurations:
        bundle_problems += configuration_problems(bundle_object)
    if bundle_problems:
        raise ManifestError(bundle_problems)
    return _build_bundle(contents, namespace)


def _build_bundle(contents: BundleContents, namespace: str) -> Bundle:
    wanted = [Wanted(stripped(item, namespace), item) for item in contents.objects]
    classes = [Wanted(_without_server_fields(item), item) for item in contents.classes]
    bundle_problems = _repeated_objects([*wanted, *classes])
    bundle_problems += [
        second.problem("", "a second configuration of the quota plugin", "keep one")
        for second in contents.configurations[1:]
    ]
    if bundle_problems:
        raise ManifestError(bundle_problems)
    configuration = next(iter(contents.configurations), None)
    return Bundle(
        objects=tuple(sorted(wanted, key=lambda w: _KIND_ORDER[w.item.kind])),
        classes=tuple(classes),
        configuration=configuration,
        limited_resources=limited_resources(configuration) if configuration else None,
        others=tuple(item.title for item in contents.others),
    )


def _repeated_objects(wanted: list[Wanted]) -> list[Problem]:
    """Find objects that appear twice: only one of them could be stored."""
    seen: dict[tuple[str, str, str], BundleObject] = {}
    repetitions: list[Problem] = []
    for again in wanted:
        if again.key in seen:
            line = seen[again.key].document.place_of(seen[again.key].at("metadata.name"))[0]
            seen_at = f"{seen[again.key].document.source}:{line}"
            repetitions.append(
                again.item.problem("metadata.name", f"the same object as at {seen_at}", "keep one")
            )
        seen.setdefault(again.key, again.item)
    return repetitions


def _without_server_fields(given: BundleObject) -> dict[str, Any]:
    """A class has a name and a ``spec``, and nothing else."""
    kept_fields = {name: given.value[name] for name in ("apiVersion", "kind")}
    return {**kept_fields, "metadata": {"name": given.name}, "spec": given.value.get("spec") or {}}


def stripped(given: BundleObject, namespace: str) -> dict[str, Any]:
    """Remove what only servers and clients write, and fill in the namespace."""
    metadata = {name: given.metadata[name] for name in _KEPT_METADATA if given.metadata.get(name)}
    kept_annotations = dict(metadata.pop("annotations", {}))
    # kubectl stores the whole manifest in it: it would repeat every change.
    kept_annotations.pop(LAST_APPLIED, None)
    if kept_annotations:
        metadata["annotations"] = kept_annotations
    if given.kind in CLUSTER_KINDS:
        metadata.pop("namespace", None)
    else:
        metadata.setdefault("namespace", namespace)
    kept_fields = {k: v for k, v in given.value.items() if k not in ("metadata", "status")}
    if given.kind == "Namespace":
        kept_fields.pop("spec", None)
    return {**kept_fields, "metadata": metadata, **_kept_status(given)}


def _kept_status(item: BundleObject) -> dict[str, Any]:
    """Keep a quota's used amounts, and the phase of a namespace that is being deleted."""
    given_status = item.value.get("status")
    if not isinstance(given_status, dict):
        return {}
    if item.kind == "ResourceQuota":
        return {"status": given_status}
    is_ending = item.kind == "Namespace" and given_status.get("phase") == "Terminating"
    return {"status": {"phase": "Terminating"}} if is_ending else {}
