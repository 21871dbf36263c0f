"""The verification of a server's certificate is the same with every Python."""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sync.client import Client
from sync.client.network import tls_context
from sync.errors import UntrustedError
from sync.values import Credentials
from tests.cluster.certificates import issue, make_authority
from tests.sync.fake_api import fake_api

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have any Python begin as 3.13 does."""
    usual = ssl.create_default_context

    def as_3_13(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context = usual(*arguments, **named)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", as_3_13)


@pytest.mark.usefixtures("strict")
def test_an_authority_without_key_usage_is_taken_as_kubectl_takes_it() -> None:
    with fake_api(has_key_usage=False) as api, Client(api.credentials) as client:
        assert not client.list("Namespace").items


@pytest.mark.usefixtures("strict")
def test_another_authority_is_still_refused(tmp_path: Path) -> None:
    other = make_authority(tmp_path).certificate.read_bytes()
    with fake_api(has_key_usage=False) as api:
        wrong = replace(api.credentials, ca=other)
        with pytest.raises(UntrustedError), Client(wrong) as client:
            client.list("Namespace")


def test_an_authority_in_the_middle_is_enough_as_it_is_for_go(tmp_path: Path) -> None:
    root = make_authority(tmp_path)
    own = issue(tmp_path, "leaf", root, subject="/CN=leaf").certificate.read_bytes()
    context = tls_context(Credentials("https://127.0.0.1", own, "token"))
    assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
