"""Operations of the API that the command calls. Written by ``make client``: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gatehouse_cli.client.shape import ApiOperation, Page

if TYPE_CHECKING:
    from gatehouse_cli.client.answers import (
        ChangeDetailJson,
        ChangeJson,
        ComparisonJson,
        DecisionJson,
        DecisionSummaryJson,
        EffectivePoliciesJson,
        ExplanationJson,
        ObjectManagersJson,
        ReplayDetailJson,
        ReplayJson,
        ReplaysOfChangeJson,
        RevisionJson,
        RolloutJson,
        SetPlanJson,
    )

APPLY_CREATE: Final[ApiOperation[SetPlanJson]] = ApiOperation(
    "POST",
    "/api/v1/apply/",
    query="dryRun",
)
CLUSTERS_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/clusters/",
    query=(
        "at created__gt created__gte created__lt created__lte fields limit name "
        "name__contains name__exact name__in offset ordering revision__gte revision__lte "
        "updated__gt updated__gte updated__lt updated__lte"
    ),
)
CLUSTERS_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/clusters/{name}/",
    query="confirm dryRun reason",
    headers="If-Match",
)
CLUSTERS_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/clusters/{name}/managers/",
)
CLUSTERS_EXPORT_RETRIEVE: Final[ApiOperation[str]] = ApiOperation(
    "GET",
    "/api/v1/clusters/{name}/export/",
    repeated="kind namespace",
)
NAMESPACES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/namespaces/",
    query=(
        "at cluster cluster__in created__gt created__gte created__lt created__lte fields "
        "labelSelector limit name name__contains name__exact name__in offset ordering phase "
        "phase__in revision__gte revision__lte updated__gt updated__gte updated__lt "
        "updated__lte"
    ),
)
NAMESPACES_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/namespaces/{id}/",
    query="dryRun reason",
    headers="If-Match",
)
NAMESPACES_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/namespaces/{id}/managers/",
)
NAMESPACES_EFFECTIVE_RETRIEVE: Final[ApiOperation[EffectivePoliciesJson]] = ApiOperation(
    "GET",
    "/api/v1/namespaces/{id}/effective/",
    query="at",
)
NAMESPACECLASSES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/namespaceclasses/",
    query=(
        "at created__gt created__gte created__lt created__lte fields limit name "
        "name__contains name__exact name__in offset ordering updated__gt updated__gte "
        "updated__lt updated__lte version__gte version__lte"
    ),
)
NAMESPACECLASSES_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/namespaceclasses/{name}/",
    query="confirmDeletions dryRun reason",
    headers="If-Match",
)
CLASSMEMBERS_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/classmembers/",
    query=(
        "cluster fields has_left limit namespace namespaceClass offset ordering version__gte "
        "version__lte"
    ),
)
CLASSPOLICIES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/classpolicies/",
    query=(
        "cluster exceptions fields kind limit name namespace namespaceClass offset ordering "
        "version__gte version__lte"
    ),
)
LIMITRANGES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/limitranges/",
    query=(
        "at cluster cluster__in created__gt created__gte created__lt created__lte enforcement "
        "enforcement__in fields labelSelector limit name name__contains name__exact name__in "
        "namespace namespace__in offset ordering resource resource__in revision__gte "
        "revision__lte updated__gt updated__gte updated__lt updated__lte"
    ),
)
LIMITRANGES_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/limitranges/{id}/",
    query="dryRun reason",
    headers="If-Match",
)
LIMITRANGES_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/limitranges/{id}/managers/",
)
METADATAPOLICIES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/metadatapolicies/",
    query=(
        "at cluster cluster__in created__gt created__gte created__lt created__lte enforcement "
        "enforcement__in fields labelSelector limit name name__contains name__exact name__in "
        "namespace namespace__in offset ordering reject revision__gte revision__lte "
        "updated__gt updated__gte updated__lt updated__lte"
    ),
)
METADATAPOLICIES_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/metadatapolicies/{id}/",
    query="dryRun reason",
    headers="If-Match",
)
METADATAPOLICIES_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/metadatapolicies/{id}/managers/",
)
RESOURCEQUOTAS_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/resourcequotas/",
    query=(
        "at cluster cluster__in created__gt created__gte created__lt created__lte enforcement "
        "enforcement__in fields labelSelector limit name name__contains name__exact name__in "
        "namespace namespace__in offset ordering resource resource__in revision__gte "
        "revision__lte updated__gt updated__gte updated__lt updated__lte"
    ),
)
RESOURCEQUOTAS_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/resourcequotas/{id}/",
    query="dryRun reason",
    headers="If-Match",
)
RESOURCEQUOTAS_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/resourcequotas/{id}/managers/",
)
TESTS_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/tests/",
    query=(
        "author cluster cluster__in created__gt created__gte created__lt created__lte "
        "decision fields labelSelector limit name name__contains name__exact name__in "
        "namespace namespace__in offset ordering revision__gte revision__lte updated__gt "
        "updated__gte updated__lt updated__lte"
    ),
)
TESTS_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/tests/{id}/",
    query="dryRun reason",
    headers="If-Match",
)
TESTS_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/tests/{id}/managers/",
)
PRIORITYCLASSES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/priorityclasses/",
    query=(
        "at cluster cluster__in created__gt created__gte created__lt created__lte fields "
        "global_default labelSelector limit name name__contains name__exact name__in offset "
        "ordering revision__gte revision__lte updated__gt updated__gte updated__lt "
        "updated__lte"
    ),
)
PRIORITYCLASSES_DESTROY: Final[ApiOperation[dict[str, Any]]] = ApiOperation(
    "DELETE",
    "/api/v1/priorityclasses/{id}/",
    query="dryRun reason",
    headers="If-Match",
)
PRIORITYCLASSES_MANAGERS_RETRIEVE: Final[ApiOperation[ObjectManagersJson]] = ApiOperation(
    "GET",
    "/api/v1/priorityclasses/{id}/managers/",
)
LIMITEDRESOURCES_LIST: Final[ApiOperation[Page[dict[str, Any]]]] = ApiOperation(
    "GET",
    "/api/v1/limitedresources/",
    query=(
        "created__gt created__gte created__lt created__lte fields limit name name__contains "
        "name__exact name__in offset ordering revision__gte revision__lte updated__gt "
        "updated__gte updated__lt updated__lte"
    ),
)
DECISIONS_LIST: Final[ApiOperation[Page[DecisionSummaryJson]]] = ApiOperation(
    "GET",
    "/api/v1/decisions/",
    query=(
        "cluster cluster__in cursor dry_run exclude fields kind kind__in last limit name "
        "namespace namespace__in operation phase policy priority reason request_uid since "
        "until user verdict verdict__in"
    ),
)
DECISIONS_RETRIEVE: Final[ApiOperation[DecisionJson]] = ApiOperation(
    "GET",
    "/api/v1/decisions/{id}/",
    query="fields",
)
DECISIONS_EXPLANATION_RETRIEVE: Final[ApiOperation[ExplanationJson]] = ApiOperation(
    "GET",
    "/api/v1/decisions/{decision_id}/explanation/",
)
REPLAYS_CREATE: Final[ApiOperation[ReplayJson]] = ApiOperation(
    "POST",
    "/api/v1/replays/",
    query="dryRun",
)
REPLAYS_RETRIEVE: Final[ApiOperation[ReplayDetailJson]] = ApiOperation(
    "GET",
    "/api/v1/replays/{uid}/",
    query="fields",
)
REPLAYS_CANCEL_CREATE: Final[ApiOperation[ReplayDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/replays/{uid}/cancel/",
    query="dryRun",
)
COMPARE_RETRIEVE: Final[ApiOperation[ComparisonJson]] = ApiOperation(
    "GET",
    "/api/v1/compare/",
    query="cluster from limit namespace offset to",
)
CHANGES_LIST: Final[ApiOperation[Page[ChangeJson]]] = ApiOperation(
    "GET",
    "/api/v1/changes/",
    query=(
        "author cluster created__gt created__gte created__lt created__lte fields limit "
        "namespace offset ordering state state__in unreviewed updated__gt updated__gte "
        "updated__lt updated__lte"
    ),
)
CHANGES_RETRIEVE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "GET",
    "/api/v1/changes/{id}/",
    query="fields",
)
CHANGES_SUBMIT_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/submit/",
    query="dryRun",
)
CHANGES_WITHDRAW_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/withdraw/",
    query="dryRun",
)
CHANGES_APPROVE_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/approve/",
    query="dryRun",
)
CHANGES_REQUESTCHANGES_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/requestchanges/",
    query="dryRun",
)
CHANGES_COMMENT_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/comment/",
    query="dryRun",
)
CHANGES_PUBLISH_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/publish/",
    query="dryRun",
)
CHANGES_PUBLISHNOW_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/publishnow/",
    query="dryRun",
)
CHANGES_REVIEW_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/review/",
    query="dryRun",
)
CHANGES_ABANDON_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/abandon/",
    query="dryRun",
)
CHANGES_REVERT_CREATE: Final[ApiOperation[ChangeDetailJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/revert/",
    query="dryRun",
)
CHANGES_REPLAY_CREATE: Final[ApiOperation[ReplaysOfChangeJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/replay/",
    query="dryRun",
)
CHANGES_ROLLOUT_RETRIEVE: Final[ApiOperation[RolloutJson]] = ApiOperation(
    "GET",
    "/api/v1/changes/{id}/rollout/",
    query="dryRun",
)
CHANGES_ROLLOUT_UPDATE: Final[ApiOperation[RolloutJson]] = ApiOperation(
    "PUT",
    "/api/v1/changes/{id}/rollout/",
    query="dryRun",
)
CHANGES_ROLLOUT_START_CREATE: Final[ApiOperation[RolloutJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/rollout/start/",
    query="dryRun",
)
CHANGES_ROLLOUT_ADVANCE_CREATE: Final[ApiOperation[RolloutJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/rollout/advance/",
    query="dryRun",
)
CHANGES_ROLLOUT_STOP_CREATE: Final[ApiOperation[RolloutJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/rollout/stop/",
    query="dryRun",
)
CHANGES_ROLLOUT_RESUME_CREATE: Final[ApiOperation[RolloutJson]] = ApiOperation(
    "POST",
    "/api/v1/changes/{id}/rollout/resume/",
    query="dryRun",
)
REVISIONS_LIST: Final[ApiOperation[Page[RevisionJson]]] = ApiOperation(
    "GET",
    "/api/v1/revisions/",
    query=(
        "action action__in cluster cluster__in cluster_revision__gte cluster_revision__lte "
        "created__gt created__gte created__lt created__lte fields kind kind__in limit name "
        "name__contains name__exact name__in namespace namespace__in number__gte number__lte "
        "offset ordering since uid uid__in until user user__in"
    ),
)
