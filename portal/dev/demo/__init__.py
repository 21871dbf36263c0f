"""Demo data: each manifest file beside this module is a cluster of that name."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import timezone

from policies import services, snapshot
from policies.manifests.bundle import read_bundle
from policies.manifests.import_bundle import Author, import_bundle
from policies.manifests.sources import read_sources
from policies.models import Cluster
from portal.dev.demo import connected
from portal.dev.demo.plot import BEGAN, at
from portal.dev.demo.story import write_story
from portal.machine import write_private

HERE: Final = Path(__file__).resolve().parent
CLUSTER: Final = "demo"
USER: Final = "demo"


def begin_demo() -> list[str]:
    """Make the demo clusters that are not there yet, with a month behind them if none was there.

    Returns the names of the new ones.
    """
    made = seed_demo()
    if len(made) == len(list(HERE.glob("*.yaml"))):
        write_story()
    return made


def seed_demo() -> list[str]:
    """Make the demo clusters that are not there yet; returns the names of the new ones.

    What exists is left as it is: people edit their demo policies.
    """
    made = []
    for path in sorted(HERE.glob("*.yaml")):
        if not Cluster.objects.filter(name=path.stem).exists():
            _seed(path)
            made.append(path.stem)
    return made


def _seed(path: Path) -> None:
    cluster = Cluster(name=path.stem, description="Made to try things out; delete it at will.")
    with at(timezone.now() - BEGAN):
        services.save_cluster(cluster=cluster, user=USER, reason="demo data")
        author = Author(user=USER, reason="demo data")
        import_bundle(
            read_bundle(read_sources([str(path)])),
            cluster=cluster,
            author=author,
            create_namespaces=True,
        )
    if path.stem == connected.NAME:
        connected.pretend_connected(cluster)


def demo_credential() -> str:
    """The secret with which the demo cluster asks, kept in the data folder (mode 600).

    Only its digest is stored in the database, so a lost or revoked one is replaced.
    """
    path = Path(settings.GATEHOUSE_VAR) / "demo-credential"
    if path.exists():
        secret = path.read_text(encoding="utf-8").strip()
        if snapshot.authenticate(CLUSTER, secret) == snapshot.Authentication.OK:
            return secret
    cluster = Cluster.objects.get(name=CLUSTER)
    label = f"demo {secrets.token_hex(3)}"
    _, secret = services.issue_webhook_credential(cluster=cluster, label=label, user=USER)
    write_private(path, secret)
    return secret
