"""`manage.py connect_cluster`: its options; a kubeconfig joined, findings printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from engine.policy import Authority
from policies.management.console import FINDINGS, USAGE, Console, add_user, user_of
from policies.manifests.documents import ManifestError
from policies.manifests.sources import read_sources
from sync.connect import join, seal_keys
from sync.connect.kubeconfig import KubeconfigError
from sync.connect.sealed_box import SealingError
from sync.enforcement.next_steps import next_steps
from sync.enforcement.survey import survey

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from sync.connect.join import Joined
    from sync.connect.probe import ProbeResult
    from sync.enforcement.next_steps import NextStep

_HELP = """\
Connect a cluster: read a kubeconfig, seal its credential, try the connection.

  manage.py connect_cluster prod --kubeconfig prod.kubeconfig
  kubectl config view --raw --flatten --minify | manage.py connect_cluster prod --kubeconfig -
  manage.py connect_cluster prod --kubeconfig all.yaml --context prod-admin -o json

Server, authority and token or client certificate are taken from the file; whatever would run a
program, read a file, skip a check or go through a proxy is refused. A new cluster's own plugins
enforce its ranges and quotas (--authority native). What works is not replaced by what does not.
Afterwards it prints the next three steps (manage.py cluster_enforcement shows all that is missing).
Exit code 0: connected, and usable; 1: refused, or connected and not usable yet; 2: wrong usage.
"""


class Command(Console):
    """``manage.py connect_cluster``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("cluster", help="the cluster's name in the portal; created if it does not exist")
        add("--kubeconfig", required=True, metavar="FILE|-", help="the file, - for standard input")
        add("--context", default="", help="a context of the file (default: the current one)")
        add(
            "--authority",
            choices=[each.value for each in Authority],
            default=Authority.NATIVE.value,
            help="who enforces ranges and quotas of a new cluster (default: %(default)s)",
        )
        add("--anyway", action="store_true", help="replace a working connection by one that fails")
        add("--other-cluster", action="store_true", help="the name now means another cluster")
        add_user(parser)
        add("--reason", default="", help="why, for the record")
        add("-o", "--output", choices=["text", "json"], default="text", help="the output's format")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Read, test, store, report."""
        try:
            request = join.JoinRequest(
                name=options["cluster"],
                text=read_sources([options["kubeconfig"]])[0].text,
                context=options["context"],
                authority=options["authority"],
                is_anyway=options["anyway"],
                is_other_cluster=options["other_cluster"],
            )
            seal_keys.ensure_keys()
            user = user_of(options["user"])
            joined = join.join(request, user=user, reason=options["reason"])
        except ManifestError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except ValidationError as error:
            raise CommandError("; ".join(error.messages), returncode=USAGE) from error
        except KubeconfigError as error:
            raise self._refused(error, options["output"]) from None
        except join.NotUsableError as error:
            self._print_findings(error.findings, options["output"])
            text = "not stored: the connection there is works, and this one does not (--anyway)"
            raise CommandError(text, returncode=FINDINGS) from None
        except (SealingError, seal_keys.KeyFileError, OSError) as error:
            raise CommandError(f"nothing was stored: {error}", returncode=FINDINGS) from error
        self._print(joined, options["output"])

    def _refused(self, error: KubeconfigError, output: str) -> CommandError:
        if output == "json":
            refusals = [one.to_json() for one in error.refusals]
            self.stdout.write(json.dumps({"refused": refusals}, indent=2))
        lines = "\n".join(f"{one} [{one.code}]" for one in error.refusals)
        return CommandError(f"{lines}\nthe kubeconfig was not accepted", returncode=FINDINGS)

    def _print(self, joined: Joined, output: str) -> None:
        if output == "text":
            cluster = joined.connection.cluster
            made = "new, " if joined.is_new else ""
            self.stdout.write(f"{joined.connection} ({made}authority {cluster.authority})")
        steps = _next_steps(joined)
        self._print_findings(joined.findings, output, steps=steps)
        if output == "text" and steps:
            self.stdout.write("next steps:")
            for number, step in enumerate(steps, 1):
                self.stdout.write(f"{number}. {step.title}: {step.words}\n   {step.command}")
        if not joined.findings.is_usable:
            text = f"connected, but not usable yet: {joined.findings.message}"
            raise CommandError(text, returncode=FINDINGS)

    def _print_findings(
        self, findings: ProbeResult, output: str, *, steps: Sequence[NextStep] = ()
    ) -> None:
        if output == "json":
            shown = [{"title": s.title, "message": s.words, "command": s.command} for s in steps]
            document = {**findings.to_json(), "nextSteps": shown}
            self.stdout.write(json.dumps(document, indent=2))
            return
        self.stdout.write(f"state: {findings.state}")
        if findings.server_version:
            skew = f"{findings.clock_skew:+.0f} s" if findings.clock_skew is not None else "unknown"
            self.stdout.write(f"version: {findings.server_version}, clock: {skew}")
        for permission in findings.missing:
            self.stdout.write(f"missing permission: {permission}")
        for code, text in findings.problems:
            self.stderr.write(f"{code}: {text}")
        if findings.missing:
            self.stderr.write("hint: manage.py cluster_manifests grants what is missing")


def _next_steps(joined: Joined) -> list[NextStep]:
    cluster = joined.connection.cluster
    return next_steps(cluster, survey(cluster.name))
