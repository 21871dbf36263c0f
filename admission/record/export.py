"""A day's rows to a gzip file by pieces: checkpoint, resumed, checked again, digest, AuditExport.

A file grows piece by piece under a temporary name, so that an export that was stopped resumes;
under its final name it is complete. One export runs at a time on a folder.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson
from django.conf import settings
from django.db.models import Sum

from admission.models import AuditEvent, AuditExport, partitions
from admission.models.document import with_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.models import AuditEventQuerySet

PIECE: Final = 2000  # rows of one piece of a file, usually a few megabytes
AT_ONCE: Final = 100  # rows in memory at once: each may be large
LARGEST_PIECE: Final = 8 * 1024 * 1024  # bytes, after which a piece ends
GRACE: Final = timedelta(
    hours=1
)  # after midnight; a decision is committed within seconds of its time
_COLUMNS: Final = tuple(field.name for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001  Django documents no other way


class ExportError(RuntimeError):
    """A file differs from the record, or cannot be written."""


class OutOfTimeError(RuntimeError):
    """The time is up; the next export resumes here."""


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A checkpoint of a growing file: rows and bytes that are on disk, and the last row's id."""

    rows: int = 0
    size: int = 0
    last: str = ""


def folder() -> Path:
    """The folder of exports, created if need be."""
    path = Path(settings.GATEHOUSE_EXPORT_FOLDER)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def rows_of(day: date) -> AuditEventQuerySet:
    """The rows of a day."""
    return AuditEvent.objects.between(*partitions.bounds(day))


def is_over(day: date, *, now: datetime) -> bool:
    """Return whether no more rows will be written for a day."""
    return now >= partitions.bounds(day)[1] + GRACE


def days_on_record() -> list[date]:
    """The days that have rows, oldest first."""
    if partitions.is_partitioned():
        return [day for day in partitions.days() if rows_of(day).exists()]
    found: list[date] = []
    created_times = AuditEvent.objects.order_by("created").values_list("created", flat=True)
    next_time = created_times.first()
    while next_time is not None:
        found.append(next_time.astimezone(UTC).date())
        next_time = created_times.filter(created__gte=partitions.bounds(found[-1])[1]).first()
    return found


def latest(day: date) -> AuditExport | None:
    """The newest export of a day."""
    newest: AuditExport | None = AuditExport.objects.filter(day=day).order_by("-number").first()
    return newest


def remaining(export: AuditExport) -> int:
    """The number of an export's rows that retention has not removed."""
    removed = export.removals.aggregate(total=Sum("removed"))["total"] or 0
    return int(export.rows - removed)


def is_current(export: AuditExport) -> bool:
    """Return whether an export's file is intact, and contains all rows of its day.

    The record only grows, and removals are counted: equal numbers mean equal rows.
    """
    return is_intact(export) and rows_of(export.day).count() == remaining(export)


def is_intact(export: AuditExport) -> bool:
    """Return whether an export's file has the content that was recorded."""
    try:
        return _file_digest(folder() / export.path) == export.sha256
    except OSError:
        return False


def due(*, now: datetime) -> list[date]:
    """The days that are over and have no export."""
    exported = set(AuditExport.objects.values_list("day", flat=True))
    return [day for day in days_on_record() if day not in exported and is_over(day, now=now)]


def export_day(day: date, *, until: float = float("inf")) -> AuditExport:
    """Write a day's file, read it again, and record the export.

    ``until`` is a ``time.monotonic()``.

    Raises:
        OutOfTimeError: when the time is up; the next call resumes.
        ExportError: when the file cannot be written, or another export runs.
    """
    last_export = latest(day)
    export_number = last_export.number + 1 if last_export else 1
    file_name = f"audit-{day}{f'.{export_number}' if export_number > 1 else ''}.jsonl.gz"
    try:
        final_file = folder() / file_name
        with _folder_locked():
            rows = _write_file(day, final_file, until=until)
            digest = _check_file(final_file, day, rows)
            return AuditExport.objects.create(
                day=day,
                number=export_number,
                path=final_file.name,
                sha256=digest,
                rows=rows,
                finished=datetime.now(UTC),
            )
    except OSError as error:
        raise ExportError(f"{file_name}: {error.strerror or error}") from error


@contextmanager
def _folder_locked() -> Iterator[None]:
    with (folder() / "lock").open("w") as folder_lock:
        try:
            # The kernel releases it when the process ends, however it ends.
            fcntl.flock(folder_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExportError("another export runs on this folder") from None
        yield


def _write_file(day: date, final_file: Path, *, until: float) -> int:
    """Resume or begin a file, complete and rename it; returns the number of its rows."""
    part_file = final_file.with_suffix(".part")
    progress = _resume_file(part_file)
    with part_file.open("ab") as opened_part:
        for piece in _pieces(day, last_id=progress.last):
            # Each piece is a gzip member of its own, so the file can be truncated after any.
            opened_part.write(gzip.compress(piece.text, compresslevel=6, mtime=0))
            opened_part.flush()
            os.fsync(opened_part.fileno())
            progress = _Checkpoint(progress.rows + piece.rows, opened_part.tell(), piece.last)
            # Renamed into place: a crash leaves either the previous checkpoint or this one.
            new_checkpoint = _checkpoint_file(part_file).with_suffix(".new")
            new_checkpoint.write_text(json.dumps(asdict(progress)), "utf-8")
            new_checkpoint.replace(_checkpoint_file(part_file))
            if time.monotonic() > until:
                raise OutOfTimeError
    part_file.replace(final_file)
    _checkpoint_file(part_file).unlink(missing_ok=True)
    # Without it a power failure could undo the renaming after the export is on record.
    folder_descriptor = os.open(final_file.parent, os.O_RDONLY)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)
    return progress.rows


@dataclass(frozen=True, slots=True)
class _ExportPiece:
    """Lines of a file: their bytes, their number, and the last row's id."""

    text: bytes
    rows: int
    last: str


def _pieces(day: date, *, last_id: str) -> Iterator[_ExportPiece]:
    """Read a few rows at a time, and join them to pieces that compress well."""
    option = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
    piece_text, piece_rows, is_day_over = bytearray(), 0, False
    while not is_day_over:
        rows = rows_of(day).newer_than(last_id) if last_id else rows_of(day)
        rows_read = list(rows.order_by("created", "id").values(*_COLUMNS)[: min(AT_ONCE, PIECE)])
        is_day_over = not rows_read
        for row in rows_read:
            piece_text += orjson.dumps(with_parts(row), option=option)
            piece_rows, last_id = piece_rows + 1, row["id"]
        if piece_rows >= PIECE or len(piece_text) >= LARGEST_PIECE or (is_day_over and piece_rows):
            yield _ExportPiece(bytes(piece_text), piece_rows, last_id)
            piece_text, piece_rows = bytearray(), 0


def _resume_file(part_file: Path) -> _Checkpoint:
    """Truncate a file to its last checkpoint; without one, to nothing."""
    try:
        progress = _Checkpoint(**json.loads(_checkpoint_file(part_file).read_text("utf-8")))
        if part_file.stat().st_size < progress.size:
            progress = _Checkpoint()
    except (OSError, ValueError, TypeError):
        progress = _Checkpoint()
    with part_file.open("ab") as opened_part:
        opened_part.truncate(progress.size)
    return progress


def _checkpoint_file(part_file: Path) -> Path:
    return part_file.with_suffix(".progress")


def _check_file(file: Path, day: date, rows_written: int) -> str:
    """Read a file again and compare its ids with the record; returns its digest."""
    on_record = rows_of(day).order_by("created", "id").values_list("id", flat=True)
    recorded_ids = on_record.iterator(chunk_size=PIECE)
    lines_read = 0
    try:
        with gzip.open(file) as export_lines:
            for export_line in export_lines:
                if orjson.loads(export_line).get("id") != next(recorded_ids, None):
                    raise ExportError(f"{file.name}: line {lines_read + 1} is not on record there")
                lines_read += 1
    except (EOFError, ValueError, gzip.BadGzipFile) as error:
        raise ExportError(f"{file.name}: cannot be read again ({error})") from error
    if lines_read != rows_written:
        raise ExportError(f"{file.name}: has {lines_read} rows, not {rows_written}")
    return _file_digest(file)


def _file_digest(export_file: Path) -> str:
    with export_file.open("rb") as opened_export:
        return hashlib.file_digest(opened_export, "sha256").hexdigest()
