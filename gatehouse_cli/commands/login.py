"""``gatehouse login``: a portal's address and token, tried and stored as a context."""

from __future__ import annotations

import sys
from typing import Final
from urllib.parse import urlsplit

import click

from gatehouse_cli import contexts
from gatehouse_cli.client import operations
from gatehouse_cli.client.problems import SignInError
from gatehouse_cli.client.session import PortalSession, checked_url
from gatehouse_cli.contexts import Context
from gatehouse_cli.exit_codes import CliError
from gatehouse_cli.objects.kinds import CLUSTERS
from gatehouse_cli.objects.lookup import Selection, find

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@click.command("login")
@click.argument("url")
@click.option("--name", metavar="NAME", default="", help="The context's name; by default the host.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option(
    "--certificate-authority",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="A file with the only authority to trust for the portal.",
)
@click.option("--cluster", metavar="NAME", default="", help="The cluster of later commands.")
def command(
    *, url: str, name: str, token_stdin: bool, certificate_authority: str | None, cluster: str
) -> None:
    """Store the portal at URL with a token, and use it from now on.

    The token is asked for, and tried before it is stored. Make one on the page of your account, or
    with POST /api/v1/token/.

    \b
      gatehouse login https://gatehouse.example.com
      gatehouse login https://gatehouse.example.com --token-stdin < token
    """  # noqa: D301  \b is click's mark
    address = checked_url(url)
    host = urlsplit(address).hostname or ""
    if address.startswith("http:") and host not in _LOOPBACK:
        click.echo(f"warning: {address} has no TLS; the token travels as plain text", err=True)
    context = Context(
        name=name or urlsplit(address).netloc,
        url=address,
        token=_token(is_piped=token_stdin),
        certificate_authority=certificate_authority or "",
        cluster=cluster,
    )
    _try_out(context)
    contexts.save(contexts.load().with_current(context))
    click.echo(
        f"context {context.name} is stored in {contexts.config_path()}, and in use", err=True
    )


def _token(*, is_piped: bool) -> str:
    if is_piped:
        token = sys.stdin.readline().strip()
    elif sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True).strip()
    else:
        raise click.UsageError("there is no terminal to ask at; pipe the token and --token-stdin")
    if not token:
        raise CliError("no token was given")
    return token


def _try_out(context: Context) -> None:
    """Raise CliError unless the portal accepts the token and has the cluster."""
    session = PortalSession(
        context.url, context.token, certificate_authority=context.certificate_authority
    )
    with session:
        try:
            session.call(operations.CLUSTERS_LIST, query={"limit": 1})
        except SignInError as error:
            raise CliError(f"{context.url} refuses the token; nothing was stored") from error
        if context.cluster:
            find(session, CLUSTERS, Selection(name=context.cluster))
