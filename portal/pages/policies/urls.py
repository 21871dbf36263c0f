"""URL patterns of policies: list, editor, import, preview of restarts."""

from __future__ import annotations

from django.urls import path

from portal.pages.policies.bulk import BulkView, PoliciesAsYaml, UndoView
from portal.pages.policies.clone import ClonePolicyView
from portal.pages.policies.editor import EditorView
from portal.pages.policies.editor_new import NewPolicyView
from portal.pages.policies.import_page import ImportView
from portal.pages.policies.list import PoliciesOfClusterView, PolicyListView
from portal.pages.policies.new_policy import NewPolicyPage
from portal.pages.policies.restart_impact import NewRestartsView, RestartsView

_OF_NAMESPACE = "clusters/<str:cluster>/namespaces/<str:namespace>/<str:plural>/"
_PRIORITIES = "clusters/<str:cluster>/priorityclasses/"
_PRIORITY = {"plural": "priorityclasses"}
_LIMITED = {"plural": "limitedresources"}

urlpatterns = [
    path("policies/", PolicyListView.as_view(), name="all-policies"),
    path("policies/edit/", BulkView.as_view(), name="policy-bulk"),
    path("policies/undo/", UndoView.as_view(), name="policy-undo"),
    path("policies/export/", PoliciesAsYaml.as_view(), name="policy-export"),
    path("policies/new/", NewPolicyPage.as_view(), name="policy-begin"),
    path("clusters/<str:cluster>/policies/", PoliciesOfClusterView.as_view(), name="policy-list"),
    path("clusters/<str:cluster>/import/", ImportView.as_view(), name="policy-import"),
    path(f"{_OF_NAMESPACE}new", NewPolicyView.as_view(), name="policy-new"),
    path(f"{_OF_NAMESPACE}new/restarts", NewRestartsView.as_view(), name="policy-new-restarts"),
    path(f"{_OF_NAMESPACE}<str:name>/", EditorView.as_view(), name="policy"),
    path(f"{_OF_NAMESPACE}<str:name>/clone/", ClonePolicyView.as_view(), name="policy-clone"),
    path(f"{_OF_NAMESPACE}<str:name>/restarts/", RestartsView.as_view(), name="policy-restarts"),
    path(f"{_PRIORITIES}new", NewPolicyView.as_view(), _PRIORITY, name="priority-class-new"),
    path(f"{_PRIORITIES}<str:name>/", EditorView.as_view(), _PRIORITY, name="priority-class"),
    path(
        "clusters/<str:cluster>/limitedresources/",
        EditorView.as_view(),
        _LIMITED,
        name="limited-resources",
    ),
]
