"""``python -m portal.dev.run``: start the portal with everything it needs."""

import sys

from portal.dev.supervisor.main import main

if __name__ == "__main__":
    sys.exit(main())
