"""``python -m tests.cluster.up``: a control plane for experiments, until SIGTERM or Ctrl-C.

Once it is ready, it prints the path of an administrator's kubeconfig on a separate line; beside it
are ``certificate.kubeconfig`` (the same by client certificate) and ``nobody.kubeconfig``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys

from tests.cluster.binaries import DEFAULT, RELEASES, find
from tests.cluster.build import UNAVAILABLE, say
from tests.cluster.servers import Options, cluster


def main(words: list[str] | None = None) -> int:
    """Run it; returns the exit code."""
    options = _read(words)
    binaries = find(options.version)
    if binaries is None:
        say("no binaries: set KUBEBUILDER_ASSETS, or run python -m tests.cluster.build")
        return UNAVAILABLE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    chosen = Options(
        plugins=not options.no_plugins,
        limited_resources=json.loads(options.limited_resources),
        controllers=options.controllers.split(",") if options.controllers else (),
    )
    with cluster(binaries, chosen) as made:
        sys.stdout.write(f"{made.kubeconfig}\n")
        sys.stdout.flush()
        try:
            signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


def _read(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.up", description=__doc__)
    parser.add_argument(
        "--no-plugins", action="store_true", help="LimitRanger and ResourceQuota off"
    )
    parser.add_argument(
        "--limited-resources", default="[]", help="the quota plugin's, as a JSON list"
    )
    parser.add_argument(
        "--controllers", default="", help="run kube-controller-manager with these, by comma"
    )
    parser.add_argument("--version", choices=RELEASES, default=DEFAULT, help="of Kubernetes")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
