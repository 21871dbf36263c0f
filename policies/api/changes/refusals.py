"""Refusals of changes as problems: of steps 409, of objects 409 or 400 by object and field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.change_sets.states import StepRefusedError
from policies.problem_details import problem, problem_of_errors, respond
from policies.services.changes import (
    ApprovalRefusedError,
    ApprovalsMissingError,
    ItemsRefusedError,
    MergeConflictError,
    OutdatedChangeError,
)

if TYPE_CHECKING:
    from rest_framework.response import Response

    from policies.services.changes import ItemProblem

_CONFLICT: Final = 409
_INVALID: Final = 400
_FORBIDDEN: Final = 403
_BY_ROLE: Final = frozenset({"own_change", "no_role"})
_MOVED: Final = frozenset({"base_moved", "written_since"})


def change_refusal(exc: Exception) -> Response | None:
    """The response to a refusal; None for other errors."""
    if isinstance(exc, StepRefusedError):
        return respond(problem(_CONFLICT, str(exc), name="wrong-state"))
    if isinstance(exc, OutdatedChangeError):
        return respond(problem(_CONFLICT, str(exc), name="outdated-change"))
    if isinstance(exc, MergeConflictError):
        error = {"code": "conflict", "message": "both sides changed it: choose one by keep"}
        errors = {path or "object": [error] for path in exc.paths}
        return respond(problem_of_errors(_CONFLICT, errors, name="merge-conflict"))
    if isinstance(exc, ItemsRefusedError):
        return _items_refused(exc)
    return _of_approvals(exc)


def _of_approvals(exc: Exception) -> Response | None:
    if isinstance(exc, ApprovalsMissingError):
        errors = {"approvals": [{"code": "missing", "message": each.words} for each in exc.needs]}
        return respond(problem_of_errors(_CONFLICT, errors, name="approvals-missing"))
    if isinstance(exc, ApprovalRefusedError):
        status = _FORBIDDEN if exc.code in _BY_ROLE else _CONFLICT
        return respond(problem(status, str(exc), name=exc.code.replace("_", "-")))
    return None


def _items_refused(exc: ItemsRefusedError) -> Response:
    errors: dict[str, list[dict[str, str]]] = {}
    for each in exc.problems:
        error = {"code": each.code, "message": each.message}
        errors.setdefault(_place(each), []).append(error)
    has_moved = any(each.code in _MOVED for each in exc.problems)
    name = "conflict" if has_moved else "invalid-request"
    return respond(problem_of_errors(_CONFLICT if has_moved else _INVALID, errors, name=name))


def _place(found: ItemProblem) -> str:
    """The object, and the member of it: ``prod/LimitRange/team/lr.spec.limits[0]``."""
    place = "/".join((found.cluster, *found.key))
    return f"{place}.{found.path}" if found.path else place
