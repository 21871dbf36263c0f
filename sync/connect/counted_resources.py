"""The resources that a cluster's quotas count, and the permissions to list them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from engine.resource_quota import resources_of
from policies.models import ResourceQuotaRow
from sync.connect.permissions import GRANTS, Grant
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.request import GroupVersionResource
    from policies.models import Cluster

SECRETS: Final = "secrets"
"""The one resource that is listed in the namespaces alone whose quotas count it."""
_RESOURCE: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?")
_SECRETS_REMARK: Final = """\
A quota counts the Secrets of {namespaces}. Kubernetes knows no right to count
Secrets without the right to read them: whoever holds the portal's token could list
them there with all they contain. The portal itself asks for names and uids alone.
Leave out the Roles gatehouse-counts if that is too much: then what such quotas use
is not confirmed, and an alert of the portal (ledger-blind) says so.
"""


def where_counted(
    quotas: Iterable[tuple[str, Iterable[str]]],
) -> dict[GroupVersionResource, set[str]]:
    """Say what is counted in which namespaces, from namespaces and names that quotas bound there.

    Left out are names that cannot be of a resource: they would end in addresses and rights.
    """
    found: dict[GroupVersionResource, set[str]] = defaultdict(set)
    for namespace, names in quotas:
        for each in resources_of(names):
            if _RESOURCE.fullmatch(each.resource) and _GROUP.fullmatch(each.group):
                found[each].add(namespace)
    return found


def grants_of(cluster: Cluster) -> tuple[Grant, ...]:
    """List what the portal must be allowed in a cluster: always, and for what its quotas count."""
    always = {(grant.group, grant.resource) for grant in GRANTS}
    found = _counted_in(cluster)
    more = (
        grant
        for each in sorted(found, key=str)
        if (each.group, each.resource) not in always
        for grant in _grants(each, found)
    )
    return (*GRANTS, *more)


def _grants(
    each: GroupVersionResource, found: Mapping[GroupVersionResource, set[str]]
) -> Iterable[Grant]:
    places = sorted(found[each]) if str(each) == SECRETS else [""]
    for place in places:
        yield Grant(group=each.group, resource=each.resource, verbs=("list",), namespace=place)


def remark_on(grants: Iterable[Grant]) -> str:
    """Say in words what is not plain from the rights themselves; empty where they are harmless."""
    places = [grant.namespace for grant in grants if grant.resource == SECRETS]
    return _SECRETS_REMARK.format(namespaces=", ".join(places)) if places else ""


def _counted_in(cluster: Cluster) -> dict[GroupVersionResource, set[str]]:
    """Read it from the stored quotas; of an unsaved cluster there are none."""
    if cluster.pk is None:
        return {}
    rows = ResourceQuotaRow.objects.filter(quota__namespace__cluster=cluster)
    bound: dict[str, set[str]] = defaultdict(set)
    for namespace, name in rows.values_list("quota__namespace__name", "resource").order_by():
        bound[namespace].add(name)
    there = _namespaces_there(cluster)
    return where_counted((n, names) for n, names in bound.items() if not there or n in there)


def _namespaces_there(cluster: Cluster) -> set[str]:
    """Name those that were seen in the cluster; empty where nobody has looked yet."""
    seen = SyncedObject.objects.filter(cluster=cluster, kind="Namespace", gone=None)
    return set(seen.filter(theirs__isnull=False).values_list("name", flat=True))
