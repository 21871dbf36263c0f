"""The accepted and the refused fields of a kubeconfig, with nothing executed or dialled."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sync.connect.kubeconfig import LARGEST, KubeconfigError, parse
from tests.sync.kubeconfigs import SERVER, TOKEN, encoded, key_pem, pair, shape, text

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = {"client-certificate-data": pair()[0], "client-key-data": pair()[1]}
LOCKED = encoded(
    key_pem(ec.generate_private_key(ec.SECP256R1()), serialization.BestAvailableEncryption(b"x"))
)


def refused(content: str, **options: Any) -> KubeconfigError:
    with pytest.raises(KubeconfigError) as caught:
        parse(content, **options)
    return caught.value


def test_token_is_read() -> None:
    found = parse(text())
    assert (found.server, found.token, found.key) == (SERVER, TOKEN, b"")
    assert found.ca == b64decode(pair("ca")[0])


def test_client_certificate_is_read() -> None:
    found = parse(text(CLIENT))
    assert (found.token, found.certificate) == ("", b64decode(pair()[0]))
    assert found.key == b64decode(pair()[1])


def test_yaml_is_read() -> None:
    yaml = f"""
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {{server: {SERVER}/}}
users:
- name: u
  user:
    token: {TOKEN}
contexts:
- {{name: prod, context: {{cluster: c, user: u, namespace: team}}}}
current-context: prod
"""
    assert parse(yaml).server == SERVER
    assert parse(yaml).ca is None


def test_named_context_is_taken_and_the_others_are_not_looked_at() -> None:
    whole = shape()
    whole["users"].append({"name": "other", "user": {"exec": {"command": "/bin/false"}}})
    whole["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "other"}})
    assert parse(json.dumps(whole), context="prod").token == TOKEN
    assert refused(json.dumps(whole), context="other").code == "exec"


REFUSED_USERS = {
    "exec": ({"exec": {"command": "touch"}}, "exec", "users[0].user.exec"),
    "auth-provider": (
        {"auth-provider": {"name": "gcp"}},
        "auth-provider",
        "users[0].user.auth-provider",
    ),
    "token-file": ({"tokenFile": "/etc/passwd"}, "file-reference", "users[0].user.tokenFile"),
    "certificate-file": (
        {"client-certificate": "/a", "client-key-data": pair()[1]},
        "file-reference",
        "users[0].user.client-certificate",
    ),
    "key-file": (
        {"client-key": "~/key", "client-certificate-data": pair()[0]},
        "file-reference",
        "users[0].user.client-key",
    ),
    "password": ({"username": "a", "password": "b"}, "password", "users[0].user.username"),
    "impersonation": ({"token": "t", "as": "root"}, "impersonation", "users[0].user.as"),
    "unknown": ({"token": "t", "execute": 1}, "unknown-field", "users[0].user.execute"),
    "nothing": ({}, "no-credential", "users[0].user"),
    "both": ({"token": "t", **CLIENT}, "two-credentials", "users[0].user"),
    "no-key": (
        {"client-certificate-data": pair()[0]},
        "incomplete",
        "users[0].user.client-key-data",
    ),
    "other-key": (
        {"client-certificate-data": pair()[0], "client-key-data": pair("other")[1]},
        "key-mismatch",
        "users[0].user.client-key-data",
    ),
    "locked-key": ({**CLIENT, "client-key-data": LOCKED}, "key", "users[0].user.client-key-data"),
    "no-certificate": (
        {**CLIENT, "client-certificate-data": b64encode(b"x").decode()},
        "certificate",
        "users[0].user.client-certificate-data",
    ),
    "no-base64": ({**CLIENT, "client-key-data": "*"}, "base64", "users[0].user.client-key-data"),
    "header-in-token": ({"token": "a\r\nHost: b"}, "token", "users[0].user.token"),
    "number-as-token": ({"token": 12}, "not-text", "users[0].user.token"),
}


@pytest.mark.parametrize(
    ("user", "code", "field"), REFUSED_USERS.values(), ids=REFUSED_USERS.keys()
)
def test_user_is_refused(user: dict[str, Any], code: str, field: str) -> None:
    found = refused(text(user))
    assert (found.code, found.field) == (code, field)
    assert found.refusals[0].fix


AT = "clusters[0].cluster"
REFUSED_CLUSTERS = {
    "http": ({"server": "http://api.example.com"}, "http", f"{AT}.server"),
    "no-scheme": ({"server": "api.example.com"}, "server", f"{AT}.server"),
    "no-server": ({"server": None}, "server", f"{AT}.server"),
    "user-in-address": ({"server": "https://a:b@api.example.com"}, "server", f"{AT}.server"),
    "bad-port": ({"server": "https://api.example.com:x"}, "server", f"{AT}.server"),
    "line-break": ({"server": "https://api.example.com\r\n/x"}, "server", f"{AT}.server"),
    "metadata": ({"server": "https://169.254.169.254"}, "address", f"{AT}.server"),
    "mapped": ({"server": "https://[::ffff:169.254.169.254]"}, "address", f"{AT}.server"),
    "link-local": ({"server": "https://[fe80::1]:6443"}, "address", f"{AT}.server"),
    "nowhere": ({"server": "https://0.0.0.0"}, "address", f"{AT}.server"),
    "insecure": (
        {"insecure-skip-tls-verify": True},
        "insecure",
        f"{AT}.insecure-skip-tls-verify",
    ),
    "ca-file": (
        {"certificate-authority": "/etc/ca.crt"},
        "file-reference",
        f"{AT}.certificate-authority",
    ),
    "ca-text": (
        {"certificate-authority-data": b64encode(b"no").decode()},
        "certificate",
        f"{AT}.certificate-authority-data",
    ),
    "proxy": ({"proxy-url": "http://proxy"}, "proxy", f"{AT}.proxy-url"),
}


@pytest.mark.parametrize(
    ("cluster", "code", "field"), REFUSED_CLUSTERS.values(), ids=REFUSED_CLUSTERS.keys()
)
def test_cluster_is_refused(cluster: dict[str, Any], code: str, field: str) -> None:
    found = refused(text(**cluster))
    assert (found.code, found.field) == (code, field)
    assert found.refusals[0].fix


REFUSED_TEXTS = {
    "duplicate-key": ("kind: Config\nkind: Config\n", "duplicate-key"),
    "alias": ("a: &x [1]\nb: *x\n", "alias"),
    "merge": ("<<: {a: 1}\n", "alias"),
    "tag": ("a: !!python/object:os.system x\n", "tag"),
    "syntax": ("a: [", "syntax"),
    "too-large": ("#" * (LARGEST + 1), "too-large"),
    "too-deep": ("[" * 300, "too-large"),
    "empty": ("", "not-a-kubeconfig"),
    "two": ("a: 1\n---\nb: 1\n", "not-a-kubeconfig"),
    "other-kind": ("apiVersion: v1\nkind: Secret\n", "not-a-kubeconfig"),
    "no-context": ("apiVersion: v1\nkind: Config\n", "no-context"),
    "no-lists": ("current-context: a\n", "incomplete"),
}


@pytest.mark.parametrize(("content", "code"), REFUSED_TEXTS.values(), ids=REFUSED_TEXTS.keys())
def test_text_is_refused(content: str, code: str) -> None:
    assert refused(content).code == code


def test_unknown_context_names_those_there_are() -> None:
    found = refused(text(), context="staging")
    assert found.code == "unknown-context"
    assert "prod" in found.refusals[0].fix


def test_doubled_name_is_refused() -> None:
    whole = shape()
    whole["users"] *= 2
    assert refused(json.dumps(whole)).code == "duplicate-name"


def test_all_reasons_are_reported_at_once() -> None:
    found = refused(text({"exec": {}, "tokenFile": "x"}, server="http://a", **{"proxy-url": "b"}))
    assert [one.code for one in found.refusals] == ["proxy", "exec", "file-reference", "http"]


@pytest.mark.parametrize("user", [{"token": f"{TOKEN} "}, {"exec": {"env": TOKEN}, "token": TOKEN}])
def test_refusal_repeats_no_secret(user: dict[str, Any]) -> None:
    found = refused(text(user, server=f"https://u:{TOKEN}@host"))
    assert TOKEN not in f"{found!r} {found} {found.refusals!r}"


def test_nothing_is_run_read_or_dialled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError

    mark = tmp_path / "mark"
    command = {"apiVersion": "v1", "command": "touch", "args": [str(mark)]}
    for module, name in ((subprocess, "Popen"), (os, "system"), (os, "open"), (socket, "socket")):
        monkeypatch.setattr(module, name, forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    refused(text({"exec": command, "tokenFile": str(mark)}, server="https://169.254.169.254"))
    parse(text())
    assert not mark.exists()
