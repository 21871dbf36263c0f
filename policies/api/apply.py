"""``POST /api/v1/apply/``: the documents of a set planned, and carried out whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from policies import roles
from policies.api.access import ByRole
from policies.api.bodies import BodyError, answer_to, check_body
from policies.api.changes.as_change import is_asked_for, put_plan
from policies.api.changes.refusals import change_refusal
from policies.api.managers import ManagedFieldSerializer, render_managed_field
from policies.manifests.bundle import DEFAULT_NAMESPACE, bundle_of, read_bundle
from policies.manifests.documents import Document, ManifestError
from policies.manifests.objects import FLEET_KINDS
from policies.manifests.sources import Source
from policies.models import Namespace
from policies.object_sets.apply import OutdatedPlanError, carry_out
from policies.object_sets.plan import SetOptions, plan
from policies.rest import DRY_RUN, DocumentsField, KnownParameters, ManifestParser
from policies.services import unknown_namespace
from policies.validators import DNS_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from policies.manifests.bundle import Bundle
    from policies.models import ChangeSet, Cluster
    from policies.object_sets.plan import PlannedObject, SetPlan

MOST_OBJECTS: Final = 5_000
_ACTIONS: Final = ("create", "change", "delete", "unchanged", "conflict")
_PERMISSION_OF_ACTION: Final = {"create": "add", "change": "change", "delete": "delete"}
_ATTEMPTS: Final = 5
"""So often a plan is made anew because somebody else wrote meanwhile."""
_SOURCE: Final = "documents"


class ApplyRequestSerializer(serializers.Serializer[Any]):
    """The documents of a set for one cluster, and what the apply may do."""

    cluster = serializers.CharField(max_length=63)
    set = serializers.CharField(
        max_length=63,
        validators=[RegexValidator(DNS_LABEL, "must be a DNS label")],
        help_text="the name of the repository or folder: its field manager is git:NAME",
    )
    documents = DocumentsField()
    commit = serializers.CharField(
        required=False, allow_blank=True, max_length=64, help_text="where the documents come from"
    )
    namespace = serializers.CharField(
        required=False, max_length=63, help_text="for documents that name none"
    )
    createNamespaces = serializers.BooleanField(  # noqa: N815 - in the style of Kubernetes
        required=False, help_text="create missing namespaces"
    )
    prune = serializers.BooleanField(
        required=False, help_text="delete what the set manages and no document contains"
    )
    confirmDeletions = serializers.IntegerField(  # noqa: N815 - in the style of Kubernetes
        required=False,
        min_value=0,
        help_text="the number of deletions, as a confirmation where they are many",
    )
    force = serializers.BooleanField(
        required=False, help_text="take over fields of other managers; this is recorded"
    )
    dryRun = serializers.BooleanField(  # noqa: N815 - Kubernetes' own name
        required=False, help_text="plan only; the same as ?dryRun=All"
    )
    reason = serializers.CharField(required=False, allow_blank=True, max_length=2_000)
    change = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**62,
        help_text="store nothing, but put the writes into the change of this number",
    )
    changeTitle = serializers.CharField(  # noqa: N815 - in the style of Kubernetes
        required=False, max_length=200, help_text="the same, into a new change of this title"
    )


class PlannedObjectSerializer(serializers.Serializer[Any]):
    """What an apply does with one object."""

    kind = serializers.CharField()
    namespace = serializers.CharField(help_text="empty: of the cluster as a whole")
    name = serializers.CharField()
    action = serializers.ChoiceField(_ACTIONS)
    changes = serializers.ListField(child=serializers.CharField(), help_text="in words")
    diff = serializers.CharField(help_text="unified diff of the stored and the new manifest")
    conflicts = ManagedFieldSerializer(many=True)
    kept = ManagedFieldSerializer(many=True, help_text="fields that no document contains")
    revision = serializers.IntegerField(help_text="the stored one; 0: none")


class BlockSerializer(serializers.Serializer[Any]):
    """A reason for which nothing was stored."""

    code = serializers.ChoiceField(("conflict", "prune-brake", "namespace-not-empty"))
    message = serializers.CharField()


class ObjectNameSerializer(serializers.Serializer[Any]):
    """The name of an object."""

    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()


class PlanCountsSerializer(serializers.Serializer[Any]):
    """The number of objects for each action."""

    create = serializers.IntegerField()  # type: ignore[assignment]  # a field, not the method
    change = serializers.IntegerField()
    delete = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    conflict = serializers.IntegerField()


class SetPlanSerializer(serializers.Serializer[Any]):
    """A plan, and whether it was carried out."""

    cluster = serializers.CharField()
    set = serializers.CharField()
    manager = serializers.CharField()
    commit = serializers.CharField()
    dryRun = serializers.BooleanField()  # noqa: N815 - Kubernetes' own name
    applied = serializers.BooleanField(
        help_text="false in a dry run, with a change, and if something blocks"
    )
    change = serializers.IntegerField(
        allow_null=True, help_text="the change that has the writes; null where there is none"
    )
    counts = PlanCountsSerializer()
    objects = PlannedObjectSerializer(many=True)
    left = ObjectNameSerializer(many=True, help_text="the set's, in no document, not pruned")
    others = serializers.ListField(
        child=serializers.CharField(), help_text="documents of other kinds, which were skipped"
    )
    blocked = BlockSerializer(many=True)
    hints = serializers.ListField(child=serializers.CharField())


class ContendedError(APIException):
    """Others wrote policies of the cluster again and again: 503."""

    status_code = 503
    default_detail = "policies of this cluster are being written all the time: try it again"


class ApplyView(KnownParameters, ByRole, APIView):
    """Apply a set of documents to one cluster, in one transaction."""

    permission_classes = [IsAuthenticated]
    parser_classes = [ManifestParser]

    def handle_exception(self, exc: Exception) -> Response:
        """Answer problems of documents by their place."""
        if isinstance(exc, ManifestError):
            exc = BodyError(exc.problems, within=_SOURCE)
        return change_refusal(exc) or answer_to(exc) or super().handle_exception(exc)

    @property
    def stores_nothing(self) -> bool:
        """A token to read may plan: by the parameter, which is known before the body is read."""
        return self.is_dry_run

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """The dry run."""
        del action
        return (DRY_RUN,)

    @extend_schema(request=ApplyRequestSerializer, responses=SetPlanSerializer)
    def post(self, request: Request) -> Response:
        """Plan, then apply the plan unless it is a dry run or is blocked."""
        serializer = ApplyRequestSerializer(data=request.data)
        check_body(request.data, kind="", beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent: dict[str, Any] = serializer.validated_data
        cluster = self.cluster_of(sent)
        bundle = read_documents(sent)
        self._require_seen(cluster, bundle)
        is_dry_run = self.is_dry_run or sent.get("dryRun", False)
        options = _options(sent)
        change: ChangeSet | None = None
        if is_dry_run:
            planned = plan(cluster, bundle, options)
        elif is_asked_for(sent):
            planned, change = self._propose(cluster, bundle, options, sent)
        else:
            planned = self._apply(cluster, bundle, options, reason=sent.get("reason", ""))
        self._require_all_seen(cluster, planned)
        stores_nothing = is_dry_run or is_asked_for(sent)
        return Response(
            {
                **_render(cluster, bundle, planned, is_dry_run=is_dry_run),
                "applied": not stores_nothing and not planned.blocks,
                "change": change.pk if change else None,
            }
        )

    def _propose(
        self, cluster: Cluster, bundle: Bundle, options: SetOptions, sent: dict[str, Any]
    ) -> tuple[SetPlan, ChangeSet | None]:
        """Plan, and put the writes into a change unless something blocks them."""
        planned = plan(cluster, bundle, options)
        self._require_all_seen(cluster, planned)
        if planned.blocks:
            return planned, None
        self._require_permissions(cluster, planned)
        with self.write():
            return planned, put_plan(cluster, planned, sent=sent, user=self.request.user)

    def _apply(
        self, cluster: Cluster, bundle: Bundle, options: SetOptions, *, reason: str
    ) -> SetPlan:
        user = str(self.request.user.get_username())
        for _ in range(_ATTEMPTS):
            planned = plan(cluster, bundle, options)
            self._require_all_seen(cluster, planned)
            if planned.blocks:
                return planned
            self._require_permissions(cluster, planned)
            try:
                carry_out(cluster, planned, user=user, reason=reason)
            except OutdatedPlanError:
                continue
            return planned
        raise ContendedError

    def _require_seen(self, cluster: Cluster, bundle: Bundle) -> None:
        """Refuse hidden namespaces as unknown ones: the answer must not reveal that they exist."""
        user = self.request.user
        if bundle.classes and not roles.sees_all(user):
            raise PermissionDenied("namespace classes are for those who see all clusters")
        seen = roles.visible(
            Namespace.objects.filter(cluster=cluster), user,
            cluster="cluster__name", namespace="name",
        )  # fmt: skip
        for kind, namespace, name in (wanted.key for wanted in bundle.objects):
            place = name if kind == "Namespace" else namespace
            if place and not roles.sees(user, cluster.name, place):
                known = list(seen.values_list("name", flat=True))
                raise unknown_namespace(
                    cluster=cluster, name=place, known=known, path="metadata.namespace"
                )

    def _require_all_seen(self, cluster: Cluster, planned: SetPlan) -> None:
        """Refuse a plan with objects of the set where the user sees nothing."""
        keys = [*(each.key for each in planned.objects), *planned.left]
        for kind, namespace, name in keys:
            place = name if kind == "Namespace" else namespace
            if place and not roles.sees(self.request.user, cluster.name, place):
                raise PermissionDenied("the set has objects where you may see nothing")

    def _require_permissions(self, cluster: Cluster, planned: SetPlan) -> None:
        for each in planned.objects:
            action = _PERMISSION_OF_ACTION.get(each.action)
            kind, namespace, name = each.key
            # A claim of fields is a change, too: it decides who may edit without a conflict.
            permission = roles.writing(kind, action or "change")
            user = self.request.user
            place = "" if kind in FLEET_KINDS else cluster.name
            if not roles.may(user, permission, cluster=place, namespace=namespace):
                title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
                raise PermissionDenied(f"you may not {action or 'change'} {title}")


def _options(sent: dict[str, Any]) -> SetOptions:
    return SetOptions(
        name=sent["set"],
        commit=sent.get("commit", ""),
        prune=sent.get("prune", False),
        force=sent.get("force", False),
        create_namespaces=sent.get("createNamespaces", False),
        confirmed=sent.get("confirmDeletions", 0),
    )


def read_documents(sent: Mapping[str, Any]) -> Bundle:
    """Read the documents; raises ManifestError."""
    documents, namespace = sent[_SOURCE], sent.get("namespace", DEFAULT_NAMESPACE)
    if isinstance(documents, str):
        bundle = read_bundle([Source(_SOURCE, documents)], namespace=namespace)
    else:
        numbered = [Document(f"[{index}]", value) for index, value in enumerate(documents)]
        bundle = bundle_of(numbered, namespace=namespace)
    if len(bundle.objects) > MOST_OBJECTS:
        message = f"{len(bundle.objects)} objects; at most {MOST_OBJECTS} in one request"
        raise ManifestError([Document(_SOURCE).problem("", message, "divide the set")])
    return bundle


def _render(
    cluster: Cluster, bundle: Bundle, planned: SetPlan, *, is_dry_run: bool
) -> dict[str, Any]:
    options = planned.options
    return {
        "cluster": cluster.name,
        "set": options.name,
        "manager": options.manager,
        "commit": options.commit,
        "dryRun": is_dry_run,
        "counts": {action: len(planned.having(action)) for action in _ACTIONS},
        "objects": [_render_object(each) for each in planned.objects],
        "left": [
            dict(zip(("kind", "namespace", "name"), key, strict=True)) for key in planned.left
        ],
        "others": list(bundle.others),
        "blocked": [{"code": each.code, "message": each.message} for each in planned.blocks],
        "hints": list(planned.hints),
    }


def _render_object(each: PlannedObject) -> dict[str, Any]:
    kind, namespace, name = each.key
    return {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "action": each.action,
        "changes": list(each.changes),
        "diff": each.diff,
        "conflicts": [render_managed_field(one) for one in each.conflicts],
        "kept": [render_managed_field(one) for one in each.kept],
        "revision": each.revision,
    }
