"""The writer without HTTP, beside the floors of the database.

`python -m bench.writers ROUNDS SECONDS postgresql|sqlite usual|slow` prints decisions each second
as JSON. Two processes of 16 threads each, closed loop, each item a review of its own.
"""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    print(json.dumps({"rounds": [], "skipped": {"writer alone": "not written yet"}}))
    sys.exit(0)
