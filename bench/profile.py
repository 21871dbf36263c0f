"""Where the product's time goes: `python -m bench profile`.

The stages of one review come from `bench.stages`. Under load, a sampler in each web process asks
each thread every millisecond how much CPU it has used since (Linux counts it in nanoseconds) and
books that on the stack the thread stands at: waiting costs nothing and C code counts. A thread that
waits for the writer has done its work, which cannot be placed: the lists of functions leave it out.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import figures, run, servers
from bench.load import Load
from portal import serve

if TYPE_CHECKING:
    from types import CodeType

    from bench.run import Run

FOLDER: Final = "PROFILE_FOLDER"
PACE: Final = 0.001  # seconds between two looks
SWITCH: Final = 0.0005  # seconds: so that the sampler is let in soon
LOOKS: Final = 500  # between two writings: nothing announces the end
SECONDS: Final = 6.0
SHOWN: Final = 45
WAITS: Final = "pending_decision.py:PendingDecision.wait"
TITLES: Final = {
    "threads": "CPU by thread",
    "own": "CPU in the function itself (C code counts for its caller)",
    "below": "CPU in the function and what it calls",
}


def sample(folder: Path) -> None:
    """Look at all other threads until the process ends, once it serves."""
    while not gc.get_freeze_count():  # ``settle`` freezes what is loaded, just before
        time.sleep(PACE)
    sys.setswitchinterval(SWITCH)
    costs = {kind: Counter[str]() for kind in TITLES}
    seen = {threading.get_ident(): sys.maxsize}
    while True:
        for _ in range(LOOKS):
            time.sleep(PACE)
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for identity, frame in sys._current_frames().items():  # noqa: SLF001 - the only way
                used = time.clock_gettime_ns(time.pthread_getcpuclockid(identity))
                spent = used - seen.setdefault(identity, used)
                if spent <= 0:
                    continue
                seen[identity] = used
                name = names.get(identity, "no thread of Python's").rstrip("0123456789-_() ")
                costs["threads"][name] += spent
                stack = [_place(each.f_code) for each, _ in traceback.walk_stack(frame)]
                if not stack[0].endswith(WAITS):
                    costs["own"][stack[0]] += spent
                    costs["below"].update(dict.fromkeys(stack, spent))
        (folder / f"{os.getpid()}.json").write_text(json.dumps(costs), encoding="utf-8")


def _place(code: CodeType) -> str:
    name = code.co_filename
    for root in ("site-packages/", "lib/python3", f"{Path.cwd()}/"):
        name = name.rpartition(root)[2]
    return f"{name}:{code.co_qualname}"


def measure(made: Run) -> int:
    """Print the stages of one review, then where the time goes under load."""
    folder = made.folder / "profile"
    folder.mkdir()
    for name in ("product", "stages"):
        made.databases.clone("seeded", name)
    print(made.run("bench.stages", made.secret, name="stages"))
    product = servers.product("product", made.secret)
    subject = replace(
        product,
        words=[sys.executable, "-m", "bench.profile"],
        environment={**product.environment, FOLDER: str(folder)},
    )
    for label, namespaces in run.QUOTAS.items():
        with made.start(subject) as server:
            asked = Load(namespaces=namespaces, seconds=SECONDS)
            made.measure(f"{figures.PRODUCT} under the sampler, {label}", server, asked)
        sums = {kind: Counter[str]() for kind in TITLES}
        for path in folder.glob("*.json"):
            for kind, costs in json.loads(path.read_text("utf-8")).items():
                sums[kind].update(costs)
            path.unlink()
        for kind, title in TITLES.items():
            whole = sums["threads" if kind == "threads" else "own"].total()
            print(f"\n{title}, share of {whole / 1e9:.2f} s:")
            for place, spent in sums[kind].most_common(SHOWN):
                print(f"  {spent / whole:7.1%}  {place}")
    return 0


def _start_sampler() -> None:
    threading.Thread(target=sample, args=(Path(os.environ[FOLDER]),), daemon=True).start()


if __name__ == "__main__":
    # The product's own entry; each web process that its parent forks has a sampler.
    os.register_at_fork(after_in_child=_start_sampler)
    sys.exit(serve.main())
