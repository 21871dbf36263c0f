"""Cases that once differed, with the API server's answer: one file each, replayed without it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.wire import dumps, loads
from tests.cluster.worlds import Observed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.cases import Case
    from tests.cluster.comparison import Verdict

FOLDER: Final = Path(__file__).parent / "golden"
_KEPT: Final = (
    *("policies", "limitedResources", "request", "phase"),
    *("defaultPriority", "kubernetesVersion"),
)


def keep(case: Case, observed: Observed, verdict: Verdict) -> Path:
    """Write one difference; the same case has the same name."""
    digest = hashlib.sha256(dumps(_shape(case)).encode()).hexdigest()[:12]
    return keep_as(f"{verdict.differences[0].mark}-{digest}", case, observed)


def keep_as(name: str, case: Case, observed: Observed) -> Path:
    """Write one case with its answer under a name."""
    expect = {"code": observed.code, "message": observed.message, "object": _stored(observed)}
    if observed.used is not None:
        expect["used"] = observed.used
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    kept = json.loads(dumps({**_shape(case), "expect": expect}))
    text = json.dumps(kept, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _shape(case: Case) -> dict[str, Any]:
    return {key: case[key] for key in _KEPT if case.get(key)}


def _stored(observed: Observed) -> dict[str, Any]:
    """Only the compared parts of a stored object."""
    metadata, spec = (observed.object.get(key) or {} for key in ("metadata", "spec"))
    kept = {k: spec[k] for k in ("containers", "initContainers", "resources") if k in spec}
    return {"metadata": {"annotations": metadata.get("annotations") or {}}, "spec": kept}


def read_all() -> Iterator[tuple[str, Case, Observed]]:
    """All kept cases, by name."""
    for path in sorted(FOLDER.glob("*.json")):
        case = loads(path.read_bytes())
        expect = case.pop("expect")
        yield (
            path.stem,
            {"name": path.stem, **case},
            Observed(int(expect["code"]), expect["message"], expect["object"], expect.get("used")),
        )
