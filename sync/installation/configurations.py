"""The two webhook configurations: rules, matchConditions, clientConfig, hints; live compared."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

from sync.connect.permissions import CONFIGURATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import Cluster

TIMEOUT: Final = 5
"""Seconds; the API server allows a whole request 34."""
HINT_TIMEOUT: Final = 1
"""Seconds that a write of a namespace waits for a portal that does not answer."""
KUBE_SYSTEM: Final = "kube-system"
NO_KEY: Final = "KEY"
"""The placeholder in an address for a credential that is not known."""
ALWAYS_OUT: Final = (KUBE_SYSTEM, "kube-node-lease")
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_WEBHOOK_API: Final = "admissionregistration.k8s.io/v1"
_HINT: Final = "hint"
_HINTED_RULES: Final = (
    ("", ["CREATE", "UPDATE", "DELETE"], ["namespaces"], "Cluster"),
    # The validating webhook gets the other operations of policies.
    ("", ["DELETE"], ["limitranges", "resourcequotas"], "Namespaced"),
    ("policy.gatehouse.dev", ["DELETE"], ["metadatapolicies"], "Namespaced"),
)
_HINT_CONDITIONS: Final = {"not-dry-run": "!has(request.dryRun) || !request.dryRun"}
VALIDATING_KIND: Final = "ValidatingWebhookConfiguration"
_KIND_OF_PHASE: Final = {"mutate": "MutatingWebhookConfiguration", "validate": VALIDATING_KIND}
_RESOURCES_OF_PHASE: Final = {
    "mutate": ("*", "pods/resize"),
    # The API server itself writes resourcequotas/status inside every create that it charges.
    "validate": ("*", "pods/resize", "pods/ephemeralcontainers", "persistentvolumeclaims/status"),
}
_ADDRESS_PARTS: Final = 4
"""Of the path in an address: admission, cluster, credential, phase."""
MOST_SHOWN: Final = 40
"""Characters of a live value in a difference."""
_REVIEW_GROUPS: Final = "['authorization.k8s.io', 'authentication.k8s.io']"
_CLUSTER_NOISE: Final = (
    "request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases' || "
    "request.resource.group == '' && request.resource.resource == 'endpoints' || "
    "request.resource.group == 'discovery.k8s.io' && request.resource.resource == 'endpointslices'"
)
_CONDITIONS: Final = {
    "not-events": "request.resource.resource != 'events' || "
    "!(request.resource.group in ['', 'events.k8s.io'])",
    "not-reviews": f"!(request.resource.group in {_REVIEW_GROUPS})",
    "not-heartbeats": f"request.operation != 'UPDATE' || !({_CLUSTER_NOISE})",
}
_MUTATING_CONDITIONS: Final = {
    # Metadata policies change neither policies nor the cluster's own bookkeeping.
    "not-policies": "!(request.resource.resource in ['limitranges', 'resourcequotas'] && "
    "request.resource.group == '') && request.resource.group != 'policy.gatehouse.dev'",
    "not-made-by-the-cluster": f"!({_CLUSTER_NOISE})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookClientConfig:
    """How a cluster calls the portal: address, the credential in its path, certificate authority.

    ``ca`` is PEM; without it the API server uses the authorities of its own machine.
    """

    portal_url: str = ""
    key: str = field(default=NO_KEY, repr=False)
    ca: bytes = b""

    @property
    def address(self) -> str:
        """The portal's address, by default the setting's."""
        return (self.portal_url or settings.GATEHOUSE_EXTERNAL_URL).rstrip("/")


def webhooks(cluster: Cluster, config: WebhookClientConfig | None = None) -> list[dict[str, Any]]:
    """Make the mutating and the validating configuration of a cluster."""
    client_config = config or WebhookClientConfig()
    return [_configuration(cluster, client_config, phase) for phase in _KIND_OF_PHASE]


def differences(cluster: Cluster, live: Mapping[str, Any]) -> list[str]:
    """List the differences that matter in a live configuration.

    Host, credential and authority may differ: the installer chooses them, and the canary shows
    whether the portal is called.
    """
    phase = next(phase for phase, kind in _KIND_OF_PHASE.items() if kind == live.get("kind"))
    live_webhooks = {
        one.get("name"): one for one in live.get("webhooks") or [] if isinstance(one, dict)
    }
    wanted_configuration = _configuration(cluster, WebhookClientConfig(), phase)
    wanted_webhooks = {webhook["name"]: webhook for webhook in wanted_configuration["webhooks"]}
    changed = [f"{name} is not ours" for name in live_webhooks if name not in wanted_webhooks]
    for name, webhook in wanted_webhooks.items():
        changed += _webhook_differences(webhook, live_webhooks.get(name))
    return changed


def key_in(live: Mapping[str, Any]) -> str:
    """The credential in a live configuration's address; empty if there is none."""
    for webhook in live.get("webhooks") or []:
        address_path = _address_path(webhook)
        if len(address_path) == _ADDRESS_PARTS and address_path[0] == "admission":
            return unquote(address_path[2])
    return ""


def left_out(cluster: Cluster) -> tuple[str, ...]:
    """The namespaces that no webhook of the cluster covers."""
    names = excluded_namespaces(cluster)
    return tuple(name for name in names if name != KUBE_SYSTEM or not cluster.covers_kube_system)


def left_out_by(live: Mapping[str, Any]) -> list[str]:
    """The namespaces that the webhooks of an installed validating configuration leave out by name.

    It may have been installed before the cluster's settings changed.
    """
    names: dict[str, set[str]] = {"In": set(), "NotIn": set()}
    for webhook in live.get("webhooks") or []:
        selector = webhook.get("namespaceSelector") or {}
        for expression in selector.get("matchExpressions") or []:
            if expression["key"] == _NAME_LABEL and expression["operator"] in names:
                names[expression["operator"]].update(expression["values"])
    return sorted(names["NotIn"] - names["In"])


def excluded_namespaces(cluster: Cluster) -> tuple[str, ...]:
    """The namespaces that the webhooks with the cluster's failure policy exclude, each once."""
    names = (*ALWAYS_OUT, cluster.portal_namespace, *sorted(cluster.excluded_namespaces))
    return tuple(dict.fromkeys(names))


def _configuration(cluster: Cluster, config: WebhookClientConfig, phase: str) -> dict[str, Any]:
    without = {"operator": "NotIn", "values": [*excluded_namespaces(cluster)]}
    webhook_entries = [_webhook(cluster, config, phase, without)]
    if cluster.covers_kube_system:
        kube_system_only = {"operator": "In", "values": [KUBE_SYSTEM]}
        # A portal that is down must never keep the cluster from recovering.
        open_one = {**_webhook(cluster, config, phase, kube_system_only), "failurePolicy": "Ignore"}
        webhook_entries.append({**open_one, "name": f"{phase}-{KUBE_SYSTEM}.gatehouse.dev"})
    if phase == "validate":
        webhook_entries.append(_hint_webhook(cluster, config))
    return {
        "apiVersion": _WEBHOOK_API,
        "kind": _KIND_OF_PHASE[phase],
        "metadata": {
            "name": CONFIGURATION,
            "labels": {"app.kubernetes.io/managed-by": "gatehouse"},
        },
        "webhooks": webhook_entries,
    }


def _webhook(
    cluster: Cluster, config: WebhookClientConfig, phase: str, namespaces: dict[str, Any]
) -> dict[str, Any]:
    is_mutating = phase == "mutate"
    conditions = {**_CONDITIONS, **(_MUTATING_CONDITIONS if is_mutating else {})}
    # All fields that the API server would default are explicit, so that live ones compare equal.
    webhook = {
        "name": f"{phase}.gatehouse.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client_config(cluster, config, phase),
        # The validating webhook judges the final object, whatever the mutating one did.
        "failurePolicy": "Ignore" if is_mutating else str(cluster.failure_policy),
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": TIMEOUT,
        "namespaceSelector": {"matchExpressions": [{"key": _NAME_LABEL, **namespaces}]},
        "objectSelector": {},
        "matchConditions": _match_conditions(conditions),
        "rules": [
            {
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": list(_RESOURCES_OF_PHASE[phase]),
                "scope": "Namespaced",
            }
        ],
    }
    return {**webhook, "reinvocationPolicy": "IfNeeded"} if is_mutating else webhook


def _hint_webhook(cluster: Cluster, config: WebhookClientConfig) -> dict[str, Any]:
    """Tell the portal of writes that it never refuses: an outage of it must not block them."""
    # Namespaces are selected by their own labels; the API server itself sets this one.
    selector = {"operator": "NotIn", "values": [*left_out(cluster)]}
    return {
        **_webhook(cluster, config, "validate", selector),
        "name": f"{_HINT}.gatehouse.dev",
        "clientConfig": _client_config(cluster, config, _HINT),
        "failurePolicy": "Ignore",
        "timeoutSeconds": HINT_TIMEOUT,
        "matchConditions": _match_conditions(_HINT_CONDITIONS),
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": ["*"],
                "operations": list(operations),
                "resources": list(resources),
                "scope": scope,
            }
            for group, operations, resources, scope in _HINTED_RULES
        ],
    }


def _client_config(cluster: Cluster, config: WebhookClientConfig, path: str) -> dict[str, Any]:
    key = quote(config.key, safe="")
    client: dict[str, Any] = {"url": f"{config.address}/admission/{cluster.name}/{key}/{path}"}
    if config.ca:
        client["caBundle"] = base64.b64encode(config.ca).decode()
    return client


def _match_conditions(conditions: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in conditions.items()]


def _webhook_differences(wanted: Mapping[str, Any], live: Mapping[str, Any] | None) -> list[str]:
    name = wanted["name"]
    if live is None:
        return [f"{name} is missing"]
    webhook_changes = [
        f"{name}: {field} {_difference_in_words(value, live.get(field))}"
        for field, value in wanted.items()
        if field not in ("clientConfig", "objectSelector") and live.get(field) != value
    ]
    if live.get("objectSelector"):
        webhook_changes.append(f"{name}: objectSelector lets objects choose not to be judged")
    our_path, their_path = _address_path(wanted), _address_path(live)
    if [*their_path[:2], *their_path[3:]] != [*our_path[:2], *our_path[3:]]:
        webhook_changes.append(f"{name}: clientConfig leads elsewhere")
    return webhook_changes


def _difference_in_words(wanted: object, live: object) -> str:
    is_short = all(isinstance(value, str | int) for value in (wanted, live))
    return f"is {str(live)[:MOST_SHOWN]}, not {wanted}" if is_short else "is not as it must be"


def _address_path(webhook: Mapping[str, Any]) -> list[str]:
    """Split the address's path: admission, cluster, credential, phase."""
    address = (webhook.get("clientConfig") or {}).get("url")
    return urlsplit(address).path.strip("/").split("/") if isinstance(address, str) else []
