"""Objects listed by place, labels and filters; one object found by its name, or a clear error."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from gatehouse_cli.exit_codes import CliError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gatehouse_cli.client.session import PortalSession
    from gatehouse_cli.client.shape import ApiOperation
    from gatehouse_cli.objects.kinds import Kind


_OURS = ("cursor", "fields", "limit", "offset")
"""Parameters that are no filters: the command sets them itself."""


class MissingObjectError(CliError):
    """There is no such object, or none that may be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a list is narrowed to; what is empty narrows nothing."""

    cluster: str = ""
    namespace: str = ""
    name: str = ""
    labels: str = ""
    at: str = ""
    """An instant of the past; empty: now."""
    filters: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Where it looks, in words."""
        place = f" in namespace {self.namespace}" if self.namespace else ""
        cluster = f" of cluster {self.cluster}" if self.cluster else ""
        return place + cluster + (f" at {self.at}" if self.at else "")

    def query(self, kind: Kind) -> dict[str, str]:
        """The parameters; raises UsageError for one that lists of this kind do not have."""
        given = {
            kind.cluster_filter: self.cluster,
            "namespace": self.namespace,
            kind.name_filter: self.name,
            "labelSelector": self.labels,
        }
        query = {name: text for name, text in given.items() if name and text}
        query |= self.filters
        if self.name:  # of limited resources the name is the cluster's
            query[kind.name_filter] = self.name
        if self.at:
            query["at"] = self.at
        known = [name for name in kind.listing.query.split() if name not in _OURS]
        for name in query:
            if name not in known:
                raise click.UsageError(_unknown(kind, name, known))
        return query


def at_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare ``--at``, passed as ``at``; empty if it is not given."""
    option = click.option(
        "--at",
        metavar="INSTANT",
        default="",
        help="As it was then, such as 2026-11-03T14:05Z.",
    )
    return option(function)


def listed(
    session: PortalSession, kind: Kind, selection: Selection, *, most: int = 0
) -> Iterator[dict[str, Any]]:
    """The selected objects, read page by page; raises ClientError."""
    return session.items(kind.listing, selection.query(kind), most=most)


def find(session: PortalSession, kind: Kind, selection: Selection) -> dict[str, Any]:
    """The one object of the selection's name; raises CliError if there is none, or several."""
    found = list(listed(session, kind, selection, most=50))
    if not found:
        raise MissingObjectError(_missing(session, kind, selection))
    if len(found) > 1:
        places = ", ".join(sorted(place_of(each) for each in found))
        title = f'{kind.plural} named "{selection.name}"'
        raise CliError(f"there are several {title}: {places}; narrow it by --cluster and -n")
    return found[0]


def key_of(operation: ApiOperation[Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """What names an object in the address of an operation: its id, or of clusters the name."""
    key = "name" if "{name}" in operation.path else "id"
    return {key: shown[key]}


def name_of(shown: Mapping[str, Any]) -> str:
    """The name of an object of any kind."""
    metadata = shown.get("metadata") or {}
    return str(metadata.get("name") or shown.get("name") or shown.get("cluster") or shown["id"])


def place_of(shown: Mapping[str, Any]) -> str:
    """Where an object is: ``CLUSTER`` or ``CLUSTER/NAMESPACE``."""
    metadata = shown.get("metadata") or {}
    namespace = metadata.get("namespace") or shown.get("namespace")
    return f"{shown['cluster']}/{namespace}" if namespace else str(shown.get("cluster", ""))


def _unknown(kind: Kind, name: str, known: list[str]) -> str:
    words = {
        "namespace": "they are in no namespace",
        "labelSelector": "they have no labels",
        "at": "they are read as they are, without --at",
    }
    if name in words:
        return f"{kind.plural}: {words[name]}"
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f'{kind.plural} have no filter "{name}"; {hint}known: {", ".join(known)}'


def _missing(session: PortalSession, kind: Kind, selection: Selection) -> str:
    beside = replace(selection, name="", labels="", filters={})
    names = {name_of(each) for each in listed(session, kind, beside, most=500)}
    near = difflib.get_close_matches(selection.name, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f'there is no {kind.singular} "{selection.name}"{selection}{hint}'
