"""``/api/v1/rolebindings/``: roles listed, given and taken back, as the page of people does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import F
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from policies import roles, services
from policies.api.past.bindings import BindingOfThen, narrowed, seen_bindings
from policies.api.past.filter import require_answerable
from policies.api.past.reads import TakesInstant
from policies.api.recorded_view import PolicyView
from policies.filters import RoleBindingFilter
from policies.history import at_parameter
from policies.models import RoleBinding
from policies.openapi import Answered

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request


class RoleBindingSerializer(Answered, serializers.Serializer[RoleBinding]):
    """A role of one user or one group in one scope."""

    id = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="null where ?dryRun=All shows a new object, or ?at= one that is taken back since",
    )
    user = serializers.CharField(
        required=False, allow_blank=True, max_length=150, help_text="this or group, not both"
    )
    group = serializers.CharField(required=False, allow_blank=True, max_length=150)
    role = serializers.ChoiceField(RoleBinding.Role.choices)
    cluster = serializers.CharField(
        required=False, allow_blank=True, max_length=253, help_text="empty: every cluster"
    )
    namespace = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=63,
        help_text="a name, or a prefix and *; empty: the whole cluster",
    )
    created = serializers.DateTimeField(read_only=True)
    created_by = serializers.CharField(read_only=True)

    def to_representation(self, instance: RoleBinding | BindingOfThen) -> dict[str, Any]:
        """Show the names of user and group, empty where the other is the subject."""
        if isinstance(instance, BindingOfThen):
            names = ("user", "group", "role", "cluster", "namespace", "created_by")
            shown = {name: getattr(instance.past, name) for name in names}
            return {"id": instance.pk, **shown, "created": instance.created}
        return {
            "id": instance.pk,
            "user": instance.user.get_username() if instance.user else "",
            "group": instance.group.name if instance.group else "",
            **{name: getattr(instance, name) for name in ("role", "cluster", "namespace")},
            "created": instance.created,
            "created_by": instance.created_by,
        }


class RoleBindingView(TakesInstant, PolicyView):
    """Role bindings; to change one, create a new one and delete the old one."""

    # Databases differ on where nobody's name comes; the past has the same order.
    queryset = RoleBinding.objects.select_related("user", "group").order_by(
        F("user__username").asc(nulls_first=True),
        F("group__name").asc(nulls_first=True),
        "cluster",
        "namespace",
        "role",
    )
    serializer_class = RoleBindingSerializer
    permission_classes = [IsAuthenticated]
    names: ClassVar = {"cluster": "cluster", "namespace": "namespace"}
    filterset_class = RoleBindingFilter
    ordering_fields = ("created", "role", "cluster", "namespace")

    def get_queryset(self) -> QuerySet[RoleBinding]:
        """The visible bindings, for those who may give a role anywhere."""
        bindings = super().get_queryset()
        gives = roles.may_somewhere(self.request.user, roles.GIVE_ROLES, to_read=True)
        return bindings if gives else bindings.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of bindings, as of ``at`` if it is given."""
        instant = at_parameter.instant_of(request, record="roles")
        if instant is None:
            return super().list(request, *args, **kwargs)
        self.filter_queryset(RoleBinding.objects.none())  # checks what is asked for
        page: Any = self.paginate_queryset(narrowed(request, self._seen(instant)))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, *args: Any, **names: Any) -> Response:
        """Return one binding, as of ``at`` if it is given."""
        instant = at_parameter.instant_of(request, record="roles")
        if instant is None:
            return super().retrieve(request, *args, **names)
        require_answerable(request, ())
        number = self.get_object().pk
        found = next((each for each in self._seen(instant) if each.pk == number), None)
        if found is None:
            raise Http404
        return Response(self.get_serializer(found).data)

    def _seen(self, instant: dt.datetime) -> Sequence[BindingOfThen]:
        """The visible bindings of an instant, for those who may give a role anywhere today."""
        user = self.request.user
        gives = roles.may_somewhere(user, roles.GIVE_ROLES, to_read=True)
        return seen_bindings(user, instant) if gives else ()

    def create(self, request: Request) -> Response:
        """Grant a role; it applies from the subject's next request on."""
        sent_body = self.sent(request)
        place = {name: sent_body.get(name, "") for name in ("cluster", "namespace")}
        self._require(roles.GIVE_ROLES, **place)
        given = RoleBinding(**_subject(sent_body), role=sent_body["role"], **place)
        with self.write():
            binding = services.bind_role(binding=given, author=request.user)
            return self.show(binding, status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={200: RoleBindingSerializer, 204: None})
    def destroy(self, _request: Request, **_names: Any) -> Response:
        """Revoke a role; ``?dryRun=All`` shows it."""
        binding = self.get_object()
        self._require(roles.TAKE_ROLES, cluster=binding.cluster, namespace=binding.namespace)
        if self.is_dry_run:
            return self.show(binding)
        services.unbind_role(binding=binding, author=self.request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require(self, permission: str, *, cluster: str, namespace: str) -> None:
        at = roles.place_of_binding(cluster, namespace)
        user = self.request.user
        if not roles.may(user, permission, cluster=at.cluster, namespace=at.namespace):
            raise PermissionDenied


def _subject(sent_body: dict[str, Any]) -> dict[str, Any]:
    """The user or the group that the body names; raises ``ValidationError``."""
    username, group_name = sent_body.get("user", ""), sent_body.get("group", "")
    if bool(username) == bool(group_name):
        raise ValidationError("Name a user or a group, not both.", code="one_subject")
    if group_name:
        group = Group.objects.filter(name=group_name).first()
        return {"group": group or _refuse("group", group_name)}
    user = get_user_model().objects.filter(username=username).first()
    return {"user": user or _refuse("user", username)}


def _refuse(field: str, name: str) -> NoReturn:
    error = ValidationError(f'there is no {field} "{name}"', code=f"unknown_{field}")
    raise ValidationError({field: error})
