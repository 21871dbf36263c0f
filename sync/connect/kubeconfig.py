"""Parse a kubeconfig, and refuse everything that could run code or leak.

Pure: nothing is run, read from disk or dialled. Messages never repeat a value of the file, since
any of them may be secret. Source of the fields: ``client-go/tools/clientcmd/api/v1/types.go``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.manifests.documents import ManifestError
from policies.manifests.sources import parse_documents
from sync.connect.kubeconfig_values import (
    KubeconfigProblems,
    decode_certificates,
    decode_pair,
    read_server,
)
from sync.values import Credentials

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGEST: Final = 256 * 1024
"""Bytes; with hundreds of clusters in it a kubeconfig is still smaller."""
_FILE: Final = "kubectl config view --raw --flatten --minify writes it into the file"
_MADE: Final = "make a token: kubectl create token, or a Secret of type service-account-token"

_CLUSTER_REFUSED: Final = {
    "certificate-authority": ("file-reference", "names a file of another machine", _FILE),
    "proxy-url": ("proxy", "would send the credential through a proxy", "leave it out"),
}
_CLUSTER_TAKEN: Final = frozenset(
    {
        *("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify"),
        *("disable-compression", "extensions"),
    }
)
_USER_REFUSED: Final = {
    "exec": ("exec", "would run a program", _MADE),
    "auth-provider": ("auth-provider", "would run a plugin", _MADE),
    "tokenFile": ("file-reference", "names a file of another machine", "write the token in"),
    "client-certificate": ("file-reference", "names a file of another machine", _FILE),
    "client-key": ("file-reference", "names a file of another machine", _FILE),
    "username": ("password", "API servers know no passwords any more", _MADE),
    "password": ("password", "API servers know no passwords any more", _MADE),
    **dict.fromkeys(
        ("as", "as-uid", "as-groups", "as-user-extra"),
        ("impersonation", "would ask in somebody else's name", "give the portal an account"),
    ),
}
_USER_TAKEN: Final = frozenset(
    {"token", "client-certificate-data", "client-key-data", "extensions"}
)
_SYNTAX: Final = {
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
    """One reason not to take a file: a stable code, the field's path, what is wrong, the fix."""

    code: str
    field: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.message}" + (f" ({self.fix})" if self.fix else "")

    def to_json(self) -> dict[str, str]:
        """The refusal for machines."""
        return {
            "code": self.code,
            "field": self.field,
            "message": self.message,
            "fix": self.fix,
        }


class KubeconfigError(ValueError):
    """A kubeconfig that is not taken; ``refusals`` has every reason, the first one up front."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("\n".join(map(str, refusals)))
        self.refusals = tuple(refusals)
        self.code = self.refusals[0].code
        self.field = self.refusals[0].field
        self.message = str(self.refusals[0])


def parse(text: str, *, context: str = "") -> Credentials:
    """Read the cluster and the user of a context (default: the current one).

    Other contexts, clusters and users of the file are not looked at. Raises KubeconfigError.
    """
    shape = _document(text)
    findings = KubeconfigProblems()
    chosen = _chosen(shape, context)
    place, cluster = _entry(shape, "clusters", "cluster", chosen["cluster"])
    at, user = _entry(shape, "users", "user", chosen["user"])
    _refuse(cluster, place, _CLUSTER_REFUSED, _CLUSTER_TAKEN, findings)
    _refuse(user, at, _USER_REFUSED, _USER_TAKEN, findings)
    credentials = _credentials(cluster, place, user, at, findings)
    if findings.found:
        raise KubeconfigError([Refusal(*one) for one in findings.found])
    return credentials


def _credentials(
    cluster: Mapping[str, Any],
    place: str,
    user: Mapping[str, Any],
    at: str,
    findings: KubeconfigProblems,
) -> Credentials:
    """Read what is taken; what cannot be read is empty and among the findings."""
    token, certificate, key = _method(user, at, findings)
    if cluster.get("insecure-skip-tls-verify") not in (None, False):
        findings.add(
            "insecure",
            f"{place}.insecure-skip-tls-verify",
            "anybody could answer in the cluster's place and be given the credential",
            "leave it out and give certificate-authority-data",
        )
    data = findings.text(cluster, "certificate-authority-data", place)
    return Credentials(
        server=read_server(findings.text(cluster, "server", place), f"{place}.server", findings),
        ca=decode_certificates(data, f"{place}.certificate-authority-data", findings)
        if data
        else None,
        token=token,
        certificate=certificate,
        key=key,
        tls_server_name=findings.text(cluster, "tls-server-name", place),
    )


def _method(
    user: Mapping[str, Any], at: str, findings: KubeconfigProblems
) -> tuple[str, bytes, bytes]:
    """Read the one way in which the user proves who it is: token, or certificate and key."""
    token = findings.token(user, "token", at)
    data = [
        findings.text(user, name, at) for name in ("client-certificate-data", "client-key-data")
    ]
    if token and any(data):
        findings.add("two-credentials", at, "has a token and a client certificate", "keep one")
    if not token and not any(data):
        if not findings.found:
            findings.add("no-credential", at, "has neither token nor client certificate", _MADE)
        return "", b"", b""
    if not any(data):
        return token, b"", b""
    return (token, *decode_pair(data[0], data[1], at, findings))


def _document(text: str) -> Mapping[str, Any]:
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        fix = "kubectl config view --raw --flatten --minify leaves only what is needed"
        raise _refusal("too-large", "", f"larger than {LARGEST // 1024} KiB", fix)
    try:
        documents = parse_documents(text, "kubeconfig")
    except ManifestError as error:
        raise KubeconfigError([_syntax(str(one), one.message) for one in error.problems]) from None
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise _refusal("not-a-kubeconfig", "", "is not one kubeconfig", "give one file")
    shape: dict[str, Any] = documents[0].value
    if shape.get("kind", "Config") != "Config" or shape.get("apiVersion", "v1") != "v1":
        raise _refusal("not-a-kubeconfig", "kind", "is not Config of v1", "give a kubeconfig")
    return shape


def _syntax(shown: str, message: str) -> Refusal:
    codes = (code for start, code in _SYNTAX.items() if message.startswith(start))
    return Refusal(next(codes, "syntax"), "", shown)


def _chosen(shape: Mapping[str, Any], context: str) -> Mapping[str, Any]:
    name = context or shape.get("current-context") or ""
    if not name:
        raise _refusal("no-context", "current-context", "names none", _known(shape))
    place, chosen = _entry(shape, "contexts", "context", name)
    for part in ("cluster", "user"):
        if not isinstance(chosen.get(part), str) or not chosen[part]:
            raise _refusal("incomplete", f"{place}.{part}", "is missing", f"name the {part}")
    return chosen


def _entry(
    shape: Mapping[str, Any], group: str, part: str, name: str
) -> tuple[str, Mapping[str, Any]]:
    """Find a named entry of one of the three lists; gives its path, too."""
    entries = shape.get(group)
    if not isinstance(entries, list):
        raise _refusal("incomplete", group, "is no list", "give a whole kubeconfig")
    found = [
        (index, entry)
        for index, entry in enumerate(entries)
        if isinstance(entry, dict) and entry.get("name") == name
    ]
    if not found:
        fix = _known(shape) if group == "contexts" else f"add it to {group}"
        raise _refusal(f"unknown-{part}", group, f'has no entry "{name}"', fix)
    if len(found) > 1:
        raise _refusal("duplicate-name", group, f'has two entries "{name}"', "keep one")
    index, entry = found[0]
    place = f"{group}[{index}].{part}"
    if not isinstance(entry.get(part), dict):
        raise _refusal("incomplete", place, "is missing", "give a whole kubeconfig")
    return place, entry[part]


def _known(shape: Mapping[str, Any]) -> str:
    entries = shape.get("contexts")
    names = [
        str(entry.get("name"))
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
    ]
    return f"name one of {', '.join(names)}" if names else "the file has no contexts"


def _refuse(
    entry: Mapping[str, Any],
    place: str,
    refused: Mapping[str, tuple[str, str, str]],
    taken: frozenset[str],
    findings: KubeconfigProblems,
) -> None:
    """Refuse what must not be there, and what is not known: it may be meant to matter."""
    for name, value in entry.items():
        if name in refused and value not in (None, ""):
            code, message, fix = refused[name]
            findings.add(code, f"{place}.{name}", message, fix)
        elif name not in taken and name not in refused:
            findings.add("unknown-field", f"{place}.{name}", "is not known here", "leave it out")


def _refusal(code: str, field: str, message: str, fix: str) -> KubeconfigError:
    return KubeconfigError([Refusal(code, field, message, fix)])
