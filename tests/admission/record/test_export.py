"""A day's file is complete, read again, and goes on where it was stopped."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from admission.models import AuditEvent, AuditExport, partitions
from admission.models.document import IN_DOCUMENT, PARTS
from admission.record import export as record_export

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("exports_folder")]
TODAY = datetime.now(UTC).date()
DAY = TODAY - timedelta(days=3)


def lines(file: Path) -> list[dict[str, object]]:
    with gzip.open(file, "rt", encoding="utf-8") as opened:
        return [json.loads(line) for line in opened]


def test_a_file_holds_every_column_of_every_row(
    decided: Callable[..., AuditEvent], exports_folder: Path
) -> None:
    decided(DAY - timedelta(days=1))
    first = decided(DAY, request={"object": {"ключ": "\n"}})
    second = decided(DAY)
    export = record_export.export_day(DAY)
    found = lines(exports_folder / f"audit-{DAY}.jsonl.gz")
    assert [row["id"] for row in found] == [first.id, second.id]
    columns = {field.name for field in AuditEvent._meta.concrete_fields}
    assert set(found[0]) == columns - {*IN_DOCUMENT} | {*PARTS}
    assert found[0]["request"] == {"object": {"ключ": "\n"}}
    assert datetime.fromisoformat(str(found[0]["created"])) == first.created
    assert (export.day, export.rows, export.path) == (DAY, 2, f"audit-{DAY}.jsonl.gz")
    assert record_export.is_current(export)


def test_an_export_goes_on_where_it_was_stopped(
    decided: Callable[..., AuditEvent], exports_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_export, "PIECE", 2)
    ids = [decided(DAY).id for _ in range(5)]
    with pytest.raises(record_export.OutOfTimeError):
        record_export.export_day(DAY, until=0.0)
    (part,) = exports_folder.glob("*.part")
    with part.open("ab") as file:
        file.write(b"half a piece")
    assert record_export.export_day(DAY).rows == 5
    assert [row["id"] for row in lines(exports_folder / f"audit-{DAY}.jsonl.gz")] == ids
    assert sorted(path.name for path in exports_folder.iterdir()) == [
        f"audit-{DAY}.jsonl.gz",
        "lock",
    ]


def test_an_export_starts_anew_when_its_note_is_lost(
    decided: Callable[..., AuditEvent], exports_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_export, "PIECE", 2)
    for _ in range(5):
        decided(DAY)
    with pytest.raises(record_export.OutOfTimeError):
        record_export.export_day(DAY, until=0.0)
    for note in exports_folder.glob("*.progress"):
        note.write_text("{")
    assert record_export.export_day(DAY).rows == 5


def test_only_days_that_are_over_are_due(decided: Callable[..., AuditEvent]) -> None:
    decided(DAY)
    decided(TODAY)
    _, end = partitions.bounds(TODAY)
    assert record_export.due(now=end) == [DAY]
    assert record_export.due(now=end + record_export.GRACE) == [DAY, TODAY]
    record_export.export_day(DAY)
    assert record_export.due(now=end) == []


def test_two_exports_do_not_write_at_once(decided: Callable[..., AuditEvent]) -> None:
    decided(DAY)
    with (
        record_export._folder_locked(),
        pytest.raises(record_export.ExportError, match="another export"),
    ):
        record_export.export_day(DAY)


@pytest.mark.parametrize("harm", ["cut", "row"])
def test_a_file_that_is_not_the_record_does_not_count(
    decided: Callable[..., AuditEvent], exports_folder: Path, harm: str
) -> None:
    decided(DAY)
    file = record_export.folder() / "file"
    text = b'{"id": "other"}\n' if harm == "row" else b"{}\n"
    written = gzip.compress(text)
    file.write_bytes(written if harm == "row" else written[:-4])
    with pytest.raises(record_export.ExportError):
        record_export._check_file(file, DAY, 1)


def test_a_file_with_too_few_rows_does_not_count(decided: Callable[..., AuditEvent]) -> None:
    row = decided(DAY)
    decided(DAY)
    file = record_export.folder() / "file"
    file.write_bytes(gzip.compress(json.dumps({"id": row.id}).encode()))
    with pytest.raises(record_export.ExportError, match="has 1 rows, not 2"):
        record_export._check_file(file, DAY, 2)


@pytest.mark.parametrize("harm", ["lost", "changed"])
def test_a_file_that_was_lost_or_changed_is_found(
    decided: Callable[..., AuditEvent],
    exports_folder: Path,
    harm: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    decided(DAY)
    call_command("audit_export")
    call_command("audit_export", verify=True)
    file = exports_folder / AuditExport.objects.get().path
    file.unlink() if harm == "lost" else file.write_bytes(b"")
    with pytest.raises(SystemExit, match="1"):
        call_command("audit_export", verify=True)
    assert file.name in capsys.readouterr().err


def test_a_day_that_goes_on_is_not_exported(decided: Callable[..., AuditEvent]) -> None:
    decided(TODAY)
    with pytest.raises(CommandError, match="not over yet"):
        call_command("audit_export", day=TODAY)


def test_a_folder_that_cannot_be_written_is_named(
    decided: Callable[..., AuditEvent], exports_folder: Path
) -> None:
    decided(DAY)
    exports_folder.write_text("not a folder")
    with pytest.raises(CommandError, match=f"audit-{DAY}.jsonl.gz"):
        call_command("audit_export")
