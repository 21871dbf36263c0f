"""A Bundle imported all or nothing, or as a dry run: Report of ObjectChanges, diffs, hints."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError

from policies import services
from policies.manifests.checks import refusal_problems
from policies.manifests.documents import ManifestError
from policies.manifests.export import export_limited_resources
from policies.manifests.render import admission_configuration, render_documents, render_manifests

if TYPE_CHECKING:
    from policies.lints import Lint
    from policies.manifests.bundle import Bundle, Wanted
    from policies.manifests.documents import Problem
    from policies.models import Cluster

_CONFIGURATION = "limitedResources"
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
class Report:
    """The changes of an import, real or in a dry run; ``hints`` are the lints afterwards."""

    changes: tuple[ObjectChange, ...]
    hints: tuple[str, ...]


def import_bundle(
    bundle: Bundle,
    *,
    cluster: Cluster,
    author: Author,
    dry_run: bool = False,
    create_namespaces: bool = False,
) -> Report:
    """Write all objects in one transaction; a dry run writes and locks nothing.

    A missing namespace is created with ``create_namespaces``, else refused. Raises ManifestError
    with the problems of all objects that the models refuse; then nothing is written.
    """
    if dry_run:
        return _preview(bundle, cluster, create=create_namespaces)
    import_problems: list[Problem] = []
    imported: list[ObjectChange] = []
    with services.policy_write(cluster), services.in_bulk():
        # All locks before the first write, in one order, as decisions take them.
        services.lock_used(cluster, {wanted.key[1] for wanted in bundle.objects})
        for wanted in bundle.objects:
            try:
                imported.append(_apply_wanted(wanted, cluster, author, create=create_namespaces))
            except ValidationError as error:
                import_problems += refusal_problems(wanted.item, error, _HINTS)
        if bundle.configuration is not None:
            imported.append(_set_configuration(bundle, cluster, author))
        if import_problems:
            raise ManifestError(import_problems)
    # Once all is written: a lint may concern several objects of a namespace.
    namespaces = sorted({wanted.key[1] for wanted in bundle.objects} - {""})
    lints = (lint for name in namespaces for lint in services.lint(cluster, name))
    return Report(changes=tuple(imported), hints=tuple(_lint_hint(lint) for lint in lints))


def _preview(bundle: Bundle, cluster: Cluster, *, create: bool) -> Report:
    manifests = [wanted.manifest for wanted in bundle.objects]
    previews = services.preview_many(cluster=cluster, manifests=manifests, create_namespaces=create)
    import_problems = [
        problem
        for wanted, preview in zip(bundle.objects, previews, strict=True)
        if preview.error is not None
        for problem in refusal_problems(wanted.item, preview.error, _HINTS)
    ]
    if import_problems:
        raise ManifestError(import_problems)
    previewed = [
        ObjectChange(
            _object_title(each.key), _manifest_text(each.before), _manifest_text(each.after)
        )
        for each in previews
    ]
    if bundle.configuration is not None:
        after = render_documents([admission_configuration(list(bundle.limited_resources or ()))])
        previewed.append(ObjectChange(_CONFIGURATION, export_limited_resources(cluster), after))
    lints = services.lint_previews(cluster, previews)
    return Report(changes=tuple(previewed), hints=tuple(_lint_hint(lint) for lint in lints))


def _manifest_text(manifest: dict[str, Any] | None) -> str:
    return render_manifests([manifest]) if manifest else ""


def _object_title(key: tuple[str, str, str]) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _apply_wanted(
    wanted: Wanted, cluster: Cluster, author: Author, *, create: bool
) -> ObjectChange:
    kind, namespace, name = wanted.key
    stored_object = services.find_object(cluster, kind=kind, name=name, namespace=namespace)
    text_before = _manifest_text(stored_object.to_manifest() if stored_object else None)
    imported = services.apply_manifest(
        cluster=cluster,
        manifest=wanted.manifest,
        user=author.user,
        reason=author.reason,
        create_namespace=create,
    )
    return ObjectChange(
        _object_title(wanted.key), text_before, _manifest_text(imported.instance.to_manifest())
    )


def _set_configuration(bundle: Bundle, cluster: Cluster, author: Author) -> ObjectChange:
    configuration_before = export_limited_resources(cluster)
    services.set_limited_resources(
        cluster=cluster,
        entries=list(bundle.limited_resources or ()),
        user=author.user,
        reason=author.reason,
    )
    return ObjectChange(_CONFIGURATION, configuration_before, export_limited_resources(cluster))


def _lint_hint(lint: Lint) -> str:
    hinted_policy = f"{lint.policy.kind} {lint.policy.namespace}/{lint.policy.name}"
    return ": ".join(part for part in (hinted_policy, lint.field, lint.message) if part)
