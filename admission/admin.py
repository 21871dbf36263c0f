"""The record in the stock admin: to read, never to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from admission.models import AuditEvent

if TYPE_CHECKING:
    from django.http import HttpRequest

    _ModelAdmin = admin.ModelAdmin[AuditEvent]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(AuditEvent)
class AuditEventAdmin(_ModelAdmin):
    """Decisions, newest first."""

    list_display = ["id", "created", "verdict", "cluster", "operation", "kind", "target", "user"]
    list_filter = ["verdict", "phase", "dry_run"]
    search_fields = ["=id", "=request_uid", "^name"]
    search_help_text = "Decision id, request UID, or the beginning of a name."
    show_full_result_count = False
    actions = []

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Only ``audit.record`` writes."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: AuditEvent | None = None) -> bool:
        """Nothing on record is changed."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: AuditEvent | None = None) -> bool:
        """Nothing on record is removed."""
        return False
