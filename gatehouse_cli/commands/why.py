"""``gatehouse why``: the story of a decision, found by its id or by the object's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.client.problems import ProblemError
from gatehouse_cli.connection import Connection, cluster_option, connected, namespace_option
from gatehouse_cli.exit_codes import CliError
from gatehouse_cli.output import OutputForm, output_option, print_object
from gatehouse_cli.stories.decision import decision_lines

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import DecisionJson, DecisionSummaryJson
    from gatehouse_cli.client.session import PortalSession

_DECISION_ID: Final = re.compile("[0-9a-z]{16}")
_NOT_FOUND: Final = 404
_REFUSED: Final = ("denied", "would-deny")
NEWEST: Final = 50
"""Decisions about one name that are looked through."""
OTHERS: Final = 5


@click.command("why")
@click.argument("subject", metavar="DECISION-ID|POD")
@namespace_option
@cluster_option
@click.option("--kind", default="", help="The object's kind; by default that before the slash.")
@output_option(OutputForm.TABLE, OutputForm.JSON, OutputForm.YAML)
@connected
def command(  # noqa: PLR0913  one parameter an option
    *,
    connection: Connection,
    subject: str,
    namespace: str,
    cluster: str,
    kind: str,
    output: OutputForm,
) -> None:
    """Tell why a pod was refused or changed, and what would pass.

    A name means the newest refusal of an object with this name or, if there is none, its newest
    decision. A prefix of the name is enough: refused pods of a ReplicaSet have no more.

    \b
      gatehouse why 0123456789abcdef
      gatehouse why web -n default --cluster prod
      kubectl gatehouse why deployment/web
    """  # noqa: D301  \b is click's mark
    given_kind, _, given_name = subject.rpartition("/")
    may_be_id = given_kind in ("", "decision")  # the second as get -o name prints it
    query = {
        "name": given_name,
        "kind": kind or _kind_word(given_kind),
        "namespace": namespace,
        "cluster": cluster or connection.context.cluster,
    }
    with connection.open() as session:
        decision = _decision(session, given_name) if may_be_id else None
        if decision is None:
            decision = _newest(session, {name: text for name, text in query.items() if text})
        explanation = session.call(
            operations.DECISIONS_EXPLANATION_RETRIEVE, names={"decision_id": decision["id"]}
        )
    if output is OutputForm.TABLE:
        click.echo("\n".join(decision_lines(decision, explanation)))
    else:
        print_object({**decision, "explanation": explanation}, output)


def _kind_word(given: str) -> str:
    """The kind as the record has it, of a word as kubectl takes it."""
    known: dict[str, str] = {
        "po": "Pod",
        "deploy": "Deployment",
        "rs": "ReplicaSet",
        "sts": "StatefulSet",
        "ds": "DaemonSet",
        "pvc": "PersistentVolumeClaim",
    }
    words = {kind.lower(): kind for kind in (*known.values(), "Job", "CronJob", "Service")}
    word = given.lower()
    return known.get(word) or words.get(word) or words.get(word.removesuffix("s")) or given


def _decision(session: PortalSession, decision_id: str) -> DecisionJson | None:
    """The decision of this id; None if there is none, or if it is a name."""
    if not _DECISION_ID.fullmatch(decision_id):
        return None
    try:
        return session.call(operations.DECISIONS_RETRIEVE, names={"id": decision_id})
    except ProblemError as error:
        if error.status == _NOT_FOUND:
            return None
        raise


def _newest(session: PortalSession, query: dict[str, Any]) -> DecisionJson:
    """The decision that is asked about; raises CliError without any of this name."""
    found = list(session.items(operations.DECISIONS_LIST, query, most=NEWEST))
    if not found:
        place = "".join(
            f" in {key} {query[key]}" for key in ("namespace", "cluster") if key in query
        )
        raise CliError(f'there is no decision about "{query["name"]}"{place} that you may see')
    exact = [each for each in found if each["name"] == query["name"]] or found
    refused = [each for each in exact if each["verdict"] in _REFUSED]
    chosen = (refused or exact)[0]
    _name_others([each for each in found if each is not chosen])
    return session.call(operations.DECISIONS_RETRIEVE, names={"id": chosen["id"]})


def _name_others(others: list[DecisionSummaryJson]) -> None:
    for each in others[:OTHERS]:
        text = f"{each['id']} {each['verdict']} {each['kind']} {each['namespace']}/{each['name']}"
        click.echo(f"also on record: {text}", err=True)
