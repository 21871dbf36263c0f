"""The editor's Draft: its text to one object, manifest, sheet, Findings; PolicyPlace; KeptDraft.

The text decides: a form is first rendered as text, which is then read like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.core.exceptions import ValidationError

from policies import services
from policies.drafts.forms.sheets import LARGEST, Sheet, kept_metadata, renumbered
from policies.manifests.bundle import stripped
from policies.manifests.checks import (
    configuration_problems,
    limited_resources,
    object_problems,
)
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.objects import BundleObject, find_objects
from policies.manifests.refusals import refusal_problems
from policies.manifests.render import admission_configuration, render_documents, render_manifests
from policies.manifests.schema import KINDS as SHAPES
from policies.manifests.schema import QUOTA_CONFIGURATION, shape_findings
from policies.manifests.sources import parse_documents
from policies.models import Cluster, KeptDraft, Namespace
from policies.models.edits import MOST_DRAFTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.contrib.auth.models import User

    from policies.drafts.forms.sheets import Built
    from policies.drafts.kinds import EditableKind


SOURCE: Final = "YAML"
LONGEST: Final = 300_000
"""Characters of the longest text that the editor reads."""


class EditedPlace(Protocol):
    """What an editor edits: its kind, and how a text and a form of it are read."""

    @property
    def kind(self) -> EditableKind:
        """Its kind, with the fields and groups of its form."""

    def read_text(self, text: str, *, is_checked: bool = True) -> Draft:
        """The draft of a text; unless ``is_checked``, without the database's findings."""

    def read_sheet(self, sheet: Sheet, base: Mapping[str, Any]) -> Draft:
        """The draft of a form; what it does not show comes from ``base``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPlace:
    """Kind, cluster, namespace and name of a policy; ``name`` is empty for a new one."""

    kind: EditableKind
    cluster: Cluster
    namespace: Namespace | None = None
    name: str = ""

    @property
    def namespace_name(self) -> str:
        """Its namespace's name; empty for what belongs to a whole cluster."""
        return self.namespace.name if self.namespace else ""

    def find(self) -> Any:
        """The stored object, or None."""
        if not self.name:
            return None
        return services.find_object(
            self.cluster, kind=self.kind.name, name=self.name, namespace=self.namespace_name
        )

    def make(self) -> Any:
        """A new, unsaved object."""
        return services.new_object(self.cluster, self.kind.name, self.namespace)

    def read_text(self, text: str, *, is_checked: bool = True) -> Draft:
        """The draft of a text; unless ``is_checked``, without the database's findings."""
        return draft_of_text(self, text, is_checked=is_checked)

    def read_sheet(self, sheet: Sheet, base: Mapping[str, Any]) -> Draft:
        """The draft of a form; what it does not show comes from ``base``."""
        return draft_of_sheet(self, sheet, base)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem, with its place in the text and its cell in the form."""

    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    cell: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A text and its content; ``manifest`` and ``sheet`` are None if it cannot be read."""

    text: str
    manifest: dict[str, Any] | None = None
    sheet: Sheet | None = None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def is_fine(self) -> bool:
        """Whether it may be saved."""
        return self.manifest is not None and not self.findings


def render(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest."""
    if "limitedResources" in manifest:
        plugin = admission_configuration(manifest["limitedResources"])["plugins"][0]
        return render_documents([plugin["configuration"]])
    return render_manifests([manifest])


def draft_of_manifest(place: PolicyPlace, manifest: Mapping[str, Any]) -> Draft:
    """A stored manifest as a draft, unchecked."""
    return Draft(text=render(manifest), manifest=dict(manifest), sheet=_sheet_of(place, manifest))


def draft_of_sheet(place: PolicyPlace, sheet: Sheet, base: Mapping[str, Any]) -> Draft:
    """The draft of a form; fields that a form cannot express come from ``base``."""
    built = place.kind.build(sheet, base)
    read = draft_of_text(place, render(built.manifest), built=built)
    form_findings = tuple(Finding(message=text, cell=cell) for cell, text in built.problems)
    return Draft(
        text=read.text,
        manifest=read.manifest,
        sheet=renumbered(sheet, built),
        findings=form_findings + read.findings,
    )


def draft_of_text(
    place: PolicyPlace, text: str, *, built: Built | None = None, is_checked: bool = True
) -> Draft:
    """The draft of a text with its findings; unless ``is_checked``, without the database's."""
    try:
        draft_object = _only_object(place, text)
    except ManifestError as error:
        return Draft(text=text, findings=tuple(findings_of_problems(error.problems)))
    problems = _file_problems(place, draft_object)
    draft_shape = QUOTA_CONFIGURATION if place.kind.is_configuration else SHAPES[place.kind.name]
    if any(True for _ in shape_findings(draft_object.value, draft_shape)):
        return Draft(text=text, findings=tuple(findings_of_problems(problems, built)))
    manifest = _canonical_manifest(place, draft_object)
    sheet = _sheet_of(place, manifest)
    if built is None and sheet is not None:
        built = place.kind.build(sheet, manifest)
    # The database comes last: editors check drafts again and again, mostly wrong ones.
    if is_checked and not problems:
        problems = _stored_problems(place, draft_object, manifest)
    return Draft(
        text=text,
        manifest=manifest,
        sheet=sheet,
        findings=tuple(findings_of_problems(problems, built)),
    )


def kept_parts(place: PolicyPlace, draft: Draft) -> list[str]:
    """The parts of a draft that its form does not show and does not change."""
    if draft.sheet is None or draft.manifest is None:
        return []
    lines = [
        line["kept"] for found in draft.sheet.lines.values() for line in found if "kept" in line
    ]
    entries = [f"{len(lines)} line{'s' if len(lines) > 1 else ''} marked as kept"] if lines else []
    return entries + ([] if place.kind.is_configuration else kept_metadata(draft.manifest))


def _sheet_of(place: PolicyPlace, manifest: Mapping[str, Any]) -> Sheet | None:
    """The form of a manifest; None if it would be too large for one request."""
    sheet = place.kind.show(manifest)
    return sheet if sheet.size <= LARGEST else None


def _only_object(place: PolicyPlace, text: str) -> BundleObject:
    """The one object of a text; raises ManifestError."""
    if len(text) > LONGEST:
        raise ManifestError([problem_of_text(f"longer than {LONGEST} characters")])
    contents = find_objects(parse_documents(text, SOURCE))
    objects = contents.configurations if place.kind.is_configuration else contents.objects
    of_kind = [
        item for item in objects if item.kind == place.kind.name or place.kind.is_configuration
    ]
    if contents.problems:
        raise ManifestError(contents.problems)
    object_count = len(contents.objects) + len(contents.configurations) + len(contents.others)
    if len(of_kind) != 1 or object_count != 1:
        one_object_message = f"there must be exactly one {place.kind.name} here, and nothing else"
        raise ManifestError([problem_of_text(one_object_message)])
    return of_kind[0]


def problem_of_text(message: str) -> Problem:
    """A problem of a whole text, at its beginning."""
    return Problem(source=SOURCE, line=1, column=1, message=message)


def _file_problems(place: PolicyPlace, item: BundleObject) -> list[Problem]:
    if place.kind.is_configuration:
        return configuration_problems(item)
    file_problems = object_problems(item)
    for name, page_says in (("name", place.name), ("namespace", place.namespace_name)):
        draft_says = item.metadata.get(name) or ""
        if page_says and draft_says and draft_says != page_says:
            message = f"this is the page of {page_says}; another {name} is another policy"
            file_problems.append(item.problem(f"metadata.{name}", message, f"write {page_says}"))
    return file_problems


def _canonical_manifest(place: PolicyPlace, draft_object: BundleObject) -> dict[str, Any]:
    """The manifest as it would be stored; unchanged if it breaks its rules."""
    if place.kind.is_configuration:
        if configuration_problems(draft_object):
            return {**place.kind.blank(), **draft_object.value}
        return {**place.kind.blank(), "limitedResources": list(limited_resources(draft_object))}
    draft_manifest = stripped(draft_object, place.namespace_name)
    try:
        return dict(services.take_over(place.make(), draft_manifest).to_manifest())
    except ValidationError:
        return draft_manifest


def _stored_problems(
    place: PolicyPlace, draft_object: BundleObject, manifest: Mapping[str, Any]
) -> list[Problem]:
    """Problems that only the database shows: used names, fields that must not change."""
    if place.kind.is_configuration:
        return []
    policy_or_new = place.find() or place.make()
    try:
        services.take_over(policy_or_new, manifest)
        if policy_or_new.pk and place.namespace is not None:
            # Another copy: reading the manifest has changed the first one.
            policy_or_new.replaces = place.find()
        policy_or_new.full_clean()
    except ValidationError as error:
        return refusal_problems(draft_object, error)
    return []


def findings_of_problems(
    problems: Iterable[Problem], built: Built | None = None
) -> Iterable[Finding]:
    """Problems of a text as findings, each with its cell of the form."""
    for problem in problems:
        finding_hint = f" ({problem.hint})" if problem.hint else ""
        yield Finding(
            message=f"{problem.message}{finding_hint}",
            path=problem.field,
            line=problem.line,
            column=problem.column,
            cell=built.cell_of(problem.field) if built else "",
        )


def kept_draft_of(user: User, place: PolicyPlace) -> KeptDraft | None:
    """The unsaved draft of this user for this policy."""
    return KeptDraft.objects.filter(**_draft_key(user, place)).first()


def keep_draft(user: User, place: PolicyPlace, text: str, *, seen: int) -> None:
    """Store a text in place of the last one; an unchanged text writes nothing."""
    draft_key = _draft_key(user, place)
    if KeptDraft.objects.filter(**draft_key, text=text, seen=seen).exists():
        return
    KeptDraft.objects.update_or_create(**draft_key, defaults={"text": text, "seen": seen})
    older = KeptDraft.objects.filter(user=user).order_by("-changed", "-pk")
    KeptDraft.objects.filter(pk__in=list(older.values_list("pk", flat=True)[MOST_DRAFTS:])).delete()


def drop_draft(user: User, place: PolicyPlace) -> None:
    """Delete the user's draft of this policy."""
    KeptDraft.objects.filter(**_draft_key(user, place)).delete()


def _draft_key(user: User, place: PolicyPlace) -> dict[str, Any]:
    namespace = place.namespace.name if place.namespace else ""
    draft_names = {"namespace": namespace, "kind": place.kind.name, "name": place.name}
    return {"user": user, "cluster": place.cluster, **draft_names}
