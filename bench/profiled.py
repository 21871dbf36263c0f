"""The product's own door with a sampler behind it; only the benchmark opens it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from bench.profile import FOLDER, sample
from portal.serving.application import begin, build_front

application = build_front()
begin()
threading.Thread(target=sample, args=(Path(os.environ[FOLDER]),), daemon=True).start()
