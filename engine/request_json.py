"""AdmissionRequest from decoded JSON: ``build_request``, ``complete_request``, ``request_for``.

A review has every part of a request; a manifest leaves most of them to be concluded from it.
Source: ``k8s.io/api/admission/v1/types.go`` and what an API server does with each field.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.errors import DecodeError
from engine.policy_manifests import is_cluster_scoped, kind_of, resource_of
from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Named = TypeVar("_Named", GroupVersionKind, GroupVersionResource)

_SHARED_LENGTH: Final = 256
_OPERATION_OF_TEXT: Final = {operation.value: operation for operation in Operation}


def request_for(
    obj: Mapping[str, Any], *, namespace: str = "", operation: Operation = Operation.CREATE
) -> AdmissionRequest:
    """Make the request that an API server would send for a manifest; raises ``DecodeError``."""
    return complete_request({"object": obj, "operation": operation.value, "namespace": namespace})


def complete_request(
    raw: Mapping[str, Any], *, default_namespace: str = "default"
) -> AdmissionRequest:
    """Read a request; kind, resource, namespace and name may come from its object.

    Kinds known to live outside namespaces get none. Raises ``DecodeError``.
    """
    given_object = raw.get("object")
    obj: Mapping[str, Any] = given_object if isinstance(given_object, dict) else {}
    given_metadata = obj.get("metadata")
    metadata: Mapping[str, Any] = given_metadata if isinstance(given_metadata, dict) else {}
    kind = raw.get("kind") or kind_of(obj)
    if isinstance(kind, dict) and is_cluster_scoped(kind.get("kind")):
        default_namespace = ""
    completed = {
        **raw,
        "kind": kind,
        "resource": raw.get("resource") or resource_of(kind),
        "operation": raw.get("operation") or Operation.CREATE.value,
        "namespace": raw.get("namespace") or metadata.get("namespace") or default_namespace,
        "name": raw.get("name") or metadata.get("name"),
    }
    return build_request(completed)


def build_request(raw: Mapping[str, Any], *, is_plain: bool = False) -> AdmissionRequest:
    """Read the ``request`` of a review; the uid may be missing. Raises ``DecodeError``."""
    user = _map_field(raw, "userInfo")
    groups = user.get("groups")
    return AdmissionRequest(
        uid=_text_field(raw, "uid"),
        kind=_shared(_kind_of, _names(raw, "kind", ("group", "version", "kind"))),
        resource=_shared(_resource_of, _names(raw, "resource", ("group", "version", "resource"))),
        sub_resource=_text_field(raw, "subResource"),
        name=_text_field(raw, "name"),
        namespace=_text_field(raw, "namespace"),
        operation=_operation(raw),
        user=_text_field(user, "username", "userInfo."),
        groups=tuple([g for g in groups if type(g) is str]) if isinstance(groups, list) else (),
        object=_object_field(raw, "object"),
        old_object=_object_field(raw, "oldObject"),
        dry_run=_flag_field(raw, "dryRun"),
        user_info=user,
        is_plain=is_plain,
    )


def _kind_of(group: str, version: str, kind: str) -> GroupVersionKind:
    return GroupVersionKind(group=group, version=version, kind=kind)


def _resource_of(group: str, version: str, resource: str) -> GroupVersionResource:
    return GroupVersionResource(group=group, version=version, resource=resource)


def _shared(make_named: Callable[..., _Named], names: list[str]) -> _Named:
    """Cache one value for each kind and resource; long names are not kept."""
    if sum(map(len, names)) > _SHARED_LENGTH:
        return make_named(*names)
    named: _Named = _make_once(make_named, *names)
    return named


@lru_cache(maxsize=1024)
def _make_once(make_named: Callable[..., Any], *names: str) -> Any:
    return make_named(*names)


def _wrong_field(path: str, wanted: str) -> DecodeError:
    return DecodeError(path, f"request.{path}: must be {wanted}")


def _map_field(review_part: Mapping[str, Any], name: str) -> dict[str, Any]:
    review_field = review_part.get(name)
    if review_field is None:
        return {}
    if not isinstance(review_field, dict):
        raise _wrong_field(name, "an object")
    return review_field


def _object_field(review_part: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    return None if review_part.get(name) is None else _map_field(review_part, name)


def _text_field(review_part: Mapping[str, Any], name: str, parent: str = "") -> str:
    review_field = review_part.get(name)
    if type(review_field) is str:  # not isinstance: a RawNumber is a str, too
        return review_field
    if review_field is not None:
        raise _wrong_field(f"{parent}{name}", "a text")
    return ""


def _flag_field(review_part: Mapping[str, Any], name: str) -> bool:
    review_field = review_part.get(name)
    if review_field is not None and not isinstance(review_field, bool):
        raise _wrong_field(name, "true or false")
    return bool(review_field)


def _names(review_part: Mapping[str, Any], name: str, members: tuple[str, ...]) -> list[str]:
    named_part, parent = _map_field(review_part, name), f"{name}."
    names = [_text_field(named_part, member, parent) for member in members]
    if not names[-1]:
        raise _wrong_field(f"{parent}{members[-1]}", "given")
    return names


def _operation(review_part: Mapping[str, Any]) -> Operation:
    operation = _OPERATION_OF_TEXT.get(_text_field(review_part, "operation"))
    if operation is None:
        raise _wrong_field("operation", "CREATE, UPDATE, DELETE or CONNECT")
    return operation
