"""The addresses of all pages; ``{name}`` is filled in from the output of ``people``."""

from __future__ import annotations

from typing import Final

CLUSTER: Final = "/clusters/demo-connected"
PLACE: Final = "/clusters/demo/namespaces/payments"
PAGES: Final = {
    "home": "/",
    "home of 14 days": "/?window=fortnight",
    "decisions": "/decisions/",
    "refusals": "/decisions/?verdict=denied",
    "decisions, none": "/decisions/?cluster=nowhere",
    "decisions, wrong filter": "/decisions/?since=yesterday",
    "decision, denied": "/decisions/{denied}",
    "decision, mutated": "/decisions/{mutated}",
    "clusters": "/clusters/",
    "connect": "/clusters/-/connect/",
    "cluster": f"{CLUSTER}/",
    "cluster, not connected": "/clusters/demo/",
    "objects": f"{CLUSTER}/objects/",
    "object, in sync": f"{CLUSTER}/objects/LimitRange/checkout/limits/",
    "object, drifted": f"{CLUSTER}/objects/ResourceQuota/checkout/compute/",
    "object, in conflict": f"{CLUSTER}/objects/LimitRange/search/limits/",
    "ownership": f"{CLUSTER}/ownership/",
    "ownership, previewed": f"{CLUSTER}/ownership/?preview=1",
    "objects, all states": f"{CLUSTER}/objects/?state=all",
    "cluster settings": f"{CLUSTER}/settings/",
    "runs": f"{CLUSTER}/runs/",
    "run": f"{CLUSTER}/runs/{{run}}/",
    "authority": f"{CLUSTER}/authority/",
    "enforcement": f"{CLUSTER}/enforcement/",
    "enforcement, not connected": "/clusters/demo/enforcement/",
    "enforcement, none": f"{CLUSTER}/enforcement/?q=nothing-is-called-so",
    "namespaces": "/clusters/demo/namespaces/",
    "namespace": "/clusters/demo/namespaces/payments/",
    "namespace without policies": "/clusters/demo-priority/namespaces/kube-system/",
    "quota board": "/quotas/",
    "quota story": "/quotas/demo/payments/",
    "quota journal": "/quotas/demo/payments/critical/journal/",
    "changes": "/clusters/-/changes/",
    "changes, none": "/clusters/-/changes/?user=nobody-is-called-so",
    "policies": "/policies/",
    "policies, none": "/policies/?words=nothing-is-called-so",
    "policies of a cluster": "/policies/?cluster=demo&order=-changed",
    "policies of a namespace": "/policies/?cluster=demo&namespace=payments",
    "priority classes": "/policies/?kind=PriorityClass",
    "new policy": "/policies/new/?cluster=demo&kind=ResourceQuota",
    "new policy, not known where": "/policies/new/?asked=1&kind=LimitRange&cluster=demo",
    "import": "/clusters/demo/import/",
    "new limit range": f"{PLACE}/limitranges/new",
    "new quota": f"{PLACE}/resourcequotas/new",
    "new metadata policy": f"{PLACE}/metadatapolicies/new?ready=require",
    "limit range": f"{PLACE}/limitranges/limits/",
    "quota": f"{PLACE}/resourcequotas/critical/",
    "metadata policy": f"{PLACE}/metadatapolicies/ownership/",
    "versions": f"{PLACE}/resourcequotas/critical/revisions/",
    "versions compared": f"{PLACE}/resourcequotas/critical/revisions/?a=1&b=2",
    "version": f"{PLACE}/resourcequotas/critical/revisions/1/",
    "new priority class": "/clusters/demo/priorityclasses/new",
    "priority class": "/clusters/demo/priorityclasses/critical/",
    "versions of a priority class": "/clusters/demo/priorityclasses/critical/revisions/",
    "version of a priority class": "/clusters/demo/priorityclasses/critical/revisions/1/",
    "limited resources": "/clusters/demo/limitedresources/",
    "versions of limited resources": "/clusters/demo/limitedresources/revisions/",
    "version of limited resources": "/clusters/demo/limitedresources/revisions/1/",
    "namespace classes": "/namespace-classes/",
    "new namespace class": "/namespace-classes/-/new/",
    "namespace class": "/namespace-classes/standard/",
    "namespace class, edited": "/namespace-classes/standard/edit/",
    "people": "/people/",
    "service accounts": "/people/service-accounts/",
    "service account": "/people/service-accounts/ci/",
    "holds": "/decisions/holds/",
    "account": "/account/",
    "password": "/account/password/",
    "all namespaces": "/namespaces/",
    "drift": "/drift/",
    "import, of which cluster": "/import/",
    "parts": "/parts/",
    "search results": "/find/all/?q=pay",
}
"""The pages of admins."""
STATUSES: Final = {"decisions, wrong filter": 400}
"""The statuses of pages that do not answer with 200."""
PUBLIC: Final = {"sign in": "/accounts/login/"}
NO_PAGES: Final = {
    "decisions/newer/": "a part of the list of decisions",
    "^decisions/(?P<pk>[0-9a-z]{16})/panel$": "a part of the list of decisions",
    "decisions/export.<str:form>": "a file",
    "decisions/views/": "a form's address",
    "decisions/views/<int:pk>/drop/": "a form's address",
    "people/names/": "what a field offers",
    "find/": "lines of the palette",
    "counts/": "numbers for the navigation",
    "clusters/<str:cluster>/policies/": "leads to the list of the fleet",
    "clusters/<str:cluster>/namespaces/<str:namespace>/<str:plural>/new/restarts": (
        "the editor's, with an answer"
    ),
    "clusters/<str:cluster>/namespaces/<str:namespace>/<str:plural>/<str:name>/restarts/": (
        "the editor's, with an answer"
    ),
    "clusters/<str:cluster>/failure-policy/": "a form's address",
    "clusters/<str:cluster>/pause/": "a form's address",
    "clusters/<str:cluster>/runs/<uuid:uid>/progress": "a part of a run's page",
    "accounts/logout/": "a form's address",
    "metrics": "for programs",
    "livez": "for programs",
    "readyz": "for programs",
    "healthz": "for programs",
}
FOREIGN: Final = ("admin/", "api/", "admission/")
"""Django's own admin, addresses for programs, and the API's page, which is Swagger's."""
