"""What keeping the policies in memory costs: `python -m bench.snapshot_cost`, on one database.

Prints as JSON: seconds to build, bytes of memory before and after, policies kept.
"""

from __future__ import annotations

import gc
import json
import os
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from bench import review  # noqa: E402 - Django must be set up first
from policies import snapshot  # noqa: E402
from policies.models import LimitRange, MetadataPolicy, ResourceQuota  # noqa: E402


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> dict[str, float]:
    """Build the snapshot once, on a connection that is open already."""
    kinds = (LimitRange, MetadataPolicy, ResourceQuota)
    policies = sum(kind.objects.count() for kind in kinds)
    gc.collect()
    before, begin, cpu = resident(), time.perf_counter(), time.process_time()
    found = snapshot.current()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    gc.collect()
    after = resident()
    known = found.clusters[review.CLUSTER].policy_set(review.SPREAD[0])
    if not known.resource_quotas:
        raise SystemExit("the snapshot does not know the seeded quota")
    return {
        "build_s": seconds,
        "build_cpu_s": cpu,
        "before": before,
        "after": after,
        "policies": policies,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
