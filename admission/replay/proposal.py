"""A Proposal from documents (YAML, JSON, manifests as values), and as JSON text to be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from admission.replay.policies import Proposal
from engine.wire import dumps, loads
from policies.manifests.bundle import DEFAULT_NAMESPACE, bundle_of, read_bundle
from policies.manifests.documents import Document, ManifestError
from policies.manifests.sources import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from admission.replay.policies import Named
    from policies.manifests.documents import Problem

_SOURCE: Final = "manifests"


class ProposalError(ValueError):
    """Documents that cannot be proposed; ``faults`` are code and message by place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.faults: dict[str, tuple[str, str]] = {}
        for problem in problems:
            document = _SOURCE + problem.source.removeprefix(_SOURCE)
            place = f"{document}.{problem.field}" if problem.field else document
            line = f"line {problem.line}: " if problem.line else ""
            hint = f" ({problem.hint})" if problem.hint else ""
            self.faults.setdefault(place, (problem.code, f"{line}{problem.message}{hint}"))
        super().__init__("; ".join(message for _, message in self.faults.values()))


LIMITED_KIND: Final = "ResourceQuotaConfiguration"
"""The kind of a deletion that removes all limited resources."""


def read_proposal(
    documents: str | Sequence[Any],
    *,
    deletions: Iterable[Named] = (),
    namespace: str = DEFAULT_NAMESPACE,
) -> Proposal:
    """Read and check documents; raises ``ProposalError`` with every problem of all of them.

    What is no policy (namespaces, priority classes) changes no decision, and is left out.
    """
    try:
        if isinstance(documents, str):
            bundle = read_bundle([Source(_SOURCE, documents)], namespace=namespace)
        else:
            numbered = [Document(f"[{index}]", value) for index, value in enumerate(documents)]
            bundle = bundle_of(numbered, namespace=namespace)
    except ManifestError as error:
        raise ProposalError(error.problems) from error
    gone = tuple(deletions)
    limited: Any = bundle.limited_resources
    if limited is None and any(kind == LIMITED_KIND for kind, _, _ in gone):
        limited = ()
    return Proposal(
        manifests=tuple(each.manifest for each in bundle.objects),
        deletions=gone,
        limited_resources=limited,
    )


def proposal_text(proposal: Proposal) -> str:
    """A proposal as JSON text."""
    limited = proposal.limited_resources
    return dumps(
        {
            "manifests": list(proposal.manifests),
            "deletions": [list(each) for each in proposal.deletions],
            "limitedResources": None if limited is None else list(limited),
        }
    )


def stored_proposal(text: str) -> Proposal:
    """The proposal of such a text."""
    stored = loads(text)
    limited = stored["limitedResources"]
    return Proposal(
        manifests=tuple(stored["manifests"]),
        deletions=tuple((kind, namespace, name) for kind, namespace, name in stored["deletions"]),
        limited_resources=None if limited is None else tuple(limited),
    )
