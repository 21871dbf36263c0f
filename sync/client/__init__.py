"""The client of API servers: only this package imports the Kubernetes and HTTP libraries."""

from sync.client.calls import Client
from sync.client.kinds import KINDS, ClientKind

__all__ = ["KINDS", "Client", "ClientKind"]
