"""PyYAML events to Documents: a stack of open nodes, keys; aliases, anchors, tags refused.

Aliases, tags, merge keys and duplicate keys are refused, each with its place. Numbers keep their
text (RawNumber), so that we do not turn quantities into floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from engine.wire import DEEPEST_NESTING
from policies.manifests.documents import Document, ManifestError, Problem
from policies.manifests.yaml.scalars import resolve_plain

if TYPE_CHECKING:
    from policies.manifests.documents import Path, Place

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser, eighteen times as fast as the one in Python; PyYAML's wheels contain it."""
_STANDARD_TAG = "tag:yaml.org,2002:"
_KNOWN_TAGS = frozenset(
    _STANDARD_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq")
)


def read(text: str, source: str) -> list[Document]:
    """All documents of a text, empty ones too; raises ManifestError with every problem."""
    builder = _Builder(source)
    try:
        events = yaml.parse(text, Loader=_LOADER)
        finished = [done for event in events if (done := builder.feed(event)) is not None]
    except MarkedYAMLError as error:
        yaml_problem = _syntax_problem(error, source, text)
        raise ManifestError([*builder.problems, yaml_problem]) from error
    except YAMLError as error:
        yaml_reason = str(error).splitlines()[0]
        yaml_problem = Problem(source=source, message=f"cannot be read as YAML: {yaml_reason}")
        raise ManifestError([*builder.problems, yaml_problem]) from error
    if builder.problems:
        raise ManifestError(builder.problems)
    return finished


@dataclass(slots=True)
class _Open:
    """A mapping or list under construction; ``key`` is the key whose value comes next."""

    value: dict[str, Any] | list[Any]
    path: Path
    key: str | None = None


class _Builder:
    """Builds documents from parser events without recursion."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.document = Document(source)
        self.stack: list[_Open] = []

    def feed(self, event: Any) -> Document | None:
        """Process one event; returns a document at its end."""
        if isinstance(event, DocumentStartEvent):
            self.document, self.stack = Document(self.source), []
        elif isinstance(event, AliasEvent):
            self.refuse(event, "an alias (*name)", "write the value out")
            # The problem is noted; the value keeps the rest of the document in place.
            self.place(event, None)
        elif isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent):
            self.start(event)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self.stack.pop()
        return self.document if isinstance(event, DocumentEndEvent) else None

    def start(self, event: Any) -> None:
        """Process a scalar, or the opening of a mapping or list."""
        self.check_decorations(event)
        if isinstance(event, ScalarEvent):
            self.place(event, self.scalar(event))
            return
        opened_node: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
        node_path = self.place(event, opened_node)
        self.stack.append(_Open(opened_node, node_path))
        # Other code recurses over the values.
        if len(self.stack) > DEEPEST_NESTING:
            raise ManifestError(
                [self.problem_at(event, f"nested deeper than {DEEPEST_NESTING} levels")]
            )

    def check_decorations(self, event: Any) -> None:
        """Refuse anchors and tags, which give a text another meaning than it shows."""
        if event.anchor is not None:
            self.refuse(event, f"an anchor (&{event.anchor})", "write the value out")
        event_tag = str(event.tag or "")
        if event_tag and event_tag not in _KNOWN_TAGS:
            self.refuse(event, f"a tag ({event_tag})", "leave it out, quote strings")

    def scalar(self, event: Any) -> object:
        """The value of a scalar: a plain one as kubectl reads it, a quoted one as text."""
        scalar_tag = str(event.tag or "")
        if not event.style and not scalar_tag and not self.expects_key():
            return resolve_plain(event.value)
        if scalar_tag and scalar_tag != f"{_STANDARD_TAG}str":
            return resolve_plain(event.value)
        return event.value

    def expects_key(self) -> bool:
        """Whether the next node is a mapping's key."""
        return (
            bool(self.stack)
            and isinstance(self.stack[-1].value, dict)
            and self.stack[-1].key is None
        )

    def place(self, event: Any, value: Any) -> Path:
        """Add a value to its mapping or list, and note its place; returns its path."""
        if not self.stack:
            self.document.value = value
            self.document.places[()] = self.where(event)
            return ()
        open_node = self.stack[-1]
        if isinstance(open_node.value, list):
            node_path: Path = (*open_node.path, len(open_node.value))
            open_node.value.append(value)
            self.document.places[node_path] = self.where(event)
            return node_path
        if open_node.key is None:
            return self.take_key(event, open_node, value)
        node_path = (*open_node.path, open_node.key)
        open_node.value[open_node.key] = value
        open_node.key = None
        return node_path

    def take_key(self, event: Any, open_node: _Open, key_text: Any) -> Path:
        """Check a key: it must be text, and new in its mapping."""
        if not isinstance(key_text, str):
            self.refuse(event, "a key that is no text", "write the key as one word")
            key_text = f"\0{len(self.problems)}"  # any text that no file contains
        if key_text == "<<" and not event.style:
            self.refuse(event, "a merge key (<<)", "write the fields out")
        key_path = (*open_node.path, key_text)
        if key_path in self.document.places:
            first_line = self.document.places[key_path][0]
            self.problems.append(
                self.problem_at(
                    event, f'duplicate key "{key_text}", first on line {first_line}', "keep one"
                )
            )
        else:
            self.document.places[key_path] = self.where(event)
        open_node.key = key_text
        return key_path

    def where(self, event: Any) -> Place:
        """Line and column, counted from 1."""
        return event.start_mark.line + 1, event.start_mark.column + 1

    def problem_at(self, event: Any, message: str, hint: str = "") -> Problem:
        """A problem at an event."""
        line, column = self.where(event)
        return Problem(source=self.source, line=line, column=column, message=message, hint=hint)

    def refuse(self, event: Any, what: str, instead: str) -> None:
        """Note a problem: a feature of YAML that manifests must not use."""
        self.problems.append(self.problem_at(event, f"{what} is not allowed", instead))


def _syntax_problem(error: MarkedYAMLError, source: str, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    syntax_message = ", ".join(part for part in (error.context, error.problem) if part)
    syntax_hint = "indent with spaces" if "'\\t'" in syntax_message else ""
    if mark is None:
        return Problem(source=source, message=syntax_message, hint=syntax_hint)
    return Problem(
        source=source,
        line=min(mark.line, text.count("\n")) + 1,  # the parser may point behind the last line
        column=mark.column + 1,
        message=syntax_message,
        hint=syntax_hint,
    )
