"""What schemathesis cannot know of the API: values of its formats, and combinations it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.openapi.checks import JsonSchemaError, RejectedPositiveData, UseAfterFree

if TYPE_CHECKING:
    from schemathesis import Case, DeserializationContext, Response
    from schemathesis.core.failures import Failure

_NAMES = st.sampled_from(["app", "tier", "example.com/team", "a.b_c-d"])
_VALUES = st.sampled_from(["web", "front", "0", ""])
_REQUIREMENTS = st.one_of(
    _NAMES,
    st.builds("!{}".format, _NAMES),
    st.builds("{}{}{}".format, _NAMES, st.sampled_from(["=", "==", "!="]), _VALUES),
    st.builds("{} {} ({}, {})".format, _NAMES, st.sampled_from(["in", "notin"]), _VALUES, _VALUES),
)
schemathesis.openapi.format(
    "label-selector", st.lists(_REQUIREMENTS, min_size=1, max_size=3).map(",".join)
)


@schemathesis.deserializer("text/yaml", "application/yaml")
def text_of(_context: DeserializationContext, response: Response) -> str:
    """An export is a stream of documents, of which the library reads only a single one."""
    return response.content.decode()


_REFUSED = (400, 410)
_ONLY_THEN = {"FieldValueDuplicate", "before_horizon", "future_instant", "not_in_the_past"}
"""What no schema says: fields that sort in both directions, instants of no record or to come, and
filters that the past does not have."""
_tried: set[str] = set()
"""The ids of deletions that were dry runs."""


@schemathesis.hook
def after_call(_context: Any, case: Case, _response: Response) -> None:
    """Remember what deleted nothing."""
    if case.method == "DELETE" and "dryRun" in (case.query or {}):
        _tried.add(case.id)


@schemathesis.hook
def filter_failure(_context: Any, failure: Failure, case: Case, response: Response) -> bool:
    """Whether a failure is one: no schema says what follows."""
    query = case.query or {}
    if isinstance(failure, JsonSchemaError) and "fields" in query:
        # An answer has the members that were asked for, and not those that the schema requires.
        return not _lacks_members(failure.validation_message)
    if isinstance(failure, UseAfterFree):
        return failure.deleted_case_id not in _tried
    if isinstance(failure, RejectedPositiveData) and response.status_code in _REFUSED:
        errors = response.json().get("errors", {}).values()
        codes = {error["code"] for of_field in errors for error in of_field}
        return not codes or not codes <= _ONLY_THEN
    return True


def _lacks_members(message: str) -> bool:
    """Whether a member is missing, also in an object that may be null."""
    return message.endswith("is a required property") or "is not valid under any of" in message
