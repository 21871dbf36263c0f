"""A Bundle imported all or nothing, or as a dry run: Report of ObjectChanges, diffs, hints."""

from __future__ import annotations

import difflib
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError

from policies import services
from policies.managed_fields import managers_from_json, overwritten
from policies.manifests.documents import ManifestError
from policies.manifests.export import export_limited_resources
from policies.manifests.refusals import refusal_problems
from policies.manifests.render import admission_configuration, render_documents, render_manifests
from policies.models import NamespaceClass
from policies.services import FieldWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.lints import Lint
    from policies.manifests.bundle import Bundle
    from policies.manifests.documents import Problem
    from policies.models import Cluster

_CONFIGURATION = "limitedResources"
IMPORT: Final = "import:"
"""Before the name of a user: the field manager of imports."""
_HINTS = {"unknown_namespace": "--create-namespaces makes it"}


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object before and after, as canonical YAML; ``before`` is empty for a new one."""

    title: str
    before: str
    after: str

    @property
    def verb(self) -> str:
        """The effect of the import: created, changed or unchanged."""
        if self.before == self.after:
            return "unchanged"
        return "changed" if self.before else "created"

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        diff_lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"stored/{self.title}" if self.before else "/dev/null",
            f"new/{self.title}",
        )
        return "".join(diff_lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The user of an import, and the reason."""

    user: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """A dry run, missing namespaces created, edits of others set back: by default none of them."""

    dry_run: bool = False
    create_namespaces: bool = False
    force: bool = False


NOTHING_SPECIAL: Final = ImportOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The changes of an import, real or in a dry run; ``hints`` are the lints afterwards."""

    changes: tuple[ObjectChange, ...]
    hints: tuple[str, ...]


def import_bundle(
    bundle: Bundle,
    *,
    cluster: Cluster,
    author: Author,
    options: ImportOptions = NOTHING_SPECIAL,
) -> Report:
    """Write all objects in one transaction; a dry run writes and locks nothing.

    Raises ManifestError with the problems of all objects that the models refuse, or whose changed
    fields were last set by somebody else than an import; then nothing is written.
    """
    if options.dry_run:
        previews = _previews(bundle, cluster, options)
        lints = services.lint_previews(cluster, previews)
        return _report(bundle, cluster, previews, lints)
    writer = FieldWriter(f"{IMPORT}{author.user}")
    # Classes concern all clusters, which are locked before this one by itself.
    of_classes = services.classes_written() if bundle.classes else nullcontext()
    with of_classes, services.policy_write(cluster), services.managed_by(writer):
        previews = _previews(bundle, cluster, options)
        report = _report(bundle, cluster, previews, ())
        # All locks before the first write, in one order, as decisions take them.
        services.lock_used(cluster, {wanted.key[1] for wanted in bundle.objects})
        _store(bundle, cluster, previews, author)
        # Once all is written: a lint may concern several objects of a namespace.
        namespaces = sorted({wanted.key[1] for wanted in bundle.objects} - {""})
        found = services.lint_all(cluster, namespaces)
    hints = tuple(str(lint) for name in namespaces for lint in found[name])
    return Report(changes=report.changes, hints=hints)


def _previews(bundle: Bundle, cluster: Cluster, options: ImportOptions) -> list[services.Preview]:
    """Check all objects; raises ManifestError."""
    previews = services.preview_many(
        cluster=cluster,
        manifests=[wanted.manifest for wanted in bundle.objects],
        create_namespaces=options.create_namespaces,
    )
    import_problems = [
        problem
        for wanted, preview in zip(bundle.objects, previews, strict=True)
        if preview.error is not None
        for problem in refusal_problems(wanted.item, preview.error, _HINTS)
    ]
    if not import_problems and not options.force:
        import_problems = _overwrite_problems(bundle, cluster, previews)
    if import_problems:
        raise ManifestError(import_problems)
    return previews


def _overwrite_problems(
    bundle: Bundle, cluster: Cluster, previews: Sequence[services.Preview]
) -> list[Problem]:
    """Find the edits that the import would set back without a word."""
    sides = [
        (wanted.item, preview.key, preview.before, preview.after)
        for wanted, preview in zip(bundle.objects, previews, strict=True)
    ]
    if bundle.configuration is not None:
        wanted_entries = list(bundle.limited_resources or ())
        before, after = services.limited_resources_manifests(cluster, wanted_entries)
        sides.append((bundle.configuration, services.CONFIGURATION, before, after))
    rows = services.managers_of(cluster, [key for _, key, _, _ in sides])
    return [
        item.problem(
            managed.field,
            f"was {'removed' if managed.manager.removed else 'set'} by {managed.manager}"
            f" in revision {managed.manager.revision}",
            "change the file, or take it over with --force",
            "FieldManagerConflict",
        )
        for item, key, before, after in sides
        if (row := rows.get(key)) is not None
        for managed in overwritten(managers_from_json(row.fields), before, after)
        if not managed.manager.manager.startswith(IMPORT)
    ]


def _store(
    bundle: Bundle, cluster: Cluster, previews: Sequence[services.Preview], author: Author
) -> None:
    pairs = [
        (preview, wanted.manifest) for wanted, preview in zip(bundle.objects, previews, strict=True)
    ]
    services.store_previews(cluster=cluster, previews=pairs, user=author.user, reason=author.reason)
    if bundle.configuration is not None:
        services.set_limited_resources(
            cluster=cluster,
            entries=list(bundle.limited_resources or ()),
            user=author.user,
            reason=author.reason,
        )
    # Last: what the files say of a namespace's policies is not the class's to change.
    for wanted in bundle.classes:
        try:
            services.save_class(manifest=wanted.manifest, user=author.user, reason=author.reason)
        except ValidationError as error:
            raise ManifestError(refusal_problems(wanted.item, error)) from error


def _report(
    bundle: Bundle,
    cluster: Cluster,
    previews: Sequence[services.Preview],
    lints: Iterable[Lint],
) -> Report:
    """The changes of each object, before anything is written."""
    changes = [
        ObjectChange(
            _object_title(each.key), _manifest_text(each.before), _manifest_text(each.after)
        )
        for each in previews
    ]
    if bundle.configuration is not None:
        after = render_documents([admission_configuration(list(bundle.limited_resources or ()))])
        changes.append(ObjectChange(_CONFIGURATION, export_limited_resources(cluster), after))
    stored = {each.name: each.manifest for each in NamespaceClass.objects.all()}
    changes += [
        ObjectChange(
            _object_title(wanted.key),
            _manifest_text(stored.get(wanted.key[2])),
            _manifest_text(services.read_class(wanted.manifest)),
        )
        for wanted in bundle.classes
    ]
    return Report(changes=tuple(changes), hints=tuple(str(lint) for lint in lints))


def _manifest_text(manifest: dict[str, Any] | None) -> str:
    return render_manifests([manifest]) if manifest else ""


def _object_title(key: tuple[str, str, str]) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
