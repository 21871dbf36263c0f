"""The columns of each kind in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.resource_quota import is_tracked
from gatehouse_cli.objects.times import age
from gatehouse_cli.output import Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shown = Mapping[str, Any]


def _member(*path: str) -> Any:
    """The text of a member of an object; empty where it has none."""

    def text_of(shown: Shown) -> str:
        value: Any = shown
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return "" if value is None else str(value)

    return text_of


def _age_column(member: str = "created") -> Column:
    return Column("age", lambda shown: age(shown[member]))


def _used_of_hard(shown: Shown) -> str:
    return ", ".join(f"{name}: {used_text(shown, name)}/{hard}" for name, hard in _hard(shown))


def used_text(shown: Shown, name: str) -> str:
    """How much a quota has used of a resource, in a word where there is no amount."""
    used = (shown.get("status") or {}).get("used") or {}
    missing = "unknown" if is_tracked(name) else "not counted"
    return str(used.get(name, missing))


def _hard(shown: Shown) -> list[tuple[str, Any]]:
    return sorted((shown["spec"].get("hard") or {}).items())


def _limit_types(shown: Shown) -> str:
    return ", ".join(limit["type"] for limit in shown["spec"].get("limits", []))


def _number_of_rules(shown: Shown) -> str:
    return str(len(shown["spec"].get("rules", [])))


def _tested_object(shown: Shown) -> str:
    tested = shown["spec"]["object"]
    metadata = tested.get("metadata") or {}
    return f"{tested.get('kind')}/{metadata.get('name') or metadata.get('generateName') or ''}"


def _expected(shown: Shown) -> str:
    answer = shown["spec"]["expect"]
    return " ".join((answer["verdict"], ", ".join(answer.get("reasons") or ()))).rstrip()


def _limited(shown: Shown) -> str:
    return ", ".join(str(entry.get("resource", "")) for entry in shown["limitedResources"])


def _object_of(shown: Shown) -> str:
    return f"{shown['kind']}/{shown['name']}"


def _exceptions(shown: Shown) -> str:
    return ", ".join(each["field"] or "deleted" for each in shown["exceptions"])


def _place(shown: Shown) -> str:
    return f"{shown['cluster']}/{shown['namespace']}" if shown["namespace"] else shown["cluster"]


def _state_of_change(shown: Shown) -> str:
    return f"{shown['state']}, unreviewed" if shown["unreviewed"] else str(shown["state"])


_CLUSTER: Final = Column("cluster", _member("cluster"))
_NAME: Final = Column("name", _member("metadata", "name"))
_REVISION: Final = Column("revision", _member("revision"))
_VERSION: Final = Column("version", _member("version"))
_IN_NAMESPACE: Final = (_CLUSTER, Column("namespace", _member("metadata", "namespace")), _NAME)
_POLICY: Final = (Column("enforcement", _member("enforcement")), _REVISION, _age_column())

OF_CLUSTERS: Final = (
    Column("name", _member("name")),
    _REVISION,
    Column("policies at", _member("policy_revision")),
    Column("description", _member("description")),
    _age_column(),
)
OF_NAMESPACES: Final = (
    _CLUSTER,
    _NAME,
    Column("phase", _member("phase")),
    _REVISION,
    _age_column(),
)
OF_NAMESPACE_CLASSES: Final = (
    _NAME,
    _VERSION,
    Column("namespaces", _member("namespaces")),
    Column("exceptions", _member("exceptions")),
    Column("held deletions", _member("heldDeletions")),
    _age_column(),
)
OF_CLASS_MEMBERS: Final = (
    Column("class", _member("namespaceClass")),
    _CLUSTER,
    Column("namespace", _member("namespace")),
    _VERSION,
    Column("problems", lambda shown: "; ".join(shown["problems"])),
)
OF_CLASS_POLICIES: Final = (
    Column("class", _member("namespaceClass")),
    _CLUSTER,
    Column("namespace", _member("namespace")),
    Column("object", _object_of),
    _VERSION,
    Column("exceptions", _exceptions),
)
OF_LIMIT_RANGES: Final = (*_IN_NAMESPACE, Column("limits", _limit_types), *_POLICY)
OF_METADATA_POLICIES: Final = (*_IN_NAMESPACE, Column("rules", _number_of_rules), *_POLICY)
OF_RESOURCE_QUOTAS: Final = (*_IN_NAMESPACE, *_POLICY, Column("used/hard", _used_of_hard))
OF_TESTS: Final = (
    *_IN_NAMESPACE,
    Column("object", _tested_object),
    Column("expects", _expected),
    _REVISION,
    _age_column(),
)
OF_PRIORITY_CLASSES: Final = (
    _CLUSTER,
    _NAME,
    Column("value", _member("value")),
    Column("default", lambda shown: "yes" if shown.get("globalDefault") else ""),
    _REVISION,
    _age_column(),
)
OF_LIMITED_RESOURCES: Final = (_CLUSTER, Column("resources", _limited))
OF_DECISIONS: Final = (
    Column("id", _member("id")),
    _age_column(),
    Column("verdict", _member("verdict")),
    Column("in", _place),
    Column("object", _object_of),
    Column("operation", _member("operation")),
    Column("user", _member("user")),
    Column("message", _member("message")),
)
OF_REVISIONS: Final = (
    Column("id", _member("id")),
    _age_column(),
    Column("in", _place),
    Column("object", _object_of),
    Column("revision", _member("number")),
    Column("action", _member("action")),
    Column("user", _member("user")),
    Column("manager", _member("manager")),
    Column("reason", _member("reason")),
)
OF_CHANGES: Final = (
    Column("id", _member("id")),
    Column("state", _state_of_change),
    Column("author", _member("author")),
    _age_column(),
    Column("title", _member("title")),
)
