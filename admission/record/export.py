"""Export days of the record to files: JSON Lines in gzip, verified before they count.

A file grows under a name of its own, a piece at a time; whoever is stopped goes on where it was.
Under its final name it is complete. One export runs at a time on a folder.
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

PIECE: Final = 2000  # rows of one piece of a file: a few megabytes, as a rule
AT_ONCE: Final = 100  # rows in memory at once: each may be large
LARGEST_PIECE: Final = 8 * 1024 * 1024  # bytes, after which a piece ends
GRACE: Final = timedelta(hours=1)  # after midnight; a decision is written within seconds
_COLUMNS: Final = tuple(field.name for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001  Django's own way to ask


class ExportError(RuntimeError):
    """A file is not what the record holds, or cannot be written; says which and why."""


class OutOfTimeError(RuntimeError):
    """The time given is over; the next export goes on from here."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a growing file is safe: rows and bytes written, and the last row's id."""

    rows: int = 0
    size: int = 0
    last: str = ""


def folder() -> Path:
    """Where the files are; made when it is not there."""
    path = Path(settings.GATEHOUSE_EXPORT_FOLDER)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def rows_of(day: date) -> AuditEventQuerySet:
    """What is on record of a day."""
    return AuditEvent.objects.between(*partitions.bounds(day))


def is_over(day: date, *, now: datetime) -> bool:
    """Return whether nothing more is to come on record for a day."""
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
    """How many of an export's rows should be on record still."""
    removed = export.removals.aggregate(total=Sum("removed"))["total"] or 0
    return int(export.rows - removed)


def is_current(export: AuditExport) -> bool:
    """Return whether an export's file is there as it was, and has all that is on record of its day.

    The record only grows, and what was removed is on record itself: equal numbers are equal rows.
    """
    return is_intact(export) and rows_of(export.day).count() == remaining(export)


def is_intact(export: AuditExport) -> bool:
    """Return whether an export's file is there as it was."""
    try:
        return _digest(folder() / export.path) == export.sha256
    except OSError:
        return False


def due(*, now: datetime) -> list[date]:
    """The days that are over and have no export."""
    exported = set(AuditExport.objects.values_list("day", flat=True))
    return [day for day in days_on_record() if day not in exported and is_over(day, now=now)]


def export_day(day: date, *, until: float = float("inf")) -> AuditExport:
    """Write a day's file, read it again, and put it on record.

    ``until`` is a ``time.monotonic()``.

    Raises:
        OutOfTimeError: when the time is over; what is written is kept.
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
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExportError("another export runs on this folder") from None
        yield


def _write(day: date, final: Path, *, until: float) -> int:
    """Bring the growing file to its end; returns its rows. It has its final name afterwards."""
    part = final.with_suffix(".part")
    progress = _resume(part)
    with part.open("ab") as file:
        for piece in _pieces(day, after=progress.last):
            file.write(gzip.compress(piece.text, compresslevel=6, mtime=0))
            file.flush()
            os.fsync(file.fileno())
            progress = _Progress(progress.rows + piece.rows, file.tell(), piece.last)
            # Renamed into place: whoever is killed here leaves the note before or this one.
            draft = _sidecar(part).with_suffix(".new")
            draft.write_text(json.dumps(asdict(progress)), "utf-8")
            draft.replace(_sidecar(part))
            if time.monotonic() > until:
                raise OutOfTimeError
    part.replace(final)
    _sidecar(part).unlink(missing_ok=True)
    _sync(final.parent)
    return progress.rows


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of a file: as bytes, how many, and the last row's id."""

    text: bytes
    rows: int
    last: str


def _pieces(day: date, *, after: str) -> Iterator[_Piece]:
    """Read rows bit by bit, and put so many together that writing them is worth its while."""
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
    """Cut what was written after the last note; without a note, start anew."""
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
    """Read a file again, line by line against the record; returns its digest."""
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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
