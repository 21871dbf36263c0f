"""Copy: a decision as kubectl, curl and a test case; the request as a cluster sends it."""

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
_SERVER_FIELDS: Final = frozenset(
    {
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
_KUBECTL_VERBS: Final = {Operation.CREATE: "create", Operation.UPDATE: "replace"}


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
    all_copies = [
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
        case_copy = Copy(
            name="case",
            title="Test case",
            hint="One line for manage.py admit --cases FILE, with the policies at the time.",
            text=as_case(event, request, rules),
        )
        all_copies.append(case_copy)
    return all_copies


def as_kubectl(request: AdmissionRequest) -> str:
    """The command that asks the same of the cluster, as a dry run on the server."""
    yaml = render_documents([_without_server_fields(request.object or {})])
    kubectl_verb = _KUBECTL_VERBS.get(request.operation, "create")
    namespace_option = f" --namespace {shlex.quote(request.namespace)}" if request.namespace else ""
    return _heredoc(f"kubectl {kubectl_verb} --dry-run=server{namespace_option} -f -", yaml)


def as_curl(event: AuditEvent, request: AdmissionRequest, address: str) -> str:
    """The command that asks the same of this portal."""
    review_url = f"{address.rstrip('/')}/admission/{quote(event.cluster, safe='')}/{event.phase}"
    curl_words = [
        f'curl -sS -H "Authorization: Bearer {KEY}"',
        "-H 'Content-Type: application/json'",
        f"--data-binary @- {shlex.quote(review_url)}",
    ]
    dry_run_review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": event.request_uid, **_wire_request(request), "dryRun": True},
    }
    return _heredoc(" ".join(curl_words), f"{dumps(dry_run_review)}\n")


def as_case(event: AuditEvent, request: AdmissionRequest, rules: Rules) -> str:
    """One line of JSON: the request, and the policies that decided."""
    test_case = {
        "name": event.pk,
        "phase": event.phase,
        "request": _wire_request(request),
        "policies": list(rules.manifests),
        "limitedResources": list(rules.limited),
        "kubernetesVersion": str(rules.policies.version),
    }
    return dumps(test_case)


def _wire_request(request: AdmissionRequest) -> dict[str, Any]:
    """The request with its objects, as a cluster sends it."""
    return {**wire_form(request), "object": request.object, "oldObject": request.old_object}


def _without_server_fields(decided_object: Mapping[str, Any]) -> dict[str, Any]:
    """The object without fields that the server sets: it would refuse them."""
    sent = {name: value for name, value in decided_object.items() if name != "status"}
    metadata = sent.get("metadata")
    if isinstance(metadata, dict):
        sent["metadata"] = {n: v for n, v in metadata.items() if n not in _SERVER_FIELDS}
    spec = sent.get("spec")
    # The priority plugin sets both from the class, and refuses other values.
    if isinstance(spec, dict) and "priority" in spec:
        sent["spec"] = {n: v for n, v in spec.items() if n not in {"priority", "preemptionPolicy"}}
    return sent


def _heredoc(command: str, text: str) -> str:
    """Give the command its text; its end mark is no line of the text."""
    # A text that contains its end mark would end there, and the shell would run the rest.
    end_mark, mark_number, text_lines = "EOF", 0, set(text.splitlines())
    while end_mark in text_lines:
        mark_number += 1
        end_mark = f"EOF{mark_number}"
    return f"{command} <<'{end_mark}'\n{text}{end_mark}"
