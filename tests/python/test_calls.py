# SPDX-License-Identifier: Apache-2.0
"""labels: unit

twinstep.ablate on functions whose shares can be computed on paper, its refusals, what it lets
through, and tensors as safetensors. test_calls_torch.py has modules and dtypes of torch."""
import json
import os
import pathlib
import signal
import struct
import tempfile
import threading
import unittest

import numpy

import twinstep
from twinstep import _safetensors


def triangle(t0, t1, inert="a"):
    """Ends t0 along one axis and t1 along another one: a right triangle."""
    return {"w": numpy.array([t0, t1, 1.0])}


class Paper(unittest.TestCase):
    def test_shares_of_a_right_triangle(self):
        # d = (3, 0) and (0, 4): shares 9/25 and 16/25, a repair leaves the other leg
        got = twinstep.ablate(triangle, {"t0": (0.0, 3.0), "t1": (0.0, 4.0), "inert": ("a", object())})
        self.assertEqual((got.verdict, got.word, got.measure, got.distance, got.status),
                         ("outside-floor", "several", "weights", 5.0, 1))
        self.assertEqual([factor.name for factor in got.factors], ["t1", "t0", "inert"])
        self.assertAlmostEqual(got.factors[0].share.value, 16 / 25, delta=1e-15)
        self.assertAlmostEqual(got.factors[1].share.value, 9 / 25, delta=1e-15)
        self.assertEqual([factor.left.value for factor in got.factors], [0.6, 0.8, 1.0])
        self.assertEqual([factor.inert for factor in got.factors], [False, False, True])
        self.assertEqual(got.closure, "rerun-equal")

    def test_levels_of_any_text(self):
        for levels in (("it's", 'two "words" {x}'), ("", " "), ("--y", ["x" * 50])):
            got = twinstep.ablate(lambda a, levels=levels: [1.0, 2.0 * (a is levels[1])], {"a": levels})
            self.assertEqual((got.distance, got.word), (2.0, "cause"), levels)

    def test_arrays_that_the_function_keeps(self):
        # every call trains one array on, from 0: what each call left must not change with later ones
        kept = numpy.zeros(3)

        def train(lr):
            kept[:] = 0.0
            kept[0] = lr
            return {"w": kept}

        got = twinstep.ablate(train, {"lr": (0.25, 1.0)})
        self.assertEqual((got.distance, got.raw["floor"]["kind"]), (0.75, "exact"))

    def test_names_that_are_no_names_of_python(self):
        factors = {"optim.lr": (0.0, 3.0), "seed": (0.0, 4.0), "dir": (0, 1), "run": (0, 1), "weight-decay": (0, 1)}
        seen = set()

        def train(**levels):
            seen.add(tuple(levels))
            return {"w": numpy.array([levels["optim.lr"], levels["seed"]])}

        got = twinstep.ablate(train, factors)
        self.assertEqual(seen, {tuple(factors)})
        self.assertEqual([(factor.name, factor.alone.value) for factor in got.factors[:2]],
                         [("seed", 0.8), ("optim.lr", 0.6)])
        self.assertIn("  differs  optim.lr: 0.0 -> 3.0\n           seed: 0.0 -> 4.0\n           dir: 0 -> 1\n", got.text)

    def test_functions_are_told_by_their_names_and_braces_as_they_are(self):
        got = twinstep.ablate(lambda act, conf, name, kind: {"w": numpy.zeros(2)},
                              {"act": (numpy.tanh, len), "conf": ({"a": 1}, {"a": 2}),
                               "name": (lambda: 1, lambda: 2), "kind": (int, float)})
        for line in ("act: tanh -> len\n", "conf: {'a': 1} -> {'a': 2}\n", "name: baseline -> test\n", "kind: int -> float\n"):
            self.assertIn(line, got.text)

    def test_levels_that_are_the_same_are_refused(self):
        """As in a FILE. Of two objects of one text that may do other things, nobody knows."""
        same = object()
        for levels in ((1, 1), (1e-3, 0.001), ("a", "a"), (None, None), (same, same)):
            with self.assertRaisesRegex(ValueError, "^factors: 'lr': both levels are the same, "):
                twinstep.ablate(lambda lr: {"w": numpy.zeros(2)}, {"lr": levels})
        for levels in ((1, 1.0), (0.0, -0.0), (0, False), (1, True), ([1], [1]), ("1" * 41, "2" * 41)):
            got = twinstep.ablate(lambda lr: {"w": numpy.zeros(2)}, {"lr": levels})
            self.assertIn("IDENTICAL", got.text)
            if levels == ([1], [1]) or isinstance(levels[0], str):
                self.assertIn("  differs  lr: baseline -> test\n", got.text)

    def test_losses_alone(self):
        got = twinstep.ablate(lambda lr: [1.0, 1.0 - lr], {"lr": (0.25, 0.5)})
        self.assertEqual((got.measure, got.distance, got.word), ("loss", 0.25, "cause"))
        self.assertEqual(got.factors[0].loss_alone, -0.25)
        self.assertNotIn("next", got.text)     # of a folder that is gone

    def test_lists_of_losses_of_unlike_lengths_are_compared_in_what_both_have(self):
        def judge(short, length):
            def run_fn(a, b):
                return [1.0 / (i + 1) + 0.25 * a + 0.5 * b for i in range(length if (a, b) == short else 5)]
            return twinstep.ablate(run_fn, {"a": (0, 1), "b": (0, 1)}).text
        for short, row in (((1, 1), "baseline-1 and 5 more left 5 losses, up to update 5; test-1 and 3 more left 3 losses, "
                                    "up to update 3; expected as many of every run; compared is that of update 3, the last "
                                    "of both arms"),
                           ((0, 0), "baseline-1 and 1 more left 3 losses, up to update 3; test-1 and 7 more left 5 losses, "
                                    "up to update 5; expected as many of every run; compared is that of update 3, the last "
                                    "of both arms")):
            said = judge(short, 3)
            self.assertIn(f"  losses   {row}\n", said)
            self.assertIn("  measure  the loss of update 3, |a-b| = 0.75\n", said)
            self.assertIn("b 66.67 %, a 33.33 %", said)
        said = judge((1, 0), 1)             # a hybrid that has not the update that is compared
        self.assertIn("hybrid-10 and 1 more left 1 loss, up to update 1; expected as many of every run; compared is that "
                      "of update 5, ", said)
        self.assertIn("  shares   untestable: hybrid-10 left 1 loss, and none of update 5, the last that both arms have\n",
                      said)
        self.assertNotIn("  losses   ", judge((1, 1), 5))

    def test_equal_arms_are_called_no_oftener_than_the_floor_needs(self):
        calls = []

        def count(flag):
            calls.append(flag)
            return {"w": numpy.zeros(2)}

        got = twinstep.ablate(count, {"flag": (1, 2)})
        self.assertEqual((got.verdict, got.status), ("identical", 0))
        self.assertEqual(sorted(calls), [1, 1, 1, 2, 2])  # the first shows what a call leaves
        self.assertEqual(calls[0], 1)

    def test_state_that_a_call_leaves_behind_is_a_floor(self):
        # each call begins where the one before has ended: repeats differ, and more than the arms do
        kept = [0.0]

        def leaks(lr):
            kept[0] += 1.0
            return {"w": numpy.array([kept[0] + lr])}

        got = twinstep.ablate(leaks, {"lr": (0.0, 0.001)})
        self.assertEqual(got.raw["floor"]["kind"], "noisy")
        self.assertNotEqual(got.verdict, "outside-floor")

    def test_the_words_say_that_all_runs_shared_a_process(self):
        both = {"t0": (0.0, 3.0), "t1": (0.0, 4.0)}
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, "new")
            got = twinstep.ablate(triangle, both, folder=place)
            self.assertIn("  floor    exact: 2 runs of each arm, all in one process, left equal weights\n", got.text)
            self.assertIn("repeats in other processes, other machines", got.text)
            self.assertIn(f", in {place}/ablate.ablate\n", got.text)
            gone = twinstep.ablate(triangle, both)      # its folder is not there any more
            self.assertRegex(gone.text, r"\n  runs     \d+ done\n$")
            self.assertIn("  differs  t0: 0.0 -> 3.0\n           t1: 0.0 -> 4.0\n", got.text)
            self.assertIs(json.loads((place / "ablate.json").read_text())["run"]["shared"], True)
            called = []
            with self.assertRaises(FileExistsError):
                twinstep.ablate(lambda **_: called.append(1), both, folder=place)
            self.assertEqual(called, [])


class Refusals(unittest.TestCase):
    def test_factors(self):
        for factors in ({}, {"a b": (0, 1)}, {"lr": (1,)}, {"lr": "ab"}, {"\u03b2": (0, 1)}, {"": (0, 1)},
                        {"x" * 48: (0, 1)}, {1: (0, 1)}):
            with self.assertRaisesRegex(ValueError, "^factors: expected"):
                twinstep.ablate(triangle, factors)

    def test_what_a_run_leaves(self):
        for returned in (None, "text", 3, twinstep.Left()):
            with self.assertRaisesRegex(TypeError, "^run_fn "):
                twinstep.ablate(lambda lr, returned=returned: returned, {"lr": (0, 1)})
        for returned, words in (([], "no losses: expected that of each update"), ({}, "no weights: expected them by name")):
            with self.assertRaisesRegex(TypeError, f"^run_fn returned {words}"):
                twinstep.ablate(lambda lr, returned=returned: returned, {"lr": (0, 1)})
        with self.assertRaisesRegex(TypeError, "w: expected .*, got complex128"):
            twinstep.ablate(lambda lr: {"w": numpy.array([1j])}, {"lr": (0, 1)})

    def test_another_kind_than_the_baseline_left(self):
        with self.assertRaisesRegex(TypeError, "expected weights as of the baseline, got log"):
            twinstep.ablate(lambda lr: {"w": numpy.zeros(1)} if lr == 0 else [1.0], {"lr": (0, 1)})

    def test_an_exception_in_an_arm_is_raised_and_ends_the_program(self):
        def fails(lr):
            if lr:
                raise ZeroDivisionError("mine")
            return {"w": numpy.zeros(1)}

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            twinstep.ablate(fails, {"lr": (0, 1)})
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)  # no child is left

    def test_an_exception_in_a_hybrid_is_that_run_s_failure(self):
        def fails(a, b):
            if (a, b) == (1.0, 0.0):
                raise ZeroDivisionError("only there")
            return {"w": numpy.array([a, b])}

        called = []

        def counted(a, b):
            called.append((a, b))
            return fails(a, b)

        got = twinstep.ablate(counted, {"a": (0.0, 1.0), "b": (0.0, 1.0)})
        self.assertEqual(called.count((1.0, 0.0)), 1)   # nor is it tried again for the words
        # the traceback ends where the function did, and holds no frame of the package
        self.assertRegex(got.text, r"\n  failed   \w+-10: exit status 1; its stderr ends:\n"
                                   r" +Traceback \(most recent call last\):\n( +File .*test_calls\.py.*\n.*\n)( +\^+\n)?"
                                   r"(.*\n)*? +raise ZeroDivisionError\(.only there.\)\n"
                                   r" +ZeroDivisionError: only there\n")
        self.assertNotIn("calls.py\"", got.text.replace("test_calls.py", ""))
        self.assertNotIn("_caller.py", got.text)
        failed = [run for run in got.raw["runs"] if run["state"] == "failed"]
        self.assertEqual([(run["factors"], "ZeroDivisionError: only there" in run["reason"])
                          for run in failed], [("10", True)])
        self.assertIsNone(next(f for f in got.factors if f.name == "a").alone.value)

    def test_ctrl_c_comes_through(self):
        def interrupted(lr):
            if lr:
                os.kill(os.getpid(), signal.SIGINT)
            return {"w": numpy.zeros(1)}

        with self.assertRaises(KeyboardInterrupt):
            twinstep.ablate(interrupted, {"lr": (0, 1)})

    def test_the_function_is_called_in_the_caller_s_thread(self):
        threads = set()

        def where(lr):
            threads.add(threading.current_thread())
            return [1.0]

        twinstep.ablate(where, {"lr": (0, 1)})
        self.assertEqual(threads, {threading.current_thread()})


class Safetensors(unittest.TestCase):
    def test_bytes_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.safetensors")
            _safetensors.save({"b": numpy.array([[1.0, 2.0]], dtype=">f4").T, "a": numpy.int64(3),
                               "none": numpy.zeros((0, 2), bool)}, path)
            raw = path.read_bytes()
            length, = struct.unpack("<Q", raw[:8])
            self.assertEqual(length % 8, 0)
            self.assertEqual(json.loads(raw[8:8 + length]), {
                "a": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
                "b": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
                "none": {"dtype": "BOOL", "shape": [0, 2], "data_offsets": [16, 16]}})
            self.assertEqual(raw[8 + length:], struct.pack("<qff", 3, 1.0, 2.0))
            with self.assertRaises(FileExistsError):
                _safetensors.save({}, path)


if __name__ == "__main__":
    unittest.main()
