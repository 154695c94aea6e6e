# SPDX-License-Identifier: Apache-2.0
"""The command of each run of `twinstep.ablate`: it asks the process that called that function for
the run, waits until it is done, and ends as it ended. It imports nothing of the package, and is
started by its path, with -SE."""
import json
import os
import socket
import sys


def main() -> int:
    """Returns 0, or 1 with the reason on standard error."""
    folder, run, *levels = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["TWINSTEP_CALLS"])
        asked = {"dir": folder, "run": run, "levels": levels}
        line.sendall(json.dumps(asked).encode() + b"\n")
        with line.makefile("rb") as file:
            answer = file.read()
    if not answer:
        print("the process that called twinstep.ablate has ended", file=sys.stderr)
        return 1
    reason = json.loads(answer)
    if reason:
        print(reason, file=sys.stderr)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
