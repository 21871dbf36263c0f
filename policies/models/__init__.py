"""Tables: clusters, namespaces, policies, revisions, roles, charges and usage. Shape only."""

from policies.models.charge import Charge
from policies.models.cluster import Cluster, LimitedResource, WebhookCredential
from policies.models.kept_draft import KeptDraft
from policies.models.key_check import KeyCheck
from policies.models.ledger_pass import LedgerPass
from policies.models.limit_range import LimitRange, LimitRangeRow
from policies.models.metadata_policy import MetadataPolicy, MetadataPolicyRule
from policies.models.namespace import Namespace
from policies.models.policy_revision import PolicyRevision
from policies.models.priority_class import PriorityClass
from policies.models.quota_usage import QuotaUsage, QuotaUsagePoint
from policies.models.recorded import PolicyObject, Recorded
from policies.models.resource_quota import ResourceQuota, ResourceQuotaRow, ScopeSelectorRow
from policies.models.roles import RoleBinding, RoleChange
from policies.models.sign_in_count import SignInCount

__all__ = [
    "Charge",
    "Cluster",
    "KeptDraft",
    "KeyCheck",
    "LedgerPass",
    "LimitRange",
    "LimitRangeRow",
    "LimitedResource",
    "MetadataPolicy",
    "MetadataPolicyRule",
    "Namespace",
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
    "ScopeSelectorRow",
    "SignInCount",
    "WebhookCredential",
]
