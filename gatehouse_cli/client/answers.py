"""Answers of the API that the command reads. Written by ``make client``: do not edit."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class BlockJson(TypedDict):
    """A reason for which nothing was stored."""

    code: str
    message: str


class ByDimensionJson(TypedDict):
    """The same decisions, grouped five ways."""

    namespace: ChangeGroupingJson
    owner: ChangeGroupingJson
    policy: ChangeGroupingJson
    reason: ChangeGroupingJson
    user: ChangeGroupingJson


class ChangeJson(TypedDict):
    """A change: proposed writes of policies that are published and reverted together."""

    author: str
    content_hash: str
    created: str
    id: int | None
    reason: str
    state: str
    steps_allowed: list[str]
    ticket: str
    title: str
    unreviewed: bool
    updated: str


class ChangeApprovalJson(TypedDict):
    """An approval of the present content."""

    counts: bool
    user: str


class ChangeBehindJson(TypedDict):
    """The change that wrote a revision."""

    approvers: list[str]
    author: str
    id: int
    reason: str
    ticket: str
    title: str


class ChangeCheckJson(TypedDict):
    """A check of the present content."""

    kind: str
    number: int | None
    state: str
    updated: str
    words: str


class ChangeDetailJson(TypedDict):
    """A change with its objects and steps."""

    author: str
    content_hash: str
    created: str
    hidden: int
    id: int | None
    objects: list[ChangeItemJson]
    reason: str
    review: ChangeReviewJson
    state: str
    steps: list[ChangeStepJson]
    steps_allowed: list[str]
    ticket: str
    title: str
    unreviewed: bool
    updated: str


class ChangeGroupJson(TypedDict):
    """The changed decisions of one owner, namespace, user, reason or policy."""

    days: dict[str, int]
    key: str
    newest: str
    number: int
    oldest: str
    text: str


class ChangeGroupingJson(TypedDict):
    """The largest groups, and how much is left out."""

    decisions_left_out: int
    groups: list[ChangeGroupJson]
    groups_left_out: int


class ChangeItemJson(TypedDict):
    """One object of a change: its base and its content."""

    action: str
    base: dict[str, Any] | None
    base_revision: int
    changes: list[str]
    cluster: str
    content: dict[str, Any] | None
    id: int
    kind: str
    name: str
    namespace: str
    written: int | None


class ChangeNeedJson(TypedDict):
    """What a rule asks of a change."""

    approvers: int
    by: list[str]
    missing: int
    role: str
    rule: str
    words: str


class ChangeReviewJson(TypedDict):
    """What a change needs by the rules of now, and what it has."""

    approvals: list[ChangeApprovalJson]
    checks: list[ChangeCheckJson]
    needs: list[ChangeNeedJson]


class ChangeStepJson(TypedDict):
    """One step of a change."""

    content_hash: str
    created: str
    note: str
    state_after: str
    state_before: str
    step: str
    user: str


class ChangedDecisionsJson(TypedDict):
    """The decisions that change in one way."""

    by: ByDimensionJson
    newest: str
    number: int
    oldest: str


class ChangedFieldJson(TypedDict):
    """One field of the object; texts are empty where there is no value."""

    after: str
    before: str
    field: str


class ComparisonJson(TypedDict):
    """A page of what differs between two instants, by place."""

    count: int
    differences: list[PastDifferenceJson]
    knows_roles: bool
    knows_usage: bool


class DecisionJson(TypedDict):
    """Everything on record about one decision."""

    api_group: str
    authority: str
    charges: list[DecisionChargeJson]
    client: str
    cluster: str
    code: int
    created: str
    dry_run: bool
    duration_us: int
    groups: list[str]
    id: str
    kind: str
    message: str
    more_observed: int
    more_violations: int
    name: str
    namespace: str
    object_uid: str
    observed: list[ViolationJson]
    operation: Any
    patch: list[PatchOperationJson]
    phase: str
    policies: list[PolicyRefJson]
    policy_revision: int
    reason: str
    request: dict[str, Any]
    request_uid: str
    resource: str
    sub_resource: str
    trace: list[StepJson]
    user: str
    verdict: str
    violations: list[ViolationJson]
    warnings: list[str]


class DecisionChargeJson(TypedDict):
    """What the object costs one quota: the growth of its use, and the whole use of the object."""

    amounts: dict[str, str]
    delta: dict[str, str]
    quota: PolicyRefJson


class DecisionSummaryJson(TypedDict):
    """One line of the list."""

    api_group: str
    authority: str
    cluster: str
    code: int
    created: str
    dry_run: bool
    duration_us: int
    id: str
    kind: str
    message: str
    name: str
    namespace: str
    operation: Any
    phase: str
    reason: str
    sub_resource: str
    user: str
    verdict: str


class EffectivePoliciesJson(TypedDict):
    """All policies of a namespace: ranges, then metadata policies, then quotas."""

    authority: str
    limitedResources: list[LimitedResourceJson]
    policies: list[EffectivePolicyJson]


class EffectivePolicyJson(TypedDict):
    """One policy in effect."""

    enforcement: str
    manifest: Any
    used: NotRequired[dict[str, str]]


class ExplanationJson(TypedDict):
    """Why a decision came out so, and what would change it."""

    deciding: list[OriginJson]
    decision: str
    is_of_then: bool
    sentence: str
    since: list[OriginJson]
    suggestions: list[SuggestionJson]
    today: TodayJson | None


class FoundViolationJson(TypedDict):
    """A rule that an object breaks, as it was just found."""

    field: str
    message: str
    policy: PolicyNameJson | None
    reason: str
    rule: int | None


class FullTimeJson(TypedDict):
    """A time in which something waited."""

    begin: str
    end: str | None
    waited: int


class GuardPlanJson(TypedDict):
    """A guard that stops the roll-out above a threshold."""

    above: float
    kind: str
    owners: list[str]


class HighestUsageJson(TypedDict):
    """The highest used amounts around a moment."""

    at: str
    used: dict[str, str]


class LabelSelectorJson(TypedDict):
    """Holds if all labels and expressions match; an empty one matches everything."""

    matchExpressions: NotRequired[list[LabelSelectorExpressionJson] | None]
    matchLabels: NotRequired[dict[str, str | None] | None]


class LabelSelectorExpressionJson(TypedDict):
    """A test of one label or annotation."""

    key: str
    operator: str
    values: NotRequired[list[str | None] | None]


class LimitRangeItemJson(TypedDict):
    """The amounts of one type of objects."""

    default: NotRequired[dict[str, str | None]]
    defaultRequest: NotRequired[dict[str, str | None]]
    max: NotRequired[dict[str, str | None]]
    maxLimitRequestRatio: NotRequired[dict[str, str | None]]
    min: NotRequired[dict[str, str | None]]
    type: Any


class LimitRangeManifestJson(TypedDict):
    """A LimitRange as Kubernetes writes it."""

    apiVersion: str
    kind: str
    metadata: dict[str, Any]
    spec: LimitRangeSpecJson


class LimitRangeSpecJson(TypedDict):
    """Minimum, maximum and default amounts."""

    limits: list[LimitRangeItemJson]


class LimitedResourceJson(TypedDict):
    """A resource that may be used only where a quota covers it."""

    apiGroup: NotRequired[str]
    matchContains: NotRequired[list[str | None]]
    matchScopes: NotRequired[list[ScopeExpressionJson]]
    resource: str


class ManagedFieldJson(TypedDict):
    """A field that somebody manages."""

    commit: str
    field: str
    manager: str
    removed: bool
    revision: int
    time: str


class MetadataPolicyManifestJson(TypedDict):
    """A MetadataPolicy as Kubernetes writes it."""

    apiVersion: str
    kind: str
    metadata: dict[str, Any]
    spec: MetadataPolicySpecJson


class MetadataPolicyRuleJson(TypedDict):
    """What is done to objects for which the predicate holds."""

    policyAction: PolicyActionJson
    policyPredicate: PolicyPredicateJson


class MetadataPolicySpecJson(TypedDict):
    """Rules over labels and annotations."""

    ratchet: NotRequired[bool]
    rules: list[MetadataPolicyRuleJson]
    strict: NotRequired[bool]


class ObjectManagersJson(TypedDict):
    """Who manages an object."""

    fields: list[ManagedFieldJson]
    set: str


class ObjectNameJson(TypedDict):
    """The name of an object."""

    kind: str
    name: str
    namespace: str


class OriginJson(TypedDict):
    """A revision of a policy, and its changes in words."""

    change: ChangeBehindJson | None
    changes: list[str]
    created: str
    kind: str
    name: str
    namespace: str
    reason: str
    revision: int
    user: str


class PastDifferenceJson(TypedDict):
    """An object, the usage of a quota, or a role that differs."""

    after: dict[str, Any] | None
    before: dict[str, Any] | None
    changed: list[str]
    cluster: str
    kind: str
    name: str
    namespace: str
    revision: int | None
    words: list[str]


class PatchOperationJson(TypedDict):
    """One operation of a JSON Patch (RFC 6902)."""

    op: str
    path: str
    value: NotRequired[Any]


class PlanCountsJson(TypedDict):
    """The number of objects for each action."""

    change: int
    conflict: int
    create: int
    delete: int
    unchanged: int


class PlannedObjectJson(TypedDict):
    """What an apply does with one object."""

    action: str
    changes: list[str]
    conflicts: list[ManagedFieldJson]
    diff: str
    kept: list[ManagedFieldJson]
    kind: str
    name: str
    namespace: str
    revision: int


class PolicyActionJson(TypedDict):
    """Refuses an object, or sets labels and annotations of it."""

    reject: bool
    updatedAnnotations: NotRequired[dict[str, str | None]]
    updatedLabels: NotRequired[dict[str, str | None]]


class PolicyNameJson(TypedDict):
    """The kind and name of a policy."""

    kind: str
    name: str


class PolicyPredicateJson(TypedDict):
    """Both selectors must hold; an absent one always holds."""

    annotationSelector: NotRequired[LabelSelectorJson]
    labelSelector: NotRequired[LabelSelectorJson]


class PolicyRefJson(TypedDict):
    """A policy at one revision."""

    kind: str
    name: str
    namespace: str
    revision: int


class QuotaReplayReportJson(TypedDict):
    """The journal of one quota against its proposed hard values."""

    changes: int
    full: list[FullTimeJson]
    full_times: int
    hard: dict[str, str]
    hard_before: NotRequired[dict[str, str]]
    longest_waits: list[WaitedJson]
    peak: dict[str, str]
    points: list[HighestUsageJson]
    unknown_names: list[str]
    waited_seconds: int
    waits: dict[str, int]


class ReplayJson(TypedDict):
    """A replay: its scope, state and progress."""

    change_set: int | None
    cluster: str
    created: str
    decisions: list[str]
    done: int
    finished: str | None
    namespaces: list[str]
    problem: str
    query: str
    since: str
    started: str | None
    state: str
    total: int
    uid: str | None
    until: str
    user: str


class ReplayChangesJson(TypedDict):
    """What the proposal would change, by kind."""

    new_warning: ChangedDecisionsJson
    patch: ChangedDecisionsJson
    to_allowed: ChangedDecisionsJson
    to_denied: ChangedDecisionsJson
    vanished_warning: ChangedDecisionsJson


class ReplayDetailJson(TypedDict):
    """A replay with its report, once it is done."""

    change_set: int | None
    cluster: str
    created: str
    decisions: list[str]
    done: int
    finished: str | None
    namespaces: list[str]
    problem: str
    query: str
    report: ReplayReportJson | None
    since: str
    started: str | None
    state: str
    total: int
    uid: str | None
    until: str
    user: str


class ReplayExamplesJson(TypedDict):
    """A number of decisions, and the ids of the oldest and newest; empty without any."""

    newest: str
    number: int
    oldest: str


class ReplayRecordJson(TypedDict):
    """The base compared with what was recorded."""

    differing: ReplayExamplesJson
    of_the_moment: ReplayExamplesJson
    repeated: int


class ReplayReportJson(TypedDict):
    """The result of a replay."""

    quotas: list[ReplayedQuotaJson]
    quotas_left_out: int
    verdicts: ReplayVerdictsJson


class ReplayVerdictsJson(TypedDict):
    """Every decision judged by base and draft, used amounts apart."""

    changes: ReplayChangesJson
    decisions: int
    judged: int
    not_replayed: dict[str, ReplayExamplesJson]
    record: ReplayRecordJson
    replayed: int


class ReplayedQuotaJson(TypedDict):
    """A quota that the proposal changes, over time."""

    namespace: str
    quota: str
    report: QuotaReplayReportJson | None
    state: str


class ReplaysOfChangeJson(TypedDict):
    """The replays that were requested together."""

    replays: list[ReplayJson]


class ResourceQuotaManifestJson(TypedDict):
    """A ResourceQuota as Kubernetes writes it."""

    apiVersion: str
    kind: str
    metadata: dict[str, Any]
    spec: ResourceQuotaSpecJson


class ResourceQuotaSpecJson(TypedDict):
    """The most that the selected objects of a namespace may use together."""

    hard: NotRequired[dict[str, str | None]]
    scopeSelector: NotRequired[ScopeSelectorJson]
    scopes: NotRequired[list[str]]


class RevisionJson(TypedDict):
    """One recorded write."""

    action: str
    after: dict[str, Any] | None
    before: dict[str, Any] | None
    cluster: str
    cluster_revision: int
    commit: str
    created: str
    id: int | None
    kind: str
    manager: str
    name: str
    namespace: str
    number: int
    reason: str
    uid: str
    user: str


class RolloutJson(TypedDict):
    """How a change is rolled out, and where that stands."""

    at: int
    ends: str | None
    plan: RolloutPlanJson | None
    since: str | None
    stages: list[RolloutStageJson]
    starter: str
    total: int
    tripped: str


class RolloutPlanJson(TypedDict):
    """Waves in their order, and guards."""

    guards: list[GuardPlanJson]
    on_trip: str
    waves: list[WavePlanJson]


class RolloutStageJson(TypedDict):
    """A stage that has begun."""

    began: str
    ended: str | None
    mode: str
    number: int
    wave: int
    written: int


class ScopeExpressionJson(TypedDict):
    """A scope of objects, with values where the operator takes some."""

    operator: str
    scopeName: str
    values: NotRequired[list[str | None]]


class ScopeSelectorJson(TypedDict):
    """Selects the objects for which all expressions hold."""

    matchExpressions: NotRequired[list[ScopeExpressionJson]]


class SetPlanJson(TypedDict):
    """A plan, and whether it was carried out."""

    applied: bool
    blocked: list[BlockJson]
    change: int | None
    cluster: str
    commit: str
    counts: PlanCountsJson
    dryRun: bool
    hints: list[str]
    left: list[ObjectNameJson]
    manager: str
    objects: list[PlannedObjectJson]
    others: list[str]
    set: str


class StagePlanJson(TypedDict):
    """A mode of a wave, and how long it lasts."""

    dwell: int
    mode: str


class StepJson(TypedDict):
    """One policy (and rule) that was evaluated, and the result."""

    detail: str
    name: str
    numbers: dict[str, str]
    outcome: str
    policy: PolicyRefJson | None
    rule: int | None


class SuggestionJson(TypedDict):
    """A smallest set of changes under which the request would have passed."""

    changes: list[ChangedFieldJson]
    passes_today: bool


class TodayJson(TypedDict):
    """The decision about the same request under the policies of now."""

    allowed: bool
    differs: bool
    message: str
    violations: list[FoundViolationJson]


class ViolationJson(TypedDict):
    """One rule that the object breaks."""

    field: str
    message: str
    numbers: dict[str, str]
    policy: PolicyRefJson | None
    reason: str
    rule: int | None


class WaitedJson(TypedDict):
    """A request that would have waited."""

    begin: str
    decision: str
    end: str
    ended: str
    name: str
    seconds: int


class WavePlanJson(TypedDict):
    """Where a wave goes; what is empty stands for all."""

    clusters: list[str]
    labels: dict[str, str]
    namespaces: list[str]
    percent: int
    stages: list[StagePlanJson]
