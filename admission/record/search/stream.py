"""A search's rows as CSV or JSON Lines, piece by piece; cells neutral to spreadsheets' formulas.

A spreadsheet would run a cell that begins like a formula: such cells get an apostrophe in front.
"""

from __future__ import annotations

import csv
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import orjson

from admission.models import AuditEvent, outcome_of
from admission.models.document import with_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.models import AuditEventQuerySet

PIECE: Final = 500
"""Rows in memory at once."""
LARGE_PIECE: Final = 50
"""Rows in memory at once with all their columns, each of which may be large."""
FORMATS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
COLUMNS: Final = (
    "id", "created", "verdict", "code", "reason", "cluster", "namespace", "kind", "name",
    "operation", "user", "dry_run", "phase", "reasons", "policy_names", "message", "duration_us",
)  # fmt: skip
_ALL_COLUMNS: Final = tuple(field.name for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001 - Django documents no other way
_FORMULA: Final = ("=", "+", "-", "@")
_LINE_BREAKS: Final = ("\t", "\r", "\n")
# White space and invisible characters: zero-width ones and the byte order mark.
_SKIPPED: Final = (
    "".join(map(chr, range(0x21))) + "\x7f\x85\u200b\u200c\u200d\u2060\ufeff\u1680\u2028\u2029"
)
_LOOKED_AT: Final = 64  # characters


class _CsvLines(list[str]):
    """The file that ``csv`` writes to: it keeps the lines until they are sent."""

    def write(self, text: str) -> None:
        """Keep a line."""
        self.append(text)

    def take(self) -> str:
        """Return the kept lines, and forget them."""
        text = "".join(self)
        self.clear()
        return text


def as_csv(rows: AuditEventQuerySet) -> Iterator[bytes]:
    """RFC 4180: a header, one decision a line, the newest first."""
    csv_lines = _CsvLines()
    csv_writer = csv.writer(csv_lines)
    csv_writer.writerow(COLUMNS)
    yield csv_lines.take().encode()
    for row_piece in _row_pieces(rows, COLUMNS, PIECE):
        for row in row_piece:
            row["verdict"] = outcome_of(row["verdict"], row["reasons"]).value
            csv_writer.writerow([neutral(_cell_text(row[name])) for name in COLUMNS])
        # A lone surrogate in a name has no UTF-8: a question mark is better than half a file.
        yield csv_lines.take().encode("utf-8", "replace")


def as_jsonl(rows: AuditEventQuerySet) -> Iterator[bytes]:
    """One decision a line with all recorded columns, the newest first."""
    option = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
    for row_piece in _row_pieces(rows, _ALL_COLUMNS, LARGE_PIECE):
        for row in row_piece:
            row["verdict"] = outcome_of(row["verdict"], row["reasons"]).value
        yield b"".join(orjson.dumps(with_parts(row), option=option) for row in row_piece)


def neutral(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula.

    Some read full-width signs as plain ones, and skip any white space before them.
    """
    begins = unicodedata.normalize("NFKC", cell[:_LOOKED_AT]).lstrip(_SKIPPED)
    return f"'{cell}" if begins.startswith(_FORMULA) or cell.startswith(_LINE_BREAKS) else cell


def _cell_text(column_value: Any) -> str:
    if isinstance(column_value, bool):
        return "yes" if column_value else "no"
    if hasattr(column_value, "isoformat"):
        return str(column_value.isoformat())
    return str(column_value)


def _row_pieces(
    rows: AuditEventQuerySet, columns: tuple[str, ...], piece_size: int
) -> Iterator[list[dict[str, Any]]]:
    """All rows, piece by piece; a piece may be empty where they are rare."""
    page_cursor, is_last_page = "", False
    while not is_last_page:
        # Ids first, then their rows in small pieces: the large columns are never sorted.
        page = rows.only("id", "created").page(before=page_cursor, size=PIECE)
        for piece_start in range(0, len(page.events), piece_size):
            page_events = page.events[piece_start : piece_start + piece_size]
            piece_rows = AuditEvent.objects.filter(
                id__in=[event.pk for event in page_events],
                created__gte=page_events[-1].created,
                created__lte=page_events[0].created,
            )
            yield list(piece_rows.newest_first().values(*columns))
        page_cursor, is_last_page = page.older, not page.older
