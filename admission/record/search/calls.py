"""The two calls of one request: an API server asks mutating webhooks first, then validating ones.

Each call has a UID of its own, and a generated name exists only in the second one. So calls are
matched by what they are about and by their times.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from admission.models import AnswerKind, AuditEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from admission.record.search.search import Sampled

_Call = TypeVar("_Call", "Sampled", AuditEvent)

APART: Final = timedelta(seconds=2)
"""The longest time between the calls of one request."""
LOOKED: Final = 500
"""Calls beside one that are read to find the other."""
_COLUMNS: Final = (
    "created", "phase", "name", "cluster", "namespace", "kind", "sub_resource", "user",
    "operation", "dry_run", "verdict", "reasons", "duration_us",
)  # fmt: skip
_FIRST, _SECOND = "mutate", "validate"
_STRENGTHS: Final = (
    AnswerKind.ALLOWED, AnswerKind.MUTATED, AnswerKind.WOULD_DENY, AnswerKind.DENIED,
)  # fmt: skip


def other_calls(calls: Iterable[_Call]) -> dict[str, _Call]:
    """The other call of the same request, by the id of each call that has one among these."""
    others: dict[str, _Call] = {}
    second_calls: defaultdict[tuple[object, ...], deque[_Call]] = defaultdict(deque)
    # Calls of one millisecond are in no order by their ids.
    for call in sorted(calls, key=lambda call: (call.created, call.phase), reverse=True):
        waiting = second_calls[_about(call)]
        if call.phase == _SECOND:
            waiting.append(call)
        elif call.phase == _FIRST:
            while waiting and waiting[0].created - call.created > APART:
                waiting.popleft()
            if second := _second_of(call, waiting):
                waiting.remove(second)
                others[call.id], others[second.id] = second, call
    return others


def stronger(one: _Call, other: _Call) -> _Call:
    """The call that decided: the stronger answer, or of equal ones the validating call's."""
    return max(one, other, key=lambda call: (_STRENGTHS.index(call.outcome), call.phase))


def other_call_of(event: AuditEvent) -> AuditEvent | None:
    """The other call of a recorded decision's request, if it is on record; one query.

    It has only what finds it, and its outcome and duration: no column that may be large.
    """
    # Also the calls beside the other one, which may be theirs.
    beside = AuditEvent.objects.filter(
        cluster=event.cluster,
        created__range=(event.created - 2 * APART, event.created + 2 * APART),
        namespace=event.namespace,
        kind=event.kind,
        sub_resource=event.sub_resource,
        operation=event.operation,
        user=event.user,
        dry_run=event.dry_run,
    )
    beside = beside.only(*_COLUMNS).newest_first()
    return other_calls(beside[:LOOKED]).get(event.id)


def _about(call: Sampled | AuditEvent) -> tuple[object, ...]:
    return (
        call.cluster, call.namespace, call.kind, call.sub_resource, call.user, call.operation,
        call.dry_run,
    )  # fmt: skip


def _second_of(first: _Call, waiting: Iterable[_Call]) -> _Call | None:
    """The call that followed: of the same name, or of one that was generated since."""
    named = (second for second in waiting if second.name == first.name)
    generated = (
        second
        for second in waiting
        if first.name.endswith("-") and second.name.startswith(first.name)
    )
    return next(named, None) or next(generated, None)
