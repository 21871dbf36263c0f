"""Links to pages of objects whose names a cluster chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.urls import NoReverseMatch, reverse

if TYPE_CHECKING:
    from sync.models import SyncedObject, SyncResult

NO_NAMESPACE: Final = "-"
"""Stands for the namespace of an object that has none; no namespace can be called so."""


def object_address(cluster: str, thing: SyncedObject | SyncResult) -> str:
    """The page of an object; empty where its names do not fit into an address."""
    names = {
        "cluster": cluster,
        "kind": thing.kind,
        "namespace": thing.namespace or NO_NAMESPACE,
        "name": thing.name,
    }
    try:
        return reverse("cluster-object", kwargs=names)
    except NoReverseMatch:
        return ""
