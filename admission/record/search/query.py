"""Search queries: the language parsed and written, and the namespaces that a query names.

``ns:team verdict:denied user:ada`` becomes filter fields, and back. A word without a colon is the
beginning of an object's name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.http import QueryDict

from policies import roles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

FIELDS: Final = {
    "cluster": "cluster",
    "ns": "namespace",
    "kind": "kind",
    "name": "name",
    "user": "user",
    "verdict": "verdict",
    "reason": "reason",
    "policy": "policy",
    "priority": "priority",
    "dry": "dry_run",
    "phase": "phase",
    "last": "last",
    "since": "since",
    "until": "until",
    "uid": "request_uid",
}
"""Each word before a colon, and its field."""
_SYNONYMS: Final = {"namespace": "ns", "dry-run": "dry", "dry_run": "dry", "request_uid": "uid"}
_TRUTHS: Final = {"yes": "true", "no": "false"}
_WORD: Final = re.compile(
    r"(?P<bare>[A-Za-z_-]+):(?=\s|$)"
    r'|(?:(?P<key>[A-Za-z_-]+):)?(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S+))',
    re.DOTALL,
)
_PLAIN: Final = re.compile(r'[^\s":\\][^\s"\\]*')
_ACCOUNT: Final = "system:serviceaccount:"
_IN_A_NAMESPACE: Final = 3
LONGEST: Final = 2000
"""Characters; what comes after is not read."""


class _UnknownWordError(ValueError):
    """A word before a colon that is none of ours, or that came twice."""


def parse(text: str) -> tuple[dict[str, str], list[str]]:
    """Read the bar: values by field, and what could not be understood, each in a sentence."""
    found: dict[str, str] = {}
    errors: list[str] = []
    for key, value in _words(text[:LONGEST]):
        try:
            field = _field(key, found)
        except _UnknownWordError as error:
            errors.append(str(error))
            continue
        found[field] = _TRUTHS.get(value, value) if field == "dry_run" else value
    return found, errors


def _words(text: str) -> Iterator[tuple[str, str]]:
    for match in _WORD.finditer(text):
        if match["bare"]:
            continue  # a key whose value is not there yet
        quoted = match["quoted"]
        plain = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        key = (match["key"] or "").lower()
        yield _SYNONYMS.get(key, key), plain


def _field(key: str, known: Collection[str]) -> str:
    if key and key not in FIELDS:
        raise _UnknownWordError(f"“{key}:” is not known; there are {', '.join(FIELDS)}.")
    field = FIELDS[key or "name"]
    if field in known:
        raise _UnknownWordError(f"“{key or 'name'}” is there twice: the first counts.")
    return field


def render(fields: Mapping[str, str]) -> str:
    """Write fields as words, in the order of ``FIELDS``; empty ones are left out."""
    terms = []
    for key, field in FIELDS.items():
        value = fields.get(field, "")
        if value:
            words = {"true": "yes", "false": "no"}.get(value, value) if key == "dry" else value
            terms.append(f"{key}:{_quoted(words)}")
    return " ".join(terms)


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def sees_places(user: Any, query: str) -> bool:
    """Whether the user sees every cluster and namespace that a query string names."""
    if roles.sees_all(user):
        return True
    fields = QueryDict(query.encode("utf-8", "ignore")).dict()
    cluster = fields.get("cluster", "")
    named = namespaces_named(fields)
    if cluster and not named:
        return roles.sees(user, cluster)
    return all(_sees(user, cluster, each) for each in named)


def namespaces_named(fields: Mapping[str, str]) -> set[str]:
    """Those of the namespace, of a policy ``Kind/namespace/name`` and of a service account."""
    named = {fields.get("namespace", "")}
    policy = fields.get("policy", "").split("/")
    if len(policy) == _IN_A_NAMESPACE:
        named.add(policy[1])
    user = fields.get("user", "")
    if user.startswith(_ACCOUNT):
        named.add(user.removeprefix(_ACCOUNT).partition(":")[0])
    return named - {""}


def _sees(user: Any, cluster: str, namespace: str) -> bool:
    """In this cluster, or in any where none is named."""
    if cluster:
        return roles.sees(user, cluster, namespace)
    return any(each.covers(each.cluster, namespace) for each in roles.bindings_of(user))
