"""The review that is sent: a pod as a validating webhook gets it, and its policies. Plain Python.

The template's marks have the length of what replaces them, so that a client only overwrites bytes.
"""

from __future__ import annotations

import json
import secrets
import uuid
from typing import Any, Final

CLUSTER: Final = "bench"
REQUEST_UID: Final = "00000000-0000-4000-8000-00000000000a"
OBJECT_UID: Final = "00000000-0000-4000-8000-00000000000b"
NAMESPACE: Final = "nsp-0000"
SUFFIX: Final = "q0q0q"
SPREAD: Final = tuple(f"team-{number:03d}" for number in range(100))
HOT: Final = ("hot-0000",)
TIGHT: Final = ("tight-00", "tight-01", "tight-02")
TIGHT_PODS: Final = 300
FULL: Final = ("full-000",)
PRIORITY: Final = "production"
ROOMY: Final = {
    "pods": "10000000",
    "requests.cpu": "10M",
    "requests.memory": "10Pi",
    "limits.cpu": "20M",
    "limits.memory": "20Pi",
}
_KINDS: Final = {"group": "", "version": "v1"}


def _environment(name: str) -> list[dict[str, Any]]:
    field = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
    return [
        {"name": "SERVICE", "value": name},
        {"name": "POD_NAME", **field},
    ]


def _container(name: str, cpu: str, memory: str, **more: Any) -> dict[str, Any]:
    mount = {"name": "kube-api-access", "readOnly": True}
    return {
        "name": name,
        "image": f"registry.internal/shop/{name}:2026.11.3",
        "env": _environment(name),
        "resources": {
            "limits": {"cpu": cpu, "memory": memory},
            "requests": {"cpu": cpu, "memory": memory},
        },
        "volumeMounts": [{**mount, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        **more,
    }


def _probe(port: int) -> dict[str, Any]:
    times = {"periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}
    get = {"path": "/healthz", "port": port, "scheme": "HTTP"}
    return {"httpGet": get, "successThreshold": 1, **times}


def _managed_fields() -> list[dict[str, Any]]:
    leaf: dict[str, Any] = {}
    container = {
        ".": leaf,
        "f:env": {".": leaf, 'k:{"name":"SERVICE"}': {".": leaf, "f:name": leaf, "f:value": leaf}},
        "f:image": leaf,
        "f:imagePullPolicy": leaf,
        "f:name": leaf,
        "f:resources": {
            ".": leaf,
            "f:limits": {".": leaf, "f:cpu": leaf, "f:memory": leaf},
            "f:requests": {".": leaf, "f:cpu": leaf, "f:memory": leaf},
        },
    }
    owner = 'k:{"uid":"5b6a1f0e-3f6b-4a55-9c1d-2f4c1c6a7d10"}'
    return [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-20T09:30:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {
                    "f:generateName": leaf,
                    "f:labels": {".": leaf, "f:app": leaf, "f:team": leaf},
                    "f:ownerReferences": {".": leaf, owner: leaf},
                },
                "f:spec": {
                    "f:containers": {f'k:{{"name":"{n}"}}': container for n in ("api", "cache")},
                    "f:priorityClassName": leaf,
                    "f:restartPolicy": leaf,
                    "f:schedulerName": leaf,
                },
            },
        }
    ]


def _metadata() -> dict[str, Any]:
    return {
        "name": f"api-7c9d8f6b54-{SUFFIX}",
        "generateName": "api-7c9d8f6b54-",
        "namespace": NAMESPACE,
        "uid": OBJECT_UID,
        "creationTimestamp": "2026-11-20T09:30:00Z",
        "labels": {"app": "api", "team": "payments", "tier": "web", "pod-template-hash": "7c9d8f"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "api-7c9d8f6b54",
                "uid": "5b6a1f0e-3f6b-4a55-9c1d-2f4c1c6a7d10",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed_fields(),
    }


def _spec() -> dict[str, Any]:
    return {
        "volumes": [
            {
                "name": "kube-api-access",
                "projected": {
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3607}}],
                    "defaultMode": 420,
                },
            }
        ],
        "initContainers": [_container("migrate", "250m", "256Mi")],
        "containers": [
            _container("api", "500m", "512Mi", livenessProbe=_probe(8080)),
            _container("cache", "250m", "1Gi", readinessProbe=_probe(8081)),
            _container("metrics", "100m", "64Mi"),
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
        "priorityClassName": PRIORITY,
        "priority": 100000,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def template() -> dict[str, Any]:
    """The AdmissionReview of one pod that is created, with marks in place of what differs."""
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": _metadata(), "spec": _spec()}
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": REQUEST_UID,
            "kind": {**_KINDS, "kind": "Pod"},
            "resource": {**_KINDS, "resource": "pods"},
            "requestKind": {**_KINDS, "kind": "Pod"},
            "requestResource": {**_KINDS, "resource": "pods"},
            "name": f"api-7c9d8f6b54-{SUFFIX}",
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "1f6d2b9e-7a10-4a7c-8f0e-0c9d8e7f6a5b",
                "groups": ["system:serviceaccounts", "system:authenticated"],
            },
            "object": {**pod, "status": {"phase": "Pending", "qosClass": "Guaranteed"}},
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def template_bytes(review: dict[str, Any] | None = None) -> bytes:
    """The template as an API server writes it: compact JSON, about 5.4 kB."""
    return json.dumps(review or template(), separators=(",", ":")).encode()


def fresh(namespace: str = SPREAD[0], review: dict[str, Any] | None = None) -> bytes:
    """A review with uids and a name that nobody saw before."""
    body = template_bytes(review).replace(NAMESPACE.encode(), namespace.encode())
    for mark in (REQUEST_UID, OBJECT_UID):
        body = body.replace(mark.encode(), str(uuid.uuid4()).encode())
    return body.replace(SUFFIX.encode(), secrets.token_hex(3)[:5].encode())


def _namespaced(namespace: str, name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}}


def limit_range(namespace: str) -> dict[str, Any]:
    """Bounds and defaults for containers and pods; the template keeps to them."""
    container = {
        "type": "Container",
        "min": {"cpu": "50m", "memory": "32Mi"},
        "max": {"cpu": "4", "memory": "8Gi"},
        "default": {"cpu": "500m", "memory": "512Mi"},
        "defaultRequest": {"cpu": "250m", "memory": "256Mi"},
        "maxLimitRequestRatio": {"cpu": "4"},
    }
    whole = {"type": "Pod", "max": {"cpu": "8", "memory": "16Gi"}}
    spec = {"limits": [container, whole]}
    return {"apiVersion": "v1", "kind": "LimitRange", "spec": spec} | _namespaced(namespace, "lr")


def metadata_policy(namespace: str, name: str = "mp") -> dict[str, Any]:
    """Three rules, asked again by the validating call: one refuses pods without a team."""
    rules = [
        _rule({"labelSelector": _without("team")}, reject=True),
        _rule(
            {"labelSelector": {"matchLabels": {"tier": "web"}}},
            reject=False,
            updatedAnnotations={"shop.example/tier": "web"},
        ),
        _rule(
            {"annotationSelector": {"matchLabels": {"prometheus.io/scrape": "true"}}},
            reject=False,
            updatedLabels={"scraped": "yes"},
        ),
    ]
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "spec": {"rules": rules, "strict": True},
    } | _namespaced(namespace, name)


def _rule(predicate: dict[str, Any], **action: Any) -> dict[str, Any]:
    return {"policyPredicate": predicate, "policyAction": action}


def _without(label: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": label, "operator": "DoesNotExist"}]}


def quota(namespace: str) -> dict[str, Any]:
    """What pods of one priority class may use: practically all, or 300 pods, or none."""
    pods = {**dict.fromkeys(TIGHT, str(TIGHT_PODS)), **dict.fromkeys(FULL, "0")}
    hard = {**ROOMY, "pods": pods.get(namespace, ROOMY["pods"])}
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": [PRIORITY]}
    spec = {"hard": hard, "scopeSelector": {"matchExpressions": [scope]}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "spec": spec} | _namespaced(
        namespace, "rq"
    )


def refused() -> dict[str, dict[str, Any]]:
    """Reviews that must be refused, by the reason's name; what any policy engine must see."""
    without_team, too_much = template(), template()
    del without_team["request"]["object"]["metadata"]["labels"]["team"]
    container = too_much["request"]["object"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "16", "memory": "512Mi"}
    container["resources"]["requests"]["cpu"] = "4"
    return {"RejectedByRule": without_team, "MaxConstraint": too_much}
