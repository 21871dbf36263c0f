"""The only writers of policies: validate, save, add a revision, notify, in one transaction."""

from policies.services.bulk_create import create_many
from policies.services.clusters import (
    delete_cluster,
    delete_namespace,
    delete_priority_class,
    goes_with,
    issue_webhook_credential,
    revoke_webhook_credential,
    save_cluster,
    save_namespace,
    save_priority_class,
    set_authority,
    set_limited_resources,
)
from policies.services.manifests import (
    KINDS,
    apply_manifest,
    ensure_namespace,
    find_object,
    read_object,
    require_namespace,
    restore_revision,
    take_over,
)
from policies.services.observed import Uncounted, not_native, note_counted, note_native, uncounted
from policies.services.policies import delete_policy, save_policy
from policies.services.preview import Preview, lint_previews, preview_many, store_previews
from policies.services.roles import bind_role, role_history, unbind_role
from policies.services.write import (
    Saved,
    StaleRevisionError,
    in_bulk,
    lint,
    lint_all,
    lock_used,
    policy_write,
)

__all__ = [
    "KINDS",
    "Preview",
    "Saved",
    "StaleRevisionError",
    "Uncounted",
    "apply_manifest",
    "bind_role",
    "create_many",
    "delete_cluster",
    "delete_namespace",
    "delete_policy",
    "delete_priority_class",
    "ensure_namespace",
    "find_object",
    "goes_with",
    "in_bulk",
    "issue_webhook_credential",
    "lint",
    "lint_all",
    "lint_previews",
    "lock_used",
    "not_native",
    "note_counted",
    "note_native",
    "policy_write",
    "preview_many",
    "read_object",
    "require_namespace",
    "restore_revision",
    "revoke_webhook_credential",
    "role_history",
    "save_cluster",
    "save_namespace",
    "save_policy",
    "save_priority_class",
    "set_authority",
    "set_limited_resources",
    "store_previews",
    "take_over",
    "unbind_role",
    "uncounted",
]
