"""``gatehouse test``: manifests judged offline under policies in files; reports, exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from engine.kubernetes_version import DEFAULT_VERSION, KNOWN_VERSIONS, parse_version
from gatehouse_cli import reports
from gatehouse_cli.console import progress
from gatehouse_cli.exit_codes import CliError, ExitCode
from gatehouse_cli.trials.judge import Judge
from gatehouse_cli.trials.kept import judge_kept
from gatehouse_cli.trials.trial import TrialRun
from gatehouse_cli.trials.trial_objects import TrialObjects
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.policy_files import PolicyFiles, read_policy_files
from policies.manifests.sources import STANDARD_INPUT, parse_documents, read_sources
from policies.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG: Final = """\
\b
  gatehouse test -f policies/ manifests/
  helm template shop charts/shop | gatehouse test -f policies/ -n shop -
  kustomize build overlays/prod | gatehouse test -f policies/ --report github -
  gatehouse test -f policies/

Policies are LimitRanges, ResourceQuotas, MetadataPolicies and limitedResources (in an
AdmissionConfiguration). One without a namespace holds in every namespace.

PolicyTests among the policies are run, too: each object by itself, with the used amounts that its
test names, and empty quotas otherwise. They are enough: manifests may be left out.

Judged are all objects of namespaces, and the pods of workloads: as many as run at once (replicas,
parallelism; for a DaemonSet, one). Each object counts as new, in the order of the files: a quota
begins with the amounts of its status, or empty, and each allowed object uses it up for the next.
Objects outside namespaces, and custom resources that name none, are skipped.

\b
An annotation says which verdict is expected; without it, an object has to be allowed:
  policy.gatehouse.dev/expect: allow | deny
  policy.gatehouse.dev/expect-reason: MaxConstraint

Exit codes: 0 all as expected; 1 an object or a pod template is refused, or an answer is not the
expected one; 2 wrong usage, or files that cannot be read.
"""


@click.command("test", epilog=_EPILOG)
@click.option(
    "-f",
    "--policies",
    "policy_paths",
    multiple=True,
    required=True,
    metavar="PATH",
    help="Files or folders of policies, - for standard input; may be repeated.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    help="The namespace of objects that name none.  [default: the policies', or default]",
)
@click.option(
    "--kubernetes-version",
    type=click.Choice([str(each) for each in KNOWN_VERSIONS]),
    default=str(DEFAULT_VERSION),
    show_default=True,
    help="The version of the cluster.",
)
@click.option(
    "--report",
    type=click.Choice(reports.FORMS),
    default="text",
    show_default=True,
    help="The form of the report.",
)
@click.option(
    "--report-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report here, and text to standard output.",
)
@click.argument("manifests", nargs=-1, metavar="[MANIFEST...]")
def command(
    *, policy_paths: tuple[str, ...], manifests: tuple[str, ...], report: str, **options: Any
) -> ExitCode:
    """Test manifests, and kept tests, under policies in files, without a cluster.

    MANIFESTs are files, folders (their .yaml, .yml and .json files), or - for standard input.
    """
    if [*policy_paths, *manifests].count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input (-) can be read only once")
    policies, candidates = _read(policy_paths, manifests)
    namespace = options["namespace"] or policies.namespace
    version = parse_version(options["kubernetes_version"])
    run = _judge(Judge(policies, namespace, version), candidates)
    kept = [judge_kept(each, policies, namespace, version) for each in policies.tests]
    run = TrialRun([*run.trials, *kept], run.skipped)
    report_file: Path | None = options["report_file"]
    if report_file is None:
        click.echo(reports.render(run, report))
    else:
        _write(report_file, reports.render(run, report))
        click.echo(reports.render(run, "text"))
    return ExitCode.FOUND if run.failed else ExitCode.OK


def _read(
    policy_paths: Sequence[str], manifest_paths: Sequence[str]
) -> tuple[PolicyFiles, TrialObjects]:
    """Read policies and manifests; ends the command with the problems of all of them."""
    problems: list[Problem] = []
    policies, candidates = PolicyFiles(), TrialObjects()
    try:
        policies = read_policy_files(policy_paths)
        if not manifest_paths and not policies.tests:
            raise click.UsageError("name a manifest: there is no PolicyTest among the policies")
        if policies.are_empty:
            problems.append(Problem(source=policy_paths[0], message="there is no policy in it"))
    except ManifestError as error:
        problems += error.problems
    problems += _read_candidates(manifest_paths, candidates)
    if manifest_paths and not (problems or candidates.objects or candidates.skipped):
        problems.append(Problem(source=manifest_paths[0], message="there is no manifest in it"))
    if problems:
        for problem in problems:
            click.echo(str(problem), err=True)
        raise CliError(f"{counted(len(problems), 'problems')}; nothing was tested")
    return policies, candidates


def _read_candidates(paths: Sequence[str], candidates: TrialObjects) -> list[Problem]:
    try:
        sources = read_sources(paths)
    except ManifestError as error:
        return error.problems
    problems: list[Problem] = []
    with progress("reading", len(sources)) as advance:
        for source in sources:
            try:
                candidates.add(parse_documents(source.text, source.name))
            except ManifestError as error:
                problems += error.problems
            advance(1)
    return problems + candidates.problems


def _judge(judge: Judge, candidates: TrialObjects) -> TrialRun:
    trials = []
    with progress("testing", len(candidates.objects)) as advance:
        for candidate in candidates.objects:
            trials.append(judge.judge(candidate))
            advance(1)
    return TrialRun(trials, candidates.skipped)


def _write(file: Path, report: str) -> None:
    try:
        file.write_text(f"{click.unstyle(report)}\n", encoding="utf-8")
    except OSError as error:
        raise CliError(f"{file}: {(error.strerror or str(error)).lower()}") from error
