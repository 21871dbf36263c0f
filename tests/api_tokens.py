"""API tokens for tests, and callers that send them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.test import Client

from policies.models import ApiToken

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def secret_of(owner: User, access: str = "write", *, cluster: str = "", namespace: str = "") -> str:
    """The secret of a new token."""
    names = {"name": "t", "access": access, "cluster": cluster, "namespace": namespace}
    return str(ApiToken.objects.create(user=owner, **names)[1])


def call(secret: str, method: str, path: str, body: Any = None, *, if_match: str = "") -> Any:
    """Send a request with the token; paths without a slash are below ``/api/v1/``."""
    address = path if path.startswith("/") else f"/api/v1/{path}"
    data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    headers = {"authorization": f"Token {secret}"}
    headers |= {"if-match": if_match} if if_match else {}
    return getattr(Client(), method)(address, headers=headers, **data)
