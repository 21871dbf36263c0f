"""Words of a query: ``ns:team``, ``-user:kubelet``; fields, quotes, and what cannot be excluded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS: Final = {
    "cluster": "cluster",
    "ns": "namespace",
    "kind": "kind",
    "name": "name",
    "user": "user",
    "verdict": "verdict",
    "reason": "reason",
    "policy": "policy",
    "op": "operation",
    "priority": "priority",
    "dry": "dry_run",
    "phase": "phase",
    "last": "last",
    "since": "since",
    "until": "until",
    "uid": "request_uid",
}
"""Each word before a colon, and its field."""
EXCLUDE: Final = "exclude"
"""The field of the words that begin with a minus."""
LONGEST: Final = 2000
"""Characters of a query that are read."""
_SYNONYMS: Final = {
    "namespace": "ns",
    "operation": "op",
    "dry-run": "dry",
    "dry_run": "dry",
    "request_uid": "uid",
}
_TRUTHS: Final = {"yes": "true", "no": "false"}
_TRUTH_WORDS: Final = {value: word for word, value in _TRUTHS.items()}
TIMES: Final = {"last": "until", "since": "until", "until": "since"}
"""Keys of times, which exclude nothing, and the key that asks for the rest of the time."""
_WORD: Final = re.compile(
    r"(?P<bare>[A-Za-z_-]+):(?=\s|$)"
    r"|(?P<minus>-)?(?:(?P<key>[A-Za-z_][A-Za-z_-]*):)?"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S+))',
    re.DOTALL,
)
_UNQUOTED: Final = re.compile(r'[^\s":\\][^\s"\\]*')


@dataclass(frozen=True, slots=True)
class Word:
    """A key and a value; ``field`` is empty where no field has this key."""

    key: str
    value: str
    is_excluded: bool = False

    @property
    def field(self) -> str:
        """The field of the filter."""
        return FIELDS.get(self.key, "")

    @property
    def typed_value(self) -> str:
        """The value as people type it."""
        if self.field == "dry_run":
            return _TRUTH_WORDS.get(self.value, self.value)
        return self.value.lower() if self.field == "operation" else self.value

    def __str__(self) -> str:
        """The word as it is typed, without the minus."""
        value = self.typed_value
        if not _UNQUOTED.fullmatch(value):
            value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{self.key}:{value}"


def key_of(typed: str) -> str:
    """A key as ``FIELDS`` has it."""
    return _SYNONYMS.get(typed.lower(), typed.lower())


def words_of(text: str) -> Iterator[Word]:
    """The words of a query; a word without a colon is the beginning of an object's name."""
    for word in _WORD.finditer(text[:LONGEST]):
        if word["bare"] or word["plain"] == "-":
            continue  # not typed to its end yet
        quoted_text, typed_key = word["quoted"], word["key"] or "name"
        value = word["plain"] if quoted_text is None else re.sub(r"\\(.)", r"\1", quoted_text)
        key = key_of(typed_key)
        if value:
            meant = _meant(FIELDS.get(key, ""), value)
            yield Word(key, meant, is_excluded=bool(word["minus"]))


def fault_of(word: Word, *, is_excluded: bool) -> str:
    """Why a word cannot be used, and what to write instead; empty: it can."""
    if not word.field:
        excludable = ", ".join(key for key in FIELDS if not (is_excluded and key in TIMES))
        sign = "-" if is_excluded else ""
        return f"“{sign}{word.key}:” is not known; there are {excludable}."
    if is_excluded and word.key in TIMES:
        return f"“-{word.key}:” excludes nothing; write “{TIMES[word.key]}:” instead."
    return ""


def without(text: str, removed: Word) -> str:
    """The words of a text except one."""
    return " ".join(str(word) for word in words_of(text) if str(word) != str(removed))


def _meant(field: str, value: str) -> str:
    if field == "dry_run":
        return _TRUTHS.get(value, value)
    return value.upper() if field == "operation" else value
