"""ResourceQuota form: hard and scope lines to quota spec and back; offered resources, scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.names import is_standard_quota_resource
from engine.resource_quota.scopes import ALLOWED_NAMES, CONFLICTS
from policies.drafts.forms.sheets import (
    Built,
    Sheet,
    build_metadata,
    build_scope,
    can_be_typed,
    show_metadata,
    show_scope,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policies.drafts.forms.sheets import Line

HARD: Final = "hard"
SCOPE: Final = "scope"
PLAIN: Final = "plain"
"""In place of an operator: the scope is one of ``spec.scopes``."""
RESOURCES: Final = (
    "pods", "requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "cpu", "memory",
    "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage",
    "persistentvolumeclaims", "services", "services.nodeports", "services.loadbalancers",
    "configmaps", "secrets", "replicationcontrollers", "resourcequotas", "count/deployments.apps",
    "count/jobs.batch", "count/cronjobs.batch", "count/ingresses.networking.k8s.io",
)  # fmt: skip


def show(quota_manifest: Mapping[str, Any]) -> Sheet:
    """The lines of a manifest; limits and expressions that lines cannot express are kept."""
    quota_spec = quota_manifest.get("spec") or {}
    hard_lines: list[Line] = []
    for name, value in (quota_spec.get("hard") or {}).items():
        hard_line = {"resource": name, "amount": "" if value is None else str(value)}
        is_typed = hard_line["amount"] and name and can_be_typed([hard_line])
        hard_lines.append(hard_line if is_typed else {"kept": name})
    scoped: list[Line] = [
        {"scopeName": name, "operator": PLAIN} for name in quota_spec.get("scopes") or []
    ]
    scoped += [show_scope(number, entry) for number, entry in enumerate(_expressions(quota_spec))]
    return Sheet(show_metadata(quota_manifest), {HARD: hard_lines, SCOPE: scoped})


def build(sheet: Sheet, base_quota: Mapping[str, Any]) -> Built:
    """The manifest of the lines; kept parts come from ``base_quota``."""
    built_quota = Built(dict(base_quota))
    build_metadata(sheet, base_quota, built_quota)
    spec = dict(base_quota.get("spec") or {})
    _put_in_spec(spec, "hard", _hard_amounts(sheet.of(HARD), spec.get("hard") or {}, built_quota))
    scopes, expressions = _scopes_and_expressions(sheet.of(SCOPE), _expressions(spec), built_quota)
    # An unchanged list stays as typed, also an empty one.
    if scopes != list(spec.get("scopes") or []):
        _put_in_spec(spec, "scopes", scopes)
    if expressions or _expressions(spec):
        _put_in_spec(
            spec, "scopeSelector", {"matchExpressions": expressions} if expressions else {}
        )
    built_quota.manifest["spec"] = spec
    return built_quota


def offered_resources(sheet: Sheet) -> list[str]:
    """The resources that a quota with all scopes of the sheet may limit."""
    allowed = [ALLOWED_NAMES[scope] for scope in _scope_names(sheet) if scope in ALLOWED_NAMES]
    return [
        name
        for name in RESOURCES
        if not is_standard_quota_resource(name) or all(name in names for names in allowed)
    ]


def offered_scopes(sheet: Sheet, *, chosen: str = "") -> list[str]:
    """The scopes that are allowed with the sheet's resources and its other scopes."""
    hard_names = [line.get("resource", "") for line in sheet.of(HARD)]
    standard = {name for name in hard_names if is_standard_quota_resource(name)}
    others = {name for name in _scope_names(sheet) if name != chosen}
    return [
        scope
        for scope, names in ALLOWED_NAMES.items()
        if scope == chosen
        or (standard <= names and not any({scope} < pair <= {scope, *others} for pair in CONFLICTS))
    ]


def _scope_names(sheet: Sheet) -> list[str]:
    return [line.get("scopeName", "") for line in sheet.of(SCOPE)]


def _expressions(quota_spec: Mapping[str, Any]) -> Sequence[Any]:
    return (quota_spec.get("scopeSelector") or {}).get("matchExpressions") or []


def _put_in_spec(quota_spec: dict[str, Any], name: str, value: Any) -> None:
    """Set a field, or remove it if the value is empty."""
    quota_spec.pop(name, None)
    if value:
        quota_spec[name] = value


def _hard_amounts(lines: Sequence[Line], kept: Mapping[str, Any], built: Built) -> dict[str, Any]:
    hard_amounts: dict[str, Any] = {}
    for number, limit in enumerate(lines):
        name, amount, cell = limit.get("resource", ""), limit.get("amount", ""), f"{HARD}-{number}"
        if "kept" in limit:
            hard_amounts |= {limit["kept"]: kept[limit["kept"]]} if limit["kept"] in kept else {}
        elif name in hard_amounts:
            built.problems.append((f"{cell}-resource", f"{name} has a line already"))
        elif name and not amount:
            built.problems.append((f"{cell}-amount", "a limit is missing"))
        elif name or amount:
            hard_amounts[name] = amount
        built.places.setdefault(f"spec.hard[{name}]", f"{cell}-amount")
    return hard_amounts


def _scopes_and_expressions(
    scope_lines: Sequence[Line], kept_expressions: Sequence[Any], built: Built
) -> tuple[list[str], list[Any]]:
    scopes: list[str] = []
    expressions: list[Any] = []
    for number, scope_line in enumerate(scope_lines):
        scope_cell = f"{SCOPE}-{number}-scopeName"
        if scope_line.get("operator") == PLAIN:
            scopes += [scope_line["scopeName"]] if scope_line.get("scopeName") else []
            built.places.setdefault("spec.scopes", scope_cell)
        elif (expression := build_scope(scope_line, kept_expressions)) is not None:
            built.kept[SCOPE, scope_line.get("kept", "")] = str(len(expressions))
            expressions.append(expression)
            built.places.setdefault("spec.scopeSelector", scope_cell)
    return scopes, expressions
