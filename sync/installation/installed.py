"""What is there already when a cluster's manifests are applied: the credential that it uses."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from django.db.models import Q

from policies.ledger import read_clock
from policies.models import WebhookCredential
from sync.connect.permissions import CONFIGURATION
from sync.installation.configurations import key_in

if TYPE_CHECKING:
    from policies.models import Cluster
    from sync.client import Client
    from sync.installation.configurations import Asking


def present_key(cluster: Cluster, client: Client) -> str:
    """Read the credential with which a cluster asks now; empty where none is valid."""
    live = client.get("ValidatingWebhookConfiguration", CONFIGURATION)
    key = key_in(live) if live else ""
    return key if key and is_valid(cluster, key) else ""


def is_valid(cluster: Cluster, key: str) -> bool:
    """Whether a key is a credential of the cluster that is neither revoked nor expired."""
    good = Q(expires=None) | Q(expires__gt=read_clock())
    digest = WebhookCredential.digest_of(key)
    found = WebhookCredential.objects.filter(good, cluster=cluster, digest=digest, revoked=None)
    return found.exists()


def with_key(asking: Asking, key: str) -> Asking:
    """Ask with a credential."""
    return dataclasses.replace(asking, key=key)
