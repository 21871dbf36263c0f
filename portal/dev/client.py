"""``make client``: writes gatehouse_cli/client/operations.py and answers.py from the API's schema.

Only what the command calls is written, as listed in OPERATIONS: the rest would be dead code.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from portal.machine import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    Document = dict[str, Any]

FOLDER: Final = ROOT / "gatehouse_cli" / "client"
MANIFEST: Final = "dict[str, Any]"
"""Objects that are printed as they come have no type of their own."""
OPERATIONS: Final = {
    "apply_create": "SetPlan",
    "clusters_list": f"Page[{MANIFEST}]",
    "clusters_destroy": MANIFEST,
    "clusters_managers_retrieve": "ObjectManagers",
    "clusters_export_retrieve": "str",
    "namespaces_list": f"Page[{MANIFEST}]",
    "namespaces_destroy": MANIFEST,
    "namespaces_managers_retrieve": "ObjectManagers",
    "namespaces_effective_retrieve": "EffectivePolicies",
    "namespaceclasses_list": f"Page[{MANIFEST}]",
    "namespaceclasses_destroy": MANIFEST,
    "classmembers_list": f"Page[{MANIFEST}]",
    "classpolicies_list": f"Page[{MANIFEST}]",
    "limitranges_list": f"Page[{MANIFEST}]",
    "limitranges_destroy": MANIFEST,
    "limitranges_managers_retrieve": "ObjectManagers",
    "metadatapolicies_list": f"Page[{MANIFEST}]",
    "metadatapolicies_destroy": MANIFEST,
    "metadatapolicies_managers_retrieve": "ObjectManagers",
    "resourcequotas_list": f"Page[{MANIFEST}]",
    "resourcequotas_destroy": MANIFEST,
    "resourcequotas_managers_retrieve": "ObjectManagers",
    "tests_list": f"Page[{MANIFEST}]",
    "tests_destroy": MANIFEST,
    "tests_managers_retrieve": "ObjectManagers",
    "priorityclasses_list": f"Page[{MANIFEST}]",
    "priorityclasses_destroy": MANIFEST,
    "priorityclasses_managers_retrieve": "ObjectManagers",
    "limitedresources_list": f"Page[{MANIFEST}]",
    "decisions_list": "Page[DecisionSummary]",
    "decisions_retrieve": "Decision",
    "decisions_explanation_retrieve": "Explanation",
    "replays_create": "Replay",
    "replays_retrieve": "ReplayDetail",
    "replays_cancel_create": "ReplayDetail",
    "compare_retrieve": "Comparison",
    "changes_list": "Page[Change]",
    "changes_retrieve": "ChangeDetail",
    "changes_submit_create": "ChangeDetail",
    "changes_withdraw_create": "ChangeDetail",
    "changes_approve_create": "ChangeDetail",
    "changes_requestchanges_create": "ChangeDetail",
    "changes_comment_create": "ChangeDetail",
    "changes_publish_create": "ChangeDetail",
    "changes_publishnow_create": "ChangeDetail",
    "changes_review_create": "ChangeDetail",
    "changes_abandon_create": "ChangeDetail",
    "changes_revert_create": "ChangeDetail",
    "changes_replay_create": "ReplaysOfChange",
    "changes_rollout_retrieve": "Rollout",
    "changes_rollout_update": "Rollout",
    "changes_rollout_start_create": "Rollout",
    "changes_rollout_advance_create": "Rollout",
    "changes_rollout_stop_create": "Rollout",
    "changes_rollout_resume_create": "Rollout",
    "revisions_list": "Page[Revision]",
}
"""ApiOperation id, and the type of its answer: a component of the schema, or a type of Python."""
_PLAIN_TYPES: Final = {"string": "str", "integer": "int", "boolean": "bool", "number": "float"}
_WIDTH: Final = 84
_OPERATIONS_HEAD: Final = '''\
"""Operations of the API that the command calls. Written by ``make client``: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gatehouse_cli.client.shape import ApiOperation, Page

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import {names}
'''
_ANSWERS_HEAD: Final = '''\
"""Answers of the API that the command reads. Written by ``make client``: do not edit."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict
'''


def main() -> int:
    """Write both modules from the OpenAPI document on standard input."""
    for path, text in rendered(json.load(sys.stdin)).items():
        path.write_text(text, encoding="utf-8")
    return 0


def rendered(document: Document) -> dict[Path, str]:
    """The texts of the generated modules, by path."""
    texts = {"operations.py": _operations(document), "answers.py": _answers(document)}
    return {FOLDER / name: _formatted(text) for name, text in texts.items()}


def _formatted(text: str) -> str:
    """The text as ``make lint`` demands it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "generated.py", "-"]
    return subprocess.run(  # noqa: S603  our own text
        command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


def _operations(document: Document) -> str:
    found = {
        operation["operationId"]: (method.upper(), path, operation.get("parameters", []))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    names = ", ".join(sorted(f"{name}Json" for name in _roots()))
    blocks = [
        _operation(operation_id, *found[operation_id], answer=answer)
        for operation_id, answer in OPERATIONS.items()
    ]
    return "\n".join([_OPERATIONS_HEAD.format(names=names), *blocks])


def _operation(
    operation_id: str, method: str, path: str, parameters: list[Document], *, answer: str
) -> str:
    queries = [each for each in parameters if each["in"] == "query"]
    repeated = [each for each in queries if _is_repeated(each)]
    arguments = {
        "query": [each["name"] for each in queries if each not in repeated],
        "repeated": [each["name"] for each in repeated],
        "headers": [each["name"] for each in parameters if each["in"] == "header"],
    }
    lines = [f"    {name}={_words(words)}," for name, words in arguments.items() if words]
    typed_answer = re.sub(r"\b(" + "|".join(_roots()) + r")\b", r"\1Json", answer)
    name = f"{operation_id.upper()}: Final[ApiOperation[{typed_answer}]]"
    head = f'{name} = ApiOperation(\n    "{method}", "{path}",'
    return "\n".join([head, *lines, ")"])


def _is_repeated(parameter: Document) -> bool:
    is_list = parameter["schema"].get("type") == "array"
    return is_list and bool(parameter.get("explode", True))


def _words(words: Iterable[str]) -> str:
    """Names in one text, on several lines: some of these lists have thirty."""
    lines = textwrap.wrap(" ".join(sorted(words)), _WIDTH)
    quoted = [f'"{line} "' for line in lines[:-1]] + [f'"{lines[-1]}"']
    return quoted[0] if len(quoted) == 1 else f"({' '.join(quoted)})"


def _roots() -> set[str]:
    """The components that are answers of the operations."""
    words = {word for answer in OPERATIONS.values() for word in re.findall(r"\w+", answer)}
    return words - {"Page", "Any", "dict", "str"}


def _answers(document: Document) -> str:
    components = document["components"]["schemas"]
    typed: dict[str, str] = {}
    waiting = sorted(_roots(), reverse=True)
    while waiting:
        name = waiting.pop()
        if name not in typed:
            typed[name] = _typed_dict(name, components)
            waiting += reversed(list(_objects_in(components[name], components)))
    return "\n\n".join([_ANSWERS_HEAD, *(typed[name] for name in sorted(typed))])


def _typed_dict(name: str, components: Document) -> str:
    schema = components[name]
    required = schema.get("required", [])
    text = schema.get("description", "").strip() or f"The component {name}."
    lines = [f"class {name}Json(TypedDict):", f'    """{text.splitlines()[0]}"""', ""]
    for member, described in sorted(schema["properties"].items()):
        member_type = _type_of(described, components)
        is_required = member in required
        lines.append(
            f"    {member}: {member_type if is_required else f'NotRequired[{member_type}]'}"
        )
    return "\n".join(lines) + "\n"


def _type_of(schema: Document, components: Document) -> str:
    nullable = " | None" if schema.get("nullable") else ""
    reference = _reference_of(schema)
    if reference:
        is_object = "properties" in components[reference]
        plain = f"{reference}Json" if is_object else _type_of(components[reference], components)
        return plain + nullable
    kind = schema.get("type", "")
    if kind == "array":
        return f"list[{_type_of(schema['items'], components)}]{nullable}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type_of(values or {}, components)}]{nullable}"
    return _PLAIN_TYPES.get(kind, "Any") + nullable


def _objects_in(schema: Any, components: Document) -> Iterator[str]:
    """The components with members that a schema refers to."""
    if isinstance(schema, dict):
        reference = _reference_of(schema)
        if reference and "properties" in components[reference]:
            yield reference
        for part in schema.values():
            yield from _objects_in(part, components)
    elif isinstance(schema, list):
        for part in schema:
            yield from _objects_in(part, components)


def _reference_of(schema: Document) -> str:
    (only,) = schema.get("allOf", [schema])
    return str(only.get("$ref", "")).rpartition("/")[2]


if __name__ == "__main__":
    sys.exit(main())
