"""Search language: words ``ns:team`` parsed to fields, errors, rendered; namespaces they name.

``ns:team verdict:denied -user:ada`` becomes filter fields, and back.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.http import QueryDict

from admission.record.filters import LENGTHS
from admission.record.search.words import EXCLUDE, FIELDS, Word, fault_of, words_of
from policies import roles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

_MOMENTS: Final = ("since", "until")
_DAYS_BACK: Final = {"today": 0, "yesterday": 1}
_LENGTH: Final = re.compile(r"(?P<number>[1-9][0-9]{0,3})(?P<unit>[mhd])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_PARTS_WITH_NAMESPACE: Final = 3


def parse(text: str, zone: tzinfo = UTC) -> tuple[dict[str, str], list[str]]:
    """Parse a query: values by field, and a sentence for each error.

    Times are read in a zone; those of the fields are in UTC.
    """
    fields: dict[str, str] = {}
    excluded: dict[str, None] = {}
    errors: list[str] = []
    for word in words_of(text):
        if fault := fault_of(word, is_excluded=word.is_excluded):
            errors.append(fault)
        elif word.is_excluded:
            excluded[str(word)] = None
        elif word.field in fields:
            errors.append(f"“{word.key}:” is there twice: the first counts.")
        else:
            fields[word.field] = word.value
    if excluded:
        fields[EXCLUDE] = " ".join(excluded)
    return in_zone(_with_moments(fields, datetime.now(zone)), zone, UTC), errors


def _with_moments(fields: dict[str, str], now: datetime) -> dict[str, str]:
    """``yesterday`` and lengths such as ``2d``, which the address does not know, as moments."""
    told = dict(fields)
    for name in _MOMENTS:
        days_back = _DAYS_BACK.get(fields.get(name, ""))
        if days_back is not None:
            told[name] = f"{now - timedelta(days=days_back):%Y-%m-%dT00:00}"
    length = _LENGTH.fullmatch(fields.get("last", ""))
    if length and fields["last"] not in LENGTHS and "since" not in fields:
        del told["last"]
        back = timedelta(**{_UNITS[length["unit"]]: int(length["number"])})
        told["since"] = f"{now - back:%Y-%m-%dT%H:%M}"
    return told


def in_zone(fields: Mapping[str, str], zone: tzinfo, other: tzinfo) -> dict[str, str]:
    """Fields with their times in another zone; what is no time, or has an offset, stays."""
    told = dict(fields)
    for name in _MOMENTS if zone != other else ():
        # What the filter cannot read, it reports.
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(fields.get(name, ""))
            if moment.tzinfo is None:
                moved = moment.replace(tzinfo=zone).astimezone(other).replace(tzinfo=None)
                told[name] = moved.isoformat(timespec="auto" if moved.second else "minutes")
    return told


def render(fields: Mapping[str, str], zone: tzinfo = UTC) -> str:
    """Write fields as a query with times in a zone, by ``FIELDS``; empty ones are left out."""
    fields = in_zone(fields, UTC, zone)
    found = [str(Word(key, fields[field])) for key, field in FIELDS.items() if fields.get(field)]
    return " ".join([*found, *(f"-{word}" for word in words_of(fields.get(EXCLUDE, "")))])


def sees_places(user: Any, query: str) -> bool:
    """Whether the user sees every cluster and namespace that a query string names.

    A shared query must not reveal that a namespace exists.
    """
    if roles.sees_all(user):
        return True
    fields = QueryDict(query.encode("utf-8", "ignore")).dict()
    cluster = fields.get("cluster", "")
    namespaces = namespaces_named(fields)
    excluded = [word.value for word in words_of(fields.get(EXCLUDE, "")) if word.key == "cluster"]
    if not all(roles.sees(user, name) for name in excluded):
        return False
    if cluster and not namespaces:
        return roles.sees(user, cluster)
    if cluster:
        return all(roles.sees(user, cluster, namespace) for namespace in namespaces)
    bindings = roles.bindings_of(user)
    return all(any(b.covers(b.cluster, namespace) for b in bindings) for namespace in namespaces)


def namespaces_named(fields: Mapping[str, str]) -> set[str]:
    """Namespaces in a query: its own, a policy's ``Kind/namespace/name``, a service account's."""
    named = [*fields.items()]
    named += ((word.field, word.value) for word in words_of(fields.get(EXCLUDE, "")))
    return {_namespace_in(field, value) for field, value in named} - {""}


def _namespace_in(field: str, value: str) -> str:
    if field == "policy":
        parts = value.split("/")
        return parts[1] if len(parts) == _PARTS_WITH_NAMESPACE else ""
    if field == "user" and value.startswith(_SERVICE_ACCOUNT):
        return value.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return value if field == "namespace" else ""
