"""The page that lists clusters."""

from __future__ import annotations

from typing import Any

from policies import roles
from portal.pages.clusters.status import clusters_in_part, standings
from portal.pages.permissions import PortalPage
from sync.models import SyncedObject


class FleetView(PortalPage):
    """All clusters, each in a line."""

    template_name = "clusters/clusters.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The lines and what they add up to."""
        rows = standings(self.request.user)
        connected = [row for row in rows if hasattr(row.cluster, "connection")]
        return super().get_context_data(
            **kwargs,
            rows=rows,
            sees_all=roles.sees_all(self.request.user),
            clusters_in_part=clusters_in_part(self.request.user),
            connected=len(connected),
            reachable=sum(row.cluster.connection.state == "ok" for row in connected),
            in_sync=sum(row.states[SyncedObject.State.IN_SYNC] for row in rows),
            objects=sum(row.states.total() for row in rows),
            drifted=sum(row.drifted for row in rows),
            conflicts=sum(row.conflicts for row in rows),
            alerts=sum(row.alerts for row in rows),
            may_connect=self.may("sync.add_clusterconnection"),
        )
