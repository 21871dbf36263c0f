"""Request: options of ``plan``, ``diff`` and ``apply``; a plan for each cluster, by the portal."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import click

from gatehouse_cli.client import operations
from gatehouse_cli.client.problems import ProblemError
from gatehouse_cli.connection import connected
from gatehouse_cli.console import progress
from gatehouse_cli.plans.commit import commit_of
from gatehouse_cli.plans.files import read_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gatehouse_cli.client.answers import SetPlanJson
    from gatehouse_cli.client.problems import FieldProblem
    from gatehouse_cli.connection import Connection
    from gatehouse_cli.plans.files import JoinedFiles

    Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to apply, where, and how."""

    connection: Connection
    paths: tuple[str, ...]
    clusters: tuple[str, ...]
    set_name: str
    namespace: str = ""
    create_namespaces: bool = False
    prune: bool = False
    confirm_deletions: int = 0
    force: bool = False
    commit: str = ""
    reason: str = ""
    change_title: str = ""
    """Empty, or that of a change that gets what would be written."""

    def plans(self, *, dry_run: bool) -> Iterator[SetPlanJson]:
        """One plan for each cluster, carried out unless it is a dry run; raises CliError."""
        files = read_files(
            self.paths,
            namespace=self.namespace,
            # Deletes the whole set: mostly a mistake of a pipeline, so it has to be said twice.
            may_be_empty=self.prune and self.confirm_deletions > 0,
        )
        for title in files.bundle.others:
            click.echo(f"left out, no policy: {title}", err=True)
        body = {
            **self._body(files),
            **({"changeTitle": self.change_title} if self.change_title else {}),
        }
        # By the parameter and not in the body: so tokens that only read may plan.
        query = {"dryRun": "All"} if dry_run else {}
        with self.connection.open() as session:
            for cluster in self.clusters or (self.connection.require_cluster(""),):
                with progress(f"{'planning' if dry_run else 'applying'} for {cluster}"):
                    try:
                        plan = session.call(
                            operations.APPLY_CREATE,
                            query=query,
                            body={**body, "cluster": cluster},
                        )
                    except ProblemError as error:
                        raise _with_files(error, files) from error
                if self.change_title and plan["change"] is not None:
                    # One change for all clusters: those that follow join the first.
                    body = {**body, "change": plan["change"]}
                    body.pop("changeTitle", None)
                yield plan

    def _body(self, files: JoinedFiles) -> dict[str, Any]:
        body = {
            "set": self.set_name,
            "commit": self.commit or commit_of(self.paths),
            "namespace": self.namespace,
            "createNamespaces": self.create_namespaces,
            "prune": self.prune,
            "confirmDeletions": self.confirm_deletions,
            "force": self.force,
            "reason": self.reason,
        }
        said = {name: value for name, value in body.items() if value}
        return {"documents": files.text, **said}


_FIELDS: Final = frozenset(field.name for field in fields(Request))


_OPTIONS: Final = (
    click.option(
        "-f",
        "--filename",
        "paths",
        metavar="PATH",
        multiple=True,
        required=True,
        help="A file, a folder with all its YAML and JSON files, or - for standard input.",
    ),
    click.option(
        "--cluster",
        "clusters",
        metavar="NAME",
        multiple=True,
        help="A cluster, by default the context's; several get a plan each.",
    ),
    click.option(
        "--set",
        "set_name",
        metavar="NAME",
        required=True,
        help="The name of this set of files.",
    ),
    click.option(
        "-n", "--namespace", metavar="NAME", default="", help="For objects that name none."
    ),
    click.option("--create-namespaces", is_flag=True, help="Create missing namespaces."),
    click.option("--prune", is_flag=True, help="Delete what the set has and the files lack."),
    click.option(
        "--confirm-deletions",
        type=click.IntRange(min=0),
        metavar="NUMBER",
        default=0,
        help="The expected number of deletions; required if there are many.",
    ),
    click.option("--force", is_flag=True, help="Take over fields that others manage."),
    click.option(
        "--commit",
        metavar="SHA",
        default="",
        help="By default from GITHUB_SHA, CI_COMMIT_SHA or git.",
    ),
    click.option("--reason", metavar="TEXT", default="", help="Why, for the record."),
)


def planned(function: Function) -> Function:
    """Declare the options of a plan; the function gets ``request``."""

    @functools.wraps(function)
    def with_request(**given: Any) -> Any:
        of_request = {name: given.pop(name) for name in list(given) if name in _FIELDS}
        return function(request=Request(**of_request), **given)

    decorated: Function = connected(with_request)
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _with_files(error: ProblemError, files: JoinedFiles) -> ProblemError:
    """The same error with the files of its lines, which count in the joined text."""
    return error.with_fields([_in_file(each, files) for each in error.fields])


def _in_file(problem: FieldProblem, files: JoinedFiles) -> FieldProblem:
    if not problem.line:
        return problem
    name, line = files.place(problem.line)
    field = problem.field.removeprefix("documents").removeprefix(".")
    message = problem.message.replace("createNamespaces", "--create-namespaces")
    return replace(problem, field=field, message=message, file=name, line=line)
