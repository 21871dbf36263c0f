"""Commands that reproduce a decision: for kubectl, curl and ``manage.py admit``.

Names, labels and values come from callers: each text is quoted so that a shell takes it as text.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from admission.record.redaction import wire_form
from engine.request import Operation
from engine.wire import dumps
from policies.manifests.render import render_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from admission.explain.redecide import Rules
    from admission.models import AuditEvent
    from engine.request import AdmissionRequest

KEY: Final = "$KEY"
_OF_THE_SERVER: Final = frozenset(
    {
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
_VERBS: Final = {Operation.CREATE: "create", Operation.UPDATE: "replace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One text to copy: ``name`` in addresses, ``title`` for people."""

    name: str
    title: str
    hint: str
    text: str


def copies(
    event: AuditEvent, request: AdmissionRequest, rules: Rules | None, address: str
) -> list[Copy]:
    """All texts there are; the case needs the policies of then."""
    found = [
        Copy(
            name="kubectl",
            title="kubectl",
            hint="Asks the cluster again, as a dry run: nothing is stored or charged.",
            text=as_kubectl(request),
        ),
        Copy(
            name="curl",
            title="curl",
            hint="Asks this portal, as a dry run, with a credential of the cluster as the key.",
            text=as_curl(event, request, address),
        ),
    ]
    if rules is not None:
        case = Copy(
            name="case",
            title="Test case",
            hint="One line for manage.py admit --cases FILE, with the policies of then.",
            text=as_case(event, request, rules),
        )
        found.append(case)
    return found


def as_kubectl(request: AdmissionRequest) -> str:
    """The command that asks the same of the cluster, as a dry run on the server."""
    manifest = render_documents([_manifest(request.object or {})])
    verb = _VERBS.get(request.operation, "create")
    where = f" --namespace {shlex.quote(request.namespace)}" if request.namespace else ""
    return _heredoc(f"kubectl {verb} --dry-run=server{where} -f -", manifest)


def as_curl(event: AuditEvent, request: AdmissionRequest, address: str) -> str:
    """The command that asks the same of this portal."""
    url = f"{address.rstrip('/')}/admission/{quote(event.cluster, safe='')}/{event.phase}"
    words = [
        f'curl -sS -H "Authorization: Bearer {KEY}"',
        "-H 'Content-Type: application/json'",
        f"--data-binary @- {shlex.quote(url)}",
    ]
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": event.request_uid, **_wire(request), "dryRun": True},
    }
    return _heredoc(" ".join(words), f"{dumps(review)}\n")


def as_case(event: AuditEvent, request: AdmissionRequest, rules: Rules) -> str:
    """One line of JSON: the request, and the policies that decided."""
    case = {
        "name": event.pk,
        "phase": event.phase,
        "request": _wire(request),
        "policies": list(rules.manifests),
        "limitedResources": list(rules.limited),
    }
    return dumps(case)


def _wire(request: AdmissionRequest) -> dict[str, Any]:
    """The request with its objects, as a cluster sends it."""
    return {**wire_form(request), "object": request.object, "oldObject": request.old_object}


def _manifest(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object without what the server sets: it would refuse them."""
    kept = {name: value for name, value in obj.items() if name != "status"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {n: v for n, v in metadata.items() if n not in _OF_THE_SERVER}
    spec = kept.get("spec")
    if isinstance(spec, dict) and "priority" in spec:
        kept["spec"] = {n: v for n, v in spec.items() if n not in {"priority", "preemptionPolicy"}}
    return kept


def _heredoc(command: str, text: str) -> str:
    """Give the command its text; its end mark is no line of the text."""
    mark, number, lines = "EOF", 0, set(text.splitlines())
    while mark in lines:
        number += 1
        mark = f"EOF{number}"
    return f"{command} <<'{mark}'\n{text}{mark}"
