"""The matrix of roles: the calls that answer alike, by what each role gets.

A line is a method, an address, and the fields of a form; words in braces are those of ``world``.
The JSON that an operation of the API gets is in ``BODIES``, by the method and the end of its
address.
The answers are statuses in the order of ``ROLES``, and of a list how many it has: ``200:3``.
"""

from __future__ import annotations

from typing import Any, Final

from tests.changes import limit
from tests.kept_tests import kept
from tests.portal.roles.world import PLAN

# nobody elsewhere viewer auditor editor approver admin author
MATRIX: Final = {
    "200 200 200 200 200 200 200 200": """
GET /changes/
GET /changes/-/week/
GET /clusters/-/changes/
GET /tests/
GET /tests/export/
GET /replays/
GET /replays/new/
GET /compare/?from={then}
GET /compare/?from={then}&cluster=prod&namespace=team
GET /policies/?at={then}
GET /quotas/?at={then}
GET /clusters/?at={then}
GET /api/v1/compare/?from={then}
""",
    "403 200 403 403 200 403 200 200": """
GET /changes/-/new/
""",
    "403 302 403 403 302 403 302 302": """
POST /changes/-/new/ title=one
""",
    "403 403 403 403 403 403 200 403": """
GET /changes/-/rules/
GET /changes/-/rules/new/
GET /changes/-/rules/{rule}/
PATCH /api/v1/approvalrules/{rule}/
POST /api/v1/approvalrules/{rule}/move/
""",
    "403 403 403 403 403 403 302 403": """
POST /changes/-/rules/ preset=
POST /changes/-/rules/ preset=tests
POST /changes/-/rules/ up={rule}
POST /changes/-/rules/ down={rule}
POST /changes/-/rules/ enable={rule}
POST /changes/-/rules/ disable={rule}
POST /changes/-/rules/ delete={rule}
POST /changes/-/rules/new/ name=other&approvers=1&role=approver
POST /changes/-/rules/{rule}/ name=other&approvers=1&role=approver&seen={revision}
""",
    "404 404 200 200 200 200 200 200": """
GET /changes/{waiting}/
GET /changes/{waiting}/diff/
GET /changes/{waiting}/replay/
GET /changes/{waiting}/tests/
GET /changes/{waiting}/rollout/
GET /changes/{published}/effect/
GET /changes/{waiting}/timeline/
GET /tests/{test}/
POST /tests/{test}/ do=run
POST /tests/{test}/ do=accept
GET /replays/{replay}/
GET /replays/{replay}/progress
GET /clusters/prod/?at={then}
GET /clusters/prod/namespaces/team/?at={then}
GET /api/v1/decisions/{decision}/redecide/?at={then}
GET /api/v1/changes/{waiting}/
POST /api/v1/changes/{waiting}/comment/
GET /api/v1/changes/{published}/effect/
GET /api/v1/changes/{approved}/rollout/
GET /api/v1/changes/{rolling}/rollout/figures/
GET /api/v1/replays/{replay}/
GET /api/v1/tests/{test}/
GET /api/v1/tests/{test}/managers/
GET /api/v1/namespaces/{space}/?at={then}
GET /api/v1/namespaces/{space}/effective/?at={then}
GET /api/v1/limitranges/{range}/?at={then}
GET /api/v1/metadatapolicies/{mdp}/?at={then}
GET /api/v1/namespaceclasses/gold/?at={then}
GET /api/v1/resourcequotas/{quota}/?at={then}
""",
    "404 404 403 403 302 403 302 302": """
POST /changes/{draft}/ do=abandon
POST /changes/{waiting}/ do=withdraw
POST /changes/{draft}/ do=submit
POST /changes/{approved}/ do=publish
POST /changes/{published}/ do=revert
POST /changes/{draft}/ do=describe&title=other
POST /changes/{draft}/diff/ do=merge:{item}
POST /changes/{draft}/diff/ do=merge:{item}:mine
POST /changes/{draft}/diff/ do=merge:{item}:theirs
POST /changes/{draft}/diff/ do=takeout:{item}
POST /changes/{approved}/rollout/ do=start
POST /changes/{rolling}/rollout/ do=advance:1
POST /changes/{rolling}/rollout/ do=stop
POST /changes/{stopped}/rollout/ do=resume
POST /tests/{test}/ do=delete
""",
    "404 404 409 409 302 302 302 409": """
POST /changes/{waiting}/ do=approve
POST /changes/{emergency}/ do=review
POST /changes/{waiting}/ do=requestchanges&note=other
""",
    "404 404 403 403 302 302 302 302": """
POST /changes/{waiting}/ do=runchecks
""",
    "404 404 403 403 403 403 302 403": """
POST /changes/{waiting}/ do=publishnow&note=outage
""",
    "404 404 302 302 302 302 302 302": """
POST /changes/{waiting}/ do=comment&note=well
POST /changes/{waiting}/timeline/ do=comment&note=well
POST /changes/{draft}/replay/ do=replay
POST /replays/{replay}/ do=again
POST /replays/{replay}/ do=cancel
""",
    "404 404 403 403 422 403 422 422": """
POST /changes/{draft}/rollout/ do=plan
POST /changes/{draft}/rollout/ do=plantext&plan={{"waves":[{{}}]}}
POST /tests/new/prod/team/ do=save
POST /tests/new/prod/team/ do=run
POST /tests/new/prod/team/ do=accept
POST /tests/{test}/ do=save
POST /decisions/{decision}/keep name=kept&verdict=allow
""",
    "404 404 403 403 200 403 200 200": """
POST /changes/{draft}/rollout/ do=addwave
POST /changes/{draft}/rollout/ do=addguard
POST /changes/{draft}/rollout/ do=upwave:0
POST /changes/{draft}/rollout/ do=downwave:0
POST /changes/{draft}/rollout/ do=dropwave:0
POST /changes/{draft}/rollout/ do=dropguard:0
POST /changes/{draft}/rollout/ do=preview
GET /tests/new/prod/team/
POST /tests/new/prod/team/ do=fill
GET /decisions/{decision}/keep
PATCH /api/v1/changes/{draft}/
POST /api/v1/changes/{draft}/abandon/
POST /api/v1/changes/{draft}/merge/
POST /api/v1/changes/{draft}/propose/
POST /api/v1/changes/{approved}/publish/
POST /api/v1/changes/{published}/revert/
PUT /api/v1/changes/{draft}/rollout/
POST /api/v1/changes/{approved}/rollout/start/
POST /api/v1/changes/{rolling}/rollout/advance/
POST /api/v1/changes/{rolling}/rollout/stop/
POST /api/v1/changes/{stopped}/rollout/resume/
POST /api/v1/changes/{draft}/submit/
POST /api/v1/changes/{draft}/takeout/
POST /api/v1/changes/{waiting}/withdraw/
PUT /api/v1/tests/{test}/
PATCH /api/v1/tests/{test}/
""",
    "422 422 422 422 422 422 422 422": """
POST /replays/new/ cluster=prod
""",
    "200:0 200:0 200:1 200:1 200:1 200:1 200:1 200:1": """
GET /api/v1/approvalrulechanges/
GET /api/v1/replays/
GET /api/v1/tests/
GET /api/v1/metadatapolicies/?at={then}
GET /api/v1/namespaceclasses/?at={then}
GET /api/v1/resourcequotas/?at={then}
""",
    "200:0 200:1 200:1 200:1 200:1 200:1 200:1 200:1": """
GET /api/v1/approvalrules/
GET /api/v1/clusters/?at={then}
GET /api/v1/priorityclasses/?at={then}
""",
    "403 403 403 403 403 403 201 403": """
POST /api/v1/approvalrules/
""",
    "404 200 200 200 200 200 200 200": """
GET /api/v1/approvalrules/{rule}/
GET /api/v1/clusters/prod/?at={then}
GET /api/v1/priorityclasses/{priority}/?at={then}
""",
    "403 403 403 403 403 403 204 403": """
DELETE /api/v1/approvalrules/{rule}/
""",
    "200:0 200:0 200:7 200:7 200:7 200:7 200:7 200:7": """
GET /api/v1/changes/
""",
    "403 201 403 403 201 403 201 201": """
POST /api/v1/changes/
""",
    "404 404 403 403 200 200 200 403": """
POST /api/v1/changes/{waiting}/approve/
POST /api/v1/changes/{waiting}/requestchanges/
POST /api/v1/changes/{emergency}/review/
""",
    "404 404 403 403 403 403 200 403": """
POST /api/v1/changes/{waiting}/publishnow/
""",
    "404 404 202 202 202 202 202 202": """
POST /api/v1/changes/{draft}/replay/
""",
    "404 404 403 403 200 200 200 200": """
POST /api/v1/changes/{waiting}/runchecks/
""",
    "422 422 202 202 202 202 202 202": """
POST /api/v1/replays/
""",
    "404 404 403 403 403 403 200 200": """
POST /api/v1/replays/{replay}/cancel/
""",
    "403 403 403 403 201 403 201 201": """
POST /api/v1/tests/
""",
    "404 404 403 403 204 403 204 204": """
DELETE /api/v1/tests/{test}/
""",
    "400 422 200:1 200:1 200:1 200:1 200:1 200:1": """
POST /api/v1/tests/run/
""",
    "200:0 200:1 200:2 200:2 200:2 200:2 200:2 200:2": """
GET /api/v1/namespaces/?at={then}
""",
    "200:0 200:1 200:9 200:9 200:9 200:9 200:9 200:9": """
GET /api/v1/limitranges/?at={then}
""",
    "410 410 410 410 410 410 410 410": """
GET /api/v1/quotausage/?at={then}
GET /api/v1/resourcequotas/{quota}/usage/?at={then}
""",
    "200:0 200:2 200:0 200:0 200:0 200:0 200:9 200:0": """
GET /api/v1/rolebindings/?at={then}
""",
    "404 200 404 404 404 404 200 404": """
GET /api/v1/rolebindings/{binding}/?at={then}
""",
}
_TEST: Final = {"cluster": "prod", **kept(name="other")}
BODIES: Final[dict[str, Any]] = {
    "POST approvalrules/": {"name": "other", "approvers": 1, "role": "approver"},
    "PATCH approvalrules/{rule}/": {"approvers": 2},
    "POST approvalrules/{rule}/move/": {"places": 1},
    "POST changes/": {"title": "one"},
    "PATCH changes/{draft}/": {"title": "other"},
    "POST changes/{waiting}/approve/": {"content_hash": "{waiting_hash}"},
    "POST changes/{waiting}/comment/": {"note": "well"},
    "POST changes/{draft}/merge/": {"object": "{item}"},
    "POST changes/{draft}/propose/": {"cluster": "prod", "documents": [limit("3", name="new")]},
    "POST changes/{waiting}/publishnow/": {"reason": "an outage"},
    "POST changes/{waiting}/requestchanges/": {"note": "other"},
    "PUT changes/{draft}/rollout/": PLAN,
    "POST changes/{rolling}/rollout/advance/": {"expected": 1},
    "POST changes/{draft}/takeout/": {"objects": ["{item}"]},
    "POST replays/": {"cluster": "prod", "manifests": [limit("3", name="new")]},
    "POST tests/": _TEST,
    "PUT tests/{test}/": {"cluster": "prod", **kept()},
    "PATCH tests/{test}/": {"reason": "x"},
    "POST tests/run/": {"cluster": "prod", "namespace": "team"},
}
