"""The servers that are asked: started once, with TLS, each in a session of its own."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench import load, review
from bench.places import BUILT, GRANIAN, ROOT, MissingError, free_port, program, surroundings
from bench.processes import Stat, cpu_of, members, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PATIENCE: Final = 60.0  # seconds that a server may need to answer its first review
WORKERS: Final = os.cpu_count() or 1
ECHO_THREADS: Final = 8
BASELINE_THREADS: Final = 16
IDLE_FOR: Final = 60_000  # milliseconds, the most there is: few connections end between two turns
OPA: Final = "github.com/open-policy-agent/opa"
OPA_VERSION: Final = "v1.22.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is started: a command with ``{port}``, ``{certificate}`` and ``{key}`` in its words.

    ``database`` names the database it works on; empty for those that keep nothing. ``folder`` is
    the checkout whose code runs.
    """

    name: str
    words: Sequence[str]
    path: str = "/"
    database: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = ROOT


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate for 127.0.0.1 that lives as long as the run."""

    file: Path
    key: Path


@dataclass(slots=True)
class Server:
    """A running subject."""

    subject: Subject
    port: int
    process: subprocess.Popen[bytes]
    certificate: Certificate
    log: Path

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def cpu(self) -> float:
        """CPU seconds of all its processes so far."""
        return cpu_of(self.process.pid)

    def workers(self) -> list[Stat]:
        """Its serving processes: those below the first, or that one where it is alone."""
        found = members(self.process.pid)
        below = sorted(found[1:], key=lambda stat: stat.resident)
        return below[-WORKERS:] or found

    def ask(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Send one review; gives the status and the answer's ``response``."""
        return ask(self.address, self.subject.path, body, self.certificate)


def ask(
    address: str, path: str, body: bytes, certificate: Certificate
) -> tuple[int, dict[str, Any]]:
    """Send one review over a connection of its own; raises ``OSError`` while nobody listens."""
    context = ssl.create_default_context(cafile=str(certificate.file))
    connection = http.client.HTTPSConnection(address, timeout=20, context=context)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    return answer.status, json.loads(text).get("response", {}) if answer.status == 200 else {}  # noqa: PLR2004 - HTTP's own number


def make_certificate(folder: Path) -> Certificate:
    """A throwaway key on P-256 and its certificate."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    openssl = program("openssl")
    curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    _quietly([openssl, "genpkey", *curve, "-out", str(made.key)])
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    # Python from 3.13 on takes no certificate for an authority that does not say so.
    names += ["-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    request = [openssl, "req", "-x509", "-new", "-key", str(made.key), "-days", "2"]
    _quietly([*request, *names, "-out", str(made.file)])
    return made


def _quietly(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True)  # noqa: S603 - our own words


def granian(application: str, *, threads: int = 1, interface: str = "wsgi") -> list[str]:
    """The web server's words; the same TLS, workers and HTTP for all."""
    return [
        str(GRANIAN),
        *("--interface", interface, "--no-ws", "--http", "1", "--log-level", "warning"),
        *("--host", "127.0.0.1", "--port", "{port}"),
        *("--workers", str(WORKERS), "--blocking-threads", str(threads)),
        *("--ssl-certificate", "{certificate}", "--ssl-keyfile", "{key}"),
        *("--ssl-protocol-min", "tls1.2"),
        *("--http1-header-read-timeout", str(IDLE_FOR)),
        application,
    ]


def floors() -> list[Subject]:
    """The echoes, and the engine without a database."""
    modules = {
        "raw WSGI echo": "raw",
        "DRF-lean echo": "lean",
        "DRF-default echo": "default",
        "engine only": "engine",
    }
    return [
        Subject(name=name, words=granian(f"bench.subjects.{m}:application", threads=ECHO_THREADS))
        for name, m in modules.items()
    ]


def product(database: str, secret: str, *, name: str = "Gatehouse") -> Subject:
    """The product as it is served: its own entry, its own numbers of processes and threads."""
    return Subject(
        name=name,
        words=[sys.executable, "-m", "portal.serve"],
        path=f"/admission/{review.CLUSTER}/{secret}/validate",
        database=database,
        environment={
            "GATEHOUSE_LISTEN_PORT": "{port}",
            "GATEHOUSE_TLS_CERTIFICATE": "{certificate}",
            "GATEHOUSE_TLS_KEY": "{key}",
            "GATEHOUSE_DRAIN_SECONDS": "0",
        },
    )


def baseline(form: str, database: str, secret: str) -> Subject:
    """The ORM baseline in one of its forms."""
    return Subject(
        name=f"ORM baseline, policies {form}",
        words=granian("bench.baseline.wsgi:application", threads=BASELINE_THREADS),
        path=f"/admission/{review.CLUSTER}/{secret}/validate",
        database=database,
        environment={
            "BASELINE_FORM": form.removesuffix("ed") if form == "loaded" else form,
            "GATEHOUSE_WEB_WORKERS": str(WORKERS),
            "GATEHOUSE_WEB_THREADS": str(BASELINE_THREADS),
        },
    )


def opa_words(*, log: bool) -> list[str]:
    """OPA's server on the same checks, with its decision log or without."""
    words = [str(BUILT / "opa" / "opa"), "run", "--server", "--addr", "127.0.0.1:{port}"]
    words += ["--tls-cert-file", "{certificate}", "--tls-private-key-file", "{key}"]
    words += ["--log-level", "error", "--skip-version-check"]
    words += ["--set", "decision_logs.console=true"] if log else []
    return [*words, str(ROOT / "bench" / "peers" / "policy.rego")]


def peers() -> tuple[list[Subject], dict[str, str]]:
    """OPA twice and Go's floor, and why one of them is not here."""
    found, skipped = [], {}
    go = shutil.which("go")
    if go:
        made = load.build("echo", go)
        words = [str(made), "127.0.0.1:{port}", "{certificate}", "{key}"]
        found.append(Subject(name="Go net/http echo", words=words))
    else:
        skipped["Go net/http echo"] = "there is no Go compiler here"
    if (BUILT / "opa" / "opa").exists():
        found.append(Subject(name="OPA, log off", words=opa_words(log=False)))
        found.append(Subject(name="OPA, log on", words=opa_words(log=True)))
    else:
        skipped["OPA"] = "it is not built; run: make bench-peers"
    return found, skipped


def build_opa() -> Path:
    """Build OPA's server from its Go module into the results' folder, once."""
    folder = BUILT / "opa"
    if (folder / "opa").exists():
        return folder / "opa"
    go = shutil.which("go")
    if not go:
        raise MissingError("there is no Go compiler here: OPA is left out")
    folder.mkdir(parents=True, exist_ok=True)
    text = f"module bench.local/opa\n\ngo 1.26\n\nrequire {OPA} {OPA_VERSION}\n"
    (folder / "go.mod").write_text(text, encoding="utf-8")
    words = [go, "build", "-trimpath", "-o", str(folder / "opa"), OPA]
    environment = {**surroundings(), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(words, cwd=folder, env=environment, check=False)  # noqa: S603 - our own
    if done.returncode:
        raise MissingError("OPA could not be built: is the Go module proxy within reach?")
    return folder / "opa"


@functools.cache
def secret_key() -> str:
    """One key for all processes of a run, so that one credential opens all databases."""
    return secrets.token_hex(32)


def environment_of(subject: Subject, *, folder: Path, address: str) -> dict[str, str]:
    """What a subject finds around it: nobody's settings but the run's own."""
    counts = folder / "metrics"
    counts.mkdir(parents=True, exist_ok=True)
    return surroundings(
        GATEHOUSE_VAR=str(folder),
        GATEHOUSE_SECRET_KEY=secret_key(),
        GATEHOUSE_EXTERNAL_URL="https://127.0.0.1",
        GATEHOUSE_LOG_LEVEL="ERROR",
        **({"GATEHOUSE_DATABASE_URL": address} if address else {}),
        PROMETHEUS_MULTIPROC_DIR=str(counts),
        **subject.environment,
    )


@contextlib.contextmanager
def started(
    subject: Subject, *, folder: Path, certificate: Certificate, address: str = ""
) -> Iterator[Server]:
    """One subject, on a port of its own; it may not answer yet."""
    port = free_port()
    own = folder / "".join(c if c.isalnum() else "-" for c in subject.name)
    own.mkdir(parents=True, exist_ok=True)
    names = {"port": str(port), "certificate": str(certificate.file), "key": str(certificate.key)}
    around = environment_of(subject, folder=own, address=address)
    around = {name: _filled(text, names) for name, text in around.items()}
    words = [_filled(word, names) for word in subject.words]
    log = own / "log"
    with running(words, environment=around, folder=subject.folder, log=log) as process:
        yield Server(subject, port, process, certificate, log)


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def wait_until_it_answers(server: Server) -> None:
    """Ask until all workers had a chance to answer; raises with the log's end when it ends."""
    deadline = time.monotonic() + PATIENCE
    answered = 0
    while answered < 2 * WORKERS:
        if server.process.poll() is not None or time.monotonic() > deadline:
            text = server.log.read_text("utf-8", "replace")[-3000:]
            raise load.LoadError(f"{server.subject.name} does not answer:\n{text}")
        try:
            status, response = server.ask(review.fresh(review.SPREAD[0]))
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
            continue
        if status != 200 or not response.get("allowed"):  # noqa: PLR2004 - HTTP's own number
            time.sleep(0.1)
            continue
        answered += 1


def check_verdicts(server: Server) -> None:
    """See that a server refuses what it must; an echo is not asked."""
    for reason, refused in review.refused().items():
        status, response = server.ask(review.fresh(review.SPREAD[0], refused))
        if response.get("allowed", True):
            raise load.LoadError(f"{server.subject.name}: {reason} is not refused ({status})")


def check_same_verdicts(product: Server, other: Server) -> None:
    """See that another server says what the product says of the same bodies, word for word."""
    bodies = [review.fresh(), review.fresh(review.FULL[0])]
    bodies += [review.fresh(review=refused) for refused in review.refused().values()]
    for body in bodies:
        wanted, found = (_verdict(server, body) for server in (product, other))
        if wanted != found:
            raise load.LoadError(f"{other.subject.name} answers {found}, the product {wanted}")


def _verdict(server: Server, body: bytes) -> tuple[bool, int, str]:
    """Verdict, code and words, without the decision's own name."""
    _, response = server.ask(body)
    status = response.get("status") or {}
    words = str(status.get("message", "")).partition(" (decision")[0]
    return bool(response.get("allowed")), int(status.get("code", 0)), words
