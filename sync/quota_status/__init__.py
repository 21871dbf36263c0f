"""``status`` of a cluster's ResourceQuotas as our ledger has it: due, remembered, written.

Only where the cluster's authority is the portal: elsewhere the controller and the plugin of
Kubernetes write it. What counts and what quotas are is decided elsewhere.
"""

from sync.quota_status.due import StatusWrite, due_statuses
from sync.quota_status.memory import StatusMemory
from sync.quota_status.write import write_statuses

__all__ = ["StatusMemory", "StatusWrite", "due_statuses", "write_statuses"]
