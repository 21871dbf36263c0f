"""`manage.py webhook_credential`: its options; credentials issued, listed, revoked; addresses."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from policies import services
from policies.management.console import USAGE, Console, find_cluster, user_of
from policies.models import Cluster, WebhookCredential

if TYPE_CHECKING:
    from argparse import ArgumentParser

_HELP = """\
Issue, list and revoke the credentials with which a cluster's API server authenticates.

  manage.py webhook_credential prod                        list them
  manage.py webhook_credential prod --issue "2026, first"  issue one; its secret is shown this once
  manage.py webhook_credential prod --revoke 3             revoke number 3
  manage.py webhook_credential prod --create --issue first make the cluster, too

Several may be valid at once: issue the next, change the webhook's URL, revoke the old one.
"""


class Command(Console):
    """``manage.py webhook_credential``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("cluster", help="the cluster's name")
        add("--create", action="store_true", help="create the cluster if it does not exist")
        add("--issue", metavar="LABEL", default="", help="issue a credential")
        add("--days", type=int, default=0, help="let it expire after this number of days")
        add("--revoke", metavar="NUMBER", type=int, help="revoke a credential")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Issue, revoke or list."""
        credential_user = user_of()
        # Scripts read the secret from standard output: everything else goes to standard error.
        self.report = self.stderr.write if options["issue"] else self.stdout.write
        cluster_name = options["cluster"]
        if options["create"] and not Cluster.objects.filter(name=cluster_name).exists():
            services.save_cluster(cluster=Cluster(name=cluster_name), user=credential_user)
            self.report(f"created: cluster {cluster_name}")
        cluster = find_cluster(cluster_name)
        if options["issue"]:
            expires = timezone.now() + timedelta(days=options["days"]) if options["days"] else None
            _, secret = services.issue_webhook_credential(
                cluster=cluster, label=options["issue"], user=credential_user, expires=expires
            )
            self.stdout.write(secret)
            self._print_addresses(cluster)
        elif options["revoke"]:
            services.revoke_webhook_credential(
                credential=_credential(cluster, options["revoke"]), user=credential_user
            )
            self.stdout.write(f"revoked: {options['revoke']}")
        else:
            if options["create"]:
                self._print_addresses(cluster)
            for credential in WebhookCredential.objects.filter(cluster=cluster):
                self.stdout.write(_credential_line(credential))

    def _print_addresses(self, cluster: Cluster) -> None:
        """Print the addresses of the cluster's webhooks, and whether it needs a credential."""
        webhook_address = f"{settings.GATEHOUSE_EXTERNAL_URL}/admission/{cluster.name}"
        self.report(f"webhook addresses: {webhook_address}/mutate and {webhook_address}/validate")
        if not WebhookCredential.objects.filter(cluster=cluster).exists():
            self.report(f"no credential yet: webhook_credential {cluster.name} --issue LABEL")


def _credential(cluster: Cluster, number: int) -> WebhookCredential:
    numbered_credential = WebhookCredential.objects.filter(cluster=cluster, pk=number).first()
    if numbered_credential is None:
        raise CommandError(f"cluster {cluster.name} has no credential {number}", returncode=USAGE)
    return numbered_credential


def _credential_line(credential: WebhookCredential) -> str:
    credential_state = "revoked" if credential.revoked else "valid"
    if credential.expires is not None and credential.expires <= timezone.now():
        credential_state = "expired"
    return f"{credential.pk}\t{credential_state}\t{credential.created:%Y-%m-%d}\t{credential.label}"
