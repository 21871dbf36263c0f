"""Options that name a portal and a cluster; Connection: the chosen context, and its session.

A context named on the command line comes first, then the environment, then the current context.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from gatehouse_cli import contexts
from gatehouse_cli.contexts import Context
from gatehouse_cli.exit_codes import CliError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatehouse_cli.client.session import PortalSession

    Function = Callable[..., Any]

URL = "GATEHOUSE_URL"
TOKEN = "GATEHOUSE_TOKEN"  # noqa: S105  a variable's name
CERTIFICATE_AUTHORITY = "GATEHOUSE_CERTIFICATE_AUTHORITY"


@dataclass(frozen=True, slots=True)
class Connection:
    """The chosen context."""

    context: Context

    def open(self) -> PortalSession:
        """A session with the portal, to use with ``with``; raises ClientError."""
        # Imported late: help and errors of usage need no HTTP.
        from gatehouse_cli.client.session import PortalSession  # noqa: PLC0415 - for the start

        chosen = self.context
        return PortalSession(
            chosen.url, chosen.token, certificate_authority=chosen.certificate_authority
        )

    def require_cluster(self, given: str) -> str:
        """The named cluster, else the context's; raises UsageError without any."""
        if not (given or self.context.cluster):
            raise click.UsageError("name a cluster with --cluster, or in the context")
        return given or self.context.cluster


def connected(function: Function) -> Function:
    """Declare the options of the portal; the function gets ``connection``."""

    @click.option(
        "--context", "context_name", metavar="NAME", help="A context of your config file."
    )
    @click.option(
        "--certificate-authority",
        type=click.Path(exists=True, dir_okay=False),
        help="A file with the only authority to trust for the portal.",
    )
    @functools.wraps(function)
    def with_connection(
        *arguments: Any, context_name: str | None, certificate_authority: str | None, **more: Any
    ) -> Any:
        context = choose_context(context_name or "")
        if certificate_authority:
            context = replace(context, certificate_authority=certificate_authority)
        return function(*arguments, connection=Connection(context), **more)

    return with_connection


def choose_context(name: str) -> Context:
    """The named context, else the environment's, else the current one; raises CliError."""
    if name:
        return contexts.load().named(name)
    url, token = os.environ.get(URL, ""), os.environ.get(TOKEN, "")
    if url or token:
        if not (url and token):
            # A stored token must not be sent to an address that it does not belong to.
            raise CliError(f"set both {URL} and {TOKEN}, or neither")
        authority = os.environ.get(CERTIFICATE_AUTHORITY, "")
        return Context(name="environment", url=url, token=token, certificate_authority=authority)
    known = contexts.load()
    if not known.current:
        raise CliError(f"no portal is chosen; run: gatehouse login URL (or set {URL} and {TOKEN})")
    return known.named(known.current)


def cluster_option(function: Function) -> Function:
    """Declare ``--cluster``, passed as ``cluster``; empty if it is not given."""
    option = click.option(
        "--cluster", metavar="NAME", default="", help="A cluster; by default the context's."
    )
    return option(function)


def namespace_option(function: Function) -> Function:
    """Declare ``-n/--namespace``, passed as ``namespace``; empty if it is not given."""
    option = click.option("-n", "--namespace", metavar="NAME", default="", help="A namespace.")
    return option(function)
