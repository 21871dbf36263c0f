"""``POST /api/v1/simulations/classrestarts/``: pods that a class's new version would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.explain.class_restarts import PolicyChange, restarts_of_changes
from policies import roles
from policies.api.bodies import answer_to
from policies.api.classes.serializers import NamespaceClassSerializer
from policies.api.classes.views import previewed
from policies.openapi import Answered
from policies.rest import KnownParameters, ManifestParser

if TYPE_CHECKING:
    from rest_framework.request import Request


class NamespaceRestartsSerializer(Answered, serializers.Serializer[Any]):
    """Pods of one namespace that could not restart, and could today."""

    cluster = serializers.CharField()
    namespace = serializers.CharField()
    refused = serializers.IntegerField()
    message = serializers.CharField(help_text="the first reason")


class ClassRestartsSerializer(Answered, serializers.Serializer[Any]):
    """The running pods of the namespaces that a version would change."""

    pods = serializers.IntegerField(help_text="that were evaluated")
    refused = serializers.IntegerField(help_text="that could not restart, and could today")
    unknown = serializers.IntegerField(help_text="whose manifest is not on record as a whole")
    evaluated = serializers.IntegerField(help_text="namespaces")
    skipped = serializers.IntegerField(help_text="namespaces, of too many")
    rows = NamespaceRestartsSerializer(many=True)


class ClassRestartsView(KnownParameters, APIView):
    """Evaluate running pods as if recreated under a class's new version; stores nothing."""

    permission_classes = [IsAuthenticated]
    parser_classes = [ManifestParser]
    stores_nothing = True
    """A token to read may send it."""

    def handle_exception(self, exc: Exception) -> Response:
        """Answer what is wrong with the class by its field."""
        return answer_to(exc) or super().handle_exception(exc)

    @extend_schema(request=NamespaceClassSerializer, responses=ClassRestartsSerializer)
    def post(self, request: Request) -> Response:
        """Return the pods that could not restart."""
        if not roles.sees_all(request.user):
            raise PermissionDenied
        changes = [
            PolicyChange(
                cluster=each.cluster, namespace=each.key[1], before=each.before, after=each.after
            )
            for each in previewed(request.data).effects
        ]
        return Response(ClassRestartsSerializer(restarts_of_changes(changes)).data)
