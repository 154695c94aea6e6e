# SPDX-License-Identifier: Apache-2.0
"""The command line of those who read the built module with cuobjdump (resources.py, sass.py). It says
when there is nothing to read: no cuobjdump, no module, or one older than the kernels."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def skip(why):
    print(f"{why}: skipped")
    sys.exit(77)


def is_old(module):
    return any(path.stat().st_mtime > module.stat().st_mtime
               for path in (ROOT / "kernels/cuda").glob("*.[ch]*"))


def run(parser, check, plant):
    """Ends the program with what `check(arguments, modules)` finds in the first module that there is,
    or, with --planted, with what `plant()` missed. A parser that has --write gets all modules for
    it, however old."""
    parser.add_argument("--cuobjdump", default="")
    parser.add_argument("--module", nargs="*", default=[], type=pathlib.Path,
                        help="the first that there is")
    parser.add_argument("--planted", action="store_true")
    arguments = parser.parse_args()
    if arguments.planted:
        sys.exit(1 if plant() else 0)
    modules = [path for path in arguments.module if path.exists()]
    if arguments.cuobjdump in ("", "CUOBJDUMP-NOTFOUND") or not modules:
        skip("no cuobjdump or no module")
    if not getattr(arguments, "write", False):
        modules = modules[:1]
        if is_old(modules[0]):
            skip(f"{modules[0]} is older than the kernels")
    sys.exit(1 if check(arguments, modules) else 0)
