"""ClassEditorView: a class as YAML, what saving it would do, and the form that saves or deletes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from csp.constants import NONCE
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404, redirect
from django.utils.decorators import method_decorator

from admission.explain.class_restarts import MOST_NAMESPACES, PolicyChange, restarts_of_changes
from policies import services
from policies.drafts.draft import LONGEST
from policies.manifests import diff_in_words
from policies.manifests.bundle import read_bundle
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.render import render_manifests
from policies.manifests.sources import Source
from policies.models import NamespaceClass
from policies.validators import errors_by_path
from portal.pages.classes.list import FleetPage
from portal.pages.views import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from policies.services import ClassPreview, PolicyEffect

SHOWN: Final = 6
"""Namespaces that are named for one effect; the others are counted."""
NO_REASON: Final = "Give a reason: it stays on record."
OVERTAKEN: Final = (
    "The class was saved in the meantime. Review its current version, then decide again."
)
_SOURCE: Final = "class"
EXAMPLE: Final = """\
apiVersion: policy.gatehouse.dev/v1alpha1
kind: NamespaceClass
metadata:
  name: standard
spec:
  selector:
    names: ["team-*"]
  parameters:
  - name: cpu
    type: quantity
    default: "500m"
  policies:
  - apiVersion: v1
    kind: LimitRange
    metadata:
      name: defaults
    spec:
      limits:
      - type: Container
        default: {cpu: "$(cpu)"}
  onLeave: keep
"""


@dataclass(slots=True)
class EffectLine:
    """The same effect on policies of many namespaces: what is done, in words, and where."""

    action: str
    kind: str
    name: str
    changes: Sequence[str]
    places: list[str] = field(default_factory=list)

    @property
    def shown(self) -> Sequence[str]:
        """The first of them, to be named."""
        return self.places[:SHOWN]

    @property
    def others(self) -> int:
        """How many more there are."""
        return len(self.places) - len(self.shown)


def lines_of(effects: Sequence[PolicyEffect]) -> list[EffectLine]:
    """Put equal effects together, the most frequent first."""
    lines: dict[tuple[Any, ...], EffectLine] = {}
    words: dict[str, Sequence[str]] = {}
    for each in effects:
        kind, namespace, name = each.key
        content = repr([_nowhere(each.before), _nowhere(each.after)])
        if content not in words:
            words[content] = diff_in_words.changes(each.before, each.after)
        key = (each.action, kind, name, content)
        line = lines.setdefault(key, EffectLine(each.action, kind, name, words[content]))
        line.places.append(f"{each.cluster}/{namespace}")
    return sorted(lines.values(), key=lambda line: -len(line.places))


def _nowhere(manifest: Any) -> Any:
    return manifest and {**manifest, "metadata": {**manifest["metadata"], "namespace": ""}}


@method_decorator(csp_update({"style-src": [NONCE]}), name="dispatch")
class ClassEditorView(FleetPage):
    """The YAML of a stored class; previewed, saved as its next version, or deleted."""

    template_name = "classes/editor.html"
    stored: NamespaceClass | None = None

    def find(self, names: dict[str, Any]) -> None:
        """Find the class, or 404."""
        super().find(names)
        self.stored = get_object_or_404(NamespaceClass, name=names["name"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The stored text, unless another one was sent."""
        text = render_manifests([self.stored.manifest]) if self.stored else EXAMPLE
        version = self.stored.version if self.stored else 0
        context = {"text": text, "seen": version, **kwargs}
        return super().get_context_data(**context, stored=self.stored)

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Show what saving would do; with ``save`` or ``delete``, do it."""
        if request.POST.get("do") == "delete" and self.stored is not None:
            return self._delete(self.stored)
        text = request.POST.get("text", "").replace("\r\n", "\n")[:LONGEST]
        try:
            manifest = read_class_text(text, name=self.stored.name if self.stored else "")
            preview = services.preview_class(manifest)
        except ManifestError as error:
            return self._show(text, status=422, problems=error.problems)
        except ValidationError as error:
            return self._show(text, status=422, problems=_problems(error))
        if request.POST.get("do") != "save":
            return self._show(text, preview=preview)
        return self._save(text, manifest, preview)

    def _save(self, text: str, manifest: dict[str, Any], preview: ClassPreview) -> HttpResponse:
        sent = self.request.POST
        if not (reason := sent.get("reason", "").strip()[:1000]):
            return self._show(text, status=422, preview=preview, form_error=NO_REASON)
        try:
            saved = services.save_class(
                manifest=manifest,
                user=self.username,
                reason=reason,
                expected_version=whole_number(sent.get("seen", "")),
                confirmed=whole_number(sent.get("confirm", "").strip()),
            )
        except services.StaleRevisionError:
            return self._show(text, status=409, preview=preview, form_error=OVERTAKEN)
        except ValidationError as error:
            message = error.messages[0]
            return self._show(text, status=422, preview=preview, form_error=message)
        given = saved.given
        messages.success(
            self.request,
            f"Saved as version {saved.instance.version}: {given.made} made, "
            f"{given.changed} changed, {given.removed} removed.",
        )
        return redirect("class-page", saved.instance.name)

    def _delete(self, stored: NamespaceClass) -> HttpResponse:
        sent = self.request.POST
        text = render_manifests([stored.manifest])
        if not (reason := sent.get("reason", "").strip()[:1000]):
            return self._show(text, status=422, form_error=NO_REASON)
        try:
            given = services.delete_class(
                stored=stored,
                user=self.username,
                reason=reason,
                expected_version=whole_number(sent.get("seen", "")),
                confirmed=whole_number(sent.get("confirm", "").strip()),
            )
        except services.StaleRevisionError:
            return self._show(text, status=409, form_error=OVERTAKEN)
        except ValidationError as error:
            return self._show(text, status=422, form_error=error.messages[0], must_confirm=True)
        messages.success(self.request, f"Deleted, with {given.removed} of its policies.")
        return redirect("class-list")

    def _show(
        self, text: str, *, status: int = 200, preview: ClassPreview | None = None, **more: Any
    ) -> HttpResponse:
        context: dict[str, Any] = {"must_confirm": False, **more}
        if preview is not None:
            changes = [
                PolicyChange(
                    cluster=each.cluster,
                    namespace=each.key[1],
                    before=each.before,
                    after=each.after,
                )
                for each in preview.effects
            ]
            context |= {
                "preview": preview,
                "matched": sum(map(len, preview.namespaces.values())),
                "lines": lines_of(preview.effects),
                "removals": len(preview.having("remove")),
                "restarts": restarts_of_changes(changes),
                "restarts_most": MOST_NAMESPACES,
                "must_confirm": preview.needs_confirmation,
            }
        sent = self.request.POST
        return self.render_to_response(
            self.get_context_data(
                **context, text=text, seen=sent.get("seen", "0"), reason=sent.get("reason", "")
            ),
            status=status,
        )


class NewClassView(ClassEditorView):
    """The editor of a class that is not stored yet; begins with an example."""

    def find(self, names: dict[str, Any]) -> None:
        """There is nothing to find."""
        super(ClassEditorView, self).find(names)


def read_class_text(text: str, *, name: str) -> dict[str, Any]:
    """Read the one class of a text, of this name if it is given; raises ManifestError."""
    bundle = read_bundle([Source(_SOURCE, text)])
    others = [*bundle.objects, *([bundle.configuration] if bundle.configuration else [])]
    if len(bundle.classes) != 1 or others or bundle.others:
        message = "must be one NamespaceClass, and nothing else"
        raise ManifestError([Problem(source=_SOURCE, line=1, message=message)])
    wanted = bundle.classes[0]
    if name and wanted.key[2] != name:
        message = f"is {name} and never changes: make a new class and delete this one"
        raise ManifestError([wanted.item.problem("metadata.name", message)])
    return wanted.manifest


def _problems(error: ValidationError) -> list[Problem]:
    return [
        Problem(source=_SOURCE, field=path, message=entry["message"])
        for path, entries in errors_by_path(error).items()
        for entry in entries
    ]
