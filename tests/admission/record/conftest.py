"""What tests of the record share: rows of any day, and a folder for exports."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings

from admission.models import AuditEvent, AuditHold, Verdict, decision_id, partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def days_ago(number: int) -> date:
    """A day before today, or today; asked for anew, because midnight may pass between tests."""
    return datetime.now(UTC).date() - timedelta(days=number)


@pytest.fixture
def decided(db: None) -> Callable[..., AuditEvent]:
    """Put a decision of a day on record: noon and a millisecond for each decision before."""
    numbers = count()

    def make(day: date | None = None, **fields: Any) -> AuditEvent:
        today = days_ago(0)
        day = day or today
        partitions.ensure(day)
        number = next(numbers)
        begin, _ = partitions.bounds(day)
        at = begin + timedelta(hours=0 if day == today else 12, milliseconds=number)
        row = AuditEvent(
            **{
                "id": decision_id.lowest(at)[:10] + decision_id.encode(0, number)[10:],
                "duration_us": 1,
                "cluster": "demo",
                "phase": "validate",
                "request_uid": f"uid-{number}",
                "kind": "Pod",
                "namespace": "ns",
                "name": f"p{number}",
                "user": "alice",
                "verdict": Verdict.ALLOWED,
                "code": 200,
                **fields,
            }
        )
        row.save()
        return row

    return make


@pytest.fixture
def hold(db: None) -> Callable[..., AuditHold]:
    """Hold what a cluster asked, by default all of it."""

    def make(**fields: Any) -> AuditHold:
        known = {"cluster": "demo", "first_day": date(2020, 1, 1), "reason": "a case", **fields}
        return AuditHold.objects.create(**known)

    return make


@pytest.fixture
def exports_folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for exports, and the usual times of retention."""
    with override_settings(
        GATEHOUSE_EXPORT_FOLDER=tmp_path / "exports",
        GATEHOUSE_RETENTION_ALLOWED_DAYS=30,
        GATEHOUSE_RETENTION_DENIED_DAYS=365,
    ):
        yield tmp_path / "exports"
