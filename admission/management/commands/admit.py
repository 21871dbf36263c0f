"""`manage.py admit`: its options; objects, cases judged; verdict, trace as table, YAML, JSON."""

from __future__ import annotations

import dataclasses
import gzip
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError
from django.db import DatabaseError

from admission import offline
from engine.chain import admit
from engine.decision_json import render_decision, render_step
from engine.errors import DecodeError
from engine.kubernetes_version import DEFAULT_VERSION, KNOWN_VERSIONS, parse_version
from engine.request import Operation, Phase
from engine.request_json import complete_request
from engine.wire import dumps
from policies import snapshot
from policies.management.console import Console
from policies.manifests.documents import ManifestError
from policies.manifests.policy_files import read_policy_files
from policies.manifests.render import render_documents
from policies.manifests.sources import parse_documents, read_sources

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from engine.decision import Decision
    from engine.kubernetes_version import KubernetesVersion
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from policies.manifests.policy_files import PolicyFiles

DENIED: Final = 1
UNUSABLE: Final = 2
_HELP: Final = """\
Show the decision about an object, its reasons, and the object as it would be stored.

  manage.py admit -f policies/ pod.yaml          policies from files or folders
  manage.py admit --cluster demo pod.yaml        policies from the database
  manage.py admit --cases cases.jsonl            many cases, one JSON object a line

An object is judged as an API server judges it: defaulted, mutated, validated. Nothing is
written or charged. Exit code 0: allowed; 1: denied; 2: something could not be read.
"""


class Command(Console):
    """``manage.py admit``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("object", nargs="?", help="the manifest to judge, - for standard input")
        add("-f", "--file", action="append", default=[], metavar="PATH", help="policies")
        add("--cluster", help="take policies and limitedResources of this cluster")
        add("-n", "--namespace", default="", help="the object's namespace (default: its own)")
        add("--old", help="the stored object: judge an update instead of a create")
        add(
            "--operation", choices=[o.value for o in Operation], help="CREATE, or UPDATE with --old"
        )
        add("--phase", choices=[p.value for p in Phase], default="both", help="default: both")
        add(
            "--limited-resources",
            metavar="FILE",
            help="entries of the quota plugin's configuration",
        )
        add(
            "--kubernetes-version",
            choices=[str(each) for each in KNOWN_VERSIONS],
            help=f"of the cluster (default: that of --cluster, or {DEFAULT_VERSION})",
        )
        add("--cases", metavar="FILE", help="one case a line (.jsonl, .jsonl.gz, -)")
        add("-o", "--output", choices=["table", "yaml", "json"], default="table")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Answer the cases, or the one object."""
        try:
            limited_resources = _limited_resources(options["limited_resources"])
            if options["cases"]:
                self._answer_cases(options["cases"], limited_resources, _version(options))
                return
            decision = _judge(options, limited_resources)
        except (ManifestError, DecodeError, OSError, EOFError, LookupError) as error:
            raise CommandError(str(error), returncode=UNUSABLE) from error
        except DatabaseError as error:
            message = f"the database cannot be read ({error}); run manage.py migrate first"
            raise CommandError(message, returncode=UNUSABLE) from error
        self.stdout.write(_render(decision, options["output"]))
        if not decision.allowed:
            sys.exit(DENIED)

    def _answer_cases(self, name: str, limited: object, version: KubernetesVersion) -> None:
        open_file = gzip.open if name.endswith(".gz") else open
        with nullcontext(sys.stdin.buffer) if name == "-" else open_file(name, "rb") as cases:
            for case in cases:
                if case.strip():
                    self.stdout.write(dumps(offline.answer_line(case, limited, version)))


def _read_manifests(file: str) -> list[Any]:
    sources = read_sources([file])
    return [each.value for source in sources for each in parse_documents(source.text, source.name)]


def _limited_resources(file_name: str | None) -> object:
    """Read the list itself, or the configuration that holds it."""
    if not file_name:
        return None
    for document in _read_manifests(file_name):
        limited = _find_limited(document)
        if limited is not None:
            return limited
    raise DecodeError("limitedResources", f"{file_name}: there are no limitedResources in it")


def _find_limited(document: Any) -> object:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        return None
    if document.get("kind") == "AdmissionConfiguration":
        plugins = document.get("plugins")
        plugins = plugins if isinstance(plugins, list) else []
        quota = (p for p in plugins if isinstance(p, dict) and p.get("name") == "ResourceQuota")
        document = next((plugin.get("configuration") for plugin in quota), None) or {}
    return document.get("limitedResources")


def _judge(options: dict[str, Any], limited_resources: object) -> Decision:
    if not options["object"]:
        raise CommandError("give an object to judge, or --cases", returncode=UNUSABLE)
    policy_files = read_policy_files(options["file"])
    request = _request_to_judge(options, policy_files.namespace)
    policies = _policies(options, request, policy_files, limited_resources)
    return admit(request, policies, phase=Phase(options["phase"]))


def _request_to_judge(options: dict[str, Any], default_namespace: str) -> AdmissionRequest:
    documents = _read_manifests(options["object"])
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise DecodeError("object", f"{options['object']}: give exactly one object to judge")
    old_manifest = next(iter(_read_manifests(options["old"])), None) if options["old"] else None
    request_parts = {
        "object": documents[0],
        "oldObject": old_manifest,
        "operation": options["operation"] or ("UPDATE" if old_manifest else "CREATE"),
        "namespace": options["namespace"],
    }
    return complete_request(request_parts, default_namespace=default_namespace)


def _policies(
    options: dict[str, Any], request: AdmissionRequest, policy_files: PolicyFiles, limited: object
) -> PolicySet:
    if not options["cluster"]:
        return policy_files.policy_set(request.namespace, limited, _version(options))
    if not snapshot.has_cluster(options["cluster"]):
        raise LookupError(f"there is no cluster {options['cluster']} here")
    policies = snapshot.load(options["cluster"], request.namespace)
    is_given = options["kubernetes_version"] is not None
    return dataclasses.replace(policies, version=_version(options)) if is_given else policies


def _version(options: dict[str, Any]) -> KubernetesVersion:
    return parse_version(options["kubernetes_version"] or "")


def _render(decision: Decision, output: str) -> str:
    answer = {
        **render_decision(decision),
        "trace": [render_step(step) for step in decision.trace],
    }
    if output == "json":
        return dumps(answer)
    return render_documents([answer]) if output == "yaml" else _table(answer, decision)


def _table(answer: dict[str, Any], decision: Decision) -> str:
    verdict = "allowed" if decision.allowed else f"denied ({decision.code} {decision.reason})"
    table_lines = [f"verdict: {verdict}"]
    if decision.message:
        table_lines.append(f"message: {decision.message}")
    table_lines += [f"warning: {warning}" for warning in decision.warnings]
    table_lines += ["", "trace:", *(_step_line(step) for step in answer["trace"])]
    if answer["used"]:
        table_lines += ["", "used after this request:"]
        table_lines += [f"  {quota}: {_amounts(used)}" for quota, used in answer["used"].items()]
    table_lines += ["", "object:", render_documents([dict(decision.object or {})]).rstrip()]
    return "\n".join(table_lines)


def _step_line(step: dict[str, Any]) -> str:
    policy = step.get("policy")
    named = f"{policy['kind']} {policy['name']}" if policy else step["step"]
    rule = f" [{step['rule']}]" if "rule" in step else ""
    texts = [step.get("detail", ""), _amounts(step.get("numbers", {}))]
    return f"  {step['outcome']:<12} {named}{rule}  {'  '.join(t for t in texts if t)}".rstrip()


def _amounts(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items())
