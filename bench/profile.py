"""Where the product's time goes: a sampler in its workers, read when they stop.

Every few milliseconds it asks each thread how much CPU it has used since (Linux counts it in
nanoseconds) and books that on the stack the thread stands at. So waiting costs nothing and C code
counts. What a request's thread did since, before it began to wait for the writer, cannot be placed
and is left out of the lists of functions; that of threads has it. Whoever waits for the database
is seen there a little too often, since its own short work lies between two looks.
"""

from __future__ import annotations

import collections
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import names, run, servers
from bench.load import Load

if TYPE_CHECKING:
    from types import FrameType

    from bench.run import Run

FOLDER: Final = "PROFILE_FOLDER"
PACE: Final = 0.001  # seconds between two looks
SWITCH: Final = 0.0005  # seconds: so that the sampler is let in soon
SECONDS: Final = 6.0
SHOWN: Final = 45
WAITS: Final = ("items.py:PendingDecision.wait",)  # where a thread stands once its work is done
ANSWERING: Final = "answering"  # threads of the web server, which Python did not start
Costs = collections.Counter[str]


class Sampler:
    """A thread that looks at all others until the process ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{os.getpid()}.json"
        self.own: Costs = collections.Counter()
        self.below: Costs = collections.Counter()
        self.threads: Costs = collections.Counter()
        self.seen: dict[int, int] = {}

    def start(self) -> None:
        """Begin to look; writes what was found each second, since nobody says when it ends."""
        sys.setswitchinterval(SWITCH)
        threading.Thread(target=self._run, name="sampler", daemon=True).start()

    def _run(self) -> None:
        mine, written = threading.get_ident(), time.monotonic()
        while True:
            time.sleep(PACE)
            frames = sys._current_frames()  # noqa: SLF001 - there is no public way
            known = {thread.ident: thread.name for thread in threading.enumerate()}
            for identity, frame in frames.items():
                if identity != mine:
                    self._book(identity, _kind(known.get(identity, ANSWERING)), frame)
            if time.monotonic() - written > 1:
                written = time.monotonic()
                self._write()

    def _book(self, identity: int, kind: str, frame: FrameType) -> None:
        used = time.clock_gettime_ns(time.pthread_getcpuclockid(identity))
        spent = used - self.seen.get(identity, used)
        self.seen[identity] = used
        if spent <= 0:
            return
        self.threads[kind] += spent
        if _place(frame).endswith(WAITS):
            return
        stack = []
        current: FrameType | None = frame
        while current is not None:
            stack.append(_place(current))
            current = current.f_back
        self.own[stack[0]] += spent
        for place in set(stack):
            self.below[place] += spent

    def _write(self) -> None:
        counts = {"own": self.own, "below": self.below, "threads": self.threads}
        self.path.write_text(json.dumps(counts), encoding="utf-8")


def _kind(name: str) -> str:
    if name == "MainThread":
        return "event loop"
    return ANSWERING if name.startswith("Dummy") else name.rstrip("0123456789-_() ") or name


def _place(frame: FrameType) -> str:
    code = frame.f_code
    name = code.co_filename
    for root in ("site-packages/", "lib/python3"):
        if root in name:
            name = name.rpartition(root)[2]
    return f"{name.replace(f'{Path.cwd()}/', '')}:{code.co_qualname}"


def measure(made: Run) -> None:
    """Load the product under the sampler and print where the time went."""
    folder = made.folder / "profile"
    folder.mkdir()
    made.database.copy("seeded", "product")
    made.database.copy("seeded", "stages")
    print("CPU of one review in one thread:", flush=True)
    run.tell_process(made, "bench.stages", made.secret, name="stages")
    usual = servers.product("product", made.secret)
    for label, namespaces in run.QUOTAS.items():
        words = servers.granian("bench.profiled:application", interface="rsgi")
        subject = servers.Subject(
            name=names.PRODUCT,
            words=words,
            path=usual.path,
            database=usual.database,
            environment={FOLDER: str(folder)},
        )
        with run.start(made, subject) as server:
            run.ready(made, server)
            load = Load(namespaces=namespaces, seconds=SECONDS)
            made.measure(f"{names.PRODUCT} under the sampler, {label}", server, load)
        _show(folder)


def _show(folder: Path) -> None:
    sums: dict[str, Costs] = {}
    for path in folder.glob("*.json"):
        for kind, costs in json.loads(path.read_text("utf-8")).items():
            sums.setdefault(kind, collections.Counter()).update(costs)
        path.unlink()
    for kind, title in (
        ("threads", "CPU by thread"),
        ("own", "CPU in the function itself (C code counts for its caller)"),
        ("below", "CPU in the function and what it calls"),
    ):
        whole = sum(sums["threads" if kind == "threads" else "own"].values())
        print(f"\n{title}, share of {whole / 1e9:.2f} s:")
        for place, spent in sums[kind].most_common(SHOWN):
            print(f"  {spent / whole:7.1%}  {place}")
