"""KeptTest as a value: object, operation, quotas' used amounts, ExpectedAnswer; decode, encode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.decision import Reason
from engine.errors import DecodeError
from engine.fields import decode_string_list, expect
from engine.kept_tests.storable import keepable, withheld
from engine.metadata_policy import API_VERSION
from engine.quantity import Quantity, QuantityError
from engine.request import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.resource_list import ResourceList

KIND: Final = "PolicyTest"
ALLOW: Final = "allow"
DENY: Final = "deny"
OPERATIONS: Final = (Operation.CREATE, Operation.UPDATE)
"""The operations that policies judge."""
REASONS: Final = tuple(reason.value for reason in Reason)
_PATCH_OPERATIONS: Final = ("add", "replace", "remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAnswer:
    """The answer that is expected.

    ``reasons`` are all of a denial; without any, a denial may have any. ``patch`` has the
    operations of the change in any order; None where any change will do.
    """

    allowed: bool
    reasons: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] | None = None

    @property
    def verdict(self) -> str:
        """The word for it."""
        return ALLOW if self.allowed else DENY


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTest:
    """An object of a namespace, and the answer that policies should give to its request.

    ``used`` are the used amounts of quotas by name; those of all others are judged as empty.
    ``decision`` is the id of the decision that it was kept from, ``user`` who had sent it.
    """

    name: str
    namespace: str
    object: Mapping[str, Any]
    expected: ExpectedAnswer
    old_object: Mapping[str, Any] | None = None
    operation: Operation = Operation.CREATE
    sub_resource: str = ""
    user: str = ""
    used: Mapping[str, ResourceList] = field(default_factory=dict)
    decision: str = ""

    @property
    def object_title(self) -> str:
        """Kind and name of the object, as in ``Pod web``."""
        metadata = self.object.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        prefix = metadata.get("generateName")
        name = metadata.get("name") or (f"{prefix}*" if prefix else "(no name)")
        return f"{self.object.get('kind')} {name}"


def decode_kept_test(manifest: Mapping[str, Any]) -> KeptTest:
    """Decode a manifest; raises DecodeError. What may be secret in its objects is left out."""
    metadata = expect(manifest.get("metadata"), dict, "metadata", "ObjectMeta")
    spec = expect(manifest.get("spec"), dict, "spec", "PolicyTestSpec")
    old = spec.get("oldObject")
    return KeptTest(
        name=_text(metadata, "name", "metadata"),
        namespace=_text(metadata, "namespace", "metadata"),
        operation=_operation(spec),
        sub_resource=_text(spec, "subResource"),
        user=_text(spec, "user"),
        decision=_text(spec, "decision"),
        object=_object(spec.get("object"), "spec.object"),
        old_object=None if old is None else _object(old, "spec.oldObject"),
        used=_used(spec.get("used")),
        expected=_expected(spec.get("expect")),
    )


def _text(parent: Mapping[str, Any], name: str, path: str = "spec") -> str:
    text: str = expect(parent.get(name), str, f"{path}.{name}", "string")
    return text


def _operation(spec: Mapping[str, Any]) -> Operation:
    text = _text(spec, "operation") or Operation.CREATE.value
    if text not in OPERATIONS:
        raise DecodeError("spec.operation", f"must be {' or '.join(OPERATIONS)}")
    return Operation(text)


def _object(raw: object, path: str) -> dict[str, Any]:
    given = expect(raw, dict, path, "object")
    kind = given.get("kind")
    if type(kind) is not str or not kind:
        raise DecodeError(f"{path}.kind", "must be given, such as Pod")
    kept: dict[str, Any] = keepable(given, path)
    return withheld(kept)


def _used(raw: object) -> dict[str, dict[str, Quantity]]:
    path = "spec.used"
    return {
        quota: _amounts(amounts, f"{path}.{quota}")
        for quota, amounts in expect(raw, dict, path, "map[string]ResourceList").items()
    }


def _amounts(raw: object, path: str) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {}
    for name, amount in expect(raw, dict, path, "ResourceList").items():
        try:
            amounts[name] = Quantity.parse_json(amount)
        except QuantityError as error:
            raise DecodeError(f"{path}[{name}]", error.detail, amount) from error
    return amounts


def _expected(raw: object) -> ExpectedAnswer:
    path = "spec.expect"
    expect_spec = expect(raw, dict, path, "ExpectedAnswer")
    verdict = expect(expect_spec.get("verdict"), str, f"{path}.verdict", "string")
    if verdict not in (ALLOW, DENY):
        raise DecodeError(f"{path}.verdict", f"must be {ALLOW} or {DENY}")
    reasons = decode_string_list(expect_spec.get("reasons"), f"{path}.reasons")
    for index, reason in enumerate(reasons):
        if reason not in tuple(Reason):
            raise DecodeError(f"{path}.reasons[{index}]", f'unknown reason "{reason}"')
    if reasons and verdict == ALLOW:
        raise DecodeError(f"{path}.reasons", "only a denial has reasons")
    patch = expect_spec.get("patch")
    return ExpectedAnswer(
        allowed=verdict == ALLOW,
        reasons=tuple(sorted(set(reasons))),
        patch=None if patch is None else _patch(patch, f"{path}.patch"),
    )


def _patch(raw: object, path: str) -> tuple[dict[str, Any], ...]:
    operations = []
    for index, given in enumerate(expect(raw, list, path, "[]PatchOperation")):
        at = f"{path}[{index}]"
        operation = expect(given, dict, at, "PatchOperation")
        word = expect(operation.get("op"), str, f"{at}.op", "string")
        if word not in _PATCH_OPERATIONS:
            raise DecodeError(f"{at}.op", f"must be one of: {', '.join(_PATCH_OPERATIONS)}")
        target = expect(operation.get("path"), str, f"{at}.path", "string")
        kept = {"op": word, "path": target}
        if word != "remove":
            kept["value"] = keepable(operation.get("value"), f"{at}.value")
        operations.append(kept)
    keepable(operations, path)
    return tuple(operations)


def encode_kept_test(test: KeptTest) -> dict[str, Any]:
    """Encode the manifest in the order of its fields, without what is empty."""
    metadata = {"name": test.name, "namespace": test.namespace}
    expected = test.expected
    answer: dict[str, Any] = {"verdict": expected.verdict}
    if expected.reasons:
        answer["reasons"] = list(expected.reasons)
    if expected.patch is not None:
        answer["patch"] = [dict(each) for each in expected.patch]
    spec = {
        "operation": test.operation.value,
        "subResource": test.sub_resource,
        "user": test.user,
        "decision": test.decision,
        "expect": answer,
        "used": {
            quota: {name: str(amount) for name, amount in sorted(amounts.items())}
            for quota, amounts in sorted(test.used.items())
        },
        "object": dict(test.object),
        "oldObject": dict(test.old_object) if test.old_object is not None else None,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {name: text for name, text in metadata.items() if text},
        "spec": {name: value for name, value in spec.items() if value not in ("", None, {})},
    }
