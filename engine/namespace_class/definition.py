"""NamespaceClass as a value: clusters, NamespaceSelector, parameters, policies; decode, encode."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.errors import DecodeError
from engine.fields import decode_string_list, expect
from engine.metadata_policy import API_VERSION
from engine.selector import LabelSelector
from engine.wire import RawNumber

if TYPE_CHECKING:
    from collections.abc import Mapping

Word = TypeVar("Word", bound=StrEnum)
KIND: Final = "NamespaceClass"
_SYSTEM: Final = "kube-"
_ANY: Final = "*"


class OnLeave(StrEnum):
    """What becomes of the policies of a namespace that the class matches no longer."""

    KEEP = "keep"
    REMOVE = "remove"


class ParameterType(StrEnum):
    """The type of a parameter's values."""

    STRING = "string"
    QUANTITY = "quantity"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassParameter:
    """A named value that a namespace may set for itself."""

    name: str
    type: ParameterType = ParameterType.STRING
    default: str = ""
    description: str = ""


@lru_cache(1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split(_ANY)), re.DOTALL)


def _fits(patterns: tuple[str, ...], name: str) -> bool:
    return any(_pattern(each).fullmatch(name) for each in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSelector:
    """A selector over the names and labels of namespaces; the empty one matches all.

    Kubernetes' own namespaces (``kube-*``), and those that the caller reserves, only match a name
    that is written out.
    """

    names: tuple[str, ...] = ()
    labels: LabelSelector = field(default_factory=LabelSelector)

    def could_match(self, name: str, *, reserved: str = "") -> bool:
        """Whether a namespace of this name matches with suitable labels."""
        if name in self.names:
            return True
        if name.startswith(_SYSTEM) or name == reserved:
            return False
        return not self.names or _fits(self.names, name)

    def matches(self, name: str, labels: Mapping[str, str], *, reserved: str = "") -> bool:
        """Whether a namespace matches by its name and its labels."""
        return self.could_match(name, reserved=reserved) and self.labels.matches(labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceClass:
    """The policies that namespaces get, and which namespaces: ``clusters`` empty means all.

    ``policies`` are manifests without a namespace; a value that is ``$(NAME)`` as a whole stands
    for the parameter NAME.
    """

    name: str
    description: str = ""
    clusters: tuple[str, ...] = ()
    selector: NamespaceSelector = field(default_factory=NamespaceSelector)
    parameters: tuple[ClassParameter, ...] = ()
    policies: tuple[Mapping[str, Any], ...] = ()
    on_leave: OnLeave = OnLeave.KEEP

    def covers(self, cluster: str) -> bool:
        """Whether the class is for namespaces of this cluster."""
        return not self.clusters or _fits(self.clusters, cluster)


def decode_namespace_class(manifest: Mapping[str, Any]) -> NamespaceClass:
    """Decode a manifest; raises ``DecodeError`` for values of a wrong type or an unknown word."""
    shape = expect(manifest, dict, "", KIND)
    metadata = expect(shape.get("metadata"), dict, "metadata", "ObjectMeta")
    spec = expect(shape.get("spec"), dict, "spec", "NamespaceClassSpec")
    selector = expect(spec.get("selector"), dict, "spec.selector", "NamespaceSelector")
    parameters = expect(spec.get("parameters"), list, "spec.parameters", "[]ClassParameter")
    policies = expect(spec.get("policies"), list, "spec.policies", "[]object")
    return NamespaceClass(
        name=expect(metadata.get("name"), str, "metadata.name", "string"),
        description=expect(spec.get("description"), str, "spec.description", "string"),
        clusters=decode_string_list(spec.get("clusters"), "spec.clusters"),
        selector=NamespaceSelector(
            names=decode_string_list(selector.get("names"), "spec.selector.names"),
            labels=LabelSelector.decode(
                {name: value for name, value in selector.items() if name != "names"},
                "spec.selector",
            ),
        ),
        parameters=tuple(
            _decode_parameter(each, f"spec.parameters[{index}]")
            for index, each in enumerate(parameters)
        ),
        policies=tuple(
            expect(each, dict, f"spec.policies[{index}]", "object")
            for index, each in enumerate(policies)
        ),
        on_leave=_decode_word(OnLeave, spec.get("onLeave"), "spec.onLeave", OnLeave.KEEP),
    )


def _decode_parameter(raw: object, path: str) -> ClassParameter:
    shape = expect(raw, dict, path, "ClassParameter")
    default = shape.get("default")
    # A quantity may be written as a number, as everywhere.
    default = str(default) if isinstance(default, RawNumber) else default
    return ClassParameter(
        name=expect(shape.get("name"), str, f"{path}.name", "string"),
        type=_decode_word(ParameterType, shape.get("type"), f"{path}.type", ParameterType.STRING),
        default=expect(default, str, f"{path}.default", "string"),
        description=expect(shape.get("description"), str, f"{path}.description", "string"),
    )


def _decode_word(words: type[Word], raw: object, path: str, default: Word) -> Word:
    if raw is None:
        return default
    if not isinstance(raw, str) or raw not in tuple(words):
        raise DecodeError(path, f"{path}: must be one of: {', '.join(words)}")
    return words(raw)


def encode_namespace_class(namespace_class: NamespaceClass) -> dict[str, Any]:
    """Encode the manifest; fields that are empty or have their default are left out."""
    selector: dict[str, Any] = {}
    if namespace_class.selector.names:
        selector["names"] = list(namespace_class.selector.names)
    selector |= namespace_class.selector.labels.encode()
    spec: dict[str, Any] = {"selector": selector}
    if namespace_class.description:
        spec["description"] = namespace_class.description
    if namespace_class.clusters:
        spec["clusters"] = list(namespace_class.clusters)
    if namespace_class.parameters:
        spec["parameters"] = [_encode_parameter(each) for each in namespace_class.parameters]
    spec["policies"] = [dict(each) for each in namespace_class.policies]
    if namespace_class.on_leave is not OnLeave.KEEP:
        spec["onLeave"] = namespace_class.on_leave.value
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": namespace_class.name},
        "spec": spec,
    }


def _encode_parameter(parameter: ClassParameter) -> dict[str, str]:
    encoded = {"name": parameter.name, "type": parameter.type.value, "default": parameter.default}
    return {**encoded, **({"description": parameter.description} if parameter.description else {})}
