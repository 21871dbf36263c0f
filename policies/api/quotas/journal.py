"""``GET /api/v1/resourcequotas/ID/journal/``: the ledger's entries of one quota, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.shortcuts import get_object_or_404
from rest_framework import mixins, serializers, viewsets
from rest_framework.permissions import IsAuthenticated

from policies import roles
from policies.api.access import OF_NAMESPACES
from policies.filters import LedgerEntryFilter
from policies.ledger.entries import entries_of
from policies.lists.members import PicksMembers
from policies.lists.selection import ApiPagination, FilterBackend, StableOrdering
from policies.models import LedgerEntry, ResourceQuota
from policies.openapi import TEXT_MAP, Answered, DescribedField
from policies.rest import KnownParameters

if TYPE_CHECKING:
    from django.db.models import QuerySet

_OF_NAMESPACES: Final[dict[str, Any]] = dict(OF_NAMESPACES)


class LedgerEntrySerializer(Answered, serializers.ModelSerializer[LedgerEntry]):
    """One change of what a quota is charged for an object; in a recount, of what it uses."""

    before = DescribedField(TEXT_MAP, read_only=True)
    after = DescribedField(TEXT_MAP, read_only=True)

    class Meta:
        model = LedgerEntry
        fields: ClassVar = [
            "id", "created", "action", "resource", "object_uid", "object_name", "before", "after",
            "cause", "reference",
        ]  # fmt: skip


class QuotaJournalView(
    PicksMembers, KnownParameters, mixins.ListModelMixin, viewsets.GenericViewSet[LedgerEntry]
):
    """How a quota reached its used amounts."""

    queryset = LedgerEntry.objects.all()
    serializer_class = LedgerEntrySerializer
    permission_classes = [IsAuthenticated]
    filter_backends = [FilterBackend, StableOrdering]
    filterset_class = LedgerEntryFilter
    pagination_class = ApiPagination
    ordering_fields = ("created", "object_name")

    def get_queryset(self) -> QuerySet[LedgerEntry]:
        """The entries of the quota, if it may be seen."""
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        seen = roles.visible(ResourceQuota.objects.all(), self.request.user, **_OF_NAMESPACES)
        quota = get_object_or_404(seen.select_related("namespace"), pk=self.kwargs["quota"])
        return entries_of(quota.namespace.cluster_id, quota.uid)
