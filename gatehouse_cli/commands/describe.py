"""``gatehouse describe``: one object with its effect, used amounts, manager and last revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.connection import Connection, cluster_option, connected, namespace_option
from gatehouse_cli.objects.kinds import KINDS, NAMESPACES, Kind, KindType
from gatehouse_cli.objects.lookup import Selection, at_option, find, key_of, listed
from gatehouse_cli.stories.policy import Described, policy_lines

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import EffectivePoliciesJson, ObjectManagersJson
    from gatehouse_cli.client.session import PortalSession

REVISIONS: Final = 5


@click.command("describe")
@click.argument("kind", type=KindType())
@click.argument("name")
@namespace_option
@cluster_option
@at_option
@connected
def command(  # noqa: PLR0913  one parameter an option
    *, connection: Connection, kind: Kind, name: str, namespace: str, cluster: str, at: str
) -> None:
    """Tell what one object says, what it does, and who wrote it when.

    KIND is one of those of get, but no record: see gatehouse why for decisions. With --at, it is
    told as it was then; who manages its fields is known of the present alone.
    """
    if kind.is_record:
        known = ", ".join(each.plural for each in KINDS if not each.is_record)
        raise click.UsageError(f"{kind.plural} are records, not objects; known: {known}")
    is_wide = not kind.cluster_filter
    selection = Selection(
        cluster="" if is_wide else cluster or connection.context.cluster,
        namespace=namespace,
        name=name,
        at=at,
    )
    with connection.open() as session:
        shown = find(session, kind, selection)
        described = Described(
            kind=kind,
            shown=shown,
            effective=_effective(session, kind, shown, at=at),
            managers=None if at else _managers(session, kind, shown),
            revisions=_revisions(session, shown, at=at),
        )
    click.echo("\n".join(policy_lines(described)))


def _effective(
    session: PortalSession, kind: Kind, shown: dict[str, Any], *, at: str
) -> EffectivePoliciesJson | None:
    if kind.manifest_kind == "Namespace":
        namespaces = [shown]
    elif kind.is_namespaced:
        place = Selection(cluster=shown["cluster"], name=shown["metadata"]["namespace"], at=at)
        namespaces = list(listed(session, NAMESPACES, place, most=1))
    else:
        return None
    operation, query = operations.NAMESPACES_EFFECTIVE_RETRIEVE, {"at": at} if at else {}
    for each in namespaces:
        # One that is deleted since has no number any more.
        if each["id"] is not None:
            return session.call(operation, names={"id": each["id"]}, query=query)
    return None


def _managers(
    session: PortalSession, kind: Kind, shown: dict[str, Any]
) -> ObjectManagersJson | None:
    if kind.managers is None:
        return None
    return session.call(kind.managers, names=key_of(kind.managers, shown))


def _revisions(session: PortalSession, shown: dict[str, Any], *, at: str) -> Any:
    if not shown.get("uid"):
        return []
    query = {"uid": shown["uid"], "ordering": "-created"} | ({"until": at} if at else {})
    return list(session.items(operations.REVISIONS_LIST, query, most=REVISIONS))
