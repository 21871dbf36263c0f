"""Search language: words ``ns:team`` parsed to fields, errors, rendered; namespaces they name.

``ns:team verdict:denied user:ada`` becomes filter fields, and back. A word without a colon is the
beginning of an object's name.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.http import QueryDict

from admission.record.filters import LENGTHS
from policies import roles

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_DAYS_BACK: Final = {"today": 0, "yesterday": 1}
_LENGTH: Final = re.compile(r"(?P<number>[1-9][0-9]{0,3})(?P<unit>[mhd])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
_WORD: Final = re.compile(
    r"(?P<bare>[A-Za-z_-]+):(?=\s|$)"
    r'|(?:(?P<key>[A-Za-z_-]+):)?(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S+))',
    re.DOTALL,
)
_UNQUOTED: Final = re.compile(r'[^\s":\\][^\s"\\]*')
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_PARTS_WITH_NAMESPACE: Final = 3
LONGEST: Final = 2000
"""Characters of a query that are read."""


def parse(text: str) -> tuple[dict[str, str], list[str]]:
    """Parse a query: values by field, and a sentence for each error."""
    fields: dict[str, str] = {}
    errors: list[str] = []
    for word in _WORD.finditer(text[:LONGEST]):
        if word["bare"]:
            continue  # a key whose value is not there yet
        quoted_text, word_key = word["quoted"], (word["key"] or "").lower()
        value = word["plain"] if quoted_text is None else re.sub(r"\\(.)", r"\1", quoted_text)
        word_key = _SYNONYMS.get(word_key, word_key)
        field = FIELDS.get(word_key or "name", "")
        if not field:
            errors.append(f"“{word_key}:” is not known; there are {', '.join(FIELDS)}.")
        elif field in fields:
            errors.append(f"“{word_key or 'name'}” is there twice: the first counts.")
        else:
            fields[field] = _TRUTHS.get(value, value) if field == "dry_run" else value
    return _with_moments(fields, datetime.now(UTC)), errors


def _with_moments(fields: dict[str, str], now: datetime) -> dict[str, str]:
    """``yesterday`` and lengths such as ``2d``, which the address does not know, as moments."""
    told = dict(fields)
    for name in ("since", "until"):
        days_back = _DAYS_BACK.get(fields.get(name, ""))
        if days_back is not None:
            told[name] = f"{now - timedelta(days=days_back):%Y-%m-%dT00:00}"
    length = _LENGTH.fullmatch(fields.get("last", ""))
    if length and fields["last"] not in LENGTHS and "since" not in fields:
        del told["last"]
        back = timedelta(**{_UNITS[length["unit"]]: int(length["number"])})
        told["since"] = f"{now - back:%Y-%m-%dT%H:%M}"
    return told


def render(fields: Mapping[str, str]) -> str:
    """Write fields as a query, in the order of ``FIELDS``; empty ones are left out."""
    words = []
    for word_key, field in FIELDS.items():
        value = fields.get(field, "")
        if word_key == "dry":
            value = {"true": "yes", "false": "no"}.get(value, value)
        if value and not _UNQUOTED.fullmatch(value):
            value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if value:
            words.append(f"{word_key}:{value}")
    return " ".join(words)


def sees_places(user: Any, query: str) -> bool:
    """Whether the user sees every cluster and namespace that a query string names.

    A shared query must not reveal that a namespace exists.
    """
    if roles.sees_all(user):
        return True
    fields = QueryDict(query.encode("utf-8", "ignore")).dict()
    cluster = fields.get("cluster", "")
    namespaces = namespaces_named(fields)
    if cluster and not namespaces:
        return roles.sees(user, cluster)
    if cluster:
        return all(roles.sees(user, cluster, namespace) for namespace in namespaces)
    bindings = roles.bindings_of(user)
    return all(any(b.covers(b.cluster, namespace) for b in bindings) for namespace in namespaces)


def namespaces_named(fields: Mapping[str, str]) -> set[str]:
    """Namespaces in a query: its own, a policy's ``Kind/namespace/name``, a service account's."""
    namespaces = {fields.get("namespace", "")}
    policy = fields.get("policy", "").split("/")
    if len(policy) == _PARTS_WITH_NAMESPACE:
        namespaces.add(policy[1])
    user = fields.get("user", "")
    if user.startswith(_SERVICE_ACCOUNT):
        namespaces.add(user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0])
    return namespaces - {""}
