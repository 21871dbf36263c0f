"""QuotaView, WhatIfView: a quota as panel or page; its limits saved with a reason, or tried."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse

from policies import roles, services
from policies.drafts import danger, preview
from policies.drafts.draft import PolicyPlace
from policies.drafts.kinds import BY_PLURAL
from policies.models import Namespace, ResourceQuota
from policies.validators import errors_by_path
from portal.pages.quotas.limits import LimitEdit, read_edit, tried
from portal.pages.quotas.panel import build_panel
from portal.pages.shell.quota_lines import QuotaLine, quota_lines
from portal.pages.views import ClusterPage, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

PANEL: Final = "quota-panel"
SAVED_EVENT: Final = "quota-saved"
LONGEST_REASON: Final = 1000
NO_REASON: Final = "Give a reason: it stays on record."
NOTHING: Final = "No limit was changed."
STALE: Final = "Somebody changed this quota in the meantime. These are its current limits."


class OneQuota(ClusterPage):
    """A view about one quota that the reader sees; ``lines`` are those of its cluster."""

    lines: Sequence[QuotaLine]
    line: QuotaLine

    def find(self, names: dict[str, Any]) -> None:
        """Find the quota, or raise Http404."""
        super().find(names)
        self.lines = quota_lines(self.request.user, self.cluster.name)
        place = (self.cluster.name, str(names["namespace"]), str(names["quota"]))
        found = next((line for line in self.lines if line.place == place), None)
        if found is None:
            raise Http404
        self.line = found

    def may_post(self) -> bool:
        """Whether the reader may change the quota."""
        return self.may(roles.writing("ResourceQuota", "change"))


class WhatIfView(OneQuota):
    """What typed limits would change; writes nothing."""

    template_name = "quotas/_what_if.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The limits of the address, tried."""
        edit = tried(read_edit(self.line, self.request.GET.dict()), self.request.user, self.lines)
        return super().get_context_data(**kwargs, edit=edit, line=self.line)


class QuotaView(OneQuota):
    """One quota: in the panel beside the board, or as a page of its own."""

    template_name = "quotas/quota.html"
    edit: LimitEdit | None = None

    def get_template_names(self) -> list[str]:
        """Only the part inside the page for the panel."""
        return ["quotas/_panel.html"] if self.is_panel else [self.template_name]

    @property
    def is_panel(self) -> bool:
        """Whether the board asks for its panel."""
        return self.request.headers.get("HX-Target") == PANEL

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The quota with everything about it."""
        panel = build_panel(self.request, self.line, self.lines, self.edit)
        return super().get_context_data(
            **{**kwargs, "panel": panel, "line": self.line, "is_page": not self.is_panel}
        )

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Save the limits with a reason."""
        reason = request.POST.get("reason", "").replace("\0", "").strip()[:LONGEST_REASON]
        edit = tried(read_edit(self.line, request.POST.dict()), request.user, self.lines)
        edit = dataclasses.replace(edit, reason=reason)
        if not edit.is_fine:
            return self._refuse(edit)
        if not edit.changed:
            return self._refuse(dataclasses.replace(edit, problem=NOTHING))
        if not reason:
            return self._refuse(dataclasses.replace(edit, reason_error=NO_REASON))
        stored = ResourceQuota.objects.select_related("namespace__cluster").filter(
            pk=self.line.placed.key.id
        )
        quota = stored.first()
        if quota is None:
            raise Http404
        manifest = _with_limits(quota.to_manifest(), edit)
        word = self.line.placed.namespace
        if request.POST.get("confirm", "").strip() != word and (
            dangers := self._dangers(quota, manifest)
        ):
            return self._refuse(dataclasses.replace(edit, dangers=dangers))
        return self._save(edit, manifest)

    def _dangers(self, quota: ResourceQuota, manifest: dict[str, Any]) -> list[str]:
        """The running work that the limits would stop."""
        namespace: Namespace = quota.namespace
        place = PolicyPlace(
            kind=BY_PLURAL["resourcequotas"],
            cluster=self.cluster,
            namespace=namespace,
            name=quota.name,
        )
        before = preview.load(place)
        hints = preview.hints(place, manifest, before)
        return danger.dangers_of(place, manifest, before, [hint.lint for hint in hints])

    def _save(self, edit: LimitEdit, manifest: dict[str, Any]) -> HttpResponse:
        before = [(cell.name, str(cell.hard)) for cell in edit.changed]
        try:
            saved = services.apply_manifest(
                cluster=self.cluster,
                manifest=manifest,
                expected_revision=whole_number(self.request.POST.get("seen", "")),
                user=self.username,
                reason=edit.reason,
            )
        except services.StaleRevisionError:
            return self._refuse(dataclasses.replace(read_edit(self.line, {}), problem=STALE))
        except ValidationError as error:
            return self._refuse(_with_errors(edit, error))
        limits = ", ".join(f"{cell.resource} {cell.hard} → {cell.typed}" for cell in edit.changed)
        revision = saved.revision.number if saved.revision else 0
        words = f"Saved {self.line.placed.quota.name} as revision {revision}: {limits}"
        if not self.is_panel:
            messages.success(self.request, words)
            return redirect(self.request.path)
        self.find(self.kwargs)  # as it is after the write
        self.edit = None
        response = self.render_to_response(self.get_context_data(**self.kwargs))
        undo = {
            "address": reverse("quota", args=self.line.place),
            "fields": {**dict(before), "seen": revision, "reason": f"undo revision {revision}"},
        }
        response["HX-Trigger"] = json.dumps({SAVED_EVENT: {"words": words, "undo": undo}})
        return response

    def _refuse(self, edit: LimitEdit) -> HttpResponse:
        """The quota again with what is wrong; for scripts with 200, the only one they swap."""
        self.edit = edit
        is_script = self.request.headers.get("HX-Request") == "true"
        return self.render_to_response(
            self.get_context_data(**self.kwargs), status=200 if is_script else 422
        )


def _with_limits(manifest: dict[str, Any], edit: LimitEdit) -> dict[str, Any]:
    """The manifest with the typed limits; what was not typed stays as it is written."""
    spec = manifest["spec"]
    typed = {cell.resource: cell.typed for cell in edit.changed}
    return {**manifest, "spec": {**spec, "hard": {**spec.get("hard", {}), **typed}}}


def _with_errors(edit: LimitEdit, error: ValidationError) -> LimitEdit:
    """The edit with the errors of a refused save, at their cells."""
    by_path = errors_by_path(error)
    cells = []
    for cell in edit.cells:
        found = by_path.pop(f"spec.hard[{cell.resource}]", [])
        message = found[0]["message"] if found else ""
        cells.append(dataclasses.replace(cell, error=message))
    others = [found["message"] for errors in by_path.values() for found in errors]
    return dataclasses.replace(edit, cells=cells, problem=" ".join(others))
