"""``python -m perpend`` is the same as ``perpend``."""

import sys

from perpend.cli import main

if __name__ == "__main__":
    sys.exit(main())
