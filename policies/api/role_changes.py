"""REST view of the history of roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework import mixins, serializers, viewsets

from policies import roles
from policies.models import RoleChange

if TYPE_CHECKING:
    from django.db.models import QuerySet


class RoleChangeSerializer(serializers.ModelSerializer[RoleChange]):
    """One role given or taken back."""

    class Meta:
        model = RoleChange
        fields = ["id", "created", "action", "subject", "role", "cluster", "namespace", "actor"]


class RoleChangeView(mixins.ListModelMixin, viewsets.GenericViewSet[RoleChange]):
    """What was given and taken back, the newest first; for those who see the whole fleet."""

    queryset = RoleChange.objects.all()
    serializer_class = RoleChangeSerializer

    def get_queryset(self) -> QuerySet[RoleChange]:
        """Everything, or nothing."""
        found = super().get_queryset()
        return found if roles.sees_all(self.request.user) else found.none()
