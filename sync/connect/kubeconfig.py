"""Kubeconfig to Credentials: context, cluster, user, PEM pair; Refusals of exec, files, proxies.

Pure: nothing is executed, read from disk or dialled. Messages never repeat a value of the file,
since any value may be secret. Fields: ``client-go/tools/clientcmd/api/v1/types.go``.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from policies.manifests.documents import ManifestError
from policies.manifests.sources import parse_documents
from sync.addresses import is_never_a_server
from sync.values import Credentials

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")
_LONGEST_ADDRESS: Final = 500
_FLATTEN: Final = "kubectl config view --raw --flatten writes it"
LARGEST: Final = 256 * 1024
"""Bytes; a kubeconfig with hundreds of clusters is still smaller."""
_FLATTEN_INTO_FILE: Final = "kubectl config view --raw --flatten --minify writes it into the file"
_HOW_TO_GET_ONE: Final = (
    "make a token: kubectl create token, or a Secret of type service-account-token"
)

_CLUSTER_REFUSED: Final = {
    "certificate-authority": (
        "file-reference",
        "names a file of another machine",
        _FLATTEN_INTO_FILE,
    ),
    "proxy-url": ("proxy", "would send the credential through a proxy", "leave it out"),
}
_CLUSTER_ACCEPTED: Final = frozenset(
    {
        *("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify"),
        *("disable-compression", "extensions"),
    }
)
_USER_REFUSED: Final = {
    "exec": ("exec", "would run a program", _HOW_TO_GET_ONE),
    "auth-provider": ("auth-provider", "would run a plugin", _HOW_TO_GET_ONE),
    "tokenFile": ("file-reference", "names a file of another machine", "write the token in"),
    "client-certificate": ("file-reference", "names a file of another machine", _FLATTEN_INTO_FILE),
    "client-key": ("file-reference", "names a file of another machine", _FLATTEN_INTO_FILE),
    "username": ("password", "API servers no longer accept passwords", _HOW_TO_GET_ONE),
    "password": ("password", "API servers no longer accept passwords", _HOW_TO_GET_ONE),
    **dict.fromkeys(
        ("as", "as-uid", "as-groups", "as-user-extra"),
        ("impersonation", "would act in the name of another user", "give the portal an account"),
    ),
}
_USER_ACCEPTED: Final = frozenset(
    {"token", "client-certificate-data", "client-key-data", "extensions"}
)
_SYNTAX_CODES: Final = {
    "duplicate key": "duplicate-key",
    "an alias": "alias",
    "an anchor": "alias",
    "a merge key": "alias",
    "a tag": "tag",
    "nested deeper": "too-large",
    "larger than": "too-large",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason to refuse a file: a stable code, the field's path, the problem, the fix."""

    code: str
    field: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.message}" + (f" ({self.fix})" if self.fix else "")

    def to_json(self) -> dict[str, str]:
        """The refusal for machines."""
        return asdict(self)


class KubeconfigError(ValueError):
    """A refused kubeconfig; ``refusals`` has every reason, the other fields are of the first."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("\n".join(map(str, refusals)))
        self.refusals = tuple(refusals)
        self.code = self.refusals[0].code
        self.field = self.refusals[0].field
        self.message = str(self.refusals[0])


@dataclass(slots=True)
class KubeconfigProblems:
    """Collects the problems of a file, in its order."""

    found: list[Refusal] = field(default_factory=list)

    def add(self, code: str, place: str, message: str, fix: str) -> None:
        """Add a problem."""
        self.found.append(Refusal(code, place, message, fix))

    def text(self, entry: Mapping[str, Any], name: str, place: str) -> str:
        """A text; empty if it is absent or no text."""
        value = entry.get(name)
        # The YAML reader gives numbers as RawNumber, a subclass of str.
        if value is None or (isinstance(value, str) and type(value) is str):
            return value or ""
        self.add("not-text", f"{place}.{name}", "is no text", "put it in quotes")
        return ""

    def token(self, entry: Mapping[str, Any], name: str, place: str) -> str:
        """A bearer token; empty if it could not stand in a header."""
        value = self.text(entry, name, place)
        if not value or _TOKEN.fullmatch(value):
            return value
        message = "has spaces, line breaks or other characters that no token may have"
        self.add("token", f"{place}.{name}", message, "give the token on one line")
        return ""


def parse(text: str, *, context: str = "") -> Credentials:
    """Read the cluster and the user of a context (default: the current one).

    Other contexts, clusters and users of the file are ignored. Raises KubeconfigError.
    """
    document = _read_document(text)
    findings = KubeconfigProblems()
    context_name = context or document.get("current-context") or ""
    if not context_name:
        raise _refusal("no-context", "current-context", "names none", _known_contexts(document))
    entry_place, chosen_context = _named_entry(document, "contexts", "context", context_name)
    for part in ("cluster", "user"):
        if not isinstance(chosen_context.get(part), str) or not chosen_context[part]:
            raise _refusal("incomplete", f"{entry_place}.{part}", "is missing", f"name the {part}")
    entry_place, cluster = _named_entry(document, "clusters", "cluster", chosen_context["cluster"])
    user_place, user = _named_entry(document, "users", "user", chosen_context["user"])
    _refuse_fields(cluster, entry_place, _CLUSTER_REFUSED, _CLUSTER_ACCEPTED, findings)
    _refuse_fields(user, user_place, _USER_REFUSED, _USER_ACCEPTED, findings)
    credentials = _credentials(cluster, entry_place, user, user_place, findings)
    if findings.found:
        raise KubeconfigError(findings.found)
    return credentials


def _credentials(
    cluster: Mapping[str, Any],
    place: str,
    user: Mapping[str, Any],
    at: str,
    findings: KubeconfigProblems,
) -> Credentials:
    """Read the accepted fields; unreadable ones are empty and among the findings."""
    token, certificate, key = _token_or_pair(user, at, findings)
    if cluster.get("insecure-skip-tls-verify") not in (None, False):
        findings.add(
            "insecure",
            f"{place}.insecure-skip-tls-verify",
            "anybody could answer in the cluster's place and be given the credential",
            "leave it out and give certificate-authority-data",
        )
    authority_data = findings.text(cluster, "certificate-authority-data", place)
    return Credentials(
        server=read_server(findings.text(cluster, "server", place), f"{place}.server", findings),
        ca=decode_certificates(authority_data, f"{place}.certificate-authority-data", findings)
        if authority_data
        else None,
        token=token,
        certificate=certificate,
        key=key,
        tls_server_name=findings.text(cluster, "tls-server-name", place),
    )


def _token_or_pair(
    user: Mapping[str, Any], at: str, findings: KubeconfigProblems
) -> tuple[str, bytes, bytes]:
    """Read the user's one credential: a token, or a certificate and its key."""
    token = findings.token(user, "token", at)
    pair_data = [
        findings.text(user, name, at) for name in ("client-certificate-data", "client-key-data")
    ]
    if token and any(pair_data):
        findings.add("two-credentials", at, "has a token and a client certificate", "keep one")
    if not token and not any(pair_data):
        # After another problem, such as an exec plugin, the missing credential is its consequence.
        if not findings.found:
            findings.add(
                "no-credential", at, "has neither token nor client certificate", _HOW_TO_GET_ONE
            )
        return "", b"", b""
    if not any(pair_data):
        return token, b"", b""
    return (token, *decode_pair(pair_data[0], pair_data[1], at, findings))


def _read_document(text: str) -> Mapping[str, Any]:
    # Before the parser, whose work a large text would multiply.
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        flatten_fix = "kubectl config view --raw --flatten --minify leaves only what is needed"
        raise _refusal("too-large", "", f"larger than {LARGEST // 1024} KiB", flatten_fix)
    try:
        documents = parse_documents(text, "kubeconfig")
    except ManifestError as error:
        refusals = []
        for problem in error.problems:
            syntax_codes = (
                code for start, code in _SYNTAX_CODES.items() if problem.message.startswith(start)
            )
            refusals.append(Refusal(next(syntax_codes, "syntax"), "", str(problem)))
        raise KubeconfigError(refusals) from None
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise _refusal("not-a-kubeconfig", "", "is not one kubeconfig", "give one file")
    document: dict[str, Any] = documents[0].value
    if document.get("kind", "Config") != "Config" or document.get("apiVersion", "v1") != "v1":
        raise _refusal("not-a-kubeconfig", "kind", "is not Config of v1", "give a kubeconfig")
    return document


def _named_entry(
    shape: Mapping[str, Any], group: str, part: str, name: str
) -> tuple[str, Mapping[str, Any]]:
    """Find a named entry of one of the three lists; returns its path and its content."""
    named_entries = shape.get(group)
    if not isinstance(named_entries, list):
        raise _refusal("incomplete", group, "is no list", "give a whole kubeconfig")
    named_matches = [
        (index, entry)
        for index, entry in enumerate(named_entries)
        if isinstance(entry, dict) and entry.get("name") == name
    ]
    if not named_matches:
        entry_fix = _known_contexts(shape) if group == "contexts" else f"add it to {group}"
        raise _refusal(f"unknown-{part}", group, f'has no entry "{name}"', entry_fix)
    if len(named_matches) > 1:
        raise _refusal("duplicate-name", group, f'has two entries "{name}"', "keep one")
    index, entry = named_matches[0]
    entry_place = f"{group}[{index}].{part}"
    if not isinstance(entry.get(part), dict):
        raise _refusal("incomplete", entry_place, "is missing", "give a whole kubeconfig")
    return entry_place, entry[part]


def _known_contexts(shape: Mapping[str, Any]) -> str:
    context_entries = shape.get("contexts")
    names = [
        str(entry.get("name"))
        for entry in (context_entries if isinstance(context_entries, list) else [])
        if isinstance(entry, dict)
    ]
    return f"name one of {', '.join(names)}" if names else "the file has no contexts"


def _refuse_fields(
    entry: Mapping[str, Any],
    place: str,
    refused: Mapping[str, tuple[str, str, str]],
    accepted: frozenset[str],
    findings: KubeconfigProblems,
) -> None:
    """Refuse forbidden fields, and unknown ones: ignoring them could lose a safeguard."""
    for name, value in entry.items():
        if name in refused and value not in (None, ""):
            code, message, field_fix = refused[name]
            findings.add(code, f"{place}.{name}", message, field_fix)
        elif name not in accepted and name not in refused:
            findings.add("unknown-field", f"{place}.{name}", "is not known here", "leave it out")


def _refusal(code: str, field: str, message: str, fix: str) -> KubeconfigError:
    return KubeconfigError([Refusal(code, field, message, fix)])


def read_server(server: str, place: str, findings: KubeconfigProblems) -> str:
    """Validate ``https://host[:port][/path]``; empty for anything else."""
    try:
        server_url = urlsplit(server)
        _ = server_url.port  # raises for a port that is no number
    except ValueError:
        server_url = urlsplit("")
    # Other parsers read control characters, backslashes and IDNs differently than urlsplit.
    is_plain = server.isascii() and server.isprintable() and not re.search(r"[\s\\]", server)
    if not is_plain or not server_url.hostname or len(server) > _LONGEST_ADDRESS:
        findings.add("server", place, "is no address", "write https://HOST:PORT")
    elif server_url.scheme != "https":
        message = "is not https: the credential would be sent in the clear"
        findings.add("http", place, message, "write https://HOST:PORT")
    elif server_url.username is not None or server_url.query or server_url.fragment:
        message = "has a user, a query or a fragment"
        findings.add("server", place, message, "write https://HOST:PORT")
    elif is_never_a_server(server_url.hostname):
        message = "is an address that no API server has (link-local, multicast, a tunnel's or none)"
        findings.add("address", place, message, "give the API server's own address")
    else:
        return server.rstrip("/")
    return ""


def decode_certificates(certificate_data: str, place: str, findings: KubeconfigProblems) -> bytes:
    """Decode one or more PEM certificates; empty if they cannot be read."""
    certificates_pem = _decode_base64(certificate_data, place, findings)
    try:
        if certificates_pem:
            x509.load_pem_x509_certificates(certificates_pem)
    except ValueError:
        findings.add("certificate", place, "is no PEM certificate", _FLATTEN)
        return b""
    return certificates_pem


def decode_pair(
    certificate: str, key: str, place: str, findings: KubeconfigProblems
) -> tuple[bytes, bytes]:
    """Decode a client certificate and its key, PEM; empty if they cannot be used together."""
    at_certificate, at_key = f"{place}.client-certificate-data", f"{place}.client-key-data"
    if not certificate or not key:
        missing_place = at_key if certificate else at_certificate
        findings.add("incomplete", missing_place, "is missing: both are needed", _FLATTEN)
        return b"", b""
    problems_before = len(findings.found)
    certificate_pem = decode_certificates(certificate, at_certificate, findings)
    key_pem = _decode_base64(key, at_key, findings)
    if len(findings.found) > problems_before:
        return b"", b""
    try:
        private_key = serialization.load_pem_private_key(key_pem, None)
    except TypeError:
        findings.add("key", at_key, "needs a password", "give it without one; it is sealed here")
        return b"", b""
    except ValueError:
        findings.add("key", at_key, "is no PEM key", _FLATTEN)
        return b"", b""
    if _public_bytes(private_key.public_key()) != _public_bytes(
        x509.load_pem_x509_certificate(certificate_pem).public_key()
    ):
        findings.add("key-mismatch", at_key, "is the key of another certificate", _FLATTEN)
    return certificate_pem, key_pem


def _public_bytes(key: Any) -> bytes:
    encoding, shape = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    der_bytes: bytes = key.public_bytes(encoding, shape)
    return der_bytes


def _decode_base64(data: str, place: str, findings: KubeconfigProblems) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        findings.add("base64", place, "is not base64", _FLATTEN)
        return b""
