"""Every example of the API page is replayed, in their order, and answers what the page shows."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.contrib.auth.models import User

from policies.models import RoleBinding
from tests import factories
from tests.builders import container, pod
from tests.docs.test_api_page import PAGE
from tests.reviews import review

if TYPE_CHECKING:
    from django.http import HttpResponse
    from django.test import Client

EXAMPLE = re.compile(
    r"^```console\n\$ (?P<request>.*?)^```\n(?:\n^```(?:json|yaml)\n(?P<answer>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
EXAMPLES = [(found["request"], found["answer"]) for found in EXAMPLE.finditer(PAGE)]
PASSWORD = "a long enough password"


@pytest.fixture
def _world(client: Client) -> None:
    """What the examples find: two clusters, a limit range, and a pod that it denied."""
    factories.cluster("test")
    limits = {"type": "Container", "max": {"cpu": "2"}}
    factories.limit_range(limits, name="limits")
    secret = factories.webhook_secret()
    thing = pod(container(limits={"cpu": "4"}), name="web", namespace="team")
    headers = {"authorization": f"Bearer {secret}"}
    path, body = "/admission/prod/validate", review(thing, namespace="team")
    answer = client.post(path, body, content_type="application/json", headers=headers)
    assert not answer.json()["response"]["allowed"]
    ada = User.objects.create_user("ada", password=PASSWORD)
    RoleBinding.objects.create(user=ada, role="admin")


class Replay:
    """The answers so far: the token, and the portal's ids for those that the page shows."""

    def __init__(self, client: Client) -> None:
        self._client, self._token = client, ""
        self._ids: dict[str, str] = {}

    def ask(self, request: str) -> HttpResponse:
        """Send what a command line would send."""
        command, *words = shlex.split(request)
        given = options(words)
        headers = dict(re.split(": ", header, maxsplit=1) for header in given.header)
        if command == "api":
            headers["Authorization"] = f"Token {self._token}"
        else:
            assert command == "curl"
        address = urlsplit(given.url.removeprefix("$GATEHOUSE"))
        path = "/".join(self._ids.get(part, part) for part in address.path.split("/"))
        method = given.request or ("POST" if given.json else "GET")
        answer = self._client.generic(
            method, f"{path}?{address.query}", given.json, "application/json", headers=headers
        )
        if command == "curl":
            self._token = answer.json()["token"]
        return answer

    def compare(self, shown: Any, found: Any, name: str = "") -> None:
        """Raise AssertionError unless the answer has all that the page shows."""
        if isinstance(shown, dict):
            assert set(shown) <= set(found), (set(shown) - set(found), found)
            for key, value in shown.items():
                self.compare(value, found[key], key)
        elif isinstance(shown, list):
            assert len(shown) == len(found), (shown, found)
            for entry, entry_found in zip(shown, found, strict=True):
                self.compare(entry, entry_found)
        elif name in ("id", "decision"):
            assert self._ids.setdefault(str(shown), str(found)) == str(found)
        elif shown != "…":
            assert shown == found


def options(words: list[str]) -> argparse.Namespace:
    """The options of curl that the page uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--request")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--json", default="")
    parser.add_argument("url")
    return parser.parse_args(words)


@pytest.mark.django_db
@pytest.mark.usefixtures("_world")
def test_every_example_answers_what_the_page_shows(client: Client) -> None:
    replay = Replay(client)
    for request, shown in EXAMPLES:
        answer = replay.ask(request)
        if shown is None:
            assert answer.status_code == 204, request
        elif answer["Content-Type"] == "application/yaml":
            assert yaml.safe_load(answer.content) == yaml.safe_load(shown)
        else:
            replay.compare(json.loads(shown), json.loads(answer.content))


def test_the_main_flows_have_examples() -> None:
    requests = "\n".join(request for request, _ in EXAMPLES)
    for flow in ("dryRun=All", "PATCH", "If-Match", "simulations/", "explanation/", "effective/"):
        assert flow in requests
    assert PAGE.count("```console\n") == len(EXAMPLES)
    assert not re.search(r"^ {4}\S", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.MULTILINE)
