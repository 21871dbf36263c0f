"""Terms that a query's field offers for the word being typed: fields, then values of a field.

Values are those of the newest decisions that the reader sees and that match the rest of the query;
others that are known, such as namespaces without decisions, come from the caller.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from admission.models import AnswerKind
from admission.record import owners
from admission.record.search.facets import FIELD_VALUES
from admission.record.search.query import parse
from admission.record.search.search import Search
from admission.record.search.words import EXCLUDE, FIELDS, TIMES, Word, key_of
from engine.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from admission.models import AuditEventQuerySet

MOST: Final = 10
"""Values offered at once; more letters narrow them down."""
_ABOUT: Final = {
    "cluster": "cluster",
    "ns": "namespace",
    "kind": "kind of object",
    "name": "prefix of the object's name",
    "user": "prefix of the user's name",
    "verdict": "denied, would-deny, mutated or allowed",
    "reason": "reason of a denial or a finding",
    "policy": "policy that was evaluated",
    "op": "create, update, delete or connect",
    "priority": "priority class of pods",
    "dry": "dry runs: yes or no",
    "phase": "mutate or validate",
    "last": "time until now, such as 2d",
    "since": "from this time on",
    "until": "before this time",
    "uid": "UID of a request",
}
_FIXED_VALUES: Final = {
    "verdict": tuple(AnswerKind.values),
    "op": ("create", "update", "delete", "connect"),
    "dry": ("yes", "no"),
    "phase": ("mutate", "validate"),
    "last": ("1h", "6h", "24h", "2d", "7d", "30d"),
    "since": ("today", "yesterday"),
    "until": ("today", "yesterday"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term to take; ``is_open``: something must follow it."""

    text: str
    about: str = ""
    is_open: bool = False


def terms(
    typed: str,
    rest: str,
    events: AuditEventQuerySet,
    known_names: Callable[[str], Iterable[str]],
) -> list[Term]:
    """The terms that a word may become, beside the rest of its query; a few statements at most.

    ``known_names`` are the names of the clusters or namespaces that the reader sees, by the key.
    """
    sign = "-" if typed.startswith("-") else ""
    typed_key, colon, beginning = typed.removeprefix(sign).partition(":")
    if not colon:
        return list(_keys(sign, typed_key.lower(), rest))
    key = key_of(typed_key)
    if key not in FIELDS or (sign and key in TIMES):
        return []
    values = _FIXED_VALUES.get(key)
    if values is None:
        known = [reason.value for reason in Reason] if key == "reason" else known_names(key)
        values = (*dict.fromkeys([*_seen(key, rest, events), *known]),)
    found = _beginning_first(values, beginning.strip('"').replace("\\", ""))
    return [Term(text=f"{sign}{Word(key, value)}") for value in found[:MOST]]


def _keys(sign: str, typed: str, rest: str) -> Iterator[Term]:
    asked = parse(rest)[0]
    for key, field in FIELDS.items():
        is_useful = key not in TIMES if sign else field not in asked
        if is_useful and key.startswith(typed):
            yield Term(text=f"{sign}{key}:", about=_ABOUT[key], is_open=True)
    if not sign and not typed:
        yield Term(text="-", about="exclude what matches", is_open=True)
    if typed and "verdict" not in asked:
        for verdict in AnswerKind.values:
            if verdict.startswith(typed):
                yield Term(text=f"{sign}verdict:{verdict}")


def _seen(key: str, rest: str, events: AuditEventQuerySet) -> list[str]:
    """The values of the newest decisions, the most frequent first."""
    field = FIELDS[key]
    asked = parse(rest)[0]
    context = {name: value for name, value in asked.items() if name not in (field, EXCLUDE)}
    search = Search(context, events)
    rows = (search if search.is_valid else Search({}, events)).sample().rows
    if key == "name":
        counts = Counter(owners.named(row.name) for row in rows if row.name)
    else:
        values_of = FIELD_VALUES[field][1] if field in FIELD_VALUES else lambda _: ()
        counts = Counter(value for row in rows for value in values_of(row) if value)
    return [value for value, _ in counts.most_common()]


def _beginning_first(values: Iterable[str], typed: str) -> list[str]:
    """Values that contain the text, those that begin with it first."""
    text = typed.casefold()
    found = [value for value in values if text in value.casefold()]
    return sorted(found, key=lambda value: not value.casefold().startswith(text))
