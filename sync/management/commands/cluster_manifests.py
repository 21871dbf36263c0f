"""`manage.py cluster_manifests`: its options; manifests printed or applied, key issued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cryptography import x509
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from engine.policy import Authority
from policies import services
from policies.management.console import FINDINGS, USAGE, Console, add_user, find_cluster, user_of
from policies.manifests.documents import ManifestError
from policies.manifests.render import render_documents
from policies.manifests.sources import read_sources
from policies.models import Cluster
from sync.client import Client
from sync.connect import kubeconfig
from sync.connect.connections import open_client
from sync.connect.permissions import Rights, manifest_grants, parse_resource, remark_on
from sync.errors import APIError
from sync.installation.manifests import (
    WebhookClientConfig,
    is_valid_key,
    manifests,
    present_key,
    token_secret,
    with_key,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from sync.connect.permissions import Grant

_HELP = """\
Print the manifests that a cluster needs: the portal's account with its permissions, the
MetadataPolicy resource, the two webhook configurations. An administrator of the cluster applies
them:

  manage.py cluster_manifests prod --ca-file ca.crt | kubectl apply --server-side -f -
  manage.py cluster_manifests prod --ca-file ca.crt --apply --kubeconfig admin.kubeconfig

The account may list and watch whatever quotas can count, so that a new quota needs no new
manifests (--rights narrow: only what quotas count now). Secrets and custom resources are left out,
since to list them is to read them: the account gets them in the namespaces whose quotas count them
now, or in all namespaces by choice. Name all choices each time:

  manage.py cluster_manifests prod --ca-file ca.crt --count widgets.example.com --count secrets

The address of the webhooks carries a credential of the cluster. Printing issues a new one, unless
--key-file names a file with one; --apply goes on using the one that the cluster has.
Exit code 0: done; 1: the cluster refused something, or cannot be reached; 2: wrong usage.
"""


class Command(Console):
    """``manage.py cluster_manifests``."""

    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add = parser.add_argument
        add("cluster", help="the cluster's name")
        add("--create", action="store_true", help="create the cluster; its own plugins enforce")
        add("--portal-url", default="", help="where the cluster reaches the portal, https")
        add("--ca-file", metavar="FILE", help="the authority of the portal's certificate, PEM")
        add("--portal-namespace", default="", help="of its account there; kept, never judged")
        add(
            "--failure-policy",
            choices=Cluster.FailurePolicy.values,
            default="",
            help="while the portal is down: refuse all (Fail), or let in what nobody else refuses "
            "(Ignore); kept (a new cluster: Fail)",
        )
        add(
            "--rights",
            choices=[each.value for each in Rights],
            default=Rights.WIDE.value,
            help="to list all that quotas can count, or what they count now (default: %(default)s)",
        )
        add(
            "--count",
            action="append",
            default=[],
            metavar="RESOURCE",
            help="let it list this in all namespaces: secrets, widgets.example.com; repeatable",
        )
        add("--key-file", metavar="FILE|-", help="a file with a credential that was issued before")
        add("--token-secret", action="store_true", help="add a token that does not expire")
        add("--apply", action="store_true", help="write to the cluster instead of printing")
        add("--kubeconfig", metavar="FILE|-", help="an administrator's, for --apply; not stored")
        add("--context", default="", help="a context of that file")
        add("--force-conflicts", action="store_true", help="take over fields of other managers")
        add("-o", "--output", choices=["yaml", "json"], default="yaml", help="how to print")
        add_user(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print or apply."""
        cluster = _prepared_cluster(options)
        options["grants"] = _grants(cluster, options)
        self.stderr.write(remark_on(options["grants"]))
        try:
            config = _client_config(cluster, options)
            if options["apply"]:
                self._apply(cluster, config, options)
            else:
                self._print(cluster, config, options)
        except ManifestError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except kubeconfig.KubeconfigError as error:
            raise CommandError(str(error), returncode=USAGE) from None
        except APIError as error:
            raise CommandError(f"{error.message} ({error.reason})", returncode=FINDINGS) from error

    def _print(
        self, cluster: Cluster, config: WebhookClientConfig, options: dict[str, Any]
    ) -> None:
        config = config if options["key_file"] else self._with_new_key(cluster, config, options)
        wanted = _wanted_manifests(cluster, config, options)
        if options["output"] == "json":
            whole = {"apiVersion": "v1", "kind": "List", "items": wanted}
            self.stdout.write(json.dumps(whole, indent=2))
        else:
            comment = "".join(f"# {line}\n" for line in remark_on(options["grants"]).splitlines())
            self.stdout.write(comment + render_documents(wanted), ending="")

    def _apply(
        self, cluster: Cluster, config: WebhookClientConfig, options: dict[str, Any]
    ) -> None:
        if options["kubeconfig"]:
            text = read_sources([options["kubeconfig"]])[0].text
            opened = Client(kubeconfig.parse(text, context=options["context"]))
        else:
            opened = open_client(cluster)
        with opened as client:
            if not options["key_file"]:
                key = present_key(cluster, client)
                config = (
                    with_key(config, key) if key else self._with_new_key(cluster, config, options)
                )
            for manifest in _wanted_manifests(cluster, config, options):
                client.apply(manifest, force=options["force_conflicts"])
                name = manifest["metadata"]["name"]
                self.stdout.write(f"{manifest['kind']} {name}: applied")

    def _with_new_key(
        self, cluster: Cluster, config: WebhookClientConfig, options: dict[str, Any]
    ) -> WebhookClientConfig:
        label = f"cluster manifests, {timezone.now():%Y-%m-%d %H:%M}"
        made, secret = services.issue_webhook_credential(
            cluster=cluster, label=label, user=_user(options)
        )
        self.stderr.write(
            f"issued credential {made.pk}; manage.py webhook_credential {cluster.name} lists them, "
            "revoke those that no cluster uses any more"
        )
        return with_key(config, secret)


def _user(options: dict[str, Any]) -> str:
    return user_of(options["user"])


def _prepared_cluster(options: dict[str, Any]) -> Cluster:
    name = options["cluster"]
    if options["create"] and not Cluster.objects.filter(name=name).exists():
        made = Cluster(name=name, authority=Authority.NATIVE)
        services.save_cluster(cluster=made, user=_user(options))
    cluster, namespace = find_cluster(name), options["portal_namespace"]
    # Both are stored, since the health check compares the live configurations with them.
    if failure_policy := options["failure_policy"]:
        services.set_failure_policy(
            cluster=cluster, failure_policy=failure_policy, user=_user(options)
        )
    if namespace in ("", cluster.portal_namespace):
        return cluster
    cluster.portal_namespace = namespace
    try:
        services.save_cluster(cluster=cluster, user=_user(options))
    except ValidationError as error:
        text = f"{namespace} cannot be a namespace: {'; '.join(error.messages)}"
        raise CommandError(text, returncode=USAGE) from error
    return cluster


def _grants(cluster: Cluster, options: dict[str, Any]) -> tuple[Grant, ...]:
    try:
        chosen = [parse_resource(text) for text in options["count"]]
    except ValueError as error:
        raise CommandError(f"--count: {error}", returncode=USAGE) from error
    return manifest_grants(cluster, rights=Rights(options["rights"]), chosen=chosen)


def _wanted_manifests(
    cluster: Cluster, config: WebhookClientConfig, options: dict[str, Any]
) -> list[dict[str, Any]]:
    wanted = manifests(cluster, config, options["grants"])
    if options["token_secret"]:
        # After its ServiceAccount: the API server rejects a token Secret without one.
        wanted.insert(3, token_secret(cluster))
    return wanted


def _client_config(cluster: Cluster, options: dict[str, Any]) -> WebhookClientConfig:
    """Read how the cluster calls the portal; raises CommandError for an address without https."""
    address = options["portal_url"] or settings.GATEHOUSE_EXTERNAL_URL
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
        text = f"{address} is no https address: give --portal-url, or set GATEHOUSE_EXTERNAL_URL"
        raise CommandError(text, returncode=USAGE)
    config = WebhookClientConfig(portal_url=address, ca=_authority_pem(options["ca_file"]))
    if not options["key_file"]:
        return config
    secret = read_sources([options["key_file"]])[0].text.strip()
    if not is_valid_key(cluster, secret):
        text = f"what {options['key_file']} holds is no valid credential of {cluster.name}"
        raise CommandError(text, returncode=USAGE)
    return with_key(config, secret)


def _authority_pem(name: str | None) -> bytes:
    if not name:
        return b""
    try:
        pem = Path(name).read_bytes()
        x509.load_pem_x509_certificates(pem)
    except (OSError, ValueError) as error:
        text = f"{name} cannot be used: give a PEM file of certificates"
        raise CommandError(text, returncode=USAGE) from error
    return pem
