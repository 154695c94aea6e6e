# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that the recorder executes in a training's thread, and the ops of torch
that it asks for: figures of docs/measurements/record.md that other work on a machine does not move.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_instructions.py [--every N] [--profile FOLDER]
    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_instructions.py --ops [--every N]

The training is that of gpu_floor.py, 12 layers of 64 columns on the CPU: 111 small weights, AdamW,
clipping. In place of the kernel that sums digests on a GPU stands one that returns zeros, and of all tensors
the optimizer's counts of steps alone are taken for tensors of the host. So what is counted is what a
host does to start work, and the work on the small tensors themselves, which a GPU would do. PYTHONPATH names the package (python/src), as for gpu_floor.py.

The first form needs valgrind and a C compiler. Its callgrind counts: user space alone, kernels for
AVX2. It runs 16 updates (one in which gradients and moments are digested, too, where N is 16, the
default) three times: without a recorder; with one, where what passes in its hooks is counted, which
is what `Recorder.seconds` times; and with one, where all is counted, so that the difference from the
first holds what hooks leave out (what torch does to call them, too); of the hooks' own count a part
is the call that begins and ends it. One line has millions of
instructions of an update in which weights alone are digested, of one in which all is, and the mean.
--profile leaves callgrind's files there: `callgrind_annotate` lists the functions of C.

The second form lists the ops of torch that hooks call, by name, in an update of each kind. Those
that are no views start a kernel or a copy each on a GPU."""
import argparse
import collections
import ctypes
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import types

import torch
from gpu_floor import Plan
from torch.utils._python_dispatch import TorchDispatchMode

import twinstep
from twinstep.record import keyed_cuda, tensors
from twinstep.record import recorder as recorders

UPDATES = 16
DIGEST = pathlib.Path(__file__).parents[2] / "python" / "digest" / "keyed.c"
CALLS = r"""
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; }
double turn(void) { CALLGRIND_TOGGLE_COLLECT; return 0.0; }     /* in place of a clock */
void leave(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


class Zeros:
    """In place of `keyed_cuda.Kernel`: the sum of each tensor is 0."""
    device = torch.device("cpu")

    @staticmethod
    def prepare(items):
        return len(items)

    @staticmethod
    def take(rows):
        return torch.zeros(rows, dtype=torch.int64)

    def sums(self, items):
        return self.take(self.prepare(items))

    @staticmethod
    def stream():
        return 0


class Training:
    """The training, and its recorder if it has one."""

    def __init__(self):
        self.model, self.optimizer, self.step = Plan("f32", "cpu", 12, 64, 64, 1, 16, 1)()
        self.recorder = None
        self.step(0)            # makes the optimizer's state
        counts = {id(state["step"]) for state in self.optimizer.state.values()}
        tensors.is_of_host = lambda t: id(t) in counts

    def update(self):
        self.step(0)
        if self.recorder is not None:
            self.recorder.update()

    def record(self, folder, every):
        self.recorder = twinstep.Recorder(self.model, self.optimizer, every=every, quiet=True,
                                          path=os.path.join(folder, f"{every}.h5")).start()
        self.update()           # the first one begins the file


def count(library, every):
    """The training under callgrind, which leaves a file of counts for each update."""
    calls = ctypes.PyDLL(library)       # keeps the GIL, as if they were functions of Python
    calls.turn.restype = ctypes.c_double
    training = Training()
    for _ in range(2):
        training.update()
    calls.begin()

    def whole(name):
        for k in range(UPDATES):
            calls.turn()
            training.update()
            calls.turn()
            calls.leave(f"{name} {k}".encode())
    whole("without")
    with tempfile.TemporaryDirectory() as folder:
        training.record(folder, every)
        kept, recorders.time = recorders.time, types.SimpleNamespace(perf_counter=calls.turn)
        for k in range(UPDATES):
            training.update()
            calls.leave(f"hooks {k}".encode())
        recorders.time = kept
        whole("with")
        training.recorder.close()


def counted(folder):
    """Instructions by the names of what was counted."""
    found = {}
    for file in pathlib.Path(folder).glob("count.*"):
        text = file.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (\w+) (\d+)$", text, re.M)
        if name is not None:
            found.setdefault(name[1], {})[int(name[2])] = int(
                re.search(r"^(?:totals|summary): (\d+)", text, re.M)[1])
    return {name: [some[k] for k in range(UPDATES)] for name, some in found.items()}


def print_counts(folder, every):
    """Runs this program under valgrind, and prints what that counted."""
    library = os.path.join(folder, "calls.so")
    digest = os.path.join(folder, "digest.so")
    for target, source, text in ((library, "-", CALLS), (digest, str(DIGEST), None)):
        subprocess.run(["cc", "-shared", "-fPIC", "-O3", "-std=gnu11", "-x", "c", source, "-o",
                        target, "-lpthread"], input=text, text=True, check=True)
    subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
         f"--callgrind-out-file={folder}/count", "-q", sys.executable, "-X", "utf8", __file__,
         "--library", library, "--every", str(every)], check=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "TWINSTEP_DIGEST": digest})
    found = counted(folder)
    more = [a - statistics.median(found["without"]) for a in found["with"]]
    for name, some in (("in hooks", found["hooks"]), ("all, less an update without", more)):
        some = [n / 1e6 for n in some]
        ordinary, dearest = statistics.median(some[:-1]), max(some)
        print(f"{name}: weights alone {ordinary:.3f}, the dearest {dearest:.3f}, mean "
              f"{statistics.mean(some):.3f} million instructions an update")
    print(f"an update without a recorder: {statistics.median(found['without']) / 1e6:.3f} million")


class Ops(TorchDispatchMode):
    """Counts the ops that come while it is the mode."""

    def __init__(self):
        super().__init__()
        self.found = collections.Counter()

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        self.found[str(function), function.is_view] += 1
        return function(*args, **(kwargs or {}))


def print_ops(every):
    """Lists the ops that hooks call."""
    training, modes = Training(), []
    for _ in range(2):
        training.update()
    with tempfile.TemporaryDirectory() as folder:
        training.record(folder, every)

        def clock():
            if len(modes) % 2 == 0:
                modes.append(Ops())
                modes[-1].__enter__()
            else:
                modes[-1].__exit__(None, None, None)
                modes.append(None)
            return 0.0
        kept, recorders.time = recorders.time, types.SimpleNamespace(perf_counter=clock)
        by_update = []
        for _ in range(UPDATES):
            training.update()
            by_update.append(sum((m.found for m in modes if m is not None), collections.Counter()))
            modes.clear()
        recorders.time = kept
        training.recorder.close()
    for name, some in (("weights alone", by_update[0]), ("the dearest", max(
            by_update, key=lambda found: found.total()))):
        work = collections.Counter({op: n for (op, is_view), n in some.items() if not is_view})
        print(f"{name}: {work.total()} ops that are no views, {some.total() - work.total()} views")
        print("   " + ", ".join(f"{n} {op}" for op, n in work.most_common()))


def main():
    """Reads the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=16)
    parser.add_argument("--profile", metavar="FOLDER")
    parser.add_argument("--ops", action="store_true")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    keyed_cuda.kernel_of = lambda *_: Zeros()
    if given.library:
        count(given.library, given.every)
    elif given.ops:
        print_ops(given.every)
    elif shutil.which("valgrind") is None:
        parser.error("there is no valgrind here")
    elif given.profile:
        os.makedirs(given.profile, exist_ok=True)
        print_counts(given.profile, given.every)
    else:
        with tempfile.TemporaryDirectory() as folder:
            print_counts(folder, given.every)


if __name__ == "__main__":
    main()
