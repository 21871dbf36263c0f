"""Client: version, can, get, list, apply, create, replace (status), delete with guards."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from django.conf import settings

from sync.client import answers
from sync.client.kinds import find_resource, kind_at, kind_of, names_alone, status_kind_of
from sync.client.session import ApiRequest, Session, check_server
from sync.errors import (
    ExpiredError,
    GarbageError,
    InvalidError,
    NotFoundError,
    TooLargeError,
)
from sync.values import Limits, Listing, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sync.client.kinds import ClientKind
    from sync.values import Credentials

_PAGE: Final = 500
_SMALL_PAGE: Final = 20
"""Objects in a page if a full page is too large: an API server stores none above 1.5 MB."""
_GRACE: Final = 10.0
"""Seconds that a watch may exceed its requested duration before the server counts as gone."""


class Client:
    """A client of one API server, for the thread that made it; every error is an APIError.

    ``limits`` bound all answers. The server's addresses are resolved once and must satisfy the
    setting GATEHOUSE_CLUSTER_ADDRESSES. Close the client, or use it in a ``with`` block.
    """

    def __init__(self, credentials: Credentials, *, limits: Limits | None = None) -> None:
        check_server(credentials.server)
        self._limits = limits or Limits()
        self._session = Session(credentials, self._limits, settings.GATEHOUSE_CLUSTER_ADDRESSES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def version(self) -> dict[str, Any]:
        """The server's version: ``gitVersion``, ``major``, ``minor`` and more."""
        version_answer = self._session.read_path("version")
        if not isinstance(version_answer.get("gitVersion"), str):
            raise GarbageError("no version of Kubernetes")
        return version_answer

    def server_time(self) -> datetime | None:
        """The server's clock at its last answer, to the second; sends a request if none yet."""
        if self._session.server_time is None:
            self.version()
        return self._session.server_time

    def can(
        self, verb: str, group: str, resource: str, namespace: str = "", *, name: str = ""
    ) -> bool:
        """Whether we have a permission; ``resource`` may name a subresource (``pods/status``).

        Without ``name`` it must cover all objects of the kind.
        """
        plural, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
        if name:
            attributes["name"] = name
        kind = kind_of("SelfSubjectAccessReview")
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": kind.kind,
            "spec": {"resourceAttributes": {**attributes, "namespace": namespace}},
        }
        request = ApiRequest(method="post", kind=kind, body=review)
        status = self._session.send(request).get("status")
        if not isinstance(status, dict) or not isinstance(status.get("allowed", False), bool):
            raise GarbageError("no answer to what is allowed")
        return status.get("allowed", False) is True

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """One object; None if it, its namespace or its kind does not exist."""
        try:
            return self._object("get", ObjectKey(kind, namespace, name))
        except NotFoundError:
            return None

    def list(self, kind: str, namespace: str = "", *, page: int = _PAGE) -> Listing:
        """All objects of a kind, or of one namespace.

        Raises GarbageError for more pages or objects than the limits, and for a repeated object.
        """
        client_kind = kind_of(kind)
        try:
            return self._list_pages(client_kind, namespace, page)
        except ExpiredError:
            # The continue token outlived its snapshot in etcd: only a new list is consistent.
            return self._list_pages(client_kind, namespace, page)
        except TooLargeError:
            return self._list_pages(client_kind, namespace, min(page, _SMALL_PAGE))

    def list_resource(
        self, group: str, resource: str, namespace: str = "", *, contents: bool = False
    ) -> Listing:
        """All objects of any namespaced resource, by its plural name.

        Without ``contents`` only name, namespace, uid and version are read. Raises as ``list``
        does, and NotFoundError for a resource that is not served.
        """
        version, kind = find_resource(self._session.read_path, group, resource)
        listed_kind = kind_at(group, version, resource, **({"kind": kind} if contents else {}))
        try:
            listing = self._list_pages(listed_kind, namespace, _PAGE)
        except ExpiredError:
            listing = self._list_pages(listed_kind, namespace, _PAGE)
        return listing if contents else names_alone(listing)

    def apply(
        self,
        manifest: Mapping[str, Any],
        *,
        dry_run: bool = False,
        force: bool = False,
        resource_version: str = "",
        uid: str = "",
    ) -> dict[str, Any]:
        """Server-side apply as ``gatehouse``, without unknown fields; returns the stored object.

        The object must still have ``resource_version`` and ``uid``, else ConflictError. Give both:
        a version alone would create an object again that is gone. NEW as the version only creates.
        Raises FieldConflictError if another manager owns a field that we change, unless ``force``.
        """
        guard = {"resourceVersion": resource_version, "uid": uid}
        given_guard = {key: text for key, text in guard.items() if text}
        applied = {**manifest, "metadata": {**manifest["metadata"], **given_guard}}
        force_params = {"force": "true"} if force else {}
        return self._write("patch", applied, {**force_params, **_dry_run_parameter(is_dry=dry_run)})

    def create(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Create an object; raises AlreadyExistsError."""
        return self._write("post", manifest, _dry_run_parameter(is_dry=dry_run))

    def replace(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Replace the object; its live version must be the manifest's ``resourceVersion``."""
        if not manifest["metadata"].get("resourceVersion"):
            raise InvalidError("a replacement must say which version it replaces")
        return self._write("put", manifest, _dry_run_parameter(is_dry=dry_run))

    def replace_status(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the object's status; its live version must be the manifest's.

        The manifest is the whole live object: the API server keeps its spec, and takes labels and
        annotations as they are given. Raises ConflictError and NotFoundError.
        """
        if not manifest["metadata"].get("resourceVersion"):
            raise InvalidError("a status must say which version it replaces")
        key, params = ObjectKey.of(manifest), {"fieldValidation": "Strict"}
        return self._object("put", key, manifest, params, kind=status_kind_of(key.kind))

    def delete(  # noqa: PLR0913 - each of them guards
        self,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        resource_version: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete the object if it has this uid (and version, if given).

        Raises NotFoundError, or ConflictError if another object has the name now.
        """
        if not uid:
            raise InvalidError("a deletion must say which object it means")
        guard = {"uid": uid, **({"resourceVersion": resource_version} if resource_version else {})}
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": guard,
            **({"dryRun": ["All"]} if dry_run else {}),
        }
        self._session.send(
            ApiRequest(
                method="delete", kind=kind_of(kind), name=name, namespace=namespace, body=options
            )
        )

    def _list_pages(self, kind: ClientKind, namespace: str, page: int) -> Listing:
        started = datetime.now(UTC)
        objects_by_key: dict[ObjectKey, dict[str, Any]] = {}
        version = token = ""
        for _ in range(self._limits.pages):
            page_params = {"limit": str(page), **({"continue": token} if token else {})}
            request = ApiRequest(method="list", kind=kind, namespace=namespace, params=page_params)
            page_answer = self._session.send(request)
            page_objects, page_version, next_token = answers.checked_page(page_answer, kind)
            for page_object in page_objects:
                if (key := ObjectKey.of(page_object)) in objects_by_key:
                    raise GarbageError(f"{key} is listed twice")
                objects_by_key[key] = page_object
            if len(objects_by_key) > self._limits.objects:
                raise GarbageError(f"a list of more than {self._limits.objects} objects")
            # A watch continues from the first page's version: later pages may have newer ones.
            version = version or page_version
            if not next_token:
                return Listing(
                    tuple(objects_by_key.values()), version, started, self._session.server_time
                )
            if next_token == token:
                break
            token = next_token
        raise GarbageError(f"a list of {kind.kind} without an end", reason="TooManyPages")

    def _write(
        self, method: str, manifest: Mapping[str, Any], params: Mapping[str, str]
    ) -> dict[str, Any]:
        key = ObjectKey.of(manifest)
        return self._object(method, key, manifest, {"fieldValidation": "Strict", **params})

    def _object(
        self,
        method: str,
        key: ObjectKey,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        *,
        kind: ClientKind | None = None,
    ) -> dict[str, Any]:
        """Send a request about one object, or its status; the answer must be that object."""
        kind = kind or kind_of(key.kind)
        request = ApiRequest(
            method=method,
            kind=kind,
            name="" if method == "post" else key.name,
            namespace=key.namespace,
            params=params,
            body=body,
        )
        answered = answers.checked_object(self._session.send(request), kind)
        if ObjectKey.of(answered) != key:
            raise GarbageError(f"another object than {key}")
        return answered


def _dry_run_parameter(*, is_dry: bool) -> dict[str, str]:
    return {"dryRun": "All"} if is_dry else {}
