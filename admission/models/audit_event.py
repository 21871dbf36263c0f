"""Table AuditEvent, a decision; its append-only query set: newest, older_than, pages, CappedCount.

The order of the record is (created, id), and an id begins with ``created``: it leads to the day,
and so to the one partition to read (PostgreSQL; see ``partitions``).
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, Never, Self

from django.db import connections, models
from django.db.models.functions import Left

from admission.models import conditions, decision_id, partitions, row_bounds
from admission.models.columns import AnswerKind, KeptJSONField, Verdict, outcome_of
from admission.models.document import DocumentField, in_document
from admission.models.record_page import CappedCount, RecordPage, page_of
from engine.chain import AUTHORITY_STEP
from engine.policy import Authority

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Stop = datetime | None  # where a search ended early

PIECE: Final = 250  # rows with large columns that are in memory at once
COUNT_LIMIT: Final = 10_000
SEARCH_SECONDS: Final = 1.0  # after which a search reads no further stretch
_LISTED_COLUMNS: Final = (
    "created", "duration_us", "cluster", "phase", "operation", "api_group", "kind", "resource",
    "sub_resource", "namespace", "name", "user", "dry_run", "verdict", "code", "reason", "message",
    "reasons", "violations", "more_violations", "patch", "warnings", "is_native",
)  # fmt: skip
# The trace of an older decision begins like this where the API server enforces.
_NATIVE: Final = f'[{{"name":"{AUTHORITY_STEP.name}"'


class AppendOnlyError(RuntimeError):
    """A row of the record was to be changed or removed."""

    def __init__(self) -> None:
        super().__init__("Audit events are append-only: they are never changed or removed.")


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    """Queries of the record; every method that writes is refused."""

    def denied(self) -> Self:
        """Only refusals."""
        return self.filter(verdict=Verdict.DENIED)

    def allowed(self) -> Self:
        """Only allowed requests, mutated or not."""
        return self.exclude(verdict=Verdict.DENIED)

    def with_outcome(self, outcome: str) -> Self:
        """Only decisions of this kind; the four kinds have no row in common."""
        return self.with_outcomes((outcome,))

    def with_outcomes(self, outcomes: Iterable[str]) -> Self:
        """Only decisions of one of these kinds."""
        return self.filter(reduce(or_, map(conditions.has_outcome, outcomes)))

    def for_cluster(self, cluster: str) -> Self:
        """Only reviews of this cluster."""
        return self.filter(cluster=cluster)

    def for_namespace(self, namespace: str) -> Self:
        """Only objects of this namespace."""
        return self.filter(namespace=namespace)

    def for_reason(self, reason: str) -> Self:
        """Only events with this violation or Status reason."""
        return self.filter(conditions.has_reason(reason))

    def for_policy(self, policy: str) -> Self:
        """Only decisions that evaluated this policy: its name, or ``Kind/namespace/name``."""
        return self.filter(conditions.evaluated(policy))

    def charged(self) -> Self:
        """Only calls that count: no dry runs."""
        return self.filter(dry_run=False)

    def name_begins(self, beginning: str) -> Self:
        """Only objects whose name begins like this; as a range, which both databases index."""
        return self.filter(conditions.begins("name", beginning))

    def user_begins(self, beginning: str) -> Self:
        """Only requests of users whose name begins like this; no index serves it alone."""
        return self.filter(conditions.begins("user", beginning))

    def listed(self) -> Self:
        """With only the columns that a line of a list shows; the others may be large."""
        return self.only(*_LISTED_COLUMNS).with_authority()

    def with_authority(self) -> Self:
        """With the beginning of an older row's trace, from which ``authority`` is read."""
        beginning = Left("old_trace", len(_NATIVE), output_field=models.TextField())
        return self.annotate(beginning=beginning)

    def newest_first(self) -> Self:
        """By time, then by id."""
        return self.order_by("-created", "-id")

    def with_id(self, wanted: str) -> Self:
        """The decision with this id, or none; reads one partition by one index."""
        if not decision_id.is_decision_id(wanted):
            return self.none()
        # The time selects the partition: by the id alone every day would be read.
        return self.filter(created=decision_id.moment(wanted), id=wanted)

    def older_than(self, cursor: str) -> Self:
        """Only what was decided before a decision id."""
        return self.filter(created__lte=decision_id.moment(cursor), id__lt=cursor)

    def newer_than(self, cursor: str) -> Self:
        """Only what was decided after a decision id."""
        return self.filter(created__gte=decision_id.moment(cursor), id__gt=cursor)

    def between(self, begin: datetime | None, end: datetime | None) -> Self:
        """Only decisions from one moment on and before another; None: open."""
        events = self.filter(created__gte=begin) if begin else self
        return events.filter(created__lt=end) if end else events

    def page(self, *, before: str = "", after: str = "", size: int = 50) -> RecordPage:
        """The ``size`` events next to a decision id: older than ``before`` or newer than ``after``.

        The last page costs as much as the first: no offset, no count. A search that finds too
        little for too long ends early, with ``searched_to`` and a cursor to go on from.

        Raises:
            ValueError: if a cursor is no decision id.
        """
        if after:
            events, stopped = self._read_ahead(size + 1, after=after)
            page = page_of(events[size - 1 :: -1], newer=len(events) > size, older=True)
            cursor = stopped and decision_id.highest_before(stopped)
            return replace(page, newer=cursor, searched_to=stopped) if cursor else page
        events, stopped = self._read_back(size + 1, before=before)
        page = page_of(events[:size], newer=bool(before), older=len(events) > size)
        cursor = stopped and decision_id.lowest(stopped)
        return replace(page, older=cursor, searched_to=stopped) if cursor else page

    def newest(self, number: int, *, since: Stop = None) -> list[AuditEvent]:
        """At most ``number`` events, the newest first; fewer if the search runs out of time.

        ``since``: those of this moment and later alone, so that no older partition is asked.
        """
        return self._read_back(number, since=since)[0]

    def newest_by_pieces(self, number: int) -> Iterator[AuditEvent]:
        """The same as ``newest``, read in pieces: for columns that may be large."""
        cursor = ""
        while number > 0:
            page = self.page(before=cursor, size=min(number, PIECE))
            yield from page.events
            number, cursor = number - PIECE, page.older
            if not cursor or page.searched_to:
                return

    def oldest(self, number: int) -> list[AuditEvent]:
        """At most ``number`` events, the oldest first; fewer if the search runs out of time."""
        return self._read_ahead(number)[0]

    def _read_back(
        self, number: int, *, before: str = "", since: Stop = None
    ) -> tuple[list[AuditEvent], Stop]:
        start = decision_id.moment(before) if before else datetime.now(UTC)
        older = (self.older_than(before) if before else self).between(since, None)
        days = partitions.recent_days(connections[self.db])
        stretches = partitions.stretches_backward(days, start=start.date(), since=since)
        return older.newest_first()._read_stretches(  # noqa: SLF001  our own
            number, ((each, each[0]) for each in stretches)
        )

    def _read_ahead(self, number: int, *, after: str = "") -> tuple[list[AuditEvent], Stop]:
        start = decision_id.moment(after).date() if after else None
        newer = self.newer_than(after) if after else self
        days = partitions.recent_days(connections[self.db])
        return newer.order_by("created", "id")._read_stretches(  # noqa: SLF001  our own
            number, ((each, each[1]) for each in partitions.stretches_forward(days, start=start))
        )

    def _read_stretches(
        self, number: int, stretches: Iterable[tuple[partitions.Stretch, Stop]]
    ) -> tuple[list[AuditEvent], Stop]:
        """Read ``number`` events, stretch after stretch; also returns where time ran out."""
        events: list[AuditEvent] = []
        search_ends = time.monotonic() + SEARCH_SECONDS
        for stretch, reached in stretches:
            events += self.between(*stretch)[: number - len(events)]
            if len(events) == number:
                break
            # Looked at after each statement: one that runs is not interrupted.
            if time.monotonic() > search_ends:
                return events, reached
        return events, None

    def capped_count(
        self, limit: int | None = None, *, since: Stop = None, until: Stop = None
    ) -> CappedCount:
        """The number of rows up to ``limit``, or those counted until time ran out."""
        limit = COUNT_LIMIT if limit is None else limit
        number, search_ends = 0, time.monotonic() + SEARCH_SECONDS
        days, rows = partitions.recent_days(connections[self.db]), self.between(since, until)
        newest_day = (until or datetime.now(UTC)).astimezone(UTC).date()
        for stretch in partitions.stretches_backward(days, start=newest_day, since=since):
            number += rows.between(*stretch).order_by()[: limit + 1 - number].count()
            if number > limit:
                return CappedCount(limit, is_capped=True)
            if stretch[0] is None or (since and stretch[0] <= since):
                break
            if time.monotonic() > search_ends:
                return CappedCount(number, is_capped=True)
        return CappedCount(number)

    def update(self, **_kwargs: Any) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    def delete(self) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    def bulk_update(self, *_args: Any, **_kwargs: Any) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    def bulk_create(self, *_args: Any, **_kwargs: Any) -> Never:
        """Refuse: one answer, one record; conflict options would turn an insert into an update."""
        raise AppendOnlyError

    delete.alters_data = True  # type: ignore[attr-defined]  # a mark that templates read
    update.alters_data = True  # type: ignore[attr-defined]  # a mark that templates read


class AuditEvent(models.Model):
    """One answer to one admission request, complete in itself: names as text, no foreign keys.

    ``request`` is the AdmissionRequest as judged, redacted (``redaction``): enough to judge again,
    unless ``is_cut``. ``violations`` and ``observed`` hold the first ones, ``more_violations`` and
    ``more_observed`` count the others, and ``reasons`` has all reasons.
    ``reasons`` and ``policy_names`` repeat what is in JSON as words between spaces, because SQLite
    cannot search JSON lists; owner and ``priority_class`` repeat what the request says, so that
    lists need not read it. What is read of one decision at a time is in ``document``; ``old_``
    columns hold the same of rows that are older than it.
    """

    id = models.CharField("decision", max_length=16, primary_key=True, editable=False)
    created = models.DateTimeField("time")
    duration_us = models.PositiveBigIntegerField("duration (µs)")
    cluster = models.CharField(max_length=253)
    phase = models.CharField(max_length=8)
    request_uid = models.CharField("request UID", max_length=253, db_index=True)
    operation = models.CharField(max_length=16, blank=True)
    api_group = models.CharField("API group", max_length=253, blank=True)
    kind = models.CharField(max_length=253, blank=True)
    resource = models.CharField(max_length=253, blank=True)
    sub_resource = models.CharField(max_length=253, blank=True)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253, blank=True)
    object_uid = models.CharField("object UID", max_length=253, blank=True)
    user = models.CharField(max_length=253, blank=True)
    dry_run = models.BooleanField(default=False)
    client = models.CharField(max_length=253, blank=True)
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    code = models.PositiveSmallIntegerField()
    reason = models.CharField("status reason", max_length=64, blank=True)
    message = models.TextField(blank=True)
    reasons = models.TextField(blank=True)
    policy_revision = models.BigIntegerField(default=0)
    policy_names = models.TextField(blank=True)
    violations = KeptJSONField(default=list)
    observed = KeptJSONField(default=list)
    more_violations = models.IntegerField(default=0, db_default=0)
    more_observed = models.IntegerField(default=0, db_default=0)
    patch = KeptJSONField(default=list)
    warnings = KeptJSONField(default=list)
    owner_kind = models.CharField(max_length=253, blank=True, default="", db_default="")
    owner_name = models.CharField(max_length=253, blank=True, default="", db_default="")
    owner_uid = models.CharField("owner UID", max_length=253, blank=True, default="", db_default="")
    priority_class = models.CharField(max_length=253, blank=True, default="", db_default="")
    is_native = models.BooleanField("enforced by the API server", default=False, db_default=False)
    document = DocumentField(null=True)
    old_groups = KeptJSONField(null=True, db_column="groups", editable=False)
    old_policies = KeptJSONField(null=True, db_column="policies", editable=False)
    old_trace = KeptJSONField(null=True, db_column="trace", editable=False)
    old_charges = KeptJSONField(null=True, db_column="charges", editable=False)
    old_request = KeptJSONField(null=True, db_column="request", editable=False)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        """Newest first; an index for each filter of the list.

        On PostgreSQL ``audit_cluster`` is the primary key, ``audit_verdict`` holds denials only,
        with their namespaces and reasons, and ``audit_place`` also the cluster (migrations 0002
        and 0004).
        """

        verbose_name = "decision"
        ordering = ["-created", "-id"]
        indexes = [
            models.Index(fields=["created", "id"], name="audit_time"),
            models.Index(fields=["cluster", "created", "id"], name="audit_cluster"),
            models.Index(fields=["namespace", "created", "id"], name="audit_place"),
            models.Index(fields=["verdict", "created", "id"], name="audit_verdict"),
            models.Index(fields=["name"], name="audit_name"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(verdict__in=Verdict.values), name="audit_known_verdict"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.verdict} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert once.

        Raises:
            AppendOnlyError: if the row exists.
            ValueError: if the id is no decision id.
        """
        if not self._state.adding:
            raise AppendOnlyError
        self.created = decision_id.moment(self.id)
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> Never:
        """Refuse: see AppendOnlyError."""
        raise AppendOnlyError

    groups = in_document("groups")
    policies = in_document("policies")
    trace = in_document("trace")
    charges = in_document("charges")
    request = in_document("request")

    @property
    def target(self) -> str:
        """``namespace/name`` or the name alone, for people."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def authority(self) -> str:
        """Who enforced ranges and quotas there: ``portal``, or ``native``, the API server."""
        is_native = self.is_native
        if not is_native and "beginning" in self.__dict__:
            is_native = self.__dict__["beginning"] == _NATIVE
        elif not is_native:
            is_native = bool(self.trace) and self.trace[0].get("name") == AUTHORITY_STEP.name
        return (Authority.NATIVE if is_native else Authority.PORTAL).value

    @property
    def outcome(self) -> AnswerKind:
        """How the answer is shown."""
        return outcome_of(self.verdict, self.reasons)

    @property
    def is_cut(self) -> bool:
        """Return whether it was too large to be kept whole, and so cannot be decided again."""
        return row_bounds.is_cut(self.request)

    @property
    def allowed(self) -> bool:
        """Return whether the request was allowed."""
        return self.verdict != Verdict.DENIED
