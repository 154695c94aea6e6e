# SPDX-License-Identifier: Apache-2.0
"""The command line of those who read the built module with cuobjdump (resources.py, sass.py). It says
when there is nothing to read: no cuobjdump, no module, or one older than the kernels.

Some toolkits come without cuobjdump. Then it is looked for in the Python environment that
TWINSTEP_TORCH_VENV names when the test runs (as for tests labelled torch): PyTorch's Triton has one,
and so has the package nvidia-cuda-cuobjdump. It calls nvdisasm, which has to be beside it or on
PATH."""
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def skip(why):
    print(f"{why}: skipped")
    sys.exit(77)


# Where an environment's packages have NVIDIA's tools: Triton's wheel, packages of CUDA 13 and of 12.
IN_AN_ENVIRONMENT = ("triton/backends/nvidia/bin", "nvidia/cu*/bin", "nvidia/cuda_cuobjdump/bin")


def is_complete(cuobjdump):
    """Tells whether a cuobjdump can show machine code."""
    return cuobjdump.is_file() and bool(
        shutil.which("nvdisasm", path=f"{cuobjdump.parent}:{os.environ.get('PATH', '')}"))


def tool(given):
    """Returns cuobjdump: the given one, or one of the environment; None where neither is there."""
    places = [pathlib.Path(given)]
    environment = os.environ.get("TWINSTEP_TORCH_VENV")
    if environment:
        for place in IN_AN_ENVIRONMENT:
            places += sorted(pathlib.Path(environment).glob(f"lib/python3*/site-packages/{place}/cuobjdump"))
    return next((str(place) for place in places if is_complete(place)), None)


def is_old(module):
    return any(path.stat().st_mtime > module.stat().st_mtime
               for path in (ROOT / "kernels/cuda").glob("*.[ch]*"))


def run(parser, check, plant):
    """Ends the program with what `check(arguments, modules)` finds in the first module that there is,
    or, with --planted, with what `plant()` missed. A parser that has --write gets all modules for
    it, however old."""
    parser.add_argument("--cuobjdump", default="", help="else of the environment")
    parser.add_argument("--module", nargs="*", default=[], type=pathlib.Path,
                        help="the first that there is")
    parser.add_argument("--planted", action="store_true")
    arguments = parser.parse_args()
    if arguments.planted:
        sys.exit(1 if plant() else 0)
    modules = [path for path in arguments.module if path.exists()]
    arguments.cuobjdump = tool(arguments.cuobjdump)
    if arguments.cuobjdump is None:
        skip("no cuobjdump with nvdisasm in the CUDA toolkit or in TWINSTEP_TORCH_VENV")
    if not modules:
        skip("no module")
    if not getattr(arguments, "write", False):
        modules = modules[:1]
        if is_old(modules[0]):
            skip(f"{modules[0]} is older than the kernels")
    sys.exit(1 if check(arguments, modules) else 0)
