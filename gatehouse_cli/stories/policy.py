"""The story of one object: its place, content, used amounts, effect, manager and last revisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gatehouse_cli.objects.columns import used_text
from gatehouse_cli.objects.lookup import name_of, place_of
from gatehouse_cli.objects.manifest import manifest_of
from gatehouse_cli.objects.times import shown_moment
from gatehouse_cli.stories.parts import aligned, part
from policies.manifests.render import render_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatehouse_cli.client.answers import EffectivePoliciesJson, ObjectManagersJson, RevisionJson
    from gatehouse_cli.objects.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One object with what the portal knows about it."""

    kind: Kind
    shown: dict[str, Any]
    effective: EffectivePoliciesJson | None = None
    """Of its namespace."""
    revisions: list[RevisionJson] = field(default_factory=list)
    """The last ones, newest first."""
    managers: ObjectManagersJson | None = None


def policy_lines(described: Described) -> Iterator[str]:
    """The lines of the story."""
    yield from aligned(_facts(described))
    yield from part("Content", _content(described))
    yield from part("Used", _used(described.shown))
    yield from part("Effect", _effect(described))
    yield from part("Managed by", _managers(described.managers))
    warnings = described.shown.get("warnings") or ()
    yield from part("Hints", (f"{each['field']}: {each['message']}" for each in warnings))
    yield from part("Last revisions", _history(described.revisions))


def _facts(described: Described) -> list[tuple[str, str]]:
    kind, shown = described.kind, described.shown
    facts = [
        (kind.manifest_kind or kind.singular, name_of(shown)),
        ("in", place_of(shown)),
        ("enforcement", str(shown.get("enforcement") or "")),
        ("set", described.managers["set"] if described.managers else ""),
        ("revision", str(shown.get("revision") or "")),
        ("created", shown_moment(shown["created"]) if shown.get("created") else ""),
        ("changed", shown_moment(shown["updated"]) if shown.get("updated") else ""),
    ]
    return [(f"{name}:", text) for name, text in facts if text]


def _managers(managers: ObjectManagersJson | None) -> list[str]:
    """Each manager, in the order of the fields, with the fields of its last writes."""
    fields_by_manager: dict[str, list[str]] = {}
    for each in managers["fields"] if managers else ():
        commit = f", commit {each['commit'][:12]}" if each["commit"] else ""
        name = f"{each['manager'] or 'unknown'}{commit}"
        field = each["field"] or "the whole object"
        shown = f"{field} (removed)" if each["removed"] else field
        fields_by_manager.setdefault(name, []).append(shown)
    rows = [(name, ", ".join(fields)) for name, fields in fields_by_manager.items()]
    return aligned(rows) if rows else []


def _content(described: Described) -> list[str]:
    manifest = manifest_of(described.kind, described.shown)
    metadata = manifest.get("metadata") or {}
    left_out = ("apiVersion", "kind", "metadata", "status", "warnings")
    beside = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    rows = {name: value for name, value in manifest.items() if name not in left_out}
    if not described.kind.manifest_kind:
        known = ("id", "uid", "revision", "created", "updated", "name", "cluster")
        rows = {name: value for name, value in rows.items() if name not in known and value}
    content = {**beside, **rows}
    return render_documents([content]).splitlines() if content else []


def _used(shown: dict[str, Any]) -> list[str]:
    hard = (shown.get("status") or {}).get("hard") or {}
    rows = [(name, used_text(shown, name), f"of {hard[name]}") for name in sorted(hard)]
    return aligned(rows) if rows else []


def _effect(described: Described) -> Iterator[str]:
    effective = described.effective
    if effective is None:
        return
    if described.kind.manifest_kind == "Namespace":
        yield from _policies_of(effective)
        return
    names = [
        (each["manifest"].get("kind"), each["manifest"]["metadata"]["name"])
        for each in effective["policies"]
    ]
    this = (described.kind.manifest_kind, name_of(described.shown))
    if this in names:
        yield f"decides as number {names.index(this) + 1} of {len(names)} policies in its namespace"
    else:
        yield "does not decide in its namespace"
    if effective["authority"] == "native" and this[0] != "MetadataPolicy":
        yield "the API server enforces ranges and quotas of this cluster itself; the portal warns"


def _policies_of(effective: EffectivePoliciesJson) -> Iterator[str]:
    """The policies that decide in a namespace, in their order."""
    for number, each in enumerate(effective["policies"], 1):
        manifest = each["manifest"]
        title = f"{manifest.get('kind')} {manifest['metadata']['name']}"
        yield f"{number}. {title} ({each['enforcement']})"


def _history(revisions: list[RevisionJson]) -> list[str]:
    rows = [
        (
            str(each["number"]),
            each["action"],
            f"by {each['user']}",
            each["manager"] + (f", commit {each['commit'][:12]}" if each["commit"] else ""),
            shown_moment(each["created"]),
            each["reason"],
        )
        for each in revisions
    ]
    return aligned(rows) if rows else []
