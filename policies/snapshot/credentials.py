"""Find the cluster of a presented credential."""

from __future__ import annotations

import hmac
from enum import StrEnum

from django.utils import timezone

from policies.models import WebhookCredential


class Authentication(StrEnum):
    """What came of a presented secret."""

    OK = "ok"
    UNKNOWN = "unknown"
    OTHER_CLUSTER = "other-cluster"


def authenticate(cluster: str, secret: str) -> Authentication:
    """Say whether the secret is a valid one of this cluster, of another one, or of none.

    One query, whatever the outcome; only the keyed digest is looked for.
    """
    digest = WebhookCredential.digest_of(secret)
    found = (
        WebhookCredential.objects.filter(digest=digest, revoked=None)
        .select_related("cluster")
        .first()
    )
    if found is None or not hmac.compare_digest(found.digest, digest):
        return Authentication.UNKNOWN
    if found.expires is not None and found.expires <= timezone.now():
        return Authentication.UNKNOWN
    own = hmac.compare_digest(found.cluster.name.encode(), cluster.encode(errors="replace"))
    return Authentication.OK if own else Authentication.OTHER_CLUSTER
