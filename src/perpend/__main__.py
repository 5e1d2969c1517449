"""The program ``perpend``; ``python -m perpend`` is the same.

The command line is imported inside a function, so that an interruption then gives no traceback.
"""

import sys


def main() -> int:
    """Run the command of this process's arguments and return its exit code."""
    try:
        from perpend.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
