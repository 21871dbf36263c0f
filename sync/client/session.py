"""Session: ApiRequest prepared by the library; an answer read whole."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx2
import msgspec
from lightkube.config.client_adapter import ConnectionParams, user_auth
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster, Context, User
from lightkube.core.generic_client import ALL_NS, BasicRequest, GenericSyncClient
from lightkube.types import PatchType

from engine.wire import dumps
from sync.client import answers
from sync.client.kinds import METADATA
from sync.client.network import Meter, Transport
from sync.errors import InvalidError
from sync.values import FIELD_MANAGER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sync.addresses import Network as Addresses
    from sync.client.kinds import ClientKind
    from sync.values import Credentials, Limits

_FIRST_ERROR = 400
_HIGHEST_PORT = 65535
_HOST = re.compile(r"[-A-Za-z0-9.:_]+")
_CONTENT_TYPES = {"patch": {"Content-Type": PatchType.APPLY.value}}
_METADATA_ALONE = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
"""No fallback to full objects: a server that cannot omit the contents answers 406."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request: a method of the library, its object or kind, parameters and body."""

    method: str
    kind: ClientKind
    name: str = ""
    namespace: str = ""
    params: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None


class Session:
    """The connections to one server, for one thread."""

    def __init__(
        self, credentials: Credentials, limits: Limits, allowed: Sequence[Addresses]
    ) -> None:
        self.server_time: datetime | None = None
        self._meter = Meter(limits)
        self._limits = limits
        self._thread = threading.get_ident()
        self._transport = Transport(credentials, self._meter, allowed)
        cluster_name = "cluster"
        configuration = SingleConfig(
            context_name=cluster_name,
            context=Context(cluster=cluster_name),
            cluster=Cluster(server=credentials.server),
            user=User(token=credentials.token or None),
        )
        self._library = _LightkubeClient(
            ConnectionParams(timeout=None, trust_env=False, transport=self._transport),
            configuration,
            field_manager=FIELD_MANAGER,
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def send(self, request: ApiRequest) -> dict[str, Any]:
        """Send a request and read the whole answer."""
        return self._read_answer(self._prepared_request(request))

    def read_path(self, path: str) -> dict[str, Any]:
        """Read a path that belongs to no kind, such as ``version``."""
        return self._read_answer(BasicRequest("GET", path))

    def _read_answer(self, request: BasicRequest) -> dict[str, Any]:
        self._meter.start(self._limits.seconds)
        response = self._open_response(request)
        return answers.decode(b"".join(response.iter_raw()))

    def _open_response(self, request: BasicRequest) -> httpx2.Response:
        """Send a request; raises the error in the answer, else leaves the body to be read."""
        # The meter belongs to one answer at a time: another thread would reset its limits.
        if threading.get_ident() != self._thread:
            raise RuntimeError("a client belongs to the thread that made it")
        response = self._library.send(self._library.build_adapter_request(request), stream=True)
        self.server_time = answers.date_of(response) or self.server_time
        if response.status_code >= _FIRST_ERROR:
            raise answers.error_of(response, b"".join(response.iter_raw()))
        return cast("httpx2.Response", response)

    def _prepared_request(self, request: ApiRequest) -> BasicRequest:
        """Let the library build the path, and give it our own body as it stands."""
        _check_address(request)
        basic_request = self._library.prepare_request(
            request.method,
            request.kind.model,
            None if request.body is None else _BodyWithoutName,
            request.name or None,
            (request.namespace or ALL_NS) if request.kind.is_namespaced else None,
            params=dict(request.params or {}),
            headers=_METADATA_ALONE
            if request.kind.kind == METADATA
            else _CONTENT_TYPES.get(request.method),
        )
        if request.body is not None:
            # The library's models would drop unknown fields. Manifests may hold lone surrogates.
            basic_request.data = msgspec.Raw(dumps(request.body).encode("utf-8", "surrogatepass"))
        return basic_request


class _BodyWithoutName:
    """An object without names: the library would compare them with those in the path."""

    class metadata:  # noqa: N801 - the field's name
        """No names."""

        name = namespace = None


class _LightkubeClient(GenericSyncClient):
    """The library with our transport alone: its own writes keys to files and uses proxies."""

    @staticmethod
    def AdapterClient(config: SingleConfig, parameters: ConnectionParams) -> httpx2.Client:  # noqa: N802 - the library's name
        """Make the HTTP client."""
        return httpx2.Client(
            base_url=config.cluster.server,
            auth=user_auth(config.user),
            transport=parameters.transport,
            timeout=None,  # the transport's meter keeps the time
            trust_env=False,
        )


def _check_address(request: ApiRequest) -> None:
    """Raise InvalidError for invalid names, and for a namespace that is missing or in excess."""
    kind = request.kind
    if not all(
        answers.is_kubernetes_name(part) for part in (request.name, request.namespace) if part
    ):
        raise InvalidError(f"{request.namespace}/{request.name} cannot be a name")
    if request.namespace and not kind.is_namespaced:
        raise InvalidError(f"a {kind.kind} lives in no namespace")
    if kind.is_namespaced and not request.namespace and request.method != "list":
        raise InvalidError(f"a {kind.kind} lives in a namespace")


def check_server(server: str) -> None:
    """Raise InvalidError for an address that is not ``https://host[:port][/path]``."""
    try:
        url = httpx2.URL(server)
    except (httpx2.InvalidURL, ValueError):
        url = httpx2.URL("")
    is_host_and_port = _HOST.fullmatch(url.host) and (url.port or 443) <= _HIGHEST_PORT
    if url.scheme != "https" or not is_host_and_port or url.userinfo or url.query or url.fragment:
        raise InvalidError("a server's address is https://HOST[:PORT]", reason="BadServer")
