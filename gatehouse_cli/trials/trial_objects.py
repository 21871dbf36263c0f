"""TrialObjects, the objects of files to be judged, with the verdicts that their authors expect."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.decision import Reason
from gatehouse_cli.trials.kinds import is_judged, kind_problem, opened
from policies.manifests.objects import BundleObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.manifests.documents import Document, Problem

EXPECT: Final = "policy.gatehouse.dev/expect"
EXPECT_REASON: Final = "policy.gatehouse.dev/expect-reason"
NO_MANIFEST: Final = "no manifest"
"""How documents without apiVersion and kind are counted: values of Helm, a kustomization."""
_WORDS: Final = ("allow", "deny")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The verdict that a manifest's annotations announce; ``reason`` is one of the denial's."""

    is_denial: bool
    reason: Reason | None = None

    @property
    def field(self) -> str:
        """The annotation that announces it."""
        return annotation_field(EXPECT_REASON if self.reason else EXPECT)


@dataclass(frozen=True, slots=True)
class TrialObject:
    """One object to be judged."""

    item: BundleObject
    expected: Expectation | None = None

    @property
    def title(self) -> str:
        """Its name in reports: ``Deployment shop/web``."""
        prefix = self.item.metadata.get("generateName")
        name = self.item.name or (f"{prefix}*" if prefix else "(no name)")
        place = f"{self.item.namespace}/" if self.item.namespace else ""
        return f"{self.item.kind} {place}{name}"

    @property
    def manifest(self) -> dict[str, Any]:
        """The object as it would be sent, without the annotations that are meant for the test."""
        annotations = self.item.metadata.get("annotations")
        if self.expected is None or not isinstance(annotations, dict):
            return dict(self.item.value)
        kept = {k: v for k, v in annotations.items() if k not in (EXPECT, EXPECT_REASON)}
        return {**self.item.value, "metadata": {**self.item.metadata, "annotations": kept}}


@dataclass(slots=True)
class TrialObjects:
    """What was found in files: objects to judge, problems, and the number of others by kind."""

    objects: list[TrialObject] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def add(self, documents: Iterable[Document]) -> None:
        """Sort the objects of documents; lists are opened."""
        for item in _open_lists(documents):
            problems = _problems(item)
            self.problems += problems
            if problems:
                continue
            if not isinstance(item.value.get("kind"), str):
                self.skipped[NO_MANIFEST] += 1
            elif not is_judged(item):
                self.skipped[item.kind] += 1
            else:
                expected, expectation_problems = _expectation(item)
                self.problems += expectation_problems
                self.objects.append(TrialObject(item, expected))


def annotation_field(name: str) -> str:
    """The path of an annotation."""
    return f"metadata.annotations[{name}]"


def _open_lists(documents: Iterable[Document]) -> Iterator[BundleObject]:
    # A stack and no recursion: files may nest lists as deep as they like.
    unopened = [BundleObject(document.value, document) for document in documents]
    unopened.reverse()
    while unopened:
        item = unopened.pop()
        members = opened(item.value)
        if members is None:
            yield item
            continue
        inner = [
            BundleObject(member, item.document, item.at(f"items[{index}]"))
            for index, member in enumerate(members)
        ]
        unopened += reversed(inner)


def _problems(item: BundleObject) -> list[Problem]:
    """Find what keeps an object from being judged at all."""
    if not isinstance(item.value, dict):
        message = "must be a map with apiVersion and kind"
        return [item.problem("", message, "is there a dash too many?")]
    if "kind" not in item.value and "apiVersion" not in item.value:
        return []
    if type(item.value.get("kind")) is not str or not item.value["kind"]:
        return [item.problem("kind", "Required value", "such as Deployment")]
    wrong_kind = kind_problem(item)
    return [item.problem(*wrong_kind)] if wrong_kind else _metadata_problems(item)


def _metadata_problems(item: BundleObject) -> list[Problem]:
    metadata = item.value.get("metadata")
    if not isinstance(metadata, dict | None):
        return [item.problem("metadata", "must be a map")]
    if type(item.metadata.get("namespace") or "") is not str:
        return [item.problem("metadata.namespace", "must be text", "put it in quotes")]
    return []


def _expectation(item: BundleObject) -> tuple[Expectation | None, list[Problem]]:
    """Read the expected verdict; a reason alone expects a denial, too."""
    annotations = item.metadata.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    if EXPECT not in annotations and EXPECT_REASON not in annotations:
        return None, []
    word = annotations.get(EXPECT, "deny")
    if word not in _WORDS:
        return None, [item.problem(annotation_field(EXPECT), "must be allow or deny")]
    if EXPECT_REASON not in annotations:
        return Expectation(is_denial=word == "deny"), []
    place, reason = annotation_field(EXPECT_REASON), str(annotations[EXPECT_REASON])
    if word == "allow":
        return None, [item.problem(place, "only a denial has a reason", f"write {EXPECT}: deny")]
    if reason not in tuple(Reason):
        near = difflib.get_close_matches(reason, list(Reason), n=1)
        hint = f"did you mean {near[0]}?" if near else "docs/reference/reasons.md lists them"
        return None, [item.problem(place, f'unknown reason "{reason}"', hint)]
    return Expectation(is_denial=True, reason=Reason(reason)), []
