"""SetupView: the steps behind the connection: manifest, webhooks seen, ownership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from django.conf import settings
from django.http import Http404, HttpResponse
from django.utils import timezone

from policies import services
from policies.manifests.render import render_documents
from portal.pages.clusters.connect.steps import wizard_steps
from portal.pages.views import ClusterPage
from sync.installation.manifests import WebhookClientConfig, manifests, with_key
from sync.models import SyncOwnership

if TYPE_CHECKING:
    from django.http import HttpRequest

ISSUING: Final = "policies.add_webhookcredential"
_LONGEST_AUTHORITY: Final = 64 * 1024


class SetupView(ClusterPage):
    """What a connected cluster still lacks; the form downloads its manifest, once."""

    template_name = "clusters/setup.html"
    permission = ISSUING

    def find(self, names: dict[str, Any]) -> None:
        """Only for clusters that are connected."""
        super().find(names)
        if not hasattr(self.cluster, "connection"):
            raise Http404

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The steps with what is known of each."""
        health = getattr(self.cluster, "webhook_health", None)
        seen = health.last_refused if health else None
        is_owned = SyncOwnership.objects.filter(cluster=self.cluster).exists()
        done = {"webhooks"} if seen else set()
        done |= {"ownership"} if is_owned else set()
        current = "manifest" if not seen else "ownership"
        return super().get_context_data(
            **kwargs,
            steps=wizard_steps(
                current=current,
                done=frozenset(done),
                words={"paste": "kept sealed", "test": "passed"}
                | ({"webhooks": "the canary is refused"} if seen else {})
                | ({"ownership": "taken"} if is_owned else {}),
            ),
            seen=seen,
            is_owned=is_owned,
            is_https=urlsplit(settings.GATEHOUSE_EXTERNAL_URL).scheme == "https",
            portal_url=settings.GATEHOUSE_EXTERNAL_URL,
            may_own=self.may("sync.add_syncownership"),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Issue a credential, and answer with the manifests that carry it."""
        authority = request.POST.get("authority", "").strip().encode()[:_LONGEST_AUTHORITY]
        try:
            if authority:
                x509.load_pem_x509_certificates(authority)
        except ValueError:
            page = self.get_context_data(wrong="This is not a PEM file of certificates.")
            return self.render_to_response(page, status=422)
        config = WebhookClientConfig(portal_url=settings.GATEHOUSE_EXTERNAL_URL, ca=authority)
        if urlsplit(config.portal_url).scheme != "https":
            page = self.get_context_data(wrong="API servers call webhooks by https only.")
            return self.render_to_response(page, status=422)
        label = f"manifest, {timezone.now():%Y-%m-%d %H:%M}"
        _, secret = services.issue_webhook_credential(
            cluster=self.cluster, label=label, user=self.username
        )
        text = render_documents(manifests(self.cluster, with_key(config, secret)))
        name = f"gatehouse-{self.cluster.name}.yaml"
        return HttpResponse(
            text,
            content_type="application/yaml",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
