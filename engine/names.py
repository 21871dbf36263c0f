"""Syntax of names by regex: label, annotation, DNS-1123, qualified; classes of resource names.

Source: ``k8s.io/apimachinery/pkg/util/validation`` and ``pkg/apis/core/{helper,v1/helper}``.
Texts are Kubernetes' own, lengths are in bytes. Functions named ``…_errors`` return an empty list
for a valid name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from engine.errors import ErrorType, FieldError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.errors import FieldPath

MAX_ANNOTATIONS: Final = 262144
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl apply`` keeps the whole manifest."""
_NAME_LENGTH: Final = 63
_SUBDOMAIN_LENGTH: Final = 253
_MAX_PARTS: Final = 2

_QUALIFIED_TEXT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_TEXT: Final = f"({_QUALIFIED_TEXT})?"
_LABEL_TEXT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_TEXT: Final = rf"{_LABEL_TEXT}(\.{_LABEL_TEXT})*"
_QUALIFIED = re.compile(_QUALIFIED_TEXT)
_VALUE = re.compile(_VALUE_TEXT)
_LABEL = re.compile(_LABEL_TEXT)
_SUBDOMAIN = re.compile(_SUBDOMAIN_TEXT)

_NON_EMPTY: Final = "must be non-empty"
_CHARACTERS: Final = "must be no more than {} characters"
_BYTES: Final = "must be no more than {} bytes"
# Two blanks before "or", as in upstream's own texts.
_QUALIFIED_MESSAGE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_QUALIFIED_TEXT}')"
)
_TWO_SLASHES_MESSAGE: Final = (
    f"a valid label key {_QUALIFIED_MESSAGE} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_VALUE_MESSAGE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_VALUE_TEXT}')"
)
_LABEL_MESSAGE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_LABEL_TEXT}')"
)
_SUBDOMAIN_MESSAGE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN_TEXT}')"
)

_COMPUTE_NAMES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
OBJECT_COUNTS: Final = frozenset(
    {
        "pods",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
    }
)
_STANDARD_QUOTA: Final = (
    _COMPUTE_NAMES
    | OBJECT_COUNTS
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE_NAMES}
    | {"requests.storage"}
)


def dns1123_label_errors(text: str) -> list[str]:
    """Check a name of a namespace or container."""
    return _syntax_errors(text, _LABEL, _CHARACTERS.format(_NAME_LENGTH), _LABEL_MESSAGE)


def dns1123_subdomain_errors(text: str) -> list[str]:
    """Check an object's name."""
    too_long = _CHARACTERS.format(_SUBDOMAIN_LENGTH)
    return _syntax_errors(text, _SUBDOMAIN, too_long, _SUBDOMAIN_MESSAGE)


def object_name_errors(name: str, generate_name: str = "") -> list[FieldError]:
    """Check ``metadata.name``; the server makes one of ``generateName`` where it is empty."""
    if not name:
        detail = "name or generateName is required"
        required = FieldError(ErrorType.REQUIRED, "metadata.name", None, detail)
        return [] if generate_name else [required]
    return [
        FieldError(ErrorType.INVALID, "metadata.name", name, text)
        for text in dns1123_subdomain_errors(name)
    ]


def namespace_errors(namespace: str) -> list[FieldError]:
    """Check ``metadata.namespace``; an empty one is taken from the request."""
    return [
        FieldError(ErrorType.INVALID, "metadata.namespace", namespace, text)
        for text in (dns1123_label_errors(namespace) if namespace else ())
    ]


def label_value_errors(text: str) -> list[str]:
    """Check a label's value."""
    return _syntax_errors(text, _VALUE, _BYTES.format(_NAME_LENGTH), _VALUE_MESSAGE)


def qualified_name_errors(text: str) -> list[str]:
    """Check ``[prefix/]name``: a label key, annotation key or resource name."""
    # Long keys, which a client makes up, must not fill the cache.
    return list(_qualified(text) if len(text) <= _SUBDOMAIN_LENGTH else _qualified_anew(text))


def labels_errors(labels: Mapping[str, str], path: FieldPath) -> list[FieldError]:
    """Check labels; every error points at the map itself, as in Kubernetes."""
    errors: list[FieldError] = []
    for key in sorted(labels):
        value = labels[key]
        errors += [_invalid_name(path, key, text) for text in qualified_name_errors(key)]
        errors += [_invalid_name(path, value, text) for text in label_value_errors(value)]
    return errors


def annotations_errors(
    annotations: Mapping[str, str], path: FieldPath, *, size: int = MAX_ANNOTATIONS
) -> list[FieldError]:
    """Check keys of annotations, ignoring case, and the size of keys and values together."""
    errors = [
        _invalid_name(path, key, text)
        for key in sorted(annotations)
        for text in qualified_name_errors(key.lower())
    ]
    if annotations_size(annotations) > size:
        detail = f"may not be more than {size} bytes"
        errors.append(FieldError(ErrorType.TOO_LONG, str(path), "", detail))
    return errors


def annotations_size(annotations: Mapping[str, str | None]) -> int:
    """Count the bytes of all keys and values together; a null is an empty value."""
    return size_of("".join([*annotations, *filter(None, annotations.values())]))


def is_hugepage(name: str) -> bool:
    """Whether the resource is memory in huge pages."""
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Whether the resource is Kubernetes' own: it has no prefix, or one of Kubernetes'."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Whether the name is a valid one of a resource that is not Kubernetes' own."""
    if is_native(name) or name.startswith("requests."):
        return False
    # Quotas bound it under this longer name, which must be valid, too.
    return not qualified_name_errors(f"requests.{name}")


def is_over_commit_allowed(name: str) -> bool:
    """Whether a limit may exceed its request."""
    return is_native(name) and not is_hugepage(name)


def is_standard_container_resource(name: str) -> bool:
    """Whether containers may request the unprefixed name."""
    return name in _COMPUTE_NAMES or is_hugepage(name)


def is_standard_quota_resource(name: str) -> bool:
    """Whether a quota may bound the unprefixed name."""
    return name in _STANDARD_QUOTA or name.startswith(("hugepages-", "requests.hugepages-"))


def is_standard_resource(name: str) -> bool:
    """Whether Kubernetes knows the unprefixed name at all."""
    return name == "storage" or is_standard_quota_resource(name)


def is_integer_resource(name: str) -> bool:
    """Whether amounts must be whole: counted objects and extended resources."""
    return name in OBJECT_COUNTS or is_extended_resource(name)


def size_of(text: str) -> int:
    """Count bytes of UTF-8; a lone surrogate, which JSON can spell, takes three like U+FFFD."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _syntax_errors(text: str, pattern: re.Pattern[str], too_long: str, message: str) -> list[str]:
    """Check length, then syntax."""
    bound = _SUBDOMAIN_LENGTH if pattern is _SUBDOMAIN else _NAME_LENGTH
    errors = [too_long] if size_of(text) > bound else []
    return errors if pattern.fullmatch(text) else [*errors, message]


def _qualified_anew(text: str) -> tuple[str, ...]:
    """Check ``[prefix/]name`` without the cache."""
    parts = text.split("/", _MAX_PARTS)
    if len(parts) > _MAX_PARTS:
        return (_TWO_SLASHES_MESSAGE,)
    name, errors = parts[-1], []
    for prefix in parts[:-1]:
        prefix_errors = dns1123_subdomain_errors(prefix) if prefix else [_NON_EMPTY]
        errors += [f"prefix part {error}" for error in prefix_errors]
    if not name:
        errors.append(f"name part {_NON_EMPTY}")
    elif size_of(name) > _NAME_LENGTH:
        errors.append(f"name part {_BYTES.format(_NAME_LENGTH)}")
    if not _QUALIFIED.fullmatch(name):
        errors.append(f"name part {_QUALIFIED_MESSAGE}")
    return tuple(errors)


_qualified = lru_cache(maxsize=4096)(_qualified_anew)


def _invalid_name(path: FieldPath, value: str, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, str(path), value, detail)
