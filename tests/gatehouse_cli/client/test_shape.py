"""Operations: names in addresses, and parameters that the schema has."""

from __future__ import annotations

from typing import Any

import pytest

from gatehouse_cli.client.shape import ApiOperation

DELETE: ApiOperation[Any] = ApiOperation(
    "DELETE", "/api/v1/things/{name}/", query="dryRun reason", repeated="kind", headers="If-Match"
)


def test_names_cannot_leave_their_segment() -> None:
    assert DELETE.address({"name": "../a b?c"}) == "/api/v1/things/..%2Fa%20b%3Fc/"


def test_known_parameters_pass() -> None:
    DELETE.require_known({"dryRun": "All", "kind": ["a"]}, {"If-Match": '"1"'})


def test_a_parameter_that_the_schema_lacks_is_a_fault_of_ours() -> None:
    with pytest.raises(TypeError, match=r"^DELETE /api/v1/things/\{name\}/ has no dryrun$"):
        DELETE.require_known({"dryrun": "All"}, {})
