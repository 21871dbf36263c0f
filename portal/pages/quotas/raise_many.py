"""RaiseManyView: the limits of chosen quotas raised by a part, all or none, with one reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from policies import services
from policies.models import ResourceQuota
from policies.plurals import counted
from policies.validators import findings_of
from portal.pages.quotas.limits import rounded_up
from portal.pages.shell.quota_lines import may_raise, quota_lines
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from portal.pages.shell.quota_lines import QuotaLine

MOST: Final = 200
"""Quotas that are raised at once."""
PERCENT: Final = range(1, 101)
LONGEST_REASON: Final = 1000


class RaiseManyView(PortalPage):
    """A form's address: raises the shown limit of each chosen quota."""

    http_method_names = ["post"]

    def may_post(self) -> bool:
        """Whoever is signed in may ask; each quota is checked by itself."""
        return True

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Raise them all in one transaction, or say why not."""
        reason = request.POST.get("reason", "").replace("\0", "").strip()[:LONGEST_REASON]
        percent = request.POST.get("percent", "")
        chosen = set(request.POST.getlist("quota")[:MOST])
        lines = [line for line in quota_lines(request.user) if line.key in chosen]
        if not all(may_raise(request.user, line) for line in lines):
            raise PermissionDenied
        if not lines:
            messages.error(request, "Select at least one quota.")
        elif not reason:
            messages.error(request, "Give a reason: it stays on record. No limit was raised.")
        elif not percent.isdecimal() or len(percent) > 3 or int(percent) not in PERCENT:  # noqa: PLR2004 - digits of 100
            messages.error(request, "Raise by 1 to 100 percent. No limit was raised.")
        else:
            self._raise(lines, int(percent), reason)
        back = request.POST.get("back", "")
        is_own = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
        return redirect(back if is_own and back.startswith("/quotas/") else reverse("quota-board"))

    def _raise(self, lines: Sequence[QuotaLine], percent: int, reason: str) -> None:
        stored = ResourceQuota.objects.select_related("namespace__cluster").in_bulk(
            [line.placed.key.id for line in lines]
        )
        try:
            with transaction.atomic():
                # In the order of clusters, as every other writer of several takes their locks.
                for line in sorted(lines, key=lambda each: each.place):
                    if quota := stored.get(line.placed.key.id):
                        services.apply_manifest(
                            cluster=quota.owner,
                            manifest=_raised(quota.to_manifest(), line, percent),
                            user=self.username,
                            reason=reason,
                        )
        except ValidationError as error:
            first = findings_of(error)[0].messages[0]
            messages.error(self.request, f"No limit was raised: {first}")
            return
        words = f"Raised {counted(len(lines), 'limits')} by {percent} %."
        messages.success(self.request, words)


def _raised(manifest: dict[str, Any], line: QuotaLine, percent: int) -> dict[str, Any]:
    """The manifest with the shown limit raised, rounded up in the unit it is written in."""
    resource, hard = line.level.resource, line.level.hard
    limit = rounded_up(hard, max(hard.nano * (100 + percent) // 100, hard.nano + 1))
    spec = manifest["spec"]
    return {**manifest, "spec": {**spec, "hard": {**spec["hard"], resource: limit}}}
