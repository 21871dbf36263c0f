"""Table ClusterConnection: server, certificates, sealed secret, pause, state, probed findings."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models.cluster import Cluster


class ClusterConnection(models.Model):
    """One cluster's API server, its sealed credential, and the findings of the last test.

    ``sealed`` opens only with the sync worker's private key: the processes that write it cannot
    read it.
    """

    class Method(models.TextChoices):
        """How the portal proves who it is."""

        TOKEN = "token"  # noqa: S105 - the name of a method
        CERTIFICATE = "certificate"

    class State(models.TextChoices):
        """Whether the API server lets us work; the last three need a person."""

        NEW = "new"
        OK = "ok"
        UNREACHABLE = "unreachable"
        UNAUTHORIZED = "unauthorized"
        FORBIDDEN = "forbidden"
        UNTRUSTED = "untrusted"

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="connection")
    server = models.CharField(max_length=500)
    authority_certificates = models.TextField(blank=True, help_text="of the API server, PEM")
    tls_server_name = models.CharField(
        max_length=253,
        blank=True,
        help_text="name in the server's certificate, if it is not the host",
    )
    method = models.CharField(max_length=11, choices=Method)
    certificate = models.TextField(
        blank=True, help_text="client certificate, PEM; its key is sealed"
    )
    sealed = models.BinaryField(editable=False)
    key_id = models.CharField(max_length=64, editable=False)
    credential_expires = models.DateTimeField(
        null=True, blank=True, help_text="if the credential itself states it"
    )
    # Counts the credentials: findings of a test are stored only for those that it tested.
    generation = models.PositiveIntegerField(default=1, editable=False)
    is_paused = models.BooleanField(default=False)
    paused_since = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=254, blank=True)
    pause_reason = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.NEW)
    message = models.TextField(blank=True)
    since = models.DateTimeField(null=True, blank=True)
    tested = models.DateTimeField(null=True, blank=True)
    server_version = models.CharField(max_length=100, blank=True)
    cluster_uid = models.CharField(
        max_length=64, blank=True, help_text="UID of namespace kube-system"
    )
    clock_skew = models.FloatField(
        null=True, blank=True, help_text="seconds ahead of the portal's clock"
    )
    missing_permissions = models.JSONField(default=list, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["cluster_id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(method__in=["token", "certificate"]), name="connection_method_known"
            ),
            models.CheckConstraint(
                condition=Q(server__startswith="https://"), name="connection_is_encrypted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.server}"
