"""The REST router: ``register`` of the viewsets of policies, credentials, revisions, charges."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from policies.api import access, views
from policies.api.accounts.me import MeView
from policies.api.accounts.role_bindings import RoleBindingView
from policies.api.accounts.service_accounts import (
    NAME_PATTERN,
    ServiceAccountTokenView,
    ServiceAccountView,
)
from policies.api.accounts.tokens import OwnTokenView
from policies.api.apply import ApplyView
from policies.api.changes.approval_rules import ApprovalRuleChangeView, ApprovalRuleView
from policies.api.changes.views import ChangeView
from policies.api.classes.views import ClassMemberView, ClassPolicyView, NamespaceClassView
from policies.api.kept_tests.views import KeptTestView
from policies.api.past.comparison import CompareView
from policies.api.quotas.journal import QuotaJournalView
from policies.api.quotas.recounts import RecountView
from policies.api.quotas.usage import QuotaUsageListView, QuotaUsageView
from policies.api.simulations import SimulationView
from policies.rest import NUMBER

router = SimpleRouter()
router.register("clusters", views.ClusterView, basename="api-cluster")
router.register("namespaces", views.NamespaceView, basename="api-namespace")
router.register("limitranges", views.LimitRangeView, basename="api-limitrange")
router.register("metadatapolicies", views.MetadataPolicyView, basename="api-metadatapolicy")
router.register("resourcequotas", views.ResourceQuotaView, basename="api-resourcequota")
router.register("tests", KeptTestView, basename="api-test")
router.register("changes", ChangeView, basename="api-change")
router.register("approvalrules", ApprovalRuleView, basename="api-approvalrule")
router.register("approvalrulechanges", ApprovalRuleChangeView, basename="api-approvalrulechange")
router.register("priorityclasses", views.PriorityClassView, basename="api-priorityclass")
router.register("namespaceclasses", NamespaceClassView, basename="api-namespaceclass")
router.register("classmembers", ClassMemberView, basename="api-classmember")
router.register("classpolicies", ClassPolicyView, basename="api-classpolicy")
router.register("limitedresources", views.LimitedResourcesView, basename="api-limitedresources")
router.register("credentials", views.CredentialView, basename="api-credential")
router.register("revisions", views.RevisionView, basename="api-revision")
router.register("rolechanges", access.RoleChangeView, basename="api-rolechange")
router.register("rolebindings", RoleBindingView, basename="api-rolebinding")
router.register("tokens", OwnTokenView, basename="api-own-token")
router.register("serviceaccounts", ServiceAccountView, basename="api-serviceaccount")
router.register(
    f"serviceaccounts/(?P<account>{NAME_PATTERN})/tokens",
    ServiceAccountTokenView,
    basename="api-serviceaccount-token",
)
router.register("charges", views.ChargeView, basename="api-charge")
router.register(
    f"resourcequotas/(?P<quota>{NUMBER})/journal", QuotaJournalView, basename="api-quota-journal"
)

urlpatterns = [
    *router.urls,
    path("apply/", ApplyView.as_view(), name="api-apply"),
    # The same without the slash, for those who type the address by hand; described once.
    path("apply", ApplyView.as_view(schema=None)),
    path("compare/", CompareView.as_view(), name="api-compare"),
    path("me/", MeView.as_view(), name="api-me"),
    path("quotausage/", QuotaUsageListView.as_view(), name="api-quotausage"),
    path("resourcequotas/<int:pk>/usage/", QuotaUsageView.as_view(), name="api-quota-usage"),
    path("recounts/", RecountView.as_view(), name="api-recount"),
    path("simulations/", SimulationView.as_view(), name="api-simulation"),
]
