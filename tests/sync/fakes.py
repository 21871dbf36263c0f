"""A cluster in memory that answers the test of a connection with given results."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sync.values import Credentials


class FakeClient:
    """Stands in for the client: ``denied`` are resources, ``error`` is raised by every question."""

    def __init__(
        self,
        *,
        denied: tuple[str, ...] = (),
        uid: str = "cluster-1",
        skew: float = 0.0,
        error: Exception | None = None,
    ) -> None:
        self.denied, self.uid, self.skew, self.error = denied, uid, skew, error
        self.credentials: Credentials | None = None
        self.asked: list[tuple[Any, ...]] = []

    def __call__(self, credentials: Credentials, *, limits: Any = None) -> Self:  # noqa: ARG002 - as the client has it
        self.credentials = credentials
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def version(self) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"gitVersion": "v1.36.3"}

    def server_time(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.skew)

    def can(
        self, verb: str, group: str, resource: str, namespace: str = "", *, name: str = ""
    ) -> bool:
        self.asked.append((verb, group, resource, namespace, name))
        return resource not in self.denied

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"name": name, "uid": self.uid}}
