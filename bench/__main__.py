"""`python -m bench`: measure, print, keep. See docs/explanation/performance.md."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from bench import against, live, machine, profile, report, run

EXTENTS: Final = {"full": run.FULL_RUN, "quick": run.QUICK, "tiny": run.TINY}
OTHERS: Final = ("against", "docs", "follower", "growth", "live", "profile", "replay", "sets", "ui")


def main() -> int:
    """Run what is named. 0: done; 1: failed or not exact; 2: a goal was missed, or it got worse."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", nargs="?", default="full", choices=(*EXTENTS, *OTHERS))
    parser.add_argument("commit", nargs="?", help="what `against` compares this checkout with")
    parser.add_argument("--sqlite", action="store_true", help="SQLite in place of PostgreSQL")
    parser.add_argument("--quick", action="store_true", help="fewer rows for `growth` and `ui`")
    parser.add_argument("--pairs", type=int, default=10, help="how often `against` asks each")
    parser.add_argument("--rounds", type=int, default=3, help="of `live`")
    parser.add_argument("--rate", type=float, default=live.RATE, help="pods a second, of `live`")
    options = parser.parse_args()
    return run.guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:  # noqa: PLR0911 - one for each word
    match options.what:
        case "docs":
            return report.write_docs()
        case "growth" | "ui":
            module = f"bench.{options.what}"
            return run.on_empty_database(module, options.quick, sqlite=options.sqlite)
        case "sets" | "follower" | "replay":
            return run.on_empty_database(f"bench.{options.what}", sqlite=options.sqlite)
        case "live":
            return live.measure(options.rounds, options.rate)
        case "against":
            return against.measure(options.commit, options.pairs, sqlite=options.sqlite)
        case "profile":
            with run.prepared(run.QUICK, sqlite=options.sqlite) as made:
                return profile.measure(made)
    with run.prepared(EXTENTS[options.what], sqlite=options.sqlite) as made:
        header = machine.describe(made.folder, made.databases)
        print(report.header_line(header))
        run.measure_all(made)
        found = report.Report(header, made.figures, made.exact, made.skipped)
    print(f"\n{report.as_markdown(found)}\n")
    print(report.save(found.as_json(), name=f"{options.what}-{made.databases.kind}"))
    return 2 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
