"""Django's ModelAdmin classes of AuditEvent, AuditExport, RetentionRun read-only; AuditHold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.utils.functional import cached_property

from admission.models import AuditEvent, AuditExport, AuditHold, RetentionRun
from admission.models.decision_id import is_decision_id
from admission.record.filters import PHASE_CHOICES

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

    from admission.models import AuditEventQuerySet

    _EventAdmin = admin.ModelAdmin[AuditEvent]
    _HoldAdmin = admin.ModelAdmin[AuditHold]
    _AnyAdmin = admin.ModelAdmin[Any]
    _Paginator = Paginator[AuditEvent]
else:
    _EventAdmin = _HoldAdmin = _AnyAdmin = admin.ModelAdmin
    _Paginator = Paginator

_CHANGE_LIST_COLUMNS: Final = (
    "created", "verdict", "cluster", "operation", "kind", "namespace", "name", "user"
)  # fmt: skip
_REQUEST_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RecordPaginator(_Paginator):
    """Pages of the newest decisions, up to the limit of counts; no exact count, no offset."""

    @cached_property
    def count(self) -> int:
        """How many there are, up to the limit of counts."""
        return self._events.capped_count().number

    def page(self, number: int | str) -> Page[AuditEvent]:
        """One page, read from the newest on."""
        number = self.validate_number(number)
        end = number * self.per_page
        events = self._events.only(*_CHANGE_LIST_COLUMNS).newest(end)[end - self.per_page :]
        return Page(events, number, self)

    @property
    def _events(self) -> AuditEventQuerySet:
        return cast("AuditEventQuerySet", self.object_list)


class RecordChangeList(ChangeList):
    """A list that reads only its page, even when that is the only one."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page."""
        # Django would fetch all rows where the count fits on one page.
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list


class ReadOnlyAdmin(_AnyAdmin):
    """Nothing is added, changed or removed here."""

    actions = ()

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Only the product itself writes."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Nothing on record is changed."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Nothing on record is removed."""
        return False


class PhaseFilter(admin.SimpleListFilter):
    """Filter by phase, without a query for the phases that occur."""

    title = "phase"
    parameter_name = "phase"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The choices."""
        del request, model_admin
        return PHASE_CHOICES

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Only this phase."""
        del request
        return queryset.filter(phase=self.value()) if self.value() else queryset


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Decisions, newest first."""

    list_display = ("id", "created", "verdict", "cluster", "operation", "kind", "target", "user")
    list_filter = ("verdict", PhaseFilter, "dry_run")
    search_fields = ("id",)
    search_help_text = "Decision ID, request UID, or a prefix of the object's name."
    show_full_result_count = False
    sortable_by = ()
    list_max_show_all = 0
    paginator = RecordPaginator

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that reads one page."""
        del request, kwargs
        return RecordChangeList

    def get_object(
        self, _request: HttpRequest, object_id: str, _from_field: str | None = None
    ) -> AuditEvent | None:
        """The decision of this id, read from the partition of its day alone."""
        return AuditEvent.objects.with_id(object_id).first()

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search the one column that the form of the text suggests, by its index."""
        events, searched = cast("AuditEventQuerySet", queryset), search_term.strip()
        if is_decision_id(searched):
            return events.with_id(searched), False
        if _REQUEST_UID.fullmatch(searched):
            return events.filter(request_uid=searched), False
        return (events.name_begins(searched) if searched else events), False


@admin.register(AuditHold)
class AuditHoldAdmin(_HoldAdmin):
    """Legal holds: created and released here, never changed or deleted."""

    list_display = ("cluster", "namespace", "first_day", "last_day", "reason", "who", "released")
    search_fields = ("cluster", "namespace")
    readonly_fields = ("created", "created_by", "released", "released_by")
    actions = ("release",)

    @admin.display(description="who")
    def who(self, hold: AuditHold) -> str:
        """The user who created it."""
        return hold.created_by

    @admin.action(description="Release the selected holds", permissions=["add"])
    def release(self, request: HttpRequest, holds: QuerySet[AuditHold]) -> None:
        """Release holds that are in force."""
        for hold in holds.filter(released__isnull=True):
            hold.release(user=request.user.get_username())
            self.log_change(request, hold, "Released.")
        self.message_user(request, "The selected holds were released.", messages.SUCCESS)

    def save_model(
        self, request: HttpRequest, obj: AuditHold, form: ModelForm[AuditHold], change: Any
    ) -> None:
        """Save it with the user who created it."""
        obj.created_by = request.user.get_username()
        super().save_model(request, obj, form, change)

    def has_change_permission(self, _request: HttpRequest, _obj: AuditHold | None = None) -> bool:
        """Never: release a hold and create another, so that its cover stays known."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: AuditHold | None = None) -> bool:
        """Never: a released hold stays on record."""
        return False


@admin.register(AuditExport)
class AuditExportAdmin(ReadOnlyAdmin):
    """Exports: the days that are in a file."""

    list_display = ("day", "number", "rows", "path", "sha256", "finished")


@admin.register(RetentionRun)
class RetentionRunAdmin(ReadOnlyAdmin):
    """Removals of rows from the record."""

    list_display = ("created", "day", "verdicts", "removed", "kept", "held", "export_sha256")
    list_select_related = ("export",)
