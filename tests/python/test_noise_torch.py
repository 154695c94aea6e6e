# SPDX-License-Identifier: Apache-2.0
"""labels: torch

twinstep.noise on real steps of torch: kernels whose threads race move, in the tensor and in the op
that races and nowhere else; clean ones give an exact floor of zero, which the program holds logs
against; and what is no noise (a forgotten iterator, other weights) is called what it is."""
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import h5py
import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
_folder = tempfile.TemporaryDirectory()
os.environ["TWINSTEP_RACING"] = os.path.join(_folder.name, "libracing.so")
subprocess.run(["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-pthread", "-o",
                os.environ["TWINSTEP_RACING"], str(HERE / "racing.c")], check=True)
sys.path.insert(0, str(HERE))

import racing  # noqa: E402

import twinstep  # noqa: E402

STRATA = ("repeat", "instance", "process")


class Noise(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "f.h5")

    def log(self, name, losses):
        path = pathlib.Path(self.file).with_name(name)
        rows = "".join(f"{i},{loss:.17f},1.000000000000\n" for i, loss in enumerate(losses, 1))
        path.write_text(f"step,loss,grad_norm\n{rows}", encoding="utf-8")
        return path

    def test_verify_clean_kernels_give_an_exact_floor(self):
        states = torch.get_rng_state()
        found = twinstep.noise(racing.clean, updates=3, repeats=1, output=self.file)
        self.assertTrue(torch.equal(states, torch.get_rng_state()))
        self.assertFalse(torch.are_deterministic_algorithms_enabled())
        self.assertTrue(found.exact)
        self.assertEqual([m.deterministic for m in found.modes], [False, True])
        for mode in found.modes:
            self.assertTrue(mode.exact)
            self.assertEqual(mode.ops, ())
            self.assertTrue(mode.h21.startswith("no: all 6 gradients"), mode.h21)
        with h5py.File(self.file) as f:
            self.assertEqual(f["noise"].attrs["exact"], b"1")
            for name in ("loss", "grad_norm", "distance"):
                self.assertEqual(f[f"noise/pairs_{name}"][:].tolist(), [[0.0] * 3])
        a, b = (self.log(name, [0.7, 0.6, last])      # losses that move: others would prove nothing
                for name, last in (("a.csv", 0.5), ("b.csv", 0.5000000000000001)))
        self.assertEqual(twinstep.compare(a, a, floor=self.file).status, 0)
        self.assertEqual(twinstep.compare(a, b, floor=self.file).status, 1)
        self.assertRaises(FileExistsError, twinstep.noise, racing.clean, output=self.file)

    def test_verify_racing_kernels_move_where_they_race(self):
        found = twinstep.noise(racing.training, updates=2, repeats=2, both=False, output=self.file,
                               pairs=19)
        self.assertFalse(found.exact)
        mode, = found.modes
        for name in STRATA:
            stratum = mode.stratum(name)
            self.assertEqual((stratum.first, stratum.first_place), (1, "gradient 2.weight"), str(found))
            self.assertEqual([m.tensor for m in stratum.moved], ["2.weight"])
            self.assertEqual((stratum.gradients_equal, stratum.tensors), (5, 6))
            moved = stratum.moved[0]
            # of sums of 256 terms in f32 in another order
            self.assertTrue(1e-9 < moved.apart < 1e-4, moved)
            self.assertGreaterEqual(moved.apart, moved.norm)
        op, = mode.ops
        self.assertEqual((op.op, op.module, op.phase, op.times, op.outside),
                         ("racing::weight_gradient", "2", "backward", 2, False))
        self.assertTrue(1e-9 < op.apart < 1e-4, op)
        self.assertRegex(mode.h21, r"^yes: 5 of 6 gradients .*\(2\.weight\)")
        with h5py.File(self.file) as f:
            self.assertEqual(f["noise"].attrs["exact"], b"0")
            gaps = f["noise/pairs_distance"][:]
            self.assertEqual(gaps.shape, (19, 2))
            # On a busy machine a race comes out twice alike now and then. The bound is chosen.
            self.assertGreaterEqual((gaps > 0).mean(), 0.75)
            self.assertIn("racing::weight_gradient", f["noise/parts"][:].tobytes().decode())
            self.assertEqual(f["noise/figures"].shape, (3, 9))
            # loss of update 1 is of the weights that all have
            self.assertTrue((f["noise/pairs_loss"][:, 0] == 0).all())
        a = self.log("a.csv", [0.5, 0.4])
        said = twinstep.compare(a, self.log("b.csv", [0.5, 0.41]), floor=self.file, alpha=0.05)
        self.assertIn("19 A/A pairs cannot give p <= 0.01 (least 0.05): twinstep.noise(..., pairs=99) would",
                      twinstep.compare(a, a, floor=self.file).raw["floor"]["words"])
        # p can be that of a tie: where most pairs agree to the last bit, any gap of another is far.
        loss = said.raw["floor"]["columns"][0]
        self.assertEqual((loss["name"], loss["above"], loss["first_above"]), ("loss", 1, 2))

    def test_verify_who_watches_sees_what_is_found_as_it_is_found(self):
        """On a terminal and in a notebook: the price, each stratum's line, and the pairs that are left.
        A file gets none of it."""
        class Terminal(io.StringIO):
            def isatty(self):
                return True
        rows = ("repeat", "instance", "process")
        for out, notebook, quiet, is_told in ((Terminal(), False, False, True),
                                              (Terminal(), False, True, False),
                                              (io.StringIO(), False, False, False),
                                              (io.StringIO(), True, False, True)):
            if notebook:        # patch.dict would take back what torch imports meanwhile, too
                self.addCleanup(sys.modules.pop, "ipykernel")
                sys.modules["ipykernel"] = sys
            with unittest.mock.patch.object(sys, "stderr", out):
                found = twinstep.noise(racing.clean, repeats=1, both=False, pairs=2, quiet=quiet)
            said = out.getvalue().splitlines()
            if not is_told:
                self.assertEqual(said, [])
                continue
            self.assertEqual(said[0], "twinstep.noise: deterministic algorithms off: the first run")
            self.assertRegex(said[1], r"it took [0-9.]+ s; 1 in each of three strata follow$")
            self.assertEqual(said[2:5], [f"twinstep.noise: {found.modes[0].stratum(name).line().strip()}"
                                         for name in rows])
            self.assertEqual(said[5], "twinstep.noise: 2 A/A pairs")
            self.assertRegex(said[6], r"A/A pair 1 of 2, about [0-9.]+ s left$")

    def test_verify_a_step_on_another_device(self):
        """The device that far.py simulates: what is there is read by copies alone, also in a process of
        its own, and repeats of a step whose kernels do not race are equal."""
        self.addCleanup(racing.back)
        mode, = twinstep.noise(racing.elsewhere, updates=2, repeats=1, both=False).modes
        for name in STRATA:
            stratum = mode.stratum(name)
            self.assertEqual((stratum.equal, stratum.tensors), (True, 2), str(mode))
        self.assertTrue(mode.h21.startswith("no: all 2 gradients"), mode.h21)

    def test_verify_generators_of_cuda_devices_are_set_back(self):
        """By a stand-in for torch.cuda: no repeat may go on where the last one stopped."""
        from twinstep.repeats import training
        device = [torch.zeros(16, dtype=torch.uint8), torch.ones(16, dtype=torch.uint8)]

        def take(states):
            device[:] = [s.clone() for s in states]
        for there, known in ((True, {"cuda"}), (False, set())):
            with unittest.mock.patch.multiple(
                    torch.cuda, is_available=lambda: True, is_initialized=lambda there=there: there,
                    get_rng_state_all=lambda: [s.clone() for s in device], set_rng_state_all=take):
                states = training.generators()
                before = [s.clone() for s in device]
                device[1] += 5          # the devices draw
                training.set_generators(states)
            self.assertEqual(set(states) & {"cuda"}, known)
            self.assertEqual(torch.equal(device[1], before[1]), there)

    def test_verify_what_holds_no_number_is_no_output(self):
        """States of generators that nothing draws from, rows for alignment, marks that no later op
        shows; where one shows, the op that made the mark is named, and how far its number is apart."""
        from twinstep.repeats.opmoves import find
        from twinstep.repeats.training import generators
        self.assertEqual(find(racing.bookkeeping, generators(), 1), ())
        op, = find(racing.the_derivative_moves, generators(), 1)     # not what it was given
        self.assertEqual((op.op, op.phase, op.outside, op.hidden),
                         ("racing::attention_backward", "backward", False, False))
        op, = find(racing.marks_are_read, generators(), 1)
        self.assertEqual((op.op, op.phase, op.outside, op.hidden),
                         ("racing::marked", "step", False, False))
        self.assertGreater(op.apart, 0)

    def test_verify_which_ops_of_two_repeats_move(self):
        """By hand: a real that the op behind makes the same of, whole numbers, and what stays behind."""
        from twinstep.repeats.opmoves import Call, moves

        def calls(end, *parts):
            """Ops of one input and one output each; a part of `end` differs between two repeats."""
            return [Call(op, "", "step", tuple((end, g) if g in parts else g for g in given),
                         tuple((end, m) if m in parts else m for m in made), kinds)
                    for op, given, made, kinds in (
                        ("sum", ("x",), ("s",), ("real",)), ("index", ("x",), ("i",), ("whole",)),
                        ("read", ("s", "i"), ("y",), ("real",)), ("loss", ("y",), (), ()),
                        ("count", ("x",), ("n",), ("whole",)),
                        ("write", ("y",), ("w",), ("kept",)), ("check", ("w",), ("c",), ("real",)),
                        ("end", ("x",), ("e",), ("real",)))]
        for parts, found in (((), {}), (("s",), {0: "hidden"}), (("i",), {}), (("n",), {}),
                             (("s", "y"), {0: ""}), (("i", "y"), {1: ""}), (("y",), {2: ""}),
                             (("w",), {5: ""}), (("e",), {7: ""}), (("c", "e"), {6: "", 7: ""})):
            self.assertEqual(moves(calls(1, *parts), calls(2, *parts)), found, parts)
        one, other = calls(1, "x"), calls(2, "x", "s")
        self.assertEqual(moves(one, other)[0], "outside")
        self.assertRaisesRegex(ValueError, "one repeat called 8 ops", moves, one, other[:-1])
        self.assertRaisesRegex(ValueError, "op 0 is sum in one repeat and index", moves, one, other[1:])

    def test_verify_memory_that_no_op_wrote_is_told(self):
        mode, = twinstep.noise(racing.hidden, repeats=2, both=False).modes
        self.assertTrue(mode.ops)
        self.assertTrue(mode.ops[0].outside)
        self.assertEqual((mode.ops[0].op, mode.ops[0].phase), ("aten::mul.Tensor", "backward"))

    def test_verify_differences_of_processes_alone(self):
        found = twinstep.noise(racing.per_process, repeats=1, both=False, output=self.file, pairs=1)
        mode, = found.modes
        self.assertEqual([mode.stratum(name).equal for name in STRATA], [True, True, False])
        self.assertIn("in a process of its own", found.protocol)
        found = twinstep.noise(racing.per_process, repeats=1, both=False, pairs=1, across="instance")
        self.assertIn("farther than all pairs", "\n".join(found.notes))

    def test_verify_what_is_no_noise(self):
        found = twinstep.noise(racing.forgetful, repeats=1, both=False)
        self.assertIn("does step keep something", found.notes[0])
        found = twinstep.noise(racing.ending, updates=2, repeats=1, both=False)
        self.assertIn("an iterator that the step reads has ended", found.modes[0].stratum("repeat").untestable)
        self.assertIn("does step keep something (an iterator over data, a scheduler", found.notes[0])
        with self.assertWarnsRegex(RuntimeWarning, "f.h5 was not written: instance: it begins with other weights"):
            found = twinstep.noise(racing.unlike, repeats=1, both=False, output=self.file)
        mode, = found.modes
        self.assertTrue(mode.stratum("repeat").equal)
        for name in STRATA[1:]:
            self.assertIn("begins with other weights (0.bias)", mode.stratum(name).untestable)
        self.assertTrue(mode.h21.startswith("untestable"))

    def test_verify_a_step_that_keeps_state_has_no_floor_of_instances(self):
        few = {"updates": 2, "repeats": 1, "both": False, "ops": False, "output": self.file}
        with self.assertWarnsRegex(RuntimeWarning, "f.h5 was not written: pairs of instances would"):
            found = twinstep.noise(racing.leaking, across="instance", **few)
        self.assertEqual((found.output, found.exact), (None, False))
        self.assertIn("part at the loss of update 1, before any gradient or weight does", found.notes[0])
        self.assertFalse(os.path.exists(self.file))
        # this process has counted on, so that it is not like another one; those are like each other
        found = twinstep.noise(racing.leaking, **few)
        self.assertFalse(found.modes[0].stratum("process").equal)
        self.assertIn("so the A/A pairs are of processes", found.notes[0])
        self.assertEqual((found.exact, found.pairs), (True, 1))
        with h5py.File(self.file) as f:
            self.assertEqual(f["noise"].attrs["exact"], b"1")
        # a forward pass whose noise is everywhere is none
        found = twinstep.noise(racing.training, repeats=1, both=False, ops=False)
        self.assertNotIn("keeps something outside", "".join(found.notes))

    def test_verify_generators_that_nobody_seeds_are_named(self):
        few = {"updates": 2, "repeats": 1, "both": False}
        for step_fn, names in ((racing.unseeded, "torch's generator and Python's generator before it seeds them"),
                               (racing.unseeded_batches, "numpy's generator before it seeds it"),
                               (racing.clean, None), (racing.training, None)):
            found = twinstep.noise(step_fn, **few)
            told = [note for note in found.notes if "step_fn draws from" in note]
            self.assertEqual([note.partition(": ")[0] for note in told],
                             [] if names is None else [f"step_fn draws from {names}"])

    def test_verify_what_broke_has_no_floor(self):
        few = {"repeats": 1, "both": False, "output": self.file}
        with self.assertWarnsRegex(RuntimeWarning, "was not written: the loss of update 2 is nan: trainings that broke"):
            found = twinstep.noise(racing.broken, updates=2, **few)
        self.assertEqual((found.output, found.exact, found.pairs), (None, False, 0))
        self.assertIn("note: the loss of update 2 is nan: ", str(found))
        self.assertFalse(os.path.exists(self.file))
        self.assertTrue(twinstep.noise(racing.broken, updates=1, **few).exact)

    def test_verify_a_long_wait_is_told_wherever_it_is(self):
        from twinstep.repeats import measure
        for long, told in ((0.0, r"^twinstep\.noise: 2 A/A pairs, 4 processes, about [0-9.]+ s\n$"), (1e9, "^$")):
            with unittest.mock.patch.object(measure, "LONG", long), \
                    unittest.mock.patch.object(sys, "stderr", io.StringIO()) as out:
                twinstep.noise(racing.per_process, repeats=1, both=False, pairs=2, ops=False)
            self.assertRegex(out.getvalue(), told)

    def test_verify_an_op_without_a_deterministic_way(self):
        found = twinstep.noise(racing.refused, repeats=1)
        self.assertTrue(found.modes[0].exact)
        self.assertIn("put_ does not have a deterministic", found.modes[1].strata[0].untestable)
        self.assertIn("  untestable: RuntimeError: put_", str(found))

    def test_verify_a_floor_for_a_recording(self):
        path = self.file + ".run.h5"
        model, optimizer, _, step = racing.clean()
        with twinstep.Recorder(model, optimizer, path=path, every=1, quiet=True,
                               config={"args.max_steps": 3, "args.bf16": False}) as recorder:
            for k in range(3):
                step(k)
                recorder.update()
        few = {"updates": 3, "repeats": 1, "both": False, "output": self.file, "overwrite": True}
        twinstep.noise(racing.clean, **few)
        with self.assertRaisesRegex(twinstep.ProgramError, "another configuration than A's"):
            twinstep.compare(path, path, floor=self.file)
        twinstep.noise(racing.clean, like=path, **few)
        self.assertEqual(twinstep.compare(path, path, floor=self.file).status, 0)
        with self.assertRaisesRegex(ValueError, r"another training than the recording: optimizer"
                                    r"\.0\.0\.initial_lr: 0\.01 in the recording, 0\.02 here$"):
            twinstep.noise(racing.other_rate, like=path, **few)
        with self.assertRaisesRegex(ValueError, "expected a recording of twinstep.Recorder"):
            twinstep.noise(racing.clean, like=self.file, **few)
        self.assertRaises(ValueError, twinstep.noise, racing.clean, like=path, config={}, **few)

    def test_verify_settings_reach_another_process(self):
        for case in ("old", "new"):     # torch's older and newer names, which it refuses to mix
            done = subprocess.run([sys.executable, str(HERE / "settings.py"), case],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            here, there = done.stdout.splitlines()
            self.assertEqual(here, there)
            self.assertIn("'deterministic_warn': True", here)
            self.assertIn("'sdp_flash': False", here)
            self.assertIn("'fp32_cuda.matmul': 'tf32'", here)

    def test_verify_a_function_that_no_process_can_import(self):
        mode, = twinstep.noise(lambda: racing.clean(), repeats=1, both=False).modes
        self.assertTrue(mode.stratum("instance").equal)
        self.assertIn("cannot import step_fn", mode.stratum("process").untestable)
        self.assertFalse(mode.exact)

    def test_verify_what_step_fn_must_return(self):
        model, optimizer, schedule, step = racing.clean()
        for made, words in ((None, "got NoneType"), ((model, step), r"got Sequential: no optimizer among them"),
                            ((model, optimizer), r"got \(Sequential, AdamW\): its last item is no step, the function"),
                            ((model, optimizer, model), "its last item is no step"), ((), "its last item is no step"),
                            ((model, schedule, step), "no optimizer among them"),
                            ((optimizer, schedule, step), "no model among them"),
                            ((model, optimizer, 3, step), "int has no state_dict"),
                            ((model, optimizer, lambda: None), "to return the loss"),
                            ((model, optimizer, lambda: True), "to return the loss"),
                            ((model, optimizer, lambda: torch.zeros(2)), "to return the loss")):
            with self.assertRaisesRegex(TypeError, words):
                twinstep.noise(lambda made=made: made, repeats=1)
        for wrong in ({"updates": 0}, {"repeats": 0}, {"pairs": 0}, {"across": "rank"}):
            self.assertRaises(ValueError, twinstep.noise, racing.clean, **wrong)
        with self.assertRaises(ZeroDivisionError):
            twinstep.noise(lambda: 1 / 0)
        with self.assertRaisesRegex(OSError, "its folder is not there"):     # before anything trains
            twinstep.noise(lambda: 1 / 0, output=os.path.join(self.file, "f.h5"))

    def test_verify_gradients_are_those_before_clipping(self):
        from twinstep.repeats import figures, training
        made = training.Training(racing.clean, training.generators())
        _, norm, gradients = made.advance(0)
        wanted = float(made.models[0].norm)         # what torch's clipping returned
        self.assertGreater(wanted, 1.01)            # so clipping to 1 changes them
        self.assertEqual(norm, wanted)
        self.assertAlmostEqual(figures.whole_norm(gradients), wanted, delta=1e-5 * wanted)

    def test_verify_gradients_of_several_optimizers(self):
        """Each one's are taken when it steps: before, they are of the other one's backward pass."""
        from twinstep.repeats import figures, training
        made = training.Training(racing.adversaries, training.generators())
        for update in range(2):
            _, norm, gradients = made.advance(update)
            wanted = made.models[0].taken
            self.assertEqual(list(gradients), list(wanted))
            for name, gradient in wanted.items():
                self.assertTrue(torch.equal(gradients[name], gradient), (update, name))
            whole = figures.whole_norm(wanted)
            self.assertAlmostEqual(norm, whole, delta=1e-6 * whole)

    def test_validate_figures(self):
        from twinstep.repeats import figures
        x = torch.tensor([1.0, -1.0, 0.0])
        y = torch.tensor([1.0, -1.0, -0.0])
        self.assertFalse(figures.equal(x, y))
        self.assertEqual(figures.ulps(x, torch.nextafter(x, torch.tensor(2.0))), 1.0)
        for kind, numpy_kind in ((torch.float32, np.float32), (torch.float16, np.float16)):
            for a, b in ((1.0, 1.5), (-1.0, 1.0), (0.0, 3e-5), (-2.0, -7.0)):
                one, other = numpy_kind(a), numpy_kind(b)
                steps = 0
                while numpy_kind is np.float16 and one != other:     # counted by hand where few
                    one, steps = np.nextafter(one, other), steps + 1
                if steps:
                    self.assertEqual(figures.ulps(torch.tensor([a], dtype=kind),
                                                  torch.tensor([b], dtype=kind)), steps)
        nan = float("nan")
        odd = {"w": torch.tensor([nan, 1.0])}
        self.assertEqual(figures.distance(odd, {"w": torch.tensor([nan, 1.0])}), 0.0)
        self.assertEqual(figures.distance(odd, {"w": torch.tensor([nan, 2.0])}), float("inf"))
        self.assertEqual(figures.distance({"w": torch.tensor([0.0, 1.0])},
                                          {"w": torch.tensor([3.0, 5.0])}), 5.0)
        self.assertEqual([figures.gap(nan, nan), figures.gap(nan, 1.0), figures.relative(2.0, 1.0),
                          figures.relative(0.0, 1.0)], [0.0, float("inf"), 0.5, float("inf")])


if __name__ == "__main__":
    unittest.main()
