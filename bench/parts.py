"""The parts of a run beside the rounds: the engine, the writer, many policies, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench import names, review, run, servers
from bench.load import Load
from bench.names import CLOSED, SLOW, SPREAD, key

if TYPE_CHECKING:
    from bench.run import Run

RECORD: Final = ("admission_auditevent",)
LARGE_ROUNDS: Final = 3


def engines(made: Run) -> None:
    """The engine beside other engines, in one process."""
    found = run.ask_process(made, "bench.engines", str(max(3, made.extent.rounds)))
    made.skipped |= found["skipped"]
    for figures in found["rounds"]:
        for name, microseconds in figures.items():
            made.keep(name, {"us": microseconds})


def writers(made: Run) -> None:
    """The writer without HTTP, beside the floors of the database; twice, the disk slow at last."""
    made.database.copy("seeded", "writers")
    paces = {"": {}, SLOW: run.SLOW_COMMITS}
    if not made.extent.full or made.database.kind != "postgresql":
        paces.pop(SLOW)
    for label, settings in paces.items():
        made.database.configure(settings)
        try:
            _writers(made, label)
        finally:
            made.database.configure(dict.fromkeys(settings))


def _writers(made: Run, label: str) -> None:
    words = [str(max(3, made.extent.rounds)), str(made.extent.seconds)]
    words += [made.database.kind, "slow" if label else "usual"]
    found = run.ask_process(made, "bench.writers", *words, name="writers")
    made.skipped |= found["skipped"]
    for figures in found["rounds"]:
        for name, figure in figures.items():
            made.keep(key(name, label) if label else name, figure)


def large(made: Run) -> None:
    """50,000 policies: building them into memory, and deciding beside them."""
    made.database.copy("seeded", "large")
    run.seed(made, "large", "large")
    few = run.ask_process(made, "bench.snapshot_cost", name="writers")
    many = run.ask_process(made, "bench.snapshot_cost", name="large")
    grown = (many["after"] - many["before"]) - (few["after"] - few["before"])
    per_policy = max(0.0, grown / (many["policies"] - few["policies"]))
    made.keep(
        names.LARGE,
        {
            "build_s": many["build_s"],
            "build_cpu_s": many["build_cpu_s"],
            "policies": many["policies"],
            "policy_bytes": per_policy,
        },
    )
    subject = servers.product("large", made.secret, name=names.LARGE)
    with run.start(made, subject) as server:
        run.ready(made, server)
        for _ in range(LARGE_ROUNDS):
            usual = Load(namespaces=review.SPREAD, seconds=made.extent.seconds)
            beside = key(names.PRODUCT, SPREAD, CLOSED, "beside 50,000")
            made.measure(beside, made.running[names.PRODUCT], usual)
            made.measure(key(names.LARGE, SPREAD, CLOSED), server, usual)


def sizes(made: Run) -> None:
    """Bytes of a row of the record, and of a worker that knows few policies."""
    server = made.running[names.PRODUCT]
    rows = made.database.query("product", "SELECT count(*) FROM admission_auditevent")[0][0]
    workers = server.workers()
    made.keep(
        names.PRODUCT,
        {
            "row_bytes": made.database.size("product", RECORD) / rows,
            "worker_bytes": sum(stat.resident for stat in workers) / len(workers),
        },
    )
