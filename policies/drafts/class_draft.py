"""ClassPlace: a namespace class in an editor, its drafts read from its text and from its form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError

from policies import services
from policies.drafts.draft import (
    LONGEST,
    SOURCE,
    Draft,
    Finding,
    findings_of_problems,
    problem_of_text,
    render,
)
from policies.drafts.forms.namespace_class import settled
from policies.drafts.forms.sheets import LARGEST
from policies.drafts.kinds import NAMESPACE_CLASS
from policies.manifests.checks import class_problems, problems_of_policies
from policies.manifests.documents import ManifestError
from policies.manifests.objects import find_objects
from policies.manifests.refusals import refusal_problems
from policies.manifests.schema import KINDS as SHAPES
from policies.manifests.schema import shape_findings
from policies.manifests.sources import parse_documents
from policies.models import NamespaceClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.drafts.forms.sheets import Built, Sheet
    from policies.drafts.kinds import EditableKind
    from policies.manifests.documents import Problem
    from policies.manifests.objects import BundleObject

ONE: Final = "there must be one NamespaceClass here and nothing else"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPlace:
    """A namespace class; ``name`` is empty for a new one."""

    name: str = ""

    @property
    def kind(self) -> EditableKind:
        """The kind, with the fields and groups of its form."""
        return NAMESPACE_CLASS

    def read_text(self, text: str, *, is_checked: bool = True) -> Draft:
        """The draft of a text; unless ``is_checked``, without the database's findings."""
        return self._read(text, None, is_checked=is_checked)

    def read_sheet(self, sheet: Sheet, base: Mapping[str, Any]) -> Draft:
        """The draft of a form; what it does not show comes from ``base``."""
        built = self.kind.build(sheet, base)
        read = self._read(render(built.manifest), built, is_checked=True)
        form_findings = tuple(Finding(message=text, cell=cell) for cell, text in built.problems)
        return Draft(
            text=read.text,
            manifest=read.manifest,
            sheet=settled(sheet, base),
            findings=form_findings + read.findings,
        )

    def draft_of(self, manifest: Mapping[str, Any]) -> Draft:
        """A stored class as a draft, unchecked."""
        return Draft(text=render(manifest), manifest=dict(manifest), sheet=_sheet_of(manifest))

    def _read(self, text: str, built: Built | None, *, is_checked: bool) -> Draft:
        try:
            found = _only_class(text)
        except ManifestError as error:
            return Draft(text=text, findings=tuple(findings_of_problems(error.problems)))
        problems = [*class_problems(found), *self._name_problems(found)]
        if _has_another_shape(found):
            return Draft(text=text, findings=tuple(findings_of_problems(problems, built)))
        manifest = {name: found.value[name] for name in ("apiVersion", "kind")}
        manifest |= {"metadata": {"name": found.name}, "spec": found.value.get("spec") or {}}
        if not problems:
            try:
                manifest = services.read_class(manifest)
            except ValidationError as error:
                problems = refusal_problems(found, error)
        if is_checked and not problems:
            problems = self._stored_problems(found)
        sheet = _sheet_of(manifest)
        if built is None and sheet is not None:
            built = self.kind.build(sheet, manifest)
        findings = tuple(findings_of_problems(problems, built))
        return Draft(text=text, manifest=manifest, sheet=sheet, findings=findings)

    def _name_problems(self, found: BundleObject) -> list[Problem]:
        if self.name in ("", found.name):
            return []
        message = f"is {self.name} and never changes: make a new class and delete this one"
        return [found.problem("metadata.name", message)]

    def _stored_problems(self, found: BundleObject) -> list[Problem]:
        """A new class takes no name that another one has."""
        if self.name or not NamespaceClass.objects.filter(name=found.name).exists():
            return []
        return [found.problem("metadata.name", f"there is a class {found.name} already")]


def _only_class(text: str) -> BundleObject:
    if len(text) > LONGEST:
        raise ManifestError([problem_of_text(f"longer than {LONGEST} characters")])
    contents = find_objects(parse_documents(text, SOURCE))
    if contents.problems:
        raise ManifestError(contents.problems)
    others = [*contents.objects, *contents.configurations, *contents.others]
    if len(contents.classes) != 1 or others:
        raise ManifestError([problem_of_text(ONE)])
    found: BundleObject = contents.classes[0]
    return found


def _has_another_shape(found: BundleObject) -> bool:
    """Whether a form would lose some of it: a field is no map, no list, or unknown."""
    if any(True for _ in shape_findings(found.value, SHAPES[found.kind])):
        return True
    return bool(problems_of_policies(found))


def _sheet_of(manifest: Mapping[str, Any]) -> Sheet | None:
    """The form of a manifest; None if it would be too large for one request."""
    sheet = NAMESPACE_CLASS.show(manifest)
    return sheet if sheet.size <= LARGEST else None
