"""``horizon``: how far back each record goes; before it, the past is not known."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Min
from django.utils import timezone

from policies.history.instants import InstantError, format_instant
from policies.models import LedgerEntry, PolicyRevision, RoleChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The oldest instant of each record; None: nothing is on record yet."""

    policies: dt.datetime | None
    roles: dt.datetime | None
    usage: dt.datetime | None

    def knows_usage(self, instant: dt.datetime) -> bool:
        """Whether used amounts of an instant can be told."""
        return self.usage is not None and self.usage <= instant

    def knows_roles(self, instant: dt.datetime) -> bool:
        """Whether the roles of an instant can be told."""
        return self.roles is not None and self.roles <= instant


def horizon(cluster: str = "") -> Horizon:
    """How far back the records go, of one cluster or of all; four small queries.

    The journal of the ledger may have gaps before its retention: what is held stays.
    """
    revisions: Any = PolicyRevision.objects.all()
    if cluster:
        revisions = revisions.filter(cluster=cluster)
    oldest_entry = LedgerEntry.objects.order_by("pk").values_list("created", flat=True).first()
    days = settings.GATEHOUSE_RETENTION_ALLOWED_DAYS
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    kept_from = midnight - dt.timedelta(days=days) if days else None
    return Horizon(
        policies=revisions.aggregate(oldest=Min("created"))["oldest"],
        roles=RoleChange.objects.aggregate(oldest=Min("created"))["oldest"],
        usage=max(oldest_entry, kept_from) if oldest_entry and kept_from else oldest_entry,
    )


def require_known(record: str, oldest: dt.datetime | None, instant: dt.datetime) -> None:
    """Raise ``InstantError`` for an instant before a record begins."""
    if oldest is None:
        raise InstantError("before_horizon", f"the record of {record} is empty")
    if instant < oldest:
        # The first whole second that can be shown: people type no smaller parts.
        begin = oldest + dt.timedelta(microseconds=-oldest.microsecond % 1_000_000)
        message = f"the record of {record} begins at {format_instant(begin)}"
        raise InstantError("before_horizon", message)
