"""Rows of AuditEvent: columns of request, decision, Circumstances as text; the INSERT statement."""

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
from admission.models.document import pack
from admission.models.row_bounds import bounded_groups, bounded_request, bounded_row
from admission.record import owners
from admission.record.redaction import (
    ESCAPE,
    clip,
    escape,
    redacted_parts,
    redacted_request,
    storable,
)
from engine.cache import Remembering, once
from engine.chain import AUTHORITY_STEP
from policies.db.deferred import execute, is_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.decision import Charge, Decision, Step, Violation
    from engine.policy import PolicyRef, PolicySet
    from engine.request import AdmissionRequest, Phase

_FIELDS: Final = tuple(
    field
    for field in AuditEvent._meta.concrete_fields  # noqa: SLF001 - Django documents no other way
    if not field.name.startswith("old_")
)
_COLUMNS: Final = tuple(str(field.column) for field in _FIELDS)
_JSON_PLACES: Final = tuple(
    place for place, field in enumerate(_FIELDS) if isinstance(field, JSONField)
)
_TIME_PLACE: Final = _COLUMNS.index("created")
_DOCUMENT_PLACE: Final = _COLUMNS.index("document")
_in_order: Final = itemgetter(*_COLUMNS)
_TABLE: Final = AuditEvent._meta.db_table  # noqa: SLF001 - the same
_NAMES: Final = ", ".join(f'"{name}"' for name in _COLUMNS)
_ROW_PLACEHOLDER: Final = f"({', '.join(['%s'] * len(_COLUMNS))})"
_MOST_ROWS: Final = 32
_LONGEST_NAME: Final = 253  # characters
_EMPTY_LIST: Final = "[]"
_NO_REQUEST: Final[Mapping[str, Any]] = {
    "operation": "",
    "api_group": "",
    "kind": "",
    "resource": "",
    "sub_resource": "",
    "namespace": "",
    "name": "",
    "object_uid": "",
    "user": "",
    "groups": _EMPTY_LIST,
    "dry_run": False,
    "request": "{}",
    "owner_kind": "",
    "owner_name": "",
    "owner_uid": "",
    "priority_class": "",
}


@dataclass(frozen=True, slots=True)
class PolicyColumns(Remembering):
    """The policies that a decision evaluated: the same in all rows of a namespace."""

    refs: tuple[PolicyRef, ...] = ()


_NO_POLICIES: Final = PolicyColumns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Columns beside request and decision. ``started`` is a ``time.monotonic_ns()``."""

    cluster: str
    phase: Phase
    client: str
    started: int
    policy_revision: int = 0
    policies: PolicyColumns = _NO_POLICIES


@once
def columns_of_policies(policies: PolicySet) -> PolicyColumns:
    """List all policies of a namespace, in the order in which the engine evaluates them."""
    refs = (
        *(policy.ref for policy in policies.limit_ranges),
        *(policy.ref for policy in policies.metadata_policies),
        *(policy.ref for policy in policies.resource_quotas),
    )
    return PolicyColumns(refs)


def new_decision_id() -> str:
    """16 characters of Crockford's base32: 48 bit of milliseconds, 32 random. Sorts by time."""
    # The bits keep ids apart and hide nothing, so the process's own generator is good enough; a
    # system call for random bits would release the interpreter lock for each decision.
    random_bits = random.getrandbits(32)
    return encode(time.time_ns() // 1_000_000, random_bits)


def row(
    decision: Decision,
    *,
    decision_id: str,
    request_columns: Mapping[str, Any],
    circumstances: Circumstances,
) -> dict[str, Any]:
    """Build the row of one decision: a value for each column, and for each part of its document.

    JSON is text.

    ``request_columns`` come from ``columns_of``.
    """
    row_columns = {
        **request_columns,
        "id": decision_id,
        "created": moment(decision_id),
        "cluster": clip(circumstances.cluster),
        "phase": circumstances.phase.value,
        "client": clip(circumstances.client),
        "policy_revision": circumstances.policy_revision,
        **_decision_columns(decision),
        **_policy_columns(decision, circumstances.policies),
        "duration_us": (time.monotonic_ns() - circumstances.started) // 1000,
        "document": None,
    }
    return bounded_row(row_columns)


def write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows inside the caller's transaction. JSON is taken as text, or as a value.

    Many rows a statement: PostgreSQL opens the partitioned table and its indexes once for each.

    Raises:
        DatabaseError: if they cannot be written; then there must be no answers either.
    """
    time_text = str if is_postgresql() else _naive_time
    row_values = [list(_in_order(row)) for row in rows]
    for row_value, row in zip(row_values, rows, strict=True):
        row_value[_DOCUMENT_PLACE] = pack(row)
        row_value[_TIME_PLACE] = time_text(row_value[_TIME_PLACE])
        for column_place in _JSON_PLACES:
            if type(row_value[column_place]) is not str:
                row_value[column_place] = _json(row_value[column_place])
    while row_values:
        # Powers of two: a session prepares few different statements and keeps a plan for each.
        number = min(1 << (len(row_values).bit_length() - 1), _MOST_ROWS)
        execute(_insert_statement(number), [list(chain.from_iterable(row_values[:number]))])
        del row_values[:number]


@cache
def _insert_statement(row_number: int) -> str:
    """The statement that inserts this number of rows."""
    placeholders = ", ".join([_ROW_PLACEHOLDER] * row_number)
    return f'INSERT INTO "{_TABLE}" ({_NAMES}) VALUES {placeholders}'  # noqa: S608 - names of our own columns


def _naive_time(moment: datetime) -> str:
    """Format a time as Django does for SQLite, where times are compared as texts."""
    return str(moment.replace(tzinfo=None))


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_UTC_Z).decode()


def recorded(decision_ids: Sequence[str]) -> bool:
    """Return whether these decisions, written in one transaction, are on record."""
    moments = [moment(decision_id) for decision_id in decision_ids]
    rows = AuditEvent.objects.filter(
        id__in=decision_ids, created__gte=min(moments), created__lte=max(moments)
    )
    # All: one of them may have come on record before, in a transaction of unknown outcome.
    return rows.count() == len(moments) if decision_ids else False


def make_room() -> None:
    """Create the partition of today, after an insert failed for want of it."""
    today = datetime.now(UTC).date()
    partitions.ensure(today)


def columns_of(request: AdmissionRequest | None, *, request_uid: str = "") -> Mapping[str, Any]:
    """The columns about the request; ``request_uid`` where it could not be read.

    They depend on no decision, so the caller's thread builds them before the writer decides.
    """
    if request is None:
        return {**_NO_REQUEST, "request_uid": clip(request_uid)}
    if request.is_plain:  # so it is short
        request_text = redacted_request(request)
    else:
        request_text = bounded_request(redacted_parts(request))
    metadata = (request.object or request.old_object or {}).get("metadata")
    return {
        "request_uid": clip(request.uid),
        "name": clip(request.display_name),
        "request": request_text,
        "operation": request.operation.value,
        "api_group": clip(request.kind.group),
        "kind": clip(request.kind.kind),
        "resource": clip(request.resource.resource),
        "sub_resource": clip(request.sub_resource),
        "namespace": clip(request.namespace),
        "user": clip(request.user),
        "groups": _json([clip(group) for group in bounded_groups(request.groups)]),
        "dry_run": request.dry_run,
        **columns_of_object(metadata if isinstance(metadata, dict) else {}, request_text),
    }


def columns_of_object(metadata: Mapping[str, Any], request_text: str) -> dict[str, str]:
    """The columns that repeat what an object's metadata and its recorded request say."""
    uid, owner = metadata.get("uid"), owners.recorded(metadata)
    return {
        "object_uid": clip(uid) if type(uid) is str else "",
        "owner_kind": clip(owner.kind),
        "owner_name": clip(owner.name),
        "owner_uid": clip(owner.uid),
        # Escaped already, as the request is.
        "priority_class": owners.priority_class_in(request_text)[:_LONGEST_NAME],
    }


def _decision_columns(decision: Decision) -> dict[str, Any]:
    findings = (*decision.violations, *decision.observed)
    reasons = dict.fromkeys([finding.reason.value for finding in findings])
    more_violations, more_observed = decision.more_violations, decision.more_observed
    if more_violations or more_observed:
        reasons |= dict.fromkeys([reason.value for reason in (*more_violations, *more_observed)])
    patch_operations = [operation.to_json() for operation in decision.patch]
    return {
        "verdict": verdict_of(decision),
        "code": decision.code,
        "reason": clip(decision.reason, 64),
        "message": escape(decision.message),
        "reasons": _spaced_words(reasons),
        "violations": _findings_or_empty(decision.violations),
        "observed": _findings_or_empty(decision.observed),
        "more_violations": sum(more_violations.values()) if more_violations else 0,
        "more_observed": sum(more_observed.values()) if more_observed else 0,
        "trace": _joined_json([_step_text(step) for step in decision.trace]),
        "patch": _json(storable(patch_operations)) if patch_operations else _EMPTY_LIST,
        "warnings": _json(storable(list(decision.warnings))) if decision.warnings else _EMPTY_LIST,
        "charges": _joined_json([_charge_text(charge) for charge in decision.charges]),
        "is_native": decision.trace[:1] == (AUTHORITY_STEP,),
    }


def _policy_columns(decision: Decision, evaluated: PolicyColumns) -> Mapping[str, str]:
    findings: list[Step | Violation] = [*decision.trace, *decision.violations, *decision.observed]
    # Compared by identity: nearly always every finding refers to one of the very same objects.
    known_refs = _ref_identities(evaluated)
    others = [ref for each in findings if (ref := each.policy) and id(ref) not in known_refs]
    if others:
        evaluated = PolicyColumns(tuple(dict.fromkeys((*evaluated.refs, *others))))
    return _columns_of_refs(evaluated)


@once
def _ref_identities(policies: PolicyColumns) -> frozenset[int]:
    return frozenset(map(id, policies.refs))


@once
def _columns_of_refs(policies: PolicyColumns) -> Mapping[str, str]:
    refs = policies.refs
    return {
        "policies": _findings_or_empty(refs),
        "policy_names": _spaced_words(f"{ref.kind}/{ref.namespace}/{ref.name}" for ref in refs),
    }


def _spaced_words(texts: Iterable[str]) -> str:
    words = " ".join(texts)
    return f" {escape(words)} " if words else ""


@once
def _step_text(step: Step) -> str:
    """Write one step; equal objects share all steps but those of quotas."""
    return _findings_text(step)


@once
def _charge_text(charge: Charge) -> str:
    """Write one charge; equal objects share it."""
    charge_parts = {
        "quota": charge.quota,
        "delta": {name: str(amount) for name, amount in charge.delta.items()},
        "amounts": {name: str(amount) for name, amount in charge.amounts.items()},
    }
    return _findings_text(charge_parts)


def _joined_json(json_texts: Sequence[str]) -> str:
    return f"[{','.join(json_texts)}]"


def _findings_or_empty(findings: Sequence[Any]) -> str:
    return _findings_text(findings) if findings else _EMPTY_LIST


def _findings_text(findings: Any) -> str:
    """Write findings as JSON that every database stores.

    The library writes texts as they are; hardly any needs ``escape``, so only those are rewritten.
    """
    try:
        json_text = orjson.dumps(findings).decode()
    except TypeError:  # a lone surrogate
        return _json(_escaped(findings))
    is_storable = "\\u0000" not in json_text and (json_text.isascii() or ESCAPE not in json_text)
    return json_text if is_storable else _json(_escaped(findings))


def _escaped(finding: Any) -> Any:
    if isinstance(finding, str):
        return escape(finding)
    if isinstance(finding, list | tuple):
        return [_escaped(part) for part in finding]
    if is_dataclass(finding) and not isinstance(finding, type):
        finding = asdict(finding)
    if isinstance(finding, dict):
        return {escape(name): _escaped(part) for name, part in finding.items()}
    return finding
