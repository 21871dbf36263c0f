"""TrialForm of ContainerRows, or pasted YAML, read into an object and tried: Trial, problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from engine.errors import DecodeError
from policies.manifests.documents import ManifestError, Problem
from policies.manifests.sources import parse_documents
from policies.simulation import request_for, run

if TYPE_CHECKING:
    from django.http import QueryDict

    from engine.policy import PolicySet
    from policies.manifests.documents import Document
    from policies.simulation import Simulation

LARGEST: Final = 64 * 1024  # characters of pasted YAML
MOST_CONTAINERS: Final = 20  # containers of the form
LONGEST_FIELD: Final = 253
PASTED: Final = "pasted"
AMOUNT_COLUMNS: Final = {
    "rc": ("requests", "cpu"),
    "rm": ("requests", "memory"),
    "lc": ("limits", "cpu"),
    "lm": ("limits", "memory"),
}


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """One container of the form: its name and four quantities as typed."""

    name: str
    amounts: dict[str, str]

    def to_manifest(self) -> dict[str, Any]:
        """Write the container without empty amounts."""
        resources: dict[str, dict[str, str]] = {}
        for column, (side, resource) in AMOUNT_COLUMNS.items():
            if amount := self.amounts.get(column):
                resources.setdefault(side, {})[resource] = amount
        given_resources = {"resources": resources} if resources else {}
        # Some image: a pod without one is invalid, and no policy looks at it.
        return {"name": self.name, "image": "example.com/app:1", **given_resources}


@dataclass(frozen=True, slots=True)
class TrialForm:
    """The small form; the query string is all of its state."""

    rows: tuple[ContainerRow, ...] = (ContainerRow("app", {}),)
    priority: str = ""
    labels: str = ""
    annotations: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> TrialForm:
        """Read it; a container without a name is left out, unless it is the only one."""
        container_names = query.getlist("c")[:MOST_CONTAINERS]
        columns = {column: query.getlist(column) for column in AMOUNT_COLUMNS}
        container_rows = [
            ContainerRow(
                _typed(container_name),
                {column: _typed(typed[at]) for column, typed in columns.items() if at < len(typed)},
            )
            for at, container_name in enumerate(container_names)
            if container_name.strip()
        ]
        if query.get("add"):
            container_rows.append(ContainerRow(f"app-{len(container_rows) + 1}", {}))
        return cls(
            rows=tuple(container_rows[:MOST_CONTAINERS]) or (ContainerRow("app", {}),),
            priority=_typed(query.get("priority", "")),
            labels=query.get("labels", "").replace("\0", ""),
            annotations=query.get("annotations", "").replace("\0", ""),
        )

    @property
    def query(self) -> str:
        """The query string that gives this form again."""
        query_pairs = [("c", row.name) for row in self.rows]
        for column in AMOUNT_COLUMNS:
            # All rows or none: values are matched to containers by their position.
            if any(row.amounts.get(column) for row in self.rows):
                query_pairs += [(column, row.amounts.get(column, "")) for row in self.rows]
        for name in ("priority", "labels", "annotations"):
            if text := getattr(self, name):
                query_pairs.append((name, text))
        return urlencode(query_pairs)

    def to_manifest(self, namespace: str) -> dict[str, Any]:
        """Write the pod."""
        pod_metadata: dict[str, Any] = {"name": "example", "namespace": namespace}
        for name, text in (("labels", self.labels), ("annotations", self.annotations)):
            if label_pairs := pairs_of(text):
                pod_metadata[name] = label_pairs
        pod_spec: dict[str, Any] = {"containers": [row.to_manifest() for row in self.rows]}
        if self.priority:
            pod_spec["priorityClassName"] = self.priority
        return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": pod_spec}


def _typed(text: str) -> str:
    return text.replace("\0", "").strip()[:LONGEST_FIELD]


def pairs_of(text: str) -> dict[str, str]:
    """Read ``key=value``, one a line; a line without a sign is a key with an empty value."""
    pair_lines = (pair_line.strip() for pair_line in text.splitlines())
    key_values = (pair_line.partition("=") for pair_line in pair_lines if pair_line)
    return {key.strip(): value.strip() for key, _, value in key_values}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An object that was tried, with its simulation, or the problems of reading it."""

    draft: TrialForm = field(default_factory=TrialForm)
    text: str = ""
    object: dict[str, Any] = field(default_factory=dict)
    simulation: Simulation | None = None
    document: Document | None = None
    problems: tuple[Problem, ...] = ()

    def line_of(self, field_text: str) -> int:
        """Where a field stands in the pasted text; 0 where that is not known."""
        return self.document.place_of(field_text)[0] if self.document else 0


def attempt_of(draft: TrialForm, policies: PolicySet) -> Trial:
    """Try the pod of the small form."""
    pod = draft.to_manifest(policies.namespace)
    request = request_for(pod, namespace=policies.namespace)
    return Trial(draft=draft, object=pod, simulation=run(request, policies))


def attempt_of_text(text: str, policies: PolicySet) -> Trial:
    """Try pasted YAML or JSON: one object of any kind."""
    try:
        document = _only_document(text)
    except ManifestError as error:
        return Trial(text=text, problems=tuple(error.problems))
    try:
        request = request_for(document.value, namespace=policies.namespace)
    except DecodeError as error:
        problem = document.problem(error.field, error.detail)
        return Trial(text=text, problems=(problem,), document=document)
    simulated = run(request, policies)
    return Trial(text=text, object=document.value, simulation=simulated, document=document)


def _only_document(text: str) -> Document:
    if len(text) > LARGEST:
        raise _problem(f"longer than {LARGEST // 1024} KiB", "leave out what does not matter here")
    documents = parse_documents(text, PASTED)
    if not documents:
        raise _problem("there is nothing to try", "paste one object, such as a Pod")
    if len(documents) > 1:
        line = documents[1].place_of("")[0]
        raise _problem("more than one object", "paste one at a time", line)
    if not isinstance(documents[0].value, dict):
        raise _problem("not an object", "begin with apiVersion and kind", 1)
    return documents[0]


def _problem(message: str, hint: str, line: int = 0) -> ManifestError:
    return ManifestError([Problem(source=PASTED, line=line, message=message, hint=hint)])
