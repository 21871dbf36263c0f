"""`manage.py admit`: decide reviews from files or from the database, without a cluster."""

from __future__ import annotations

import gzip
import sys
from argparse import RawDescriptionHelpFormatter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from admission import offline
from engine.chain import admit
from engine.errors import DecodeError
from engine.request import Operation, Phase
from engine.wire import dumps
from policies import snapshot
from policies.manifests.documents import ManifestError
from policies.manifests.render import render_documents
from policies.manifests.sources import parse_documents

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from django.core.management.base import CommandParser

    from engine.decision import Decision
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest

DENIED: Final = 1
UNUSABLE: Final = 2
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_HELP: Final = """\
Show the decision about an object, its reasons, and the object as it would be stored.

  manage.py admit -f policies/ pod.yaml          policies from files or folders
  manage.py admit --cluster demo pod.yaml        policies from the database
  manage.py admit --cases cases.jsonl            many cases, one JSON object a line

An object is judged as an API server judges it: defaulted, mutated, validated. Nothing is
written or charged. Exit code 0: allowed; 1: denied; 2: something could not be read.
"""


class Command(BaseCommand):
    """``manage.py admit``."""

    help = _HELP

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the lines of the help as they are."""
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(prog_name, subcommand, **kwargs)

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
        add("--cases", metavar="FILE", help="one case a line (.jsonl, .jsonl.gz, -)")
        add("-o", "--output", choices=["table", "yaml", "json"], default="table")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Answer the cases, or the one object."""
        try:
            limited = _limited_resources(options["limited_resources"])
            if options["cases"]:
                self._answer_cases(options["cases"], limited)
                return
            decision = _judge(options, limited)
        except (ManifestError, DecodeError, OSError, EOFError, LookupError) as error:
            raise CommandError(str(error), returncode=UNUSABLE) from error
        except DatabaseError as error:
            text = f"the database cannot be read ({error}); run manage.py migrate first"
            raise CommandError(text, returncode=UNUSABLE) from error
        self.stdout.write(_render(decision, options["output"]))
        if not decision.allowed:
            sys.exit(DENIED)

    def _answer_cases(self, name: str, limited: object) -> None:
        opened = gzip.open if name.endswith(".gz") else open
        with nullcontext(sys.stdin.buffer) if name == "-" else opened(name, "rb") as lines:
            for line in lines:
                if line.strip():
                    self.stdout.write(dumps(offline.answer_line(line, limited)))


def _read(name: str) -> list[Any]:
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    return [document.value for document in parse_documents(text, name)]


def _read_policies(names: list[str]) -> list[Any]:
    """Read every document of files and, in name order, of folders; lists are opened."""
    files: list[str] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            files += sorted(str(p) for p in path.rglob("*") if p.suffix in _SUFFIXES)
        else:
            files.append(name)
    manifests: list[Any] = []
    for document in (document for file in files for document in _read(file)):
        items = document.get("items") if isinstance(document, dict) else None
        manifests += items if isinstance(items, list) else [document]
    return manifests


def _limited_resources(name: str | None) -> object:
    """Read the list itself, or the configuration that holds it."""
    if not name:
        return None
    for document in _read(name):
        found = _find_limited(document)
        if found is not None:
            return found
    raise DecodeError("limitedResources", f"{name}: there are no limitedResources in it")


def _find_limited(document: Any) -> object:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        return None
    if document.get("kind") == "AdmissionConfiguration":
        plugins = document.get("plugins")
        entries = plugins if isinstance(plugins, list) else []
        named = (p for p in entries if isinstance(p, dict) and p.get("name") == "ResourceQuota")
        document = next((p.get("configuration") for p in named), None) or {}
    return document.get("limitedResources")


def _judge(options: dict[str, Any], limited: object) -> Decision:
    if not options["object"]:
        raise CommandError("give an object to judge, or --cases", returncode=UNUSABLE)
    manifests = _read_policies(options["file"])
    offline.check_policies(manifests)
    request = _request(options, offline.only_namespace(manifests))
    policies = _policies(options, request, manifests, limited)
    return admit(request, policies, phase=Phase(options["phase"]))


def _request(options: dict[str, Any], default_namespace: str) -> AdmissionRequest:
    documents = _read(options["object"])
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise DecodeError("object", f"{options['object']}: give exactly one object to judge")
    old = next(iter(_read(options["old"])), None) if options["old"] else None
    raw = {
        "object": documents[0],
        "oldObject": old,
        "operation": options["operation"] or ("UPDATE" if old else "CREATE"),
        "namespace": options["namespace"],
    }
    return offline.complete_request(raw, default_namespace=default_namespace)


def _policies(
    options: dict[str, Any], request: AdmissionRequest, manifests: list[Any], limited: object
) -> PolicySet:
    if not options["cluster"]:
        return offline.build_policy_set(manifests, limited, namespace=request.namespace)
    if not snapshot.has_cluster(options["cluster"]):
        raise LookupError(f"there is no cluster {options['cluster']} here")
    return snapshot.load(options["cluster"], request.namespace)


def _render(decision: Decision, output: str) -> str:
    shape = {
        **offline.render_decision(decision),
        "trace": [offline.render_step(step) for step in decision.trace],
    }
    if output == "json":
        return dumps(shape)
    return render_documents([shape]) if output == "yaml" else _table(shape, decision)


def _table(shape: dict[str, Any], decision: Decision) -> str:
    verdict = "allowed" if decision.allowed else f"denied ({decision.code} {decision.reason})"
    lines = [f"verdict: {verdict}"]
    if decision.message:
        lines.append(f"message: {decision.message}")
    lines += [f"warning: {text}" for text in decision.warnings]
    lines += ["", "trace:", *(_step_line(step) for step in shape["trace"])]
    if shape["used"]:
        lines += ["", "used after this request:"]
        lines += [f"  {q}: {_amounts(used)}" for q, used in shape["used"].items()]
    lines += ["", "object:", render_documents([dict(decision.object or {})]).rstrip()]
    return "\n".join(lines)


def _step_line(step: dict[str, Any]) -> str:
    policy = step.get("policy")
    name = f"{policy['kind']} {policy['name']}" if policy else step["step"]
    rule = f" [{step['rule']}]" if "rule" in step else ""
    texts = [step.get("detail", ""), _amounts(step.get("numbers", {}))]
    return f"  {step['outcome']:<12} {name}{rule}  {'  '.join(t for t in texts if t)}".rstrip()


def _amounts(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items())
