"""NamespaceClass form: fields for whom it is, lines of parameters and of policies."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.metadata_policy import API_VERSION
from engine.namespace_class import OnLeave, ParameterType
from engine.selector import LabelSelector, SelectorError, SelectorOperator, parse_selector
from policies.drafts.forms.sheets import (
    Built,
    Sheet,
    can_be_typed,
    joined,
    renumbered,
    split,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.selector import Requirement
    from policies.drafts.forms.sheets import Line

FIELDS: Final = ("name", "description", "clusters", "names", "labels", "onLeave")
PARAMETER: Final = "parameter"
POLICY: Final = "policy"
TYPES: Final = tuple(ParameterType)
LEAVING: Final[Mapping[str, str]] = {
    OnLeave.KEEP: "it keeps its policies",
    OnLeave.REMOVE: "its policies go",
}
NO_LABEL_SELECTOR: Final = "a label selector of Kubernetes has no > and <"
BEGUN: Final[Mapping[str, Mapping[str, Any]]] = {
    "LimitRange": {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}}]},
    },
    "ResourceQuota": {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "amounts"},
        "spec": {"hard": {"pods": "50"}},
    },
    "MetadataPolicy": {
        "apiVersion": API_VERSION,
        "kind": "MetadataPolicy",
        "metadata": {"name": "ownership"},
        "spec": {
            "rules": [
                {
                    "policyPredicate": {
                        "labelSelector": {
                            "matchExpressions": [{"key": "owner", "operator": "DoesNotExist"}]
                        }
                    },
                    "policyAction": {"reject": True},
                }
            ]
        },
    },
}
"""What a policy that is added begins with; it is then edited in the YAML."""
_EXPRESSIONS: Final = {
    SelectorOperator.IN: "In",
    SelectorOperator.NOT_IN: "NotIn",
    SelectorOperator.NOT_EQUALS: "NotIn",
    SelectorOperator.EXISTS: "Exists",
    SelectorOperator.DOES_NOT_EXIST: "DoesNotExist",
}
_COLUMNS: Final = ("name", "type", "default", "description")
_PLACES: Final[Mapping[str, str]] = {
    "metadata.name": "name",
    "spec.description": "description",
    "spec.clusters": "clusters",
    "spec.selector": "labels",
    "spec.selector.names": "names",
    "spec.onLeave": "onLeave",
}
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "description": str,
    "clusters": split,
    "onLeave": lambda word: "" if word == OnLeave.KEEP else word,
}
_EQUAL: Final = frozenset({SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS})


def show(manifest: Mapping[str, Any]) -> Sheet:
    """The fields and lines of a manifest; a parameter that a line cannot express is kept."""
    spec = manifest.get("spec") or {}
    selector = spec.get("selector") or {}
    fields = {
        "name": str((manifest.get("metadata") or {}).get("name") or ""),
        "description": str(spec.get("description") or ""),
        "clusters": joined(str(each) for each in spec.get("clusters") or []),
        "names": joined(str(each) for each in selector.get("names") or []),
        "labels": _label_text(selector),
        "onLeave": str(spec.get("onLeave") or OnLeave.KEEP.value),
    }
    parameters = [
        line
        if can_be_typed([line := _parameter_line(each or {})]) and _says_something(line)
        else {"kept": str(number)}
        for number, each in enumerate(spec.get("parameters") or [])
    ]
    policies = [
        {"at": str(number), "kind": str(each.get("kind") or ""), "name": _name_of(each)}
        for number, each in enumerate(_policies(spec))
    ]
    return Sheet(fields, {PARAMETER: parameters, POLICY: policies})


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The manifest of a form; what the form does not show comes from ``base``."""
    stored = base.get("spec") or {}
    spec = dict(stored)
    built = Built({**base, "spec": spec}, places={**_PLACES})
    shown = show(base).fields
    sent = {name: text for name, text in sheet.fields.items() if text != typed(shown[name])}
    if "name" in sent:
        built.manifest["metadata"] = {**(base.get("metadata") or {}), "name": sent["name"]}
    for field, read in _READERS.items():
        if field in sent:
            _set(spec, field, read(sent[field]))
    if sent.keys() & {"names", "labels"}:
        spec["selector"] = _selector(sent, stored.get("selector") or {}, built)
    parameters = _parameters(sheet, stored, built)
    if parameters != (stored.get("parameters") or []):
        _set(spec, "parameters", parameters)
    policies = [
        _policy(line, number, position, built=built, stored=_policies(stored))
        for position, (number, line) in enumerate(_found_policies(sheet, stored))
    ]
    if policies != (stored.get("policies") or []):
        spec["policies"] = policies
    return built


def settled(sheet: Sheet, base: Mapping[str, Any]) -> Sheet:
    """The sheet whose lines name positions in the manifest that was built from it."""
    built = build(sheet, base)
    policies = [
        {"at": str(at), "kind": str(each.get("kind") or ""), "name": _name_of(each)}
        for at, each in enumerate(_policies(built.manifest["spec"]))
    ]
    parameters = renumbered(sheet, built).of(PARAMETER)
    return Sheet(sheet.fields, {PARAMETER: parameters, POLICY: policies})


def _set(spec: dict[str, Any], field: str, value: Any) -> None:
    spec.pop(field, None)
    if value:
        spec[field] = value


def _selector(sent: Mapping[str, str], base: Mapping[str, Any], built: Built) -> dict[str, Any]:
    selector = dict(base)
    if "names" in sent:
        _set(selector, "names", split(sent["names"]))
    if "labels" not in sent:
        return selector
    try:
        labels = _label_shape(parse_selector(sent["labels"]).requirements)
    except SelectorError as error:
        built.problems.append(("labels", str(error)))
        return selector
    names = {"names": selector["names"]} if "names" in selector else {}
    return {**names, **labels}


def _label_text(selector: Mapping[str, Any]) -> str:
    labels = {name: value for name, value in selector.items() if name != "names"}
    try:
        return str(LabelSelector.decode(labels, "spec.selector"))
    except DecodeError:
        return ""


def _label_shape(requirements: Sequence[Requirement]) -> dict[str, Any]:
    """The JSON form of a selector that was typed; raises SelectorError for > and <."""
    equal: dict[str, str] = {}
    others: list[dict[str, Any]] = []
    for each in requirements:
        if each.operator in _EQUAL and each.key not in equal:
            equal[each.key] = each.values[0]
            continue
        operator = "In" if each.operator in _EQUAL else _EXPRESSIONS.get(each.operator)
        if operator is None:
            raise SelectorError(NO_LABEL_SELECTOR)
        values = {"values": list(each.values)} if each.values else {}
        others.append({"key": each.key, "operator": operator, **values})
    found: dict[str, Any] = {"matchLabels": equal} if equal else {}
    return {**found, **({"matchExpressions": others} if others else {})}


def _parameter_line(parameter: Mapping[str, Any]) -> Line:
    texts = {name: parameter.get(name) for name in _COLUMNS}
    texts["type"] = texts["type"] or ParameterType.STRING.value
    return {name: "" if value is None else str(value) for name, value in texts.items()}


def _says_something(line: Line) -> bool:
    return any(line.get(name) for name in ("kept", "name", "default", "description"))


def _parameters(sheet: Sheet, base: Mapping[str, Any], built: Built) -> list[dict[str, Any]]:
    stored = base.get("parameters") or []
    # A number that nobody edited stays a number.
    known: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for each in stored:
        known.setdefault(tuple(_parameter_line(each or {}).items()), []).append(each)
    found: list[dict[str, Any]] = []
    for number, line in enumerate(sheet.of(PARAMETER)):
        path = f"spec.parameters[{len(found)}]"
        if (at := line.get("kept", "")).isdecimal():
            built.kept[PARAMETER, at] = str(len(found))
            found += [stored[int(at)]] if int(at) < len(stored) else []
        elif _says_something(line):
            texts = _parameter_line(line)
            unedited = known.get(tuple(texts.items()))
            found.append(unedited.pop(0) if unedited else {k: v for k, v in texts.items() if v})
            cell = f"{PARAMETER}-{number}"
            built.places[path] = f"{cell}-name"
            built.places |= {f"{path}.{column}": f"{cell}-{column}" for column in _COLUMNS}
    return found


def _policies(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in spec.get("policies") or [] if isinstance(each, dict)]


def _name_of(policy: Mapping[str, Any]) -> str:
    metadata = policy.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _found_policies(sheet: Sheet, spec: Mapping[str, Any]) -> Iterator[tuple[int, Line]]:
    """The lines of policies that are there or can be begun."""
    stored = _policies(spec)
    for number, line in enumerate(sheet.of(POLICY)):
        at = line.get("at", "")
        if int(at) < len(stored) if at.isdecimal() else line.get("kind") in BEGUN:
            yield number, line


def _policy(
    line: Line, number: int, position: int, *, built: Built, stored: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    at = line.get("at", "")
    if not at.isdecimal():
        return _begun(line["kind"], stored)
    policy = stored[int(at)]
    built.places[f"spec.policies[{position}].metadata.name"] = f"{POLICY}-{number}-name"
    # A name that cannot be typed comes back changed: it is no edit.
    if "name" not in line or line["name"] == typed(_name_of(policy)):
        return policy
    return {**policy, "metadata": {**(policy.get("metadata") or {}), "name": line["name"]}}


def _begun(kind: str, stored: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A new policy of a kind, of a name that no other one has."""
    begun = copy.deepcopy(dict(BEGUN[kind]))
    name = begun["metadata"]["name"]
    taken = {_name_of(each) for each in stored if each.get("kind") == kind}
    free = (f"{name}-{number}" if number > 1 else name for number in range(1, len(taken) + 2))
    begun["metadata"]["name"] = next(each for each in free if each not in taken)
    return begun
