"""``begin_demo``: demo clusters seeded, one for each YAML file here; the demo credential kept."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import timezone

from policies import services, snapshot
from policies.manifests.import_bundle import Author
from policies.models import Cluster
from portal.dev.demo import connected
from portal.dev.demo.plot import BEGAN, at
from portal.dev.demo.story import import_file, write_story
from portal.machine import write_private

HERE: Final = Path(__file__).resolve().parent
CLUSTER: Final = "demo"
USER: Final = "demo"


def begin_demo() -> list[str]:
    """Create missing demo clusters, with a month of history if all were missing.

    Returns the names of the new ones.
    """
    new_clusters = seed_demo()
    if len(new_clusters) == len(list(HERE.glob("*.yaml"))):
        write_story()
    return new_clusters


def seed_demo() -> list[str]:
    """Create missing demo clusters; returns the names of the new ones.

    Existing ones stay as they are: people edit their demo policies.
    """
    new_clusters = []
    for yaml in sorted(HERE.glob("*.yaml")):
        if Cluster.objects.filter(name=yaml.stem).exists():
            continue
        cluster = Cluster(name=yaml.stem, description="Made to try things out; delete it at will.")
        with at(timezone.now() - BEGAN):
            services.save_cluster(cluster=cluster, user=USER, reason="demo data")
            import_file(yaml, cluster=cluster, author=Author(user=USER, reason="demo data"))
        if yaml.stem == connected.NAME:
            connected.pretend_connected(cluster)
        new_clusters.append(yaml.stem)
    return new_clusters


def demo_credential() -> str:
    """The webhook credential of the demo cluster, kept in the data folder (mode 600)."""
    # The database has only its digest, so a lost or revoked credential is replaced.
    credential_file = Path(settings.GATEHOUSE_VAR) / "demo-credential"
    if credential_file.exists():
        secret = credential_file.read_text(encoding="utf-8").strip()
        if snapshot.authenticate(CLUSTER, secret) == snapshot.Authentication.OK:
            return secret
    cluster = Cluster.objects.get(name=CLUSTER)
    label = f"demo {secrets.token_hex(3)}"
    _, secret = services.issue_webhook_credential(cluster=cluster, label=label, user=USER)
    write_private(credential_file, secret)
    return secret
