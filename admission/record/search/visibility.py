"""The places that a query names, to hide queries that reveal a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import QueryDict

from policies import roles

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACCOUNT: Final = "system:serviceaccount:"
_IN_A_NAMESPACE: Final = 3


def sees_places(user: Any, query: str) -> bool:
    """Whether the user sees every cluster and namespace that a query string names."""
    if roles.sees_all(user):
        return True
    fields = QueryDict(query.encode("utf-8", "ignore")).dict()
    cluster = fields.get("cluster", "")
    named = namespaces_named(fields)
    if cluster and not named:
        return roles.sees(user, cluster)
    return all(_sees(user, cluster, each) for each in named)


def namespaces_named(fields: Mapping[str, str]) -> set[str]:
    """Those of the namespace, of a policy ``Kind/namespace/name`` and of a service account."""
    named = {fields.get("namespace", "")}
    policy = fields.get("policy", "").split("/")
    if len(policy) == _IN_A_NAMESPACE:
        named.add(policy[1])
    user = fields.get("user", "")
    if user.startswith(_ACCOUNT):
        named.add(user.removeprefix(_ACCOUNT).partition(":")[0])
    return named - {""}


def _sees(user: Any, cluster: str, namespace: str) -> bool:
    """In this cluster, or in any where none is named."""
    if cluster:
        return roles.sees(user, cluster, namespace)
    return any(each.covers(each.cluster, namespace) for each in roles.bindings_of(user))
