# SPDX-License-Identifier: Apache-2.0
"""The command `twinstep` of the package: it becomes the program, with the same words. The verbs of
_OWN need Python's libraries, so the package does them itself."""
import importlib
import os
import sys

from twinstep._program import ProgramMissing, program

# verb: the module whose `main` does it
_OWN = {"merge": "twinstep.ranks", "tokenize": "twinstep.tokens"}


def main() -> int:
    """Runs `twinstep WORDS`. Returns the exit status, 2 where there is no program."""
    if len(sys.argv) > 1 and sys.argv[1] in _OWN:
        return int(importlib.import_module(_OWN[sys.argv[1]]).main(sys.argv[2:]))
    try:
        path = str(program())
    except ProgramMissing as error:
        print(f"twinstep: {error}", file=sys.stderr)
        return 2
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
