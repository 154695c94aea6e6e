# SPDX-License-Identifier: Apache-2.0
"""labels: cli

The writer beside a training: what it writes is a foreign trace, and a kill of the writer, a kill of
the training, a full disk, a writer that hangs and a Python without h5py cost neither the training
nor an update that was written."""
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
import unittest.mock
import warnings

try:
    import h5py
    import numpy as np
except ImportError:
    print("left out: no h5py")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = ROOT / "python/src/twinstep/record"
# The package itself needs torch, and these modules do not: a package of their own, in their folder.
sys.modules["record"] = types.ModuleType("record")
sys.modules["record"].__path__ = [str(RECORD)]
from record import channel, closing, digest, layout, writer  # noqa: E402

PROGRAM = os.environ["TWINSTEP_PROGRAM"]


def plan(path):
    return layout.Layout(
        path=str(path), run="main",
        attributes={"twinstep_trace": 2, "kind": "foreign", "writer": "test"},
        run_attributes={"configuration": "lr: 1\n", "causes": "", "digest": "keyed 1", "rank": 0,
                        "world": 1},
        tensors=[("weight", "f32", "2,3", 0), ("bias", "f32", "", 1)], groups=2,
        columns=tuple(c for c in layout.COLUMNS if c.name not in layout.READBACK))


def row(k):
    return {"step": k, "loss": 1.0 / k, "lr_applied": [0.1 / k, 0.2], "skipped": 0,
            "tensors/digest_parameter": [k, -7],
            "phases/place": list(range(len(layout.PHASES)))}


def record(path, rows, complete=True):
    trace, pipe = plan(path), channel.Channel(str(path))
    pipe.begin(trace.header())
    for k in range(1, rows + 1):
        pipe.send(trace.pack(row(k)))
    return pipe.close(complete)


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)


# Records, reads a live and a closed trace, and writes a floor, and says what plain h5py does here.
WITHOUT_LOCKS = textwrap.dedent("""
    import pathlib, sys, time
    import h5py
    import numpy as np
    sys.argv[0] = "tests"
    sys.path.insert(0, "tests/python")
    from test_record_writer import channel, plan, row
    import twinstep
    from twinstep import floor_file

    path = pathlib.Path(sys.argv[1])
    try:
        h5py.File(path.with_suffix(".plain"), "w").close()
    except OSError as error:
        print(error.errno, "h5py")
    trace, pipe = plan(path), channel.Channel(str(path))
    pipe.begin(trace.header())
    for k in range(1, 4):
        pipe.send(trace.pack(row(k)))
    print("recorded")
    end, seen = time.monotonic() + 60, 0
    while seen < 3 and time.monotonic() < end:
        try:
            seen = twinstep.load(f"{path}.part").arm("main").updates
        except (OSError, ValueError, KeyError):
            time.sleep(0.05)    # its objects are not all there yet
    print(seen, "of a live trace")
    pipe.close(True)
    read = twinstep.load(path)
    print(read.arm("main").updates, read.complete, read.seal)
    floor = floor_file.Contents("a", "b", "test", "", "", False, 1, {"loss": np.full((1, 1), 0.5)})
    floor_file.write(path.with_suffix(".floor"), floor)
    with floor_file.open_file(path.with_suffix(".floor"), "r") as file:
        print("a floor of", len(file["noise/pairs_loss"]))
""")

# A training that tells its updates. Where it is told to, it stops to be killed.
TRAINING = textwrap.dedent("""
    import sys, time
    sys.path[:0] = sys.argv[1:3]
    from test_record_writer import channel, plan, row
    path, rows = sys.argv[3], int(sys.argv[4])
    trace, pipe = plan(path), channel.Channel(path)
    pipe.begin(trace.header())
    for k in range(1, rows + 1):
        pipe.send(trace.pack(row(k)))
        print(k, flush=True)
        time.sleep(0.001)
""")


def places(order):
    return [order.index(name) if name in order else -1 for name in layout.PHASES]


# A loop as torch's users write it, and three that do otherwise.
GOOD = ["forward", "backward", "unscale", "clip", "optimize", "zero"]
KEEPS = ["forward", "backward", "unscale", "clip", "optimize"]
CLEARS = ["forward", "backward", "zero", "unscale", "clip", "optimize"]
SCALED = ["forward", "backward", "clip", "unscale", "optimize", "zero"]
UNCLIPPED = ["forward", "backward", "unscale", "optimize", "zero"]


class Writer(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.path = self.folder / "a.h5"

    def tearDown(self):
        self.temporary.cleanup()

    def readable(self, path, least):
        """Every update up to the last one that `step` names has its values."""
        with h5py.File(path, "r", libver="latest", swmr=True) as f:
            steps = f["runs/main/steps"]
            n = len(steps["step"])
            self.assertGreaterEqual(n, least)
            self.assertEqual(list(steps["step"][:n]), list(range(1, n + 1)))
            self.assertEqual(list(steps["loss"][:n]), [1.0 / k for k in range(1, n + 1)])
            for tensor, name, shape, total in ((0, "weight", (2, 3), None), (1, "bias", (), -7)):
                self.assertEqual([d.tobytes() for d in steps["tensors/digest_parameter"][:n, tensor]],
                                 [digest.close(name, "f32", shape, total or k) for k in range(1, n + 1)])
        return n

    def compared(self, order, norm_from=99, loss_from=99, order_from=1, order_to=9, reverse=False,
                 root_from=0, other=GOOD, ratio=1024.0, normed=True):
        """What `compare` says of a run of this order in some updates beside one of `other`; norm, loss
        and weights differ from these updates on."""
        for name, here in (("a", other), ("b", order)):
            trace, frames = plan(self.folder / f"{name}.h5"), []
            for k in range(1, 9):
                mine = here if order_from <= k <= order_to else other
                norm = 2 / k * (ratio if name == "b" and k >= norm_from else 1)
                weights = [k + 100 * (name == "b" and 0 < root_from <= k)] * 2
                frames.append(trace.pack({
                    "step": k, "lr_applied": [0.1, 0.2], "skipped": 0, "loss_scale": 1024.0,
                    "loss": 1 / k + (name == "b" and k >= loss_from) * 0.01 * k,
                    "grad_norm": norm if normed or name == "a" else None,
                    "tensors/digest_parameter": weights if root_from else None,
                    "phases/place": places(mine)}))
            file = writer.Trace(trace.header())
            file.append(frames)
            file.close(True)
        pair = ["b.h5", "a.h5"] if reverse else ["a.h5", "b.h5"]
        done = program("compare", *(self.folder / name for name in pair))
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        for name in pair:
            (self.folder / name).unlink()
        return done.stdout

    def test_the_order_of_a_loop_explains_what_follows_it(self):
        for order, norm, words, more in (
                (KEEPS, 2, "in which B called no zero_grad and A did", {}),
                (KEEPS, 2, "in which B called no zero_grad and A did", {"root_from": 2}),
                (KEEPS, 6, "in which A called no zero_grad and B did",
                 {"order_from": 5, "reverse": True}),
                (CLEARS, 1, "B calls zero_grad between backward and step", {}),
                (CLEARS, 99, "B calls zero_grad between backward and step",
                 {"loss_from": 2, "root_from": 1, "normed": False}),
                (SCALED, 1, "B clips before it unscales", {}),
                (SCALED, 1, "A clips before it unscales", {"reverse": True})):
            with self.subTest(words, **more):
                said = self.compared(order, norm, **{"loss_from": norm + 1, **more})
                self.assertIn(words, said)
                self.assertIn("Points to: schedule", said)

    def test_the_order_of_a_loop_explains_nothing_else(self):
        """Neither what differs before it acts or later, nor a loop that clears gradients at its head, nor
        norms that are apart by another ratio, nor a loop that does not clip."""
        for case, more in (((KEEPS, 1, 2), {}), ((KEEPS, 3, 4), {}), ((KEEPS, 99, 1), {}),
                           ((KEEPS, 8, 99, 8), {}), ((KEEPS, 2, 3), {"root_from": 1}),
                           ((KEEPS, 2, 2), {}), ((CLEARS, 2, 3), {}), ((CLEARS, 3, 4), {}),
                           ((SCALED, 1, 1), {}), ((SCALED, 3, 4), {}),
                           ((SCALED, 1, 2), {"ratio": 1142.0}),
                           ((SCALED, 1, 2), {"other": UNCLIPPED}),
                           ((["zero", *KEEPS], 2, 3), {"root_from": 2}), ((GOOD, 1, 2), {"ratio": 3.0})):
            with self.subTest(str(case), **more):
                said = self.compared(*case, **{"ratio": 1024.0 if case[0] == SCALED else 3.0, **more})
                self.assertNotIn("B clips before" if "other" in more else "the order of the loop", said)

    def test_what_it_writes_is_sealed(self):
        for complete, word in ((True, "whole"), (False, "unfinished")):
            path = self.folder / f"{word}.h5"
            self.assertTrue(record(path, 70, complete))
            done = program("certify", path, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["seal"], word, done.stdout)
            with h5py.File(path) as file:
                at = file["runs/main/steps/tensors/tensor"].id.get_offset()
            changed = bytearray(path.read_bytes())
            changed[at] ^= 1
            path.write_bytes(changed)
            done = program("certify", path)
            self.assertEqual(done.returncode, 2)
            self.assertIn("are not those that were sealed", done.stderr)

    def test_verify_what_is_written_is_a_foreign_trace(self):
        self.assertTrue(record(self.path, 150))
        self.assertFalse(pathlib.Path(f"{self.path}.part").exists())
        said = program("import", "--check", self.path)
        self.assertEqual(said.returncode, 0, said)
        self.assertIn("150 updates, 2 tensors in 2 groups", said.stdout)
        self.assertNotIn("passed over", said.stdout)
        with h5py.File(self.path, "r") as f:
            steps = f["runs/main/steps"]
            self.assertEqual(f["complete"][()], 1)
            self.assertTrue(np.isnan(steps["grad_norm"][:]).all())
            self.assertTrue((steps["optimizer_t"][:] == -1).all())
            self.assertFalse(steps["digest_batch"][:].any())
            self.assertEqual(steps["lr_applied"].dims[1][0].name, "/runs/main/steps/group")
            for name in ("dtype", "shape", "group", "digest_parameter"):    # axes that xarray can name
                axis = steps[f"tensors/{name}"].dims[name == "digest_parameter"]
                self.assertEqual([scale.name for scale in axis.values()], ["/runs/main/steps/tensors/tensor"])
        self.assertTrue(record(self.folder / "b.h5", 150))
        self.assertIn("equal through update 150",
                      program("certify", self.path, self.folder / "b.h5").stdout)

    def test_verify_digests_are_made_of_sums_beside_the_training(self):
        """A row has sums of weights, as numbers or as their bytes, and the file SHA-256 of them as
        docs/FOREIGN.md has it; zeros where a tensor has no sum."""
        def digested(name, shape, total):
            words = [b"twinstep keyed 1", name, b"f32"]
            whole = b"".join(struct.pack("<Q", len(word)) + word for word in words)
            return hashlib.sha256(whole + struct.pack(f"<{len(shape) + 2}Q", len(shape), *shape,
                                                      total)).digest()
        large = 2**64 - 1
        trace, pipe = plan(self.path), channel.Channel(str(self.path))
        pipe.begin(trace.header())
        for k, sums in enumerate(([-1, 5], struct.pack("<2Q", large, 5), [None, 0], [3], None), 1):
            pipe.send(trace.pack({**row(k), "tensors/digest_parameter": sums}))
        self.assertTrue(pipe.close(True))
        weight, none = digested(b"weight", (2, 3), large), bytes(32)
        expected = [[weight, digested(b"bias", (), 5)]] * 2 + [
            [none, digested(b"bias", (), 0)], [digested(b"weight", (2, 3), 3), none], [none, none]]
        with h5py.File(self.path, "r") as f:
            steps = f["runs/main/steps"]
            self.assertEqual([[d.tobytes() for d in row] for row in steps["tensors/digest_parameter"]],
                             expected)
            self.assertEqual(steps["step"][:].tolist(), [1, 2, 3, 4, 5])

    def test_verify_digests_are_made_of_lists_behind_a_row(self):
        """Gradients and the optimizer's tensors come as sums alone, in lists that are described once:
        each digest goes to its place, and that of a list is of all in the order of their places, of
        two at one place the last. A number that another list has got is described again."""
        def part(places, names, sums):
            labels = [(name, "f32", (3,), ()) for name in names]
            return types.SimpleNamespace(places=places, labels=labels,
                                         raw=struct.pack(f"<{len(sums)}Q", *sums))

        def again(old, sums):
            return types.SimpleNamespace(places=old.places, labels=old.labels,
                                         raw=struct.pack(f"<{len(sums)}Q", *sums))

        def closed(name, total):
            return digest.close(name, "f32", (3,), total)
        weights = part([0, 1], ["weight", "bias"], [1, 2])
        of_bias, of_both = part([1], ["bias"], [3]), part([0, 1], ["weight", "bias"], [4, 2**64 - 1])
        moments = part([(1, "v"), (0, "v")], ["bias/v", "weight/v"], [5, 6])
        counts = part([(1, "t"), (0, "v")], ["bias/t", "weight/other"], [7, 8])
        state = [weights, moments, counts]
        rows = [[("tensors/digest_gradient", [of_bias], None), ("digest_state", state, "state")],
                [("tensors/digest_gradient", [of_both], None)],
                [],
                [("tensors/digest_gradient", [again(of_bias, [9])], None),
                 ("digest_state", [again(weights, [0, 0]), again(moments, [1, 1]),
                                   again(counts, [2, 3])], "state")]]
        listed = [digest.listed("state", [closed("weight", a), closed("bias", b),
                                          closed("weight/other", e), closed("bias/t", d),
                                          closed("bias/v", c)])
                  for a, b, c, d, e in ((1, 2, 5, 7, 8), (0, 0, 1, 2, 3))]
        none = bytes(32)
        gradients = [[none, closed("bias", 3)], [closed("weight", 4), closed("bias", 2**64 - 1)],
                     [none, none], [none, closed("bias", 9)]]
        for slots in (64, 3, 2, 1):
            path = self.folder / f"{slots}.h5"
            trace, pipe, told = plan(path), channel.Channel(str(path)), closing.Closing()
            pipe.begin(trace.header())
            with unittest.mock.patch.object(closing, "SLOTS", slots):
                for k, lists in enumerate(rows, 1):
                    behind = [told.pack(*some) for some in lists]
                    if slots == 64:     # a Ctrl-C came before they were sent
                        self.assertEqual([told.pack(*some) for some in lists], behind)
                        if k == 4:      # the writer knows the list
                            self.assertEqual(len(behind[0]), 3 * 8 + 8)
                    pipe.send(trace.pack(row(k)) + b"".join(behind))
                    told.sent()
            self.assertTrue(pipe.close(True))
            with h5py.File(path, "r") as f:
                steps = f["runs/main/steps"]
                self.assertEqual([[d.tobytes() for d in row]
                                  for row in steps["tensors/digest_gradient"]], gradients)
                self.assertEqual([d.tobytes() for d in steps["digest_state"]],
                                 [listed[0], none, none, listed[1]])
                self.assertEqual(steps["step"][:].tolist(), [1, 2, 3, 4])

    def test_a_run_that_ended_early_is_not_certified_as_equal(self):
        for name, rows in (("a", 9), ("b", 6)):
            record(self.folder / f"{name}.h5", rows)
        for a, b, words in (("a", "b", "B ends at update 6 and A goes on to 9"),
                            ("b", "a", "A ends at update 6 and B goes on to 9")):
            pair = [self.folder / f"{name}.h5" for name in (a, b)]
            done = program("certify", *pair, "--junit", self.folder / "j.xml")
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            self.assertIn("equal through update 6", done.stdout)
            self.assertIn(words, done.stdout)
            self.assertIn(f"equal through update 6, but {words}", (self.folder / "j.xml").read_text())
            told = json.loads(program("certify", *pair, "--json").stdout)
            self.assertEqual((told["equal"], told["first"], told["ended"]), (False, None, words))
            done = program("certify", *pair, "--common", "--json")
            told = json.loads(done.stdout)
            self.assertEqual((done.returncode, told["equal"], told["ended"]), (0, True, words))
        self.assertEqual(program("certify", self.folder / "a.h5", "--common").returncode, 2)

    def test_verify_who_looks_at_the_start_keeps_nothing_out(self):
        part = self.folder / "a.h5.part"
        part.write_bytes(b"")
        with open(part, "rb") as looking:
            fcntl.flock(looking, fcntl.LOCK_SH)
            with self.assertRaises(BlockingIOError):
                h5py.File(part, "w")
            let_go = threading.Timer(0.2, fcntl.flock, (looking, fcntl.LOCK_UN))
            let_go.start()
            with writer.create(str(part)) as file:
                self.assertEqual(len(file), 0)
            let_go.join()

    def test_verify_a_file_system_without_locks_is_written_and_read(self):
        """Lustre without `flock` says that it has none, NFS without a lock service that none is
        left; both are what the library of tests/cli/machine.c makes of every lock."""
        machine = os.environ.get("TWINSTEP_MACHINE")
        if machine is None:
            self.skipTest("this build has no tests/cli/machine.c")
        for reason in (errno.ENOLCK, errno.EOPNOTSUPP, 524):
            path = self.folder / f"{reason}.h5"
            done = subprocess.run(
                [sys.executable, "-c", WITHOUT_LOCKS, str(path)], capture_output=True, text=True,
                check=False, env={**os.environ, "LD_PRELOAD": machine,
                                  "TWINSTEP_MACHINE_LOCKS": str(reason)})
            self.assertEqual((done.returncode, done.stderr), (0, ""), reason)
            self.assertEqual(done.stdout.splitlines(), [f"{reason} h5py", "recorded", "3 of a live trace",
                                                        "3 True whole", "a floor of 1"])
            self.assertEqual(program("import", "--check", path).returncode, 0)

    def test_verify_an_abandoned_training_is_not_complete(self):
        self.assertTrue(record(self.path, 3, complete=False))
        with h5py.File(self.path, "r") as f:
            self.assertEqual(f["complete"][()], 0)

    def test_verify_a_forked_process_that_holds_the_pipe_delays_nothing(self):
        """A worker of a DataLoader lives as long as its loader, and has the training's end of the
        pipe. What is told in the pipe ends the file, and not the end of the input."""
        for complete in (True, False):
            path = self.path.with_suffix(f".{complete}.h5")
            trace, pipe = plan(path), channel.Channel(str(path))
            pipe.begin(trace.header())
            pipe.send(trace.pack(row(1)))
            if (worker := os.fork()) == 0:
                time.sleep(100)
                os._exit(0)
            try:
                begun = time.monotonic()
                self.assertTrue(pipe.close(complete))
                self.assertLess(time.monotonic() - begun, 50.0)     # it gave up after 60 s
            finally:
                os.kill(worker, 9)
                os.waitpid(worker, 0)
            with h5py.File(path, "r") as f:
                self.assertEqual(f["complete"][()], complete)

    def test_verify_a_pipe_that_is_let_go_ends_the_file(self):
        """The same after a Ctrl-C, when nobody waits."""
        trace, pipe = plan(self.path), channel.Channel(str(self.path))
        pipe.begin(trace.header())
        pipe.send(trace.pack(row(1)))
        if (worker := os.fork()) == 0:
            time.sleep(100)
            os._exit(0)
        try:
            pipe.let_go()
            self.assertEqual(pipe.process.wait(50.0), 0)
        finally:
            os.kill(worker, 9)
            os.waitpid(worker, 0)
        pipe._end()
        with h5py.File(self.path, "r") as f:
            self.assertEqual(f["complete"][()], 0)

    def test_verify_nothing_is_overwritten(self):
        trace, pipe = plan(self.path), channel.Channel(str(self.path))
        pipe.begin(trace.header())
        pipe.send(trace.pack(row(1)))
        self.path.write_text("mine")
        with self.assertWarnsRegex(RuntimeWarning, "FileExistsError"):
            self.assertFalse(pipe.close(True))
        self.assertEqual(self.path.read_text(), "mine")

    def live(self):
        """A recording of three updates that goes on, and its live file."""
        trace, pipe = plan(self.path), channel.Channel(str(self.path))
        self.addCleanup(pipe.close, False)
        pipe.begin(trace.header())
        for k in range(1, 4):
            pipe.send(trace.pack(row(k)))
        self.wait_for(f"{self.path}.part", 3)
        return trace, pipe, pathlib.Path(f"{self.path}.part")

    def test_verify_a_run_does_not_take_the_name_of_a_recording_that_lives(self):
        trace, pipe, part = self.live()
        for verb in ("run", "noise"):
            done = program(verb, "null-pair", "-o", self.path, "--overwrite", "--quiet")
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(f"{part}: process {pipe.process.pid} writes it now", done.stderr)
        pipe.send(trace.pack(row(4)))
        self.assertTrue(pipe.close(True))
        with h5py.File(self.path, "r") as f:
            self.assertEqual(list(f["runs/main/steps/step"]), [1, 2, 3, 4])

    def test_verify_a_live_file_that_is_gone_is_said(self):
        for name, there in (("removed.h5", b""), ("replaced.h5", b"another's")):
            self.path = self.folder / name
            _, pipe, part = self.live()
            part.unlink()
            if there:
                part.write_bytes(there)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.assertFalse(pipe.close(True))
            told = str(caught[0].message)
            self.assertIn(f"{part} was removed or replaced by another process", told)
            self.assertNotIn("What was written so far", told)
            self.assertFalse(self.path.exists())
            self.assertEqual(part.read_bytes() if part.exists() else b"", there)

    def test_the_writer_does_not_interrupt_the_training(self):
        pipe = channel.Channel(str(self.path))
        try:
            end = time.monotonic() + 20
            while time.monotonic() < end \
                    and os.sched_getscheduler(pipe.process.pid) != os.SCHED_BATCH:
                time.sleep(0.01)
            self.assertEqual(os.sched_getscheduler(pipe.process.pid), os.SCHED_BATCH)
            self.assertEqual(os.sched_getscheduler(0), os.SCHED_OTHER)      # the training's own
        finally:
            pipe.close(complete=False)

    def test_verify_a_killed_writer_ends_the_recording_alone(self):
        trace, pipe = plan(self.path), channel.Channel(str(self.path))
        pipe.begin(trace.header())
        for k in range(1, 400):
            pipe.send(trace.pack(row(k)))
        self.wait_for(f"{self.path}.part", 100)
        pipe.process.kill()
        with self.assertWarnsRegex(RuntimeWarning, "the training goes on: the writer ended"):
            for k in range(400, 500):
                pipe.send(trace.pack(row(k)))
                time.sleep(0.001)
        with warnings.catch_warnings():
            warnings.simplefilter("error")      # one warning, not one per update
            self.assertFalse(pipe.send(trace.pack(row(500))))
            self.assertFalse(pipe.close(True))
        n = self.readable(f"{self.path}.part", 100)
        self.recovers(n)

    def recovers(self, updates):
        said = program("recover", f"{self.path}.part", "-o", self.folder / "whole.h5")
        self.assertEqual(said.returncode, 0, said)
        said = program("import", "--check", self.folder / "whole.h5")
        self.assertIn(f"run main: {updates} updates", said.stdout)

    def wait_for(self, path, updates):
        for _ in range(500):
            try:
                with h5py.File(path, "r", libver="latest", swmr=True) as f:
                    if len(f["runs/main/steps/step"]) >= updates:
                        return
            except (OSError, KeyError):
                pass
            time.sleep(0.02)
        self.fail(f"no {updates} updates in {path}")

    def start(self, rows):
        here = pathlib.Path(__file__).resolve().parent
        return subprocess.Popen([sys.executable, "-c", TRAINING, str(here), str(RECORD),
                                 str(self.path), str(rows)], stdout=subprocess.PIPE)

    def test_verify_a_killed_training_leaves_its_updates_under_their_name(self):
        training = self.start(100000)
        self.wait_for(f"{self.path}.part", 20)
        training.kill()
        told = len(training.stdout.read().split())
        training.wait()
        training.stdout.close()
        for _ in range(500):
            if self.path.exists() and not pathlib.Path(f"{self.path}.part").exists():
                break
            time.sleep(0.02)
        n = self.readable(self.path, told)      # every update that was told of, not most of them
        self.assertIn(f"run main: {n} updates", program("import", "--check", self.path).stdout)

    def test_verify_both_killed(self):
        training = self.start(100000)
        self.wait_for(f"{self.path}.part", 50)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(training.pid)],
                                  capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(len(children), 1)
        os.kill(int(children[0]), signal.SIGKILL)
        training.kill()
        training.wait()
        training.stdout.close()
        self.recovers(self.readable(f"{self.path}.part", 50))

    def test_verify_a_full_disk_ends_the_recording_alone(self):
        trace = plan(self.path)
        size = 120_000
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))     # the writer inherits it
        try:
            pipe = channel.Channel(str(self.path))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        pipe.begin(trace.header())
        with self.assertWarnsRegex(RuntimeWarning, "training goes on: .*(File too large|write)"):
            for k in range(1, 100000):
                if not pipe.send(trace.pack(row(k))):
                    break
        self.assertIsNotNone(pipe.process.returncode)
        part = pathlib.Path(f"{self.path}.part")
        self.assertLessEqual(part.stat().st_size, size)
        self.recovers(self.readable(part, 20))

    def test_verify_a_file_system_without_space_ends_the_recording_alone(self):
        full = textwrap.dedent("""
            import sys, time, warnings
            sys.path[:0] = sys.argv[1:3]
            from test_record_writer import channel, h5py, plan, row
            trace, pipe = plan(sys.argv[3]), channel.Channel(sys.argv[3])
            pipe.begin(trace.header())
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                sent = next(k for k in range(1, 100000) if not pipe.send(trace.pack(row(k))))
            with h5py.File(sys.argv[3] + ".part", "r", libver="latest", swmr=True) as f:
                steps = f["runs/main/steps"]
                n = len(steps["step"])
                assert n <= sent and list(steps["loss"][:n]) == [1 / k for k in range(1, n + 1)]
            print(len(seen), n, seen[0].message)
        """)
        mounted = ["unshare", "-Urm", "sh", "-c",
                   'mount -t tmpfs -o size=160k none "$1" && shift && exec "$@"', "sh", self.folder]
        if not shutil.which("unshare") or subprocess.run([*mounted, "true"], check=False,
                                                         capture_output=True).returncode:
            self.skipTest("no file system can be mounted here")
        done = subprocess.run([*mounted, sys.executable, "-c", full, pathlib.Path(__file__).parent,
                               RECORD, self.path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        warned, rows, words = done.stdout.split(" ", 2)
        self.assertEqual(warned, "1")
        self.assertGreaterEqual(int(rows), 64)
        self.assertRegex(words, "the training goes on: .*No space left on device")

    def test_verify_a_writer_that_hangs_ends_the_recording_alone(self):
        trace, pipe = plan(self.path), channel.Channel(str(self.path), patience=0.2)
        pipe.begin(trace.header())
        pipe.process.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        with self.assertWarnsRegex(RuntimeWarning, "took no row for 0.2 s"):
            for k in range(1, 20000):
                if not pipe.send(trace.pack(row(k))):
                    break
        self.assertLess(time.monotonic() - start, 10)

    def test_verify_more_open_files_than_select_takes(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limits[1] < 1100:
            self.skipTest(f"only {limits[1]} files can be open here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (1100, limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1040)]
        try:
            trace, pipe = plan(self.path), channel.Channel(str(self.path), patience=0.2)
            self.addCleanup(pipe.process.kill)
            self.assertGreater(pipe.pipe, 1023)
            pipe.begin(trace.header())
            self.wait_for(f"{self.path}.part", 0)       # the writer has begun, so it hears the stop
            pipe.process.send_signal(signal.SIGSTOP)
            with self.assertWarnsRegex(RuntimeWarning, "took no row for 0.2 s"):
                for k in range(1, 20000):
                    if not pipe.send(trace.pack(row(k))):
                        break
            os.unlink(f"{self.path}.part")
            self.assertTrue(record(self.path, 3))       # and one that is written to its end
        finally:
            for descriptor in held:
                os.close(descriptor)

    def test_verify_a_python_without_h5py_is_said(self):
        (self.folder / "h5py.py").write_text("raise ImportError('no h5py here')\n")
        os.environ["PYTHONPATH"], old = f"{self.folder}", os.environ.get("PYTHONPATH", "")
        try:
            pipe = channel.Channel(str(self.path))
        finally:
            os.environ["PYTHONPATH"] = old
        trace = plan(self.path)
        pipe.begin(trace.header())
        with self.assertWarnsRegex(RuntimeWarning, "no h5py here$"):     # and no file that is not there
            for k in range(1, 500):
                pipe.send(trace.pack(row(k)))
                time.sleep(0.001)
        self.assertFalse(self.path.exists())

    def test_verify_half_a_row_is_left_out(self):
        trace, pipe = plan(self.path), channel.Channel(str(self.path))
        pipe.begin(trace.header())
        pipe.send(trace.pack(row(1)))
        os.write(pipe.pipe, struct.pack("<Q", 400) + b"half")
        self.assertTrue(pipe.close(False))
        self.assertEqual(self.readable(self.path, 1), 1)


if __name__ == "__main__":
    unittest.main()
