"""ResourceQuota form: hard and scope lines to ``spec`` and back; resources, scopes offered."""

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


def show(manifest: Mapping[str, Any]) -> Sheet:
    """The lines of a manifest; limits and expressions that lines cannot express are kept."""
    spec = manifest.get("spec") or {}
    hard: list[Line] = []
    for name, value in (spec.get("hard") or {}).items():
        line = {"resource": name, "amount": "" if value is None else str(value)}
        is_typed = line["amount"] and name and can_be_typed([line])
        hard.append(line if is_typed else {"kept": name})
    scopes: list[Line] = [
        {"scopeName": name, "operator": PLAIN} for name in spec.get("scopes") or []
    ]
    scopes += [show_scope(number, entry) for number, entry in enumerate(_expressions(spec))]
    return Sheet(show_metadata(manifest), {HARD: hard, SCOPE: scopes})


def build(sheet: Sheet, base: Mapping[str, Any]) -> Built:
    """The manifest of the lines; kept parts come from ``base``."""
    built = Built(dict(base))
    build_metadata(sheet, base, built)
    spec = dict(base.get("spec") or {})
    _put_in_spec(spec, "hard", _hard_amounts(sheet.of(HARD), spec.get("hard") or {}, built))
    scopes, expressions = _scopes_and_expressions(sheet.of(SCOPE), _expressions(spec), built)
    # An unchanged list stays as typed, also an empty one.
    if scopes != list(spec.get("scopes") or []):
        _put_in_spec(spec, "scopes", scopes)
    if expressions or _expressions(spec):
        _put_in_spec(
            spec, "scopeSelector", {"matchExpressions": expressions} if expressions else {}
        )
    built.manifest["spec"] = spec
    return built


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
    bounded = [line.get("resource", "") for line in sheet.of(HARD)]
    standard = {name for name in bounded if is_standard_quota_resource(name)}
    others = {name for name in _scope_names(sheet) if name != chosen}
    return [
        scope
        for scope, names in ALLOWED_NAMES.items()
        if scope == chosen
        or (standard <= names and not any({scope} < pair <= {scope, *others} for pair in CONFLICTS))
    ]


def _scope_names(sheet: Sheet) -> list[str]:
    return [line.get("scopeName", "") for line in sheet.of(SCOPE)]


def _expressions(spec: Mapping[str, Any]) -> Sequence[Any]:
    return (spec.get("scopeSelector") or {}).get("matchExpressions") or []


def _put_in_spec(spec: dict[str, Any], name: str, value: Any) -> None:
    """Set a field, or remove it if the value is empty."""
    spec.pop(name, None)
    if value:
        spec[name] = value


def _hard_amounts(lines: Sequence[Line], kept: Mapping[str, Any], built: Built) -> dict[str, Any]:
    hard: dict[str, Any] = {}
    for number, line in enumerate(lines):
        name, amount, cell = line.get("resource", ""), line.get("amount", ""), f"{HARD}-{number}"
        if "kept" in line:
            hard |= {line["kept"]: kept[line["kept"]]} if line["kept"] in kept else {}
        elif name in hard:
            built.problems.append((f"{cell}-resource", f"{name} has a line already"))
        elif name and not amount:
            built.problems.append((f"{cell}-amount", "a limit is missing"))
        elif name or amount:
            hard[name] = amount
        built.places.setdefault(f"spec.hard[{name}]", f"{cell}-amount")
    return hard


def _scopes_and_expressions(
    lines: Sequence[Line], kept: Sequence[Any], built: Built
) -> tuple[list[str], list[Any]]:
    scopes: list[str] = []
    expressions: list[Any] = []
    for number, line in enumerate(lines):
        cell = f"{SCOPE}-{number}-scopeName"
        if line.get("operator") == PLAIN:
            scopes += [line["scopeName"]] if line.get("scopeName") else []
            built.places.setdefault("spec.scopes", cell)
        elif (entry := build_scope(line, kept)) is not None:
            expressions.append(entry)
            built.places.setdefault("spec.scopeSelector", cell)
    return scopes, expressions
