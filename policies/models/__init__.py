"""Tables of policies: columns, constraints, ``to_manifest``, ``read_manifest``. No service."""

from policies.models.changes.approval_rule import ApprovalRule, ApprovalRuleChange
from policies.models.changes.change_set import ChangeItem, ChangeSet, ChangeStep
from policies.models.changes.review import ChangeApproval, ChangeCheck, ChangeLook
from policies.models.changes.rollout import Rollout, RolloutStage
from policies.models.cluster import Cluster, Namespace, Recorded
from policies.models.compilable import CompilablePolicy
from policies.models.credentials import KeyCheck, SignIn, SignInCount, WebhookCredential
from policies.models.edits import KeptDraft, ObjectManagers, PolicyRevision
from policies.models.follower import ClusterFollower, OncomingWrite
from policies.models.kept.kept_test import KeptTest
from policies.models.ledger import Charge, LedgerPass, QuotaUsage, QuotaUsagePoint
from policies.models.ledger_entry import LedgerEntry
from policies.models.limit_range import LimitRange, LimitRangeRow
from policies.models.metadata_policy import MetadataPolicy, MetadataPolicyRule
from policies.models.namespace_class import (
    ClassMember,
    ClassPolicy,
    NamespaceClass,
    NamespaceClassVersion,
)
from policies.models.policy_object import PolicyObject
from policies.models.priority_class import PriorityClass
from policies.models.resource_quota import (
    LimitedResource,
    ResourceQuota,
    ResourceQuotaRow,
    ScopeSelectorRow,
)
from policies.models.roles import RoleBinding, RoleChange
from policies.models.tokens import ApiToken, ServiceAccount

__all__ = [
    "ApiToken",
    "ApprovalRule",
    "ApprovalRuleChange",
    "ChangeApproval",
    "ChangeCheck",
    "ChangeItem",
    "ChangeLook",
    "ChangeSet",
    "ChangeStep",
    "Charge",
    "ClassMember",
    "ClassPolicy",
    "Cluster",
    "ClusterFollower",
    "CompilablePolicy",
    "KeptDraft",
    "KeptTest",
    "KeyCheck",
    "LedgerEntry",
    "LedgerPass",
    "LimitRange",
    "LimitRangeRow",
    "LimitedResource",
    "MetadataPolicy",
    "MetadataPolicyRule",
    "Namespace",
    "NamespaceClass",
    "NamespaceClassVersion",
    "ObjectManagers",
    "OncomingWrite",
    "PolicyObject",
    "PolicyRevision",
    "PriorityClass",
    "QuotaUsage",
    "QuotaUsagePoint",
    "Recorded",
    "ResourceQuota",
    "ResourceQuotaRow",
    "RoleBinding",
    "RoleChange",
    "Rollout",
    "RolloutStage",
    "ScopeSelectorRow",
    "ServiceAccount",
    "SignIn",
    "SignInCount",
    "WebhookCredential",
]
