"""A dedicated control plane: etcd and kube-apiserver on 127.0.0.1, in a temporary folder."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import shutil
import ssl
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.certificates import Pair, issue, make_authority
from tests.faults.database import bound
from tests.processes import free_port, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.cluster.binaries import Binaries

TOKENS: Final = {
    "admin-token": ("admin", "system:masters"),
    # An authenticated user without permissions.
    "nobody-token": ("nobody", "nobodies"),
}
PLUGINS: Final = ("LimitRanger", "ResourceQuota")
"""The plugins that the portal can replace."""


@dataclass(frozen=True)
class Options:
    """The options of an API server.

    ``plugins``: the API server's own LimitRanger and ResourceQuota act. ``limited_resources`` are
    those of its quota plugin. ``controllers``: kube-controller-manager runs these, if any.
    ``is_durable``: etcd flushes its writes to disk, for which tests need not wait.
    """

    plugins: bool = True
    limited_resources: Sequence[Any] = ()
    controllers: Sequence[str] = ()
    more: Sequence[str] = ()
    is_durable: bool = False


@dataclass
class Cluster:
    """A running control plane, and access to it as its administrator."""

    folder: Path
    port: int
    authority: Pair
    client: Pair
    binaries: Binaries
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, by token."""
        return self.folder / "admin.kubeconfig"

    def context(self) -> ssl.SSLContext:
        """TLS that trusts only this cluster."""
        return ssl.create_default_context(cafile=str(self.authority.certificate))

    def connect(self, timeout: float = 60) -> http.client.HTTPSConnection:
        """A new connection for any number of requests."""
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout, context=self.context()
        )

    def kubectl(
        self, *words: str, stdin: object = None, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as its user does; ``stdin`` is written as JSON."""
        command = [str(self.binaries.kubectl), "--kubeconfig", str(kubeconfig or self.kubeconfig)]
        return subprocess.run(  # noqa: S603 - our own words
            [*command, "--cache-dir", str(self.folder / "kubectl"), *words],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def log(self, name: str = "kube-apiserver") -> str:
        """The output of one of the servers."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start(self, name: str, words: list[str]) -> None:
        """Start one of its servers."""
        self.words[name] = words
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own words
                bound(words, "KILL"), stdout=log, stderr=log, cwd=self.folder
            )

    def stop(self, name: str) -> None:
        """End one of its servers, by its process id; it may have ended already."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self, away: float) -> None:
        """Stop the API server for some seconds, and start it again."""
        self.stop("kube-apiserver")
        time.sleep(away)
        self.start("kube-apiserver", self.words["kube-apiserver"])
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the API server is ready."""
        wait_for(self._is_ready)

    def _is_ready(self) -> bool:
        server = self.processes["kube-apiserver"]
        assert server.poll() is None, self.log()[-4000:]
        line = self.connect(5)
        try:
            line.request("GET", "/readyz", headers={"Authorization": "Bearer admin-token"})
            return line.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            line.close()


@contextlib.contextmanager
def cluster(binaries: Binaries, options: Options | None = None) -> Iterator[Cluster]:
    """A control plane, ready; removed with its storage after the test."""
    options = options or Options()
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-cluster-"))
    authority = make_authority(folder)
    client = issue(folder, "client", authority, subject="/O=system:masters/CN=admin")
    made = Cluster(folder, free_port(), authority, client, binaries)
    try:
        _start_etcd(made, is_durable=options.is_durable)
        start_apiserver(made, options)
        made.wait_ready()
        if options.controllers:
            start_controllers(made, options.controllers)
        yield made
    finally:
        for name in reversed(list(made.processes)):
            made.stop(name)
        shutil.rmtree(folder, ignore_errors=True)


def _start_etcd(made: Cluster, *, is_durable: bool) -> None:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    words = [str(made.binaries.etcd), "--data-dir", str(made.folder / "etcd")]
    words += [] if is_durable else ["--unsafe-no-fsync"]
    words += ["--listen-client-urls", client, "--advertise-client-urls", client]
    words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    words += ["--initial-cluster", f"default={peer}", "--log-level", "warn"]
    made.start("etcd", words)
    (made.folder / "etcd-address").write_text(client)


def start_apiserver(made: Cluster, options: Options) -> None:
    """Start the API server on the cluster's port, with the existing contents of etcd."""
    server = issue(made.folder, "server", made.authority, subject="/CN=kube-apiserver")
    _write_kubeconfigs(made)
    off = ["ServiceAccount", *(() if options.plugins else PLUGINS)]
    key, public = _service_account_keys(made.folder)
    values = {
        "etcd-servers": (made.folder / "etcd-address").read_text(),
        "bind-address": "127.0.0.1",
        "secure-port": made.port,
        "cert-dir": made.folder / "run",
        "tls-cert-file": server.certificate,
        "tls-private-key-file": server.key,
        "client-ca-file": made.authority.certificate,
        "token-auth-file": _write_tokens(made.folder),
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": public,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": "10.0.0.0/12",
        "service-node-port-range": "20000-60000",
        # Nothing routes to it: the server would refuse to publish a loopback address.
        "endpoint-reconciler-type": "none",
        "disable-admission-plugins": ",".join(off),
        "admission-control-config-file": _write_admission(made.folder, options),
        "allow-privileged": "true",
    }
    words = [f"--{name}={value}" for name, value in values.items()]
    made.start("kube-apiserver", [str(made.binaries.apiserver), *words, *options.more])


def start_controllers(made: Cluster, controllers: Sequence[str], *more: str) -> None:
    """Start kube-controller-manager with only these controllers, and more options."""
    assert made.binaries.controller_manager, "there is no kube-controller-manager here"
    words = [str(made.binaries.controller_manager), f"--kubeconfig={made.kubeconfig}"]
    words += ["--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={free_port()}"]
    words += [f"--cert-dir={made.folder / 'run'}", f"--controllers={','.join(controllers)}"]
    # The interval of full recounts; the default is five minutes.
    words += ["--resource-quota-sync-period=3s", *more]
    made.start("kube-controller-manager", words)


def _service_account_keys(folder: Path) -> tuple[Path, Path]:
    key, public = folder / "service-accounts.key", folder / "service-accounts.pub"
    for words in (
        ["openssl", "genrsa", "-out", str(key), "2048"],
        ["openssl", "rsa", "-in", str(key), "-pubout", "-out", str(public)],
    ):
        subprocess.run(words, check=True, capture_output=True)  # noqa: S603 - our own words
    return key, public


def _write_tokens(folder: Path) -> Path:
    path = folder / "tokens.csv"
    lines = [f'{token},{user},{user}-uid,"{group}"' for token, (user, group) in TOKENS.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def _write_admission(folder: Path, options: Options) -> Path:
    quota = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": list(options.limited_resources),
    }
    plugins = [{"name": "ResourceQuota", "configuration": quota}] if options.plugins else []
    path = folder / "admission.json"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    path.write_text(json.dumps({**kind, "plugins": plugins}))
    return path


def _write_kubeconfigs(made: Cluster) -> None:
    """One for the administrator by token, one by client certificate, one without permissions."""
    by_certificate = {
        "client-certificate-data": _data(made.client.certificate),
        "client-key-data": _data(made.client.key),
    }
    users = {
        "admin": {"token": "admin-token"},
        "certificate": by_certificate,
        "nobody": {"token": "nobody-token"},
    }
    for name, user in users.items():
        shape = _kubeconfig(made, name, user)
        (made.folder / f"{name}.kubeconfig").write_text(json.dumps(shape, indent=1))


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _kubeconfig(made: Cluster, name: str, user: dict[str, str]) -> dict[str, Any]:
    authority = {"certificate-authority-data": _data(made.authority.certificate)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": made.address, **authority}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        "current-context": "test",
    }
