"""Every action that pages offer, and the API operations that do the same.

A row of ``ACTIONS``: the routes that take the action, the template with its control, the control,
and the operations, or a dash with the reason why there is none. A control is a button: ``name`` or
``name=value``, with ``*`` for what is rendered, and empty for a button without a name.
"""

from __future__ import annotations

EDITORS = "limited-resources policy policy-new priority-class priority-class-new"
CLASSES = "class-edit class-new"
_FORMS = f"{EDITORS} {CLASSES}"
"""They share the parts of one editor."""
_FORM = "- only changes the form, and stores nothing but the person's own draft"
_PLAN_FORM = "- only changes the form, and stores nothing"
_SIGN_IN = "- signing in and out is for browsers; programs send a token"
_TOKEN = "POST /api/v1/tokens/ + POST /api/v1/serviceaccounts/{account}/tokens/"
_REVOKE = """
    DELETE /api/v1/tokens/{id}/
    + DELETE /api/v1/serviceaccounts/{account}/tokens/{id}/
"""
_REVOKE_OF_OTHERS = "- an admin looks at somebody's tokens first; programs revoke their own"
_INVITE = "- whoever invites hands the link over; programs have service accounts"
_END_ACCOUNT = "DELETE /api/v1/serviceaccounts/{name}/"
_TRY = "POST /api/v1/simulations/"
_KEEP = "POST /api/v1/tests/ + PUT /api/v1/tests/{id}/"
_RUN_TESTS = "POST /api/v1/tests/run/"
_SAVE = """
    POST /api/v1/limitranges/ + PUT /api/v1/limitranges/{id}/
    + POST /api/v1/metadatapolicies/ + PUT /api/v1/metadatapolicies/{id}/
    + POST /api/v1/resourcequotas/ + PUT /api/v1/resourcequotas/{id}/
    + POST /api/v1/priorityclasses/ + PUT /api/v1/priorityclasses/{id}/
    + PUT /api/v1/limitedresources/{name}/
    + POST /api/v1/namespaceclasses/ + PUT /api/v1/namespaceclasses/{name}/
"""
_CHECK = f"{_TRY} + {_SAVE}"
_DELETE = """
    DELETE /api/v1/limitranges/{id}/ + DELETE /api/v1/metadatapolicies/{id}/
    + DELETE /api/v1/resourcequotas/{id}/ + DELETE /api/v1/priorityclasses/{id}/
    + DELETE /api/v1/namespaceclasses/{name}/
"""
_APPLY = "POST /api/v1/apply/"  # a preview is a dry run
_RUN = "POST /api/v1/runs/"
_TAKE = "POST /api/v1/ownerships/"
_RELEASE = "DELETE /api/v1/ownerships/{id}/"
_RESOLVE = "POST /api/v1/syncedobjects/{id}/resolve/"
_UNDO = "POST /api/v1/syncedobjects/{id}/undo/"
_CONNECT = "PUT /api/v1/clusters/{cluster}/connection/"
_PAUSE = "POST /api/v1/clusters/{cluster}/pause/"
_RESUME = "POST /api/v1/clusters/{cluster}/resume/"
_AUTHORITY = """
    GET /api/v1/clusters/{cluster}/authority/effect/ + PUT /api/v1/clusters/{cluster}/authority/
"""
_PREVIEW_CLASS = """
    POST /api/v1/namespaceclasses/preview/ + POST /api/v1/simulations/classrestarts/
"""
_LEAVE_CLASS = "POST /api/v1/namespaceclasses/{name}/leaving/"
_PROPOSE = "POST /api/v1/changes/ + POST /api/v1/changes/{id}/propose/"
_REPLAY = "POST /api/v1/replays/"
_REPLAY_CHANGE = "POST /api/v1/changes/{id}/replay/"
_RULE = "POST /api/v1/approvalrules/"
_SET_RULE = "PATCH /api/v1/approvalrules/{id}/"
_MOVE_RULE = "POST /api/v1/approvalrules/{id}/move/"
_RESTORE = "POST /api/v1/revisions/{id}/restore/"
_RESTARTS = "policy-new-restarts policy-restarts"
_REVISIONS = "limited-resources-revision policy-revision priority-class-revision"

ACTIONS = (
    # The account
    ("login", "account/sign_in.html", "", _SIGN_IN),
    ("login", "account/sign_in.html", "person=*", "- the demo's alone, for people who look at it"),
    ("logout", "parts/_top.html", "", _SIGN_IN),
    ("account-password", "account/password.html", "", "- a password is for signing in alone"),
    ("invitation", "account/invitation.html", "", _SIGN_IN),
    ("account service-account", "access/_tokens.html", "", _TOKEN),
    ("account service-account", "access/_tokens.html", "revoke", _REVOKE),
    # Roles, service accounts and legal holds
    ("people", "access/_role_form.html", "", "POST /api/v1/rolebindings/"),
    ("people", "access/_invite_form.html", "invite=1", _INVITE),
    ("people", "access/_person.html", "link=*", _INVITE),
    ("people", "access/_sources.html", "take", "DELETE /api/v1/rolebindings/{id}/"),
    ("people", "access/_person.html", "revoke", _REVOKE_OF_OTHERS),
    ("people-tokens", "access/tokens.html", "", _REVOKE_OF_OTHERS),
    ("people-tokens", "access/tokens.html", "revoke", _REVOKE_OF_OTHERS),
    ("people-sign-ins", "access/sign_ins.html", "end", _SIGN_IN),
    ("people-roles", "access/roles.html", "take", "DELETE /api/v1/rolebindings/{id}/"),
    ("service-accounts", "access/service_accounts.html", "", "POST /api/v1/serviceaccounts/"),
    ("service-account", "access/service_account.html", "end=yes", _END_ACCOUNT),
    ("holds", "access/legal_holds.html", "", "POST /api/v1/legalholds/"),
    ("holds", "access/legal_holds.html", "release", "POST /api/v1/legalholds/{id}/release/"),
    # Decisions
    ("decision-view-save", "decisions/_actions.html", "", "POST /api/v1/savedviews/"),
    ("decision-view-save", "decisions/_actions.html", "", "PATCH /api/v1/savedviews/{id}/"),
    ("decision-view-drop", "decisions/_actions.html", "", "DELETE /api/v1/savedviews/{id}/"),
    ("kept-test", "kept_tests/test.html", "do=delete", "DELETE /api/v1/tests/{id}/"),
    ("kept-test kept-test-new", "kept_tests/test.html", "do=save", _KEEP),
    ("kept-test kept-test-new", "kept_tests/test.html", "do=run", _RUN_TESTS),
    ("kept-test", "kept_tests/test.html", "do=run", _RUN_TESTS),
    ("kept-test kept-test-new", "kept_tests/test.html", "do=accept", _FORM),
    ("kept-test-new", "kept_tests/_keep.html", "do=fill", _FORM),
    ("decision-keep", "decisions/keep.html", "", "POST /api/v1/tests/"),
    # Policies
    (_FORMS, "policies/editor.html", "", _CHECK),  # checks, as ?dryRun=All does
    (_FORMS, "policies/editor/_delete.html", "do=delete", _DELETE),
    ("policy", "policies/editor/_delete.html", "do=propose-deletion", _PROPOSE),
    (EDITORS, "policies/conflict.html", "do=save", _SAVE),
    (_FORMS, "policies/editor/_save.html", "", _CHECK),
    (_FORMS, "policies/editor/_save.html", "do=save", _SAVE),
    (EDITORS, "policies/editor/_observed.html", "do=promote", _FORM),  # then the dialog saves
    (_FORMS, "policies/editor/_outcome.html", "do=take-form", _FORM),
    (_FORMS, "policies/editor/_outcome.html", "do=take-yaml", _FORM),
    (_FORMS, "policies/editor/_outcome.html", "do=use:*:*", _FORM),
    (EDITORS, "policies/editor/_impact.html", "do=use:*:*", _FORM),
    (EDITORS, "policies/editor/_impact.html", "do=use:enforcement:audit", _FORM),
    (EDITORS, "policies/editor/_places.html", "do=place", _FORM),
    (EDITORS, "policies/editor/_places.html", "do=unplace:*", _FORM),
    (EDITORS, "policies/editor/_sides.html", "do=forget", _FORM),
    (EDITORS, "policies/editor/_status.html", "do=forget", _FORM),
    (_FORMS, "policies/editor/_add.html", "do=*", _FORM),
    (_FORMS, "policies/editor/_drop.html", "do=drop:*:*", _FORM),
    (EDITORS, "policies/editor/_limited.html", "do=drop:entry:*", _FORM),
    (EDITORS, "policies/editor/_metadata_policy.html", "do=drop:rule:*", _FORM),
    (EDITORS, "policies/editor/_metadata_policy.html", "do=ready:*", _FORM),
    (EDITORS, "policies/editor/_quota_matrix.html", "do=add:hard:*", _FORM),
    (EDITORS, "policies/editor/_examples.html", "do=try:*", _TRY),
    (EDITORS, "policies/editor/_try.html", "do=try", _TRY),
    (EDITORS, "policies/editor/_try.html", "do=try:recent", _TRY),
    (_RESTARTS, "policies/editor/_impact.html", "", "POST /api/v1/simulations/restarts/"),
    ("policy-export policy-bulk", "policies/_bulk.html", "do=plan", _APPLY),
    ("policy-bulk", "policies/_bulk.html", "do=propose", _PROPOSE),
    ("policy-bulk", "policies/_bulk.html", "do=save", f"{_APPLY} + {_DELETE}"),
    ("policy-undo cluster-undo", "parts/_messages.html", "", f"{_RESTORE} + {_PAUSE} + {_RESUME}"),
    ("policy-import", "policies/import.html", "do=plan", _APPLY),
    ("policy-import", "policies/import.html", "do=save", _APPLY),
    ("policy-import", "policies/import.html", "do=propose", _PROPOSE),
    (_REVISIONS, "changes/version.html", "", _RESTORE),
    ("namespace-simulate", "namespaces/_form.html", "", _TRY),
    # Replays
    ("replay-new", "replays/new.html", "", _REPLAY),
    ("replay-new", "policies/editor/_impact.html", "cluster=*", _REPLAY),
    ("replay", "replays/replay.html", "do=again", _REPLAY),
    ("replay", "replays/replay.html", "do=cancel", "POST /api/v1/replays/{uid}/cancel/"),
    # Quotas
    ("quota", "quotas/_limits.html", "", "PUT /api/v1/resourcequotas/{id}/"),
    ("quota-raise", "quotas/board.html", "", "PUT /api/v1/resourcequotas/{id}/"),
    # Changes
    ("change-new", "changes/sets/new.html", "", "POST /api/v1/changes/"),
    ("change", "changes/sets/_steps.html", "do=abandon", "POST /api/v1/changes/{id}/abandon/"),
    ("change", "changes/sets/_steps.html", "do=withdraw", "POST /api/v1/changes/{id}/withdraw/"),
    ("change", "changes/sets/_steps.html", "do=submit", "POST /api/v1/changes/{id}/submit/"),
    ("change", "changes/sets/_steps.html", "do=publish", "POST /api/v1/changes/{id}/publish/"),
    ("change", "changes/sets/_steps.html", "do=approve", "POST /api/v1/changes/{id}/approve/"),
    ("change", "changes/sets/_steps.html", "do=review", "POST /api/v1/changes/{id}/review/"),
    ("change", "changes/sets/_checks.html", "do=runchecks", "POST /api/v1/changes/{id}/runchecks/"),
    (
        "change",
        "changes/sets/_emergency.html",
        "do=publishnow",
        "POST /api/v1/changes/{id}/publishnow/",
    ),
    (
        "change",
        "changes/sets/_comment.html",
        "do=requestchanges",
        "POST /api/v1/changes/{id}/requestchanges/",
    ),
    (
        "change-rollout",
        "changes/sets/rollout/_plan.html",
        "do=plan",
        "PUT /api/v1/changes/{id}/rollout/",
    ),
    (
        "change-rollout",
        "changes/sets/rollout/_plan.html",
        "do=plantext",
        "PUT /api/v1/changes/{id}/rollout/",
    ),
    *(
        ("change-rollout", f"changes/sets/rollout/{part}.html", f"do={verb}", _PLAN_FORM)
        for part, verb in (
            ("_plan", "addwave"),
            ("_plan", "addguard"),
            ("_wave", "upwave:*"),
            ("_wave", "downwave:*"),
            ("_wave", "dropwave:*"),
            ("_guard", "dropguard:*"),
            ("_places", "preview"),
        )
    ),
    (
        "change-rollout",
        "changes/sets/rollout/_stages.html",
        "do=start",
        "POST /api/v1/changes/{id}/rollout/start/",
    ),
    (
        "change-rollout",
        "changes/sets/rollout/_stages.html",
        "do=advance:*",
        "POST /api/v1/changes/{id}/rollout/advance/",
    ),
    (
        "change-rollout",
        "changes/sets/rollout/_stages.html",
        "do=stop",
        "POST /api/v1/changes/{id}/rollout/stop/",
    ),
    (
        "change-rollout",
        "changes/sets/rollout/_stages.html",
        "do=resume",
        "POST /api/v1/changes/{id}/rollout/resume/",
    ),
    ("change", "changes/sets/_steps.html", "do=revert", "POST /api/v1/changes/{id}/revert/"),
    (
        "change change-timeline",
        "changes/sets/_comment.html",
        "do=comment",
        "POST /api/v1/changes/{id}/comment/",
    ),
    ("change", "changes/sets/overview.html", "do=describe", "PATCH /api/v1/changes/{id}/"),
    ("change change-replay", "changes/sets/_replay_button.html", "do=replay", _REPLAY_CHANGE),
    ("policy policy-new", "policies/editor/_save.html", "do=propose", _PROPOSE),
    ("change-diff", "changes/sets/_item.html", "do=merge:*", "POST /api/v1/changes/{id}/merge/"),
    (
        "change-diff",
        "changes/sets/_item.html",
        "do=merge:*:mine",
        "POST /api/v1/changes/{id}/merge/",
    ),
    (
        "change-diff",
        "changes/sets/_item.html",
        "do=merge:*:theirs",
        "POST /api/v1/changes/{id}/merge/",
    ),
    (
        "change-diff",
        "changes/sets/_item.html",
        "do=takeout:*",
        "POST /api/v1/changes/{id}/takeout/",
    ),
    # Rules of approval
    ("change-rules", "changes/rules/rules.html", "preset", _RULE),
    ("change-rules", "changes/rules/rules.html", "preset=tests", _RULE),
    ("change-rules", "changes/rules/_rule_acts.html", "up=*", _MOVE_RULE),
    ("change-rules", "changes/rules/_rule_acts.html", "down=*", _MOVE_RULE),
    ("change-rules", "changes/rules/_rule_acts.html", "enable=*", _SET_RULE),
    ("change-rules", "changes/rules/_rule_acts.html", "disable=*", _SET_RULE),
    (
        "change-rules",
        "changes/rules/_rule_acts.html",
        "delete=*",
        "DELETE /api/v1/approvalrules/{id}/",
    ),
    ("change-rule change-rule-new", "changes/rules/rule.html", "", f"{_RULE} + {_SET_RULE}"),
    # Namespace classes
    (CLASSES, "classes/editor/_impact.html", "do=impact", _PREVIEW_CLASS),
    ("class-page", "classes/class.html", "leave=*", _LEAVE_CLASS),
    ("class-page", "classes/class.html", "give_back", "POST /api/v1/classpolicies/{id}/giveback/"),
    # Clusters
    ("cluster-connect", "clusters/connect.html", "do=test", _CONNECT),  # as ?dryRun=All does
    ("cluster-connect", "clusters/connect.html", "do=test", _CONNECT),
    ("cluster-connect", "clusters/connect.html", "do=test", _CONNECT),
    ("cluster-connect", "clusters/connect.html", "do=connect", _CONNECT),
    ("cluster-setup", "clusters/setup.html", "", "- a secret: programs use cluster_manifests"),
    ("cluster-ownership", "clusters/setup.html", "take=ownership", _TAKE),
    ("cluster-pause", "clusters/settings.html", "do=pause", _PAUSE),
    ("cluster-pause", "clusters/_banner.html", "do=resume", _RESUME),
    ("cluster-bulk", "clusters/_bulk_bar.html", "act=pause", _PAUSE),
    ("cluster-bulk", "clusters/_bulk_bar.html", "act=resume", _RESUME),
    ("cluster-bulk", "clusters/_bulk_bar.html", "act=sync", _RUN),
    ("cluster-bulk", "clusters/_bulk.html", "do=save", _PAUSE),
    ("cluster-authority", "clusters/authority.html", "", _AUTHORITY),
    (
        "cluster-excluded-namespaces",
        "clusters/_excluded_namespaces.html",
        "",
        "PATCH /api/v1/clusters/{name}/",
    ),
    (
        "cluster-failure-policy",
        "clusters/_failure_policy.html",
        "",
        "PATCH /api/v1/clusters/{name}/",
    ),
    ("cluster-runs", "clusters/_run_buttons.html", "mode=preview", _RUN),
    ("cluster-runs", "clusters/_run_buttons.html", "mode=import", _RUN),
    ("cluster-runs", "clusters/_run_buttons.html", "mode=sync", _RUN),
    ("cluster-run", "clusters/run.html", "", "POST /api/v1/runs/{uid}/confirm/"),
    ("drift-settle", "clusters/_settle.html", "", _RESOLVE),
    ("drift-settle", "clusters/_settle_actions.html", "do=restore", _RESOLVE),
    ("drift-settle", "clusters/_settle_actions.html", "do=accept", _RESOLVE),
    ("drift-settle", "clusters/_settle_actions.html", "do=release", _RELEASE),
    ("cluster-object", "clusters/object.html", "take=choices", _RESOLVE),
    ("cluster-object", "clusters/object.html", "take=ours", _RESOLVE),
    ("cluster-object", "clusters/object.html", "take=theirs", _RESOLVE),
    ("cluster-object", "clusters/object.html", "take=ownership", _TAKE),
    ("cluster-object", "clusters/object.html", "take=undo", _UNDO),
    ("cluster-ownership", "clusters/ownership.html", "take=ownership", _TAKE),
    ("cluster-ownership", "clusters/ownership.html", "release", _RELEASE),
    ("cluster-ownership", "clusters/_own_bar.html", "do=take", _TAKE),
    ("cluster-ownership", "clusters/_own_bar.html", "do=release", _RELEASE),
)
