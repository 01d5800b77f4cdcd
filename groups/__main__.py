"""``python -m groups``: which GPUs are together, on the command line. See `cli.command`."""

from __future__ import annotations

import gc
import os
import sys

from cli.command import run

from .program import PROGRAM


def main() -> int:
    # A command ends before it leaves much garbage, and its imports leave none; collecting takes 50
    # of the 550 ms of the command `memory`.
    gc.set_threshold(100_000)
    try:
        status = run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # Otherwise Python flushes the unwritten output again at exit, and fails again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            return 0
        sys.stderr.write(f"{PROGRAM}: cannot write: {error.strerror}\n")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
