"""Removal: objects that shall go, named or read from files, each deleted at the version seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gatehouse_cli.client.problems import ProblemError
from gatehouse_cli.exit_codes import CliError
from gatehouse_cli.objects.kinds import KINDS, Kind, kind_named
from gatehouse_cli.objects.lookup import (
    MissingObjectError,
    Selection,
    find,
    key_of,
    name_of,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gatehouse_cli.client.session import PortalSession
    from policies.manifests.bundle import Bundle

_PRECONDITION_FAILED = 412


@dataclass(frozen=True, slots=True)
class Doomed:
    """One object that shall go, as it was read."""

    kind: Kind
    shown: dict[str, Any]

    def __str__(self) -> str:
        place = place_of(self.shown)
        return f"{self.kind.singular}/{name_of(self.shown)}" + (f" in {place}" if place else "")

    def delete(self, session: PortalSession, *, reason: str, dry_run: bool) -> dict[str, int]:
        """Delete it unless it has changed since it was read; answers what goes with it.

        Raises ClientError.
        """
        if self.kind.removal is None:
            raise CliError(f"{self.kind.plural} cannot be deleted")
        query = {"reason": reason} if reason else {}
        query |= {"dryRun": "All"} if dry_run else {}
        seen = self.shown.get("revision", self.shown.get("version"))  # of a class
        try:
            answer = session.call(
                self.kind.removal,
                names=key_of(self.kind.removal, self.shown),
                query=query,
                headers={"If-Match": f'"{seen}"'},
            )
        except ProblemError as error:
            if error.status == _PRECONDITION_FAILED:
                raise CliError(f"{self} has just been changed by somebody; look again") from error
            raise
        dependents: dict[str, int] = (answer or {}).get("deletes", {})
        return dependents


def require_removable(kind: Kind) -> None:
    """Raise UsageError for kinds that nobody deletes."""
    if kind.removal is None:
        known = ", ".join(each.plural for each in KINDS if each.removal)
        raise click.UsageError(f"{kind.plural} cannot be deleted; known: {known}")


def find_all(
    session: PortalSession,
    wanted: Iterable[tuple[Kind, Selection]],
    *,
    ignore_missing: bool,
) -> Iterator[Doomed]:
    """Read the objects; raises CliError for one that is not there, unless that is ignored."""
    for kind, selection in wanted:
        try:
            yield Doomed(kind, find(session, kind, selection))
        except MissingObjectError:
            if not ignore_missing:
                raise


def in_files(bundle: Bundle, *, cluster: str) -> list[tuple[Kind, Selection]]:
    """What the files name, in the order of deletion: policies before their namespaces."""
    selections = []
    for wanted in (*bundle.classes, *reversed(bundle.objects)):
        manifest_kind, namespace, name = wanted.key
        kind = kind_named(manifest_kind)
        if kind is not None:
            selection = Selection(cluster=cluster, namespace=namespace, name=name)
            selections.append((kind, selection))
    return selections
