# SPDX-License-Identifier: Apache-2.0
"""The command `twinstep` of the package: it becomes the program, with the same words."""
import os
import sys

from twinstep._program import ProgramMissing, program


def main() -> int:
    """Runs `twinstep WORDS`. Returns the exit status, 2 where there is no program."""
    try:
        path = str(program())
    except ProgramMissing as error:
        print(f"twinstep: {error}", file=sys.stderr)
        return 2
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
