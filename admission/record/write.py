"""Build the row of the record for one decision; the only code that creates AuditEvents."""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import orjson
from django.db.models import JSONField

from admission.models import AuditEvent, partitions
from admission.models.columns import verdict_of
from admission.models.decision_id import encode, moment
from admission.models.row_bounds import bounded_groups, bounded_request, bounded_row
from admission.record.redaction import (
    ESCAPE,
    clip,
    escape,
    redacted_parts,
    redacted_request,
    storable,
)
from admission.record.templates import fill_in, template_of
from engine.cache import Remembering, once
from policies.db.deferred import execute, is_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.wire.request_templates import RequestTemplate
    from engine.decision import Charge, Decision, Step, Violation
    from engine.policy import PolicyRef, PolicySet
    from engine.request import AdmissionRequest, Phase

_COLUMNS: Final = tuple(str(field.column) for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001 - Django's own way to ask
_JSON_PLACES: Final = tuple(
    place
    for place, field in enumerate(AuditEvent._meta.concrete_fields)  # noqa: SLF001 - the same
    if isinstance(field, JSONField)
)
_TIME_PLACE: Final = _COLUMNS.index("created")
_in_order: Final = itemgetter(*_COLUMNS)
_TABLE: Final = AuditEvent._meta.db_table  # noqa: SLF001 - the same
_NAMES: Final = ", ".join(f'"{name}"' for name in _COLUMNS)
_ROW: Final = f"({', '.join(['%s'] * len(_COLUMNS))})"
_MOST_AT_ONCE: Final = 32
_EMPTY: Final = "[]"
_NOTHING_ASKED: Final[Mapping[str, Any]] = {
    "operation": "",
    "api_group": "",
    "kind": "",
    "resource": "",
    "sub_resource": "",
    "namespace": "",
    "name": "",
    "object_uid": "",
    "user": "",
    "groups": _EMPTY,
    "dry_run": False,
    "request": "{}",
}


@dataclass(frozen=True, slots=True)
class PolicyColumns(Remembering):
    """The policies that were asked: the same in all rows of a namespace."""

    refs: tuple[PolicyRef, ...] = ()


_NONE_ASKED: Final = PolicyColumns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What belongs on record beside request and decision. ``started`` is a ``monotonic_ns()``."""

    cluster: str
    phase: Phase
    client: str
    started: int
    policy_revision: int = 0
    policies: PolicyColumns = _NONE_ASKED


@once
def asked_of(policies: PolicySet) -> PolicyColumns:
    """Name all policies of a namespace."""
    refs = (
        *(policy.ref for policy in policies.limit_ranges),
        *(policy.ref for policy in policies.metadata_policies),
        *(policy.ref for policy in policies.resource_quotas),
    )
    return PolicyColumns(refs)


def new_decision_id() -> str:
    """16 characters of Crockford's base32: 48 bit of milliseconds, 32 random. Sorts by time."""
    # It distinguishes them and keeps nothing secret. The system's own bits, with which a process
    # begins, would have the thread stand back each time.
    tail = random.getrandbits(32)
    return encode(time.time_ns() // 1_000_000, tail)


def row(
    decision: Decision,
    *,
    decision_id: str,
    asked: Mapping[str, Any],
    circumstances: Circumstances,
) -> dict[str, Any]:
    """Make the row of one decision: a value for each column, JSON as text.

    ``asked`` is what ``columns_of`` gives for the request.
    """
    made = {
        **asked,
        "id": decision_id,
        "created": moment(decision_id),
        "cluster": clip(circumstances.cluster),
        "phase": circumstances.phase.value,
        "client": clip(circumstances.client),
        "policy_revision": circumstances.policy_revision,
        **_answered(decision),
        **_policies(decision, circumstances.policies),
        "duration_us": (time.monotonic_ns() - circumstances.started) // 1000,
    }
    return bounded_row(made)


def write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows inside the caller's transaction. JSON is taken as text, or as a value.

    Many rows a statement: PostgreSQL opens a table of partitions, with its indexes, for each.

    Raises:
        DatabaseError: if they cannot be written; then there must be no answers either.
    """
    as_time = str if is_postgresql() else _naive
    values = [list(_in_order(entry)) for entry in rows]
    for one in values:
        one[_TIME_PLACE] = as_time(one[_TIME_PLACE])
        for place in _JSON_PLACES:
            if type(one[place]) is not str:
                one[place] = _json(one[place])
    while values:
        # By powers of two, so that a session has few statements to keep plans of.
        share = min(1 << (len(values).bit_length() - 1), _MOST_AT_ONCE)
        execute(_insert(share), [list(chain.from_iterable(values[:share]))])
        del values[:share]


@cache
def _insert(number: int) -> str:
    """Write the statement for so many rows."""
    rows = ", ".join([_ROW] * number)
    return f'INSERT INTO "{_TABLE}" ({_NAMES}) VALUES {rows}'  # noqa: S608 - names of our own columns


def _naive(moment: datetime) -> str:
    """As Django writes times to SQLite and asks for them, without a fraction of zero."""
    return str(moment.replace(tzinfo=None))


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_UTC_Z).decode()


def recorded(decision_ids: Sequence[str]) -> bool:
    """Return whether these decisions, written in one transaction, are on record."""
    moments = [moment(decision_id) for decision_id in decision_ids]
    found = AuditEvent.objects.filter(
        id__in=decision_ids, created__gte=min(moments), created__lte=max(moments)
    )
    return found.exists() if decision_ids else False


def make_room() -> None:
    """Make the partition of today, whose want was noticed by an insert."""
    today = datetime.now(UTC).date()
    partitions.ensure(today)


def columns_of(request: AdmissionRequest | None, *, request_uid: str = "") -> Mapping[str, Any]:
    """Give the columns about the request; ``request_uid`` where it could not be read.

    They depend on no decision, so that they can be made before one is.
    """
    if request is None:
        return {**_NOTHING_ASKED, "request_uid": clip(request_uid)}
    template = template_of(request)
    if template is not None:
        text = fill_in(request, template)
    elif request.is_plain:  # so it is short
        text = redacted_request(request)
    else:
        text = bounded_request(redacted_parts(request))
    metadata = (request.object or request.old_object or {}).get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return {
        **(_shared(request) if template is None else _shared_by_all(template)),
        "request_uid": clip(request.uid),
        "name": clip(request.display_name),
        "object_uid": clip(uid) if type(uid) is str else "",
        "request": text,
    }


def _shared(request: AdmissionRequest) -> Mapping[str, Any]:
    """Give the columns that are the same for all requests of one template."""
    return {
        "operation": request.operation.value,
        "api_group": clip(request.kind.group),
        "kind": clip(request.kind.kind),
        "resource": clip(request.resource.resource),
        "sub_resource": clip(request.sub_resource),
        "namespace": clip(request.namespace),
        "user": clip(request.user),
        "groups": _json([clip(group) for group in bounded_groups(request.groups)]),
        "dry_run": request.dry_run,
    }


@once
def _shared_by_all(template: RequestTemplate) -> Mapping[str, Any]:
    return _shared(template.request)


def _answered(decision: Decision) -> dict[str, Any]:
    found = (*decision.violations, *decision.observed)
    reasons = dict.fromkeys([v.reason.value for v in found])
    more, more_observed = decision.more_violations, decision.more_observed
    if more or more_observed:
        reasons |= dict.fromkeys([reason.value for reason in (*more, *more_observed)])
    operations = [operation.to_json() for operation in decision.patch]
    return {
        "verdict": verdict_of(decision),
        "code": decision.code,
        "reason": clip(decision.reason, 64),
        "message": escape(decision.message),
        "reasons": _words(reasons),
        "violations": _texts(decision.violations),
        "observed": _texts(decision.observed),
        "more_violations": sum(more.values()) if more else 0,
        "more_observed": sum(more_observed.values()) if more_observed else 0,
        "trace": _joined([_step(step) for step in decision.trace]),
        "patch": _json(storable(operations)) if operations else _EMPTY,
        "warnings": _json(storable(list(decision.warnings))) if decision.warnings else _EMPTY,
        "charges": _joined([_charge(charge) for charge in decision.charges]),
    }


def _policies(decision: Decision, asked: PolicyColumns) -> Mapping[str, str]:
    found: list[Step | Violation] = [*decision.trace, *decision.violations, *decision.observed]
    # Nearly always there is none: whatever finds anything was asked, and is the very same.
    known = _known(asked)
    others = [ref for each in found if (ref := each.policy) and id(ref) not in known]
    return _named(PolicyColumns(tuple(dict.fromkeys((*asked.refs, *others)))) if others else asked)


@once
def _known(asked: PolicyColumns) -> frozenset[int]:
    return frozenset(map(id, asked.refs))


@once
def _named(asked: PolicyColumns) -> Mapping[str, str]:
    refs = asked.refs
    return {
        "policies": _texts(refs),
        "policy_names": _words(f"{r.kind}/{r.namespace}/{r.name}" for r in refs),
    }


def _words(texts: Iterable[str]) -> str:
    joined = " ".join(texts)
    return f" {escape(joined)} " if joined else ""


@once
def _step(step: Step) -> str:
    """Write one step; all but those of quotas are the same for alike objects."""
    return _text(step)


@once
def _charge(charge: Charge) -> str:
    """Write one charge, the same for alike objects."""
    amounts = {
        "quota": charge.quota,
        "delta": {name: str(amount) for name, amount in charge.delta.items()},
        "amounts": {name: str(amount) for name, amount in charge.amounts.items()},
    }
    return _text(amounts)


def _joined(texts: Sequence[str]) -> str:
    return f"[{','.join(texts)}]"


def _texts(found: Sequence[Any]) -> str:
    return _text(found) if found else _EMPTY


def _text(found: Any) -> str:
    """Write findings field by field, every text so that all databases can store it.

    The library writes them as they are, and almost never a text needs another spelling.
    """
    try:
        text = orjson.dumps(found).decode()
    except TypeError:  # a lone surrogate
        return _json(_escaped(found))
    is_storable = "\\u0000" not in text and (text.isascii() or ESCAPE not in text)
    return text if is_storable else _json(_escaped(found))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {escape(name): _escaped(item) for name, item in value.items()}
    return value
