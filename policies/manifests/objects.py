"""BundleObjects sorted by kind and apiVersion; lists and plugins opened, other kinds set aside."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.metadata_policy import API_VERSION as POLICY_VERSION
from engine.wire import json_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.manifests.documents import Document, Problem

API_VERSIONS = {
    "Namespace": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "LimitRange": "v1",
    "MetadataPolicy": POLICY_VERSION,
    "ResourceQuota": "v1",
    "PolicyTest": POLICY_VERSION,
}
"""The kinds that are stored, in the order in which they are written."""
CLUSTER_KINDS = frozenset({"Namespace", "PriorityClass"})
FLEET_KINDS = {"NamespaceClass": POLICY_VERSION}
"""The kinds of which an object is for all clusters, and their versions."""
PLUGIN = "ResourceQuota"
ADMISSION_VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
_ADMISSION = "AdmissionConfiguration"
_CONFIGURATIONS = frozenset({"ResourceQuotaConfiguration", "Configuration"})
_ALL_VERSIONS = {**API_VERSIONS, **FLEET_KINDS}
_LIST_KINDS = {"List": "", **{f"{kind}List": kind for kind in _ALL_VERSIONS}}
_KNOWN_KINDS = (*_ALL_VERSIONS, *_LIST_KINDS, _ADMISSION, *_CONFIGURATIONS)


@dataclass(frozen=True, slots=True)
class BundleObject:
    """One object of a document, at ``path`` (empty: it is the document)."""

    value: Any
    document: Document
    path: str = ""

    @property
    def kind(self) -> str:
        """Its ``kind``."""
        return str(self.value.get("kind"))

    @property
    def metadata(self) -> dict[str, Any]:
        """Its ``metadata``, empty where it is none."""
        given = self.value.get("metadata")
        return given if isinstance(given, dict) else {}

    @property
    def namespace(self) -> str:
        """Its ``metadata.namespace``; empty if it names none."""
        return str(self.metadata.get("namespace") or "")

    @property
    def name(self) -> str:
        """Its ``metadata.name``; empty if it has none."""
        return str(self.metadata.get("name") or "")

    @property
    def title(self) -> str:
        """Its name in messages: ``LimitRange default/limits``."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"

    def at(self, place: str) -> str:
        """The path, in the document, of a field of this object."""
        return f"{self.path}.{place}" if self.path and place else self.path or place

    def problem(self, place: str, message: str, hint: str = "", code: str = "invalid") -> Problem:
        """A finding at a field of this object."""
        return self.document.problem(self.at(place), message, hint, code)


@dataclass(slots=True)
class BundleContents:
    """The objects of some documents; ``others`` are of kinds that are no policies."""

    objects: list[BundleObject] = field(default_factory=list)
    classes: list[BundleObject] = field(default_factory=list)
    configurations: list[BundleObject] = field(default_factory=list)
    others: list[BundleObject] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def find_objects(documents: Iterable[Document]) -> BundleContents:
    """Sort the objects of the documents, in order; lists in lists are opened, too."""
    contents = BundleContents()
    # A stack and no recursion: files may nest lists as deep as they like.
    unsorted = [BundleObject(document.value, document) for document in documents]
    unsorted.reverse()
    while unsorted:
        item = unsorted.pop()
        list_members = _sort_object(item, contents)
        unsorted += reversed(list_members)
    return contents


def _sort_object(item: BundleObject, contents: BundleContents) -> list[BundleObject]:
    """Sort one item by its kind; returns the members of a list."""
    if json_type(item.value) != "object":
        message = "must be a map with apiVersion and kind"
        contents.problems.append(item.problem("", message, "is there a dash too many?"))
    elif json_type(item.value.get("kind")) != "string":
        known = f"one of: {', '.join(_ALL_VERSIONS)}"
        contents.problems.append(item.problem("kind", "Required value", known))
    elif item.kind in API_VERSIONS:
        contents.problems += _version_problems(item, (API_VERSIONS[item.kind],))
        contents.objects.append(item)
    elif item.kind in FLEET_KINDS:
        contents.problems += _version_problems(item, (FLEET_KINDS[item.kind],))
        contents.classes.append(item)
    elif item.kind in _LIST_KINDS:
        return _open_list(item, contents)
    elif item.kind == _ADMISSION:
        contents.problems += _version_problems(item, ADMISSION_VERSIONS)
        _open_plugins(item, contents)
    elif item.kind in _CONFIGURATIONS:
        contents.configurations.append(item)
    else:
        _set_aside(item, contents)
    return []


def _set_aside(item: BundleObject, contents: BundleContents) -> None:
    """Set aside an object that is no policy; a kind close to a known one is a misspelling."""
    # Close enough for misspellings, too far for other kinds of Kubernetes.
    near_kinds = difflib.get_close_matches(item.kind, _KNOWN_KINDS, n=1, cutoff=0.85)
    if near_kinds:
        message = f'unknown kind "{item.kind}"'
        contents.problems.append(item.problem("kind", message, f"did you mean {near_kinds[0]}?"))
    else:
        contents.others.append(item)


def _version_problems(item: BundleObject, known_versions: tuple[str, ...]) -> list[Problem]:
    given_version = item.value.get("apiVersion")
    if given_version in known_versions:
        return []
    message = f'no kind "{item.kind}" in version "{given_version or ""}"'
    return [item.problem("apiVersion", message, f"write {known_versions[0]}")]


def _open_list(item: BundleObject, contents: BundleContents) -> list[BundleObject]:
    members = item.value.get("items")
    if members is None:
        return []
    if not isinstance(members, list):
        contents.problems.append(
            item.problem("items", "must be a list", "begin entries with a dash")
        )
        return []
    kind = _LIST_KINDS[item.kind]
    return [
        BundleObject(_member_with_kind(member, kind), item.document, item.at(f"items[{index}]"))
        for index, member in enumerate(members)
    ]


def _member_with_kind(member: Any, kind: str) -> Any:
    """Give an entry of a typed list its kind: servers leave it out there."""
    if not kind or not isinstance(member, dict) or "kind" in member:
        return member
    return {"apiVersion": _ALL_VERSIONS[kind], "kind": kind, **member}


def _open_plugins(item: BundleObject, contents: BundleContents) -> None:
    """Find the quota plugin's configuration, and skip other plugins."""
    plugins = item.value.get("plugins")
    for index, plugin in enumerate(plugins if isinstance(plugins, list) else []):
        if not isinstance(plugin, dict) or plugin.get("name") != PLUGIN:
            continue
        plugin_path = f"plugins[{index}]"
        for name in sorted(set(plugin) - {"name", "configuration", "path"}):
            message, hint = f'unknown field "{name}"', "indent it under configuration"
            contents.problems.append(item.problem(f"{plugin_path}.{name}", message, hint))
        if plugin.get("path"):
            message, hint = "a second file is not read", "write its content under configuration"
            contents.problems.append(item.problem(f"{plugin_path}.path", message, hint))
        configuration_path = item.at(f"{plugin_path}.configuration")
        contents.configurations.append(
            BundleObject(plugin.get("configuration"), item.document, configuration_path)
        )
