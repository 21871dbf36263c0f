"""Pipeline on libpq's PGconn: statements sent, prepared, awaited; parameters encoded; rows decoded.

A driver's cursor costs more for each statement than PostgreSQL does. Statements are constants with
``%s`` for each parameter; parameters and rows travel as text. This module knows no table.
Source: "Pipeline Mode" in PostgreSQL's documentation of libpq.
"""

from __future__ import annotations

import select
from collections import deque
from functools import cache, lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg import DataError, OperationalError, errors
from psycopg.pq import ConnStatus, ExecStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg.pq.abc import PGconn, PGresult

Row = tuple[Any, ...]
_BOOLEAN, _INTEGERS, _UUID = 16, (20, 21, 23), 2950  # object identifiers of types in pg_type
_READERS: Final[dict[int, Callable[[bytes], Any]]] = {
    _BOOLEAN: lambda text: text == b"t",
    _UUID: lru_cache(1024)(lambda text: UUID(text.decode())),
    **dict.fromkeys(_INTEGERS, int),
}


_GOOD_STATUSES: Final = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
_numbers: Final = count(1)


class _SentStatement:
    """A statement that was sent; ``result`` is None until its answer is read."""

    __slots__ = ("prepares", "result")

    def __init__(self, prepares: str = "") -> None:
        self.prepares = prepares
        self.result: PGresult | None = None


class Pipeline:
    """The statements of one transaction on a connection that nothing else uses meanwhile.

    ``prepared`` are the statements that the session knows already; new ones are added. Nothing here
    waits: callers call ``pump`` and wait for the socket until all that was sent is answered, and do
    the same after the end of the transaction. All methods raise psycopg's errors; after an error
    only ``send_rollback`` may follow.

    No BEGIN and no COMMIT: the server treats all statements up to the pipeline's end as one
    transaction, and commits it there. That saves two statements, which a batch of one notices.
    """

    def __init__(self, pgconn: PGconn, prepared: set[str]) -> None:
        self._pgconn = pgconn
        self._prepared = prepared
        self._unanswered: deque[_SentStatement] = deque()  # sent, not answered yet
        self._is_ended = False  # whether the end of the transaction was sent
        self._is_left = True  # whether the connection is out of pipeline mode
        self._is_awaited = False  # whether the server has to be asked to flush its answers
        self._is_waiting = False  # whether there was nothing to read at the last look
        self._is_abandoned = False
        self._late_error: Exception | None = None  # of the transaction's end
        self._known = set(prepared)  # and the statements whose preparation is sent

    def begin(self) -> None:
        """Open the transaction; nothing is sent yet."""
        self._pgconn.enter_pipeline_mode()
        self._is_left = False

    def ask(self, statement: str, parameters: Sequence[Any]) -> Callable[[], list[Row]]:
        """Send a statement; the result gives its rows once ``pump`` has read all answers."""
        sent = self._send(statement, parameters)
        self._is_awaited = True

        def rows() -> list[Row]:
            assert sent.result is not None  # noqa: S101 - the caller has waited until it came
            return _rows_of(sent.result)

        return rows

    def execute(self, statement: str, parameters: Sequence[Any]) -> None:
        """Send a statement without rows; the next ``pump`` raises its error."""
        self._send(statement, parameters)

    def send_commit(self) -> None:
        """End the transaction; it is committed once ``pump`` has read the answer."""
        self._sync()

    def send_rollback(self) -> None:
        """End the transaction without a trace; ``pump`` reads what the server still answers."""
        self._is_abandoned = True
        if self._pgconn.status != ConnStatus.OK:
            self._unanswered.clear()
            self._is_left = True
        elif not self._is_ended:
            # A sync alone would commit. BEGIN turns what was sent into a block that ROLLBACK ends;
            # without BEGIN the server would log a warning for each ROLLBACK.
            self._send("BEGIN", ())
            self._send("ROLLBACK", ())
            self._sync()

    def pump(self) -> int:
        """Send and read what can be without waiting.

        Returns the events to wait for before the next call, as ``select.poll`` has them; 0 once all
        that was sent is answered.
        """
        if self._is_waiting:
            self._pgconn.consume_input()
        if self._is_awaited:
            # Here and not with each statement: one packet each way wakes both sides once.
            self._pgconn.send_flush_request()
            self._is_awaited = False
        while self._unanswered or (self._is_ended and not self._is_left):
            # Both directions at once: with full buffers on both sides a plain send would deadlock.
            is_sending = self._pgconn.flush()
            self._is_waiting = bool(self._pgconn.is_busy())
            if self._is_waiting:
                return select.POLLIN | (select.POLLOUT if is_sending else 0)
            if self._unanswered:
                self._read()
            else:
                self._read_end()
        return 0

    def _send(self, statement: str, parameters: Sequence[Any]) -> _SentStatement:
        name, text = _with_numbered_parameters(statement)
        if statement not in self._known:
            self._known.add(statement)
            self._pgconn.send_prepare(name, text)
            self._unanswered.append(_SentStatement(prepares=statement))
        self._pgconn.send_query_prepared(name, _encoded(parameters))
        sent = _SentStatement()
        self._unanswered.append(sent)
        return sent

    def _read(self) -> None:
        """Read the next answer; raises if it is an error, unless all is taken back anyway."""
        sent = self._unanswered.popleft()
        sent.result = pg_result = self._pgconn.get_result()
        self._pgconn.get_result()  # the end of this answer, which has come with it
        is_good = pg_result is not None and pg_result.status in _GOOD_STATUSES
        if is_good and sent.prepares:
            self._prepared.add(sent.prepares)
        if not is_good and not self._is_abandoned:
            raise _postgres_error(pg_result, self._pgconn)

    def _sync(self) -> None:
        """End the pipeline: after an error the server skips everything up to here."""
        self._pgconn.pipeline_sync()
        self._is_ended = True

    def _read_end(self) -> None:
        """Read the answer to the pipeline's end, and leave pipeline mode."""
        pg_result = self._pgconn.get_result()
        if pg_result is not None and pg_result.status == ExecStatus.FATAL_ERROR:
            # A deferred constraint, or the end of the session.
            self._late_error = self._late_error or _postgres_error(pg_result, self._pgconn)
            self._pgconn.get_result()
            if self._pgconn.status == ConnStatus.OK:
                return  # the end follows
            pg_result = None
        self._is_left = True
        if pg_result is None or pg_result.status != ExecStatus.PIPELINE_SYNC:
            raise self._late_error or _postgres_error(pg_result, self._pgconn)
        self._pgconn.exit_pipeline_mode()
        if self._late_error and not self._is_abandoned:
            raise self._late_error


@cache
def _with_numbered_parameters(statement: str) -> tuple[bytes, bytes]:
    """A name for a statement, and its text with numbered parameters, as PostgreSQL expects."""
    text_before, *texts_after = statement.split("%s")
    text = text_before + "".join(f"${number}{part}" for number, part in enumerate(texts_after, 1))
    return f"gatehouse_{next(_numbers)}".encode(), text.replace("%%", "%").encode()


def _encoded(parameters: Sequence[Any]) -> list[bytes | None]:
    """Parameters as text; one with NUL is refused, since libpq would cut it there."""
    try:
        # Inline, without a call: a row has dozens of parameters, and most are texts.
        encoded = [
            each.encode()
            if (kind := type(each)) is str
            else b"%d" % each
            if kind is int
            else _parameter_text(each)
            for each in parameters
        ]
    except UnicodeEncodeError as error:
        raise DataError(str(error)) from None
    if b"\0" in b"".join(filter(None, encoded)):
        raise DataError("a text with NUL (0x00) cannot be sent")
    return encoded


def _parameter_text(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if not isinstance(value, list):
        return str(value).encode()
    # An array. Its texts are quoted always: some, such as null, would mean something else.
    array_texts = [
        str(each)
        if isinstance(each, int)
        else '"' + str(each).replace("\\", "\\\\").replace('"', '\\"') + '"'
        for each in value
    ]
    return f"{{{','.join(array_texts)}}}".encode()


def _rows_of(result: PGresult) -> list[Row]:
    if not result.ntuples:
        return []
    result_columns = range(result.nfields)
    column_readers = [_READERS.get(result.ftype(column), bytes.decode) for column in result_columns]
    return [
        tuple(
            [
                None
                if (text := result.get_value(number, column)) is None
                else column_readers[column](text)
                for column in result_columns
            ]
        )
        for number in range(result.ntuples)
    ]


def _postgres_error(pg_result: PGresult | None, pgconn: PGconn) -> Exception:
    if pg_result is not None and pg_result.status == ExecStatus.FATAL_ERROR:
        return errors.error_from_result(pg_result, encoding="utf-8")
    return OperationalError(pgconn.get_error_message() or "the connection was lost")
