"""Export days of the record to files: JSON Lines in gzip, read again before they count.

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
class _Progress:
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
    times = AuditEvent.objects.order_by("created").values_list("created", flat=True)
    time_found = times.first()
    while time_found is not None:
        found.append(time_found.astimezone(UTC).date())
        time_found = times.filter(created__gte=partitions.bounds(found[-1])[1]).first()
    return found


def latest(day: date) -> AuditExport | None:
    """The newest export of a day."""
    found: AuditExport | None = AuditExport.objects.filter(day=day).order_by("-number").first()
    return found


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
        return _digest(folder() / export.path) == export.sha256
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
    before = latest(day)
    number = before.number + 1 if before else 1
    name = f"audit-{day}{f'.{number}' if number > 1 else ''}.jsonl.gz"
    try:
        final = folder() / name
        with _alone():
            rows = _write(day, final, until=until)
            digest = _check(final, day, rows)
            return AuditExport.objects.create(
                day=day,
                number=number,
                path=final.name,
                sha256=digest,
                rows=rows,
                finished=datetime.now(UTC),
            )
    except OSError as error:
        raise ExportError(f"{name}: {error.strerror or error}") from error


@contextmanager
def _alone() -> Iterator[None]:
    with (folder() / "lock").open("w") as lock:
        try:
            # The kernel releases it when the process ends, however it ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExportError("another export runs on this folder") from None
        yield


def _write(day: date, final: Path, *, until: float) -> int:
    """Resume or begin a file, complete and rename it; returns the number of its rows."""
    part = final.with_suffix(".part")
    progress = _resume(part)
    with part.open("ab") as file:
        for piece in _pieces(day, after=progress.last):
            # Each piece is a gzip member of its own, so the file can be truncated after any.
            file.write(gzip.compress(piece.text, compresslevel=6, mtime=0))
            file.flush()
            os.fsync(file.fileno())
            progress = _Progress(progress.rows + piece.rows, file.tell(), piece.last)
            # Renamed into place: a crash leaves either the previous checkpoint or this one.
            draft = _sidecar(part).with_suffix(".new")
            draft.write_text(json.dumps(asdict(progress)), "utf-8")
            draft.replace(_sidecar(part))
            if time.monotonic() > until:
                raise OutOfTimeError
    part.replace(final)
    _sidecar(part).unlink(missing_ok=True)
    # Without it a power failure could undo the renaming after the export is on record.
    descriptor = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return progress.rows


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of a file: their bytes, their number, and the last row's id."""

    text: bytes
    rows: int
    last: str


def _pieces(day: date, *, after: str) -> Iterator[_Piece]:
    """Read a few rows at a time, and join them to pieces that compress well."""
    option = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
    text, number, is_over = bytearray(), 0, False
    while not is_over:
        rows = rows_of(day).newer_than(after) if after else rows_of(day)
        found = list(rows.order_by("created", "id").values(*_COLUMNS)[: min(AT_ONCE, PIECE)])
        is_over = not found
        for row in found:
            text += orjson.dumps(row, option=option)
            number, after = number + 1, row["id"]
        if number >= PIECE or len(text) >= LARGEST_PIECE or (is_over and number):
            yield _Piece(bytes(text), number, after)
            text, number = bytearray(), 0


def _resume(part: Path) -> _Progress:
    """Truncate a file to its last checkpoint; without one, to nothing."""
    try:
        progress = _Progress(**json.loads(_sidecar(part).read_text("utf-8")))
        if part.stat().st_size < progress.size:
            progress = _Progress()
    except (OSError, ValueError, TypeError):
        progress = _Progress()
    with part.open("ab") as file:
        file.truncate(progress.size)
    return progress


def _sidecar(part: Path) -> Path:
    return part.with_suffix(".progress")


def _check(file: Path, day: date, rows: int) -> str:
    """Read a file again and compare its ids with the record; returns its digest."""
    on_record = rows_of(day).order_by("created", "id").values_list("id", flat=True)
    wanted = on_record.iterator(chunk_size=PIECE)
    found = 0
    try:
        with gzip.open(file) as lines:
            for line in lines:
                if orjson.loads(line).get("id") != next(wanted, None):
                    raise ExportError(f"{file.name}: line {found + 1} is not on record there")
                found += 1
    except (EOFError, ValueError, gzip.BadGzipFile) as error:
        raise ExportError(f"{file.name}: cannot be read again ({error})") from error
    if found != rows:
        raise ExportError(f"{file.name}: has {found} rows, not {rows}")
    return _digest(file)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
