"""Who made an object: by its owner's name, by how it was generated, by its own name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.record import owners
from admission.record.owners import Owner


def by(kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    reference = {"kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [{"name": "other"}, reference], **metadata}


def hashed(text: str) -> dict[str, Any]:
    return {"labels": {"pod-template-hash": text}}


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        (by("ReplicaSet", "web-5d9f8", **hashed("5d9f8")), Owner("Deployment", "web")),
        (by("ReplicaSet", "web-5d9f8", **hashed("other")), Owner("ReplicaSet", "web-5d9f8")),
        (by("ReplicaSet", "web"), Owner("ReplicaSet", "web")),
        (by("Job", "backup-29394720"), Owner("CronJob", "backup")),
        (by("Job", "import-7"), Owner("Job", "import-7")),
        (by("Job", "import-x7k2p"), Owner("Job", "import")),
        (by("Job", "migrate-5d9f8c7b6d"), Owner("Job", "migrate")),
        (by("Job", "migrate-rqqhggrmm"), Owner("Job", "migrate")),
        (by("Job", "check-https"), Owner("Job", "check-https")),
        (by("Job", "nightly-backup"), Owner("Job", "nightly-backup")),
        (by("DaemonSet", "agent"), Owner("DaemonSet", "agent")),
        (by("StatefulSet", "db-0"), Owner("StatefulSet", "db-0")),
        (by("ReplicaSet", ""), Owner("ReplicaSet", uid="u")),
        ({"generateName": "web-5d9f8-", **hashed("5d9f8")}, Owner("Deployment", "web")),
        ({"generateName": "web-"}, Owner("", "web")),
        ({"ownerReferences": [{"name": "a", "kind": "B"}]}, owners.NOBODY),
        ({"ownerReferences": "x", "labels": [], "generateName": 1}, owners.NOBODY),
        ({"ownerReferences": [None, {"controller": True}], "labels": 7}, owners.NOBODY),
        ({}, owners.NOBODY),
    ],
)  # fmt: skip
def test_owner_is_read_from_the_object(metadata: dict[str, Any], owner: Owner) -> None:
    assert owners.recorded(metadata) == owner
    assert bool(owner) == (owner is not owners.NOBODY)


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("web-5d9f8c7b6d-x2x4z", "web"),
        ("web-7xk2vq9wz-x2x4z", "web"),
        ("crypts-bcdfgh-x2x4z", "crypts-bcdfgh"),
        ("db-0", "db"),
        ("job-x7k2p", "job"),
        ("my-nginx", "my-nginx"),
        ("check-https", "check-https"),
        ("web-bcdfghjkl-x2x4z", "web"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_owner_is_derived_from_the_name(name: str, owner: str) -> None:
    assert owners.named(name) == owner
    assert owners.name_of(f"{name}-", {}) == owner


def test_metadata_is_found_in_the_beginning_of_a_request() -> None:
    metadata = {"generateName": "a-", "labels": {"metadata": '"metadata":{'}}
    text = json.dumps(
        {"userInfo": {"groups": ['"metadata":1']}, "object": {"kind": "Pod", "metadata": metadata}},
        separators=(",", ":"),
    )
    assert owners.metadata_in(text) == metadata
    assert owners.metadata_in(text[:-9]) == {}
    assert owners.metadata_in('{"object":{"metadata":[1]}}') == {}
    assert owners.metadata_in("") == owners.metadata_in('{"object":null}') == {}


def test_a_replica_sets_hash_is_known_by_its_form_where_no_label_names_it() -> None:
    reference = {"kind": "ReplicaSet", "name": "ledger-api-nztqzqk6t", "controller": True}
    owner = owners.recorded({"ownerReferences": [reference]})
    assert owner == Owner("Deployment", "ledger-api")


def test_a_generated_name_names_the_deployment_where_no_label_does() -> None:
    owner = owners.recorded({"generateName": "ledger-api-nztqzqk6t-"})
    assert owner == Owner("Deployment", "ledger-api")
