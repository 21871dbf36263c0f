"""ClientError and its kinds: unreachable portal, refused sign-in, problem details with fields."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from gatehouse_cli.exit_codes import CliError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class ClientError(CliError):
    """What the portal did not do, in words for the terminal."""


class NoPortalError(ClientError):
    """No answer, or none of the portal's: the connection failed, or something else answered."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One error of a field or parameter; file, line and column where the portal knows them."""

    field: str
    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return ": ".join(part for part in (place, self.field, self.message) if part)


class ProblemError(ClientError):
    """The portal refused the request with problem details."""

    way_on = ""

    def __init__(
        self, status: int, members: Mapping[str, Any], fields: Sequence[FieldProblem]
    ) -> None:
        self.status = status
        self.type = str(members.get("type", "")).rpartition(":")[2]
        self.members = dict(members)
        self.fields = list(fields)
        title = str(members.get("title") or _phrase(status))
        # The detail repeats the first field alone.
        head = title if self.fields else str(members.get("detail") or title)
        lines = [f"{head} ({status}){self.way_on}", *(f"  {field}" for field in self.fields)]
        super().__init__("\n".join(lines))

    def with_fields(self, fields: Sequence[FieldProblem]) -> ProblemError:
        """The same error with other errors of fields."""
        return type(self)(self.status, self.members, fields)


class SignInError(ProblemError):
    """The portal does not accept the token."""

    way_on = "; run: gatehouse login URL"


def problem_of(status: int, members: Mapping[str, Any]) -> ProblemError:
    """The error of an answer with this status."""
    kind = SignInError if status == HTTPStatus.UNAUTHORIZED else ProblemError
    return kind(status, members, list(_field_problems(members.get("errors"))))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "The portal refused the request"


def _field_problems(errors: Any) -> Iterator[FieldProblem]:
    if not isinstance(errors, dict):
        return
    for field, found in errors.items():
        for error in found if isinstance(found, list) else []:
            yield FieldProblem(
                field=str(field),
                code=str(error.get("code", "")),
                message=str(error.get("message", "")),
                file=str(error.get("file") or ""),
                line=int(error.get("line") or 0),
                column=int(error.get("column") or 0),
            )
