"""Split documents into policy objects: open lists, find the quota plugin's configuration.

Which kinds there are, and in which version; what their fields mean is checked elsewhere.
"""

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
}
"""The kinds that are kept, in the order in which they are written."""
CLUSTER_KINDS = frozenset({"Namespace", "PriorityClass"})
PLUGIN = "ResourceQuota"
ADMISSION_VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
_ADMISSION = "AdmissionConfiguration"
_CONFIGURATIONS = frozenset({"ResourceQuotaConfiguration", "Configuration"})
_LISTS = {"List": "", **{f"{kind}List": kind for kind in API_VERSIONS}}
_WORDS = (*API_VERSIONS, *_LISTS, _ADMISSION, *_CONFIGURATIONS)


@dataclass(frozen=True, slots=True)
class BundleObject:
    """One object of a document; ``path`` is where it stands there (empty: it is the document)."""

    value: Any
    document: Document
    path: str = ""

    @property
    def kind(self) -> str:
        """The kind it says it is."""
        return str(self.value.get("kind"))

    @property
    def metadata(self) -> dict[str, Any]:
        """Its ``metadata``, empty where it is none."""
        found = self.value.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def namespace(self) -> str:
        """The namespace it says it lives in."""
        return str(self.metadata.get("namespace") or "")

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.metadata.get("name") or "")

    @property
    def title(self) -> str:
        """How messages name it: ``LimitRange default/limits``."""
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
    """What some documents hold; ``others`` are objects of kinds that are no policies."""

    objects: list[BundleObject] = field(default_factory=list)
    configurations: list[BundleObject] = field(default_factory=list)
    others: list[BundleObject] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def find_objects(documents: Iterable[Document]) -> BundleContents:
    """Sort what the documents hold, in order; lists in lists are opened too."""
    found = BundleContents()
    pending = [BundleObject(document.value, document) for document in documents]
    pending.reverse()
    while pending:
        item = pending.pop()
        inside = _sort(item, found)
        pending += reversed(inside)
    return found


def _sort(item: BundleObject, found: BundleContents) -> list[BundleObject]:
    """Put one item where it belongs; the members of a list are returned."""
    if json_type(item.value) != "object" or json_type(item.value.get("kind")) != "string":
        found.problems.append(_kindless(item))
    elif item.kind in API_VERSIONS:
        found.problems += _version_problems(item, (API_VERSIONS[item.kind],))
        found.objects.append(item)
    elif item.kind in _LISTS:
        return _open_list(item, found)
    elif item.kind == _ADMISSION:
        found.problems += _version_problems(item, ADMISSION_VERSIONS)
        _open_plugins(item, found)
    elif item.kind in _CONFIGURATIONS:
        found.configurations.append(item)
    else:
        _set_aside(item, found)
    return []


def _kindless(item: BundleObject) -> Problem:
    if not isinstance(item.value, dict):
        return item.problem("", "must be a map with apiVersion and kind", "is a dash too many?")
    return item.problem("kind", "Required value", f"one of: {', '.join(API_VERSIONS)}")


def _set_aside(item: BundleObject, found: BundleContents) -> None:
    """Keep apart what is no policy; a kind that is nearly one is a slip of the pen."""
    near = difflib.get_close_matches(item.kind, _WORDS, n=1, cutoff=0.85)
    if near:
        message = f'unknown kind "{item.kind}"'
        found.problems.append(item.problem("kind", message, f"did you mean {near[0]}?"))
    else:
        found.others.append(item)


def _version_problems(item: BundleObject, known: tuple[str, ...]) -> list[Problem]:
    version = item.value.get("apiVersion")
    if version in known:
        return []
    message = f'no kind "{item.kind}" in version "{version or ""}"'
    return [item.problem("apiVersion", message, f"write {known[0]}")]


def _open_list(item: BundleObject, found: BundleContents) -> list[BundleObject]:
    members = item.value.get("items")
    if members is None:
        return []
    if not isinstance(members, list):
        found.problems.append(item.problem("items", "must be a list", "begin entries with a dash"))
        return []
    kind = _LISTS[item.kind]
    return [
        BundleObject(_typed(member, kind), item.document, item.at(f"items[{index}]"))
        for index, member in enumerate(members)
    ]


def _typed(member: Any, kind: str) -> Any:
    """Give an entry of a typed list its kind, which servers leave out there."""
    if not kind or not isinstance(member, dict) or "kind" in member:
        return member
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **member}


def _open_plugins(item: BundleObject, found: BundleContents) -> None:
    """Find the quota plugin's configuration; other plugins are none of ours."""
    plugins = item.value.get("plugins")
    for index, plugin in enumerate(plugins if isinstance(plugins, list) else []):
        if not isinstance(plugin, dict) or plugin.get("name") != PLUGIN:
            continue
        at = f"plugins[{index}]"
        for name in sorted(set(plugin) - {"name", "configuration", "path"}):
            message, hint = f'unknown field "{name}"', "indent it under configuration"
            found.problems.append(item.problem(f"{at}.{name}", message, hint))
        if plugin.get("path"):
            message, hint = "a second file is not read", "write its content under configuration"
            found.problems.append(item.problem(f"{at}.path", message, hint))
        place = item.at(f"{at}.configuration")
        found.configurations.append(BundleObject(plugin.get("configuration"), item.document, place))
