"""``content_hash`` of the bases and contents of a change set."""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedContent:
    """One object of a change set: its base, and its content; None where there is no object."""

    cluster: str
    kind: str
    namespace: str
    name: str
    base_revision: int
    base: Mapping[str, Any] | None
    content: Mapping[str, Any] | None


def content_hash(contents: Iterable[ProposedContent]) -> str:
    """The SHA-256 of all bases and contents; the order of objects and of members is no matter."""
    rows = sorted(_canonical(astuple(each)) for each in contents)
    return hashlib.sha256(_canonical(rows).encode()).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
