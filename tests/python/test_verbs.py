# SPDX-License-Identifier: Apache-2.0
"""labels: unit

The verbs as functions: typed answers of the real program, its refusals, and answers of another
version."""
import dataclasses
import json
import pathlib
import tempfile
import typing
import unittest

import twinstep
from twinstep import results
from twinstep._decode import ResultError, decode

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = ROOT / "tests/golden/logs/hf5/dpo-linear-cold/trainer_state.json"
STEPS = ROOT / "tests/golden/foreign/runs/bug-clip-after"
# What the program prints for results that hold nothing but what is untyped here, on purpose.
UNTYPED = {
    results.Judgement: {"rng", "interactions", "closure_noise", "growth", "library", "eval", "sample"},
    results.LogCheck: {"row_spacing", "why"}, results.LogFit: {"row_spacing", "left_out", "groups",
                                                               "early_skip", "applied", "partial",
                                                               "stands_still", "held", "doubt"},
    results.Fit: {"parameters", "updates_per_epoch", "reached", "skipped", "first_value", "segments",
                  "warmup_hidden", "steps_hidden", "floor_hidden", "waits", "in_samples",
                  "unseen"},
    results.Readback: {"exit"}, results.UpdateReading: {"contract"},
    results.Rollout: {"floor", "agreement_of_signs", "by_probability", "by_position", "by_length",
                      "by_batch", "by_reward", "metrics"},
}


def untyped_keys(kind, given):
    """Returns keys of the JSON that no field has, of this object and of those in it."""
    fields = {field.metadata.get("key", field.name): field.name for field in dataclasses.fields(kind)}
    found = {(kind.__name__, key) for key in set(given) - set(fields) - UNTYPED.get(kind, set())}
    hints = typing.get_type_hints(kind)
    for key in set(given) & set(fields):
        for part in [hints[fields[key]], *typing.get_args(hints[fields[key]])]:
            if dataclasses.is_dataclass(part):
                items = given[key] if isinstance(given[key], list) else [given[key]]
                for item in items:
                    found |= untyped_keys(part, item) if item is not None else set()
    return found


class Answers(unittest.TestCase):
    def check_whole(self, answer):
        self.assertEqual(untyped_keys(type(answer), answer.raw), set(),
                         "no field of results.py has these keys of --json: add it, or a word to UNTYPED")

    def test_run(self):
        with tempfile.TemporaryDirectory() as folder:
            pair = {"twinstep": 1, "name": "mine", "steps": 3, "common": {"optimizer": {"lr": 5e-7}},
                    "arms": {"baseline": {}, "test": {"numerics": {"param": "bf16"}}}}
            answer = twinstep.run(pair, output=pathlib.Path(folder, "t.h5"), set={"steps": 2})
            self.check_whole(answer)
            self.assertEqual((answer.cause, answer.verdict, answer.updates, answer.status),
                             ("dtype", "outside-floor", 2, 1))
            self.assertEqual((answer.reported.update, len(answer.reported.values)), (1, 2))
            self.assertNotEqual(*answer.reported.values)
            self.assertEqual((answer.closure, answer.mixtures), ("exact", None))
            self.assertTrue(answer.floor.rerun_second_process)
            self.assertEqual(twinstep.load(answer.trace).arm("test").updates, 2)
            with self.assertRaisesRegex(twinstep.ProgramError, "t.h5") as caught:
                twinstep.run(pair, output=answer.trace)
            self.assertEqual(caught.exception.status, 2)

    def test_mixtures_of_arms_inside_the_floor(self):
        # what tests/evidence/test_mixtures.c has the program print of two causes
        far = {"size": 3.5, "low": 3.5, "high": 3.50143, "p": 0.0001554, "beyond": True}
        near = {"size": 3.0, "low": 3.0, "high": 3.00167, "p": 0.0001554, "beyond": True}
        given = {"unasked": "", "runs": 8, "count": 2, "beyond": 2, "level": 0.005, "arms_at_most": 0.1,
                 "causes": [{"cause": "optimizer", "alone": far, "without": near},
                            {"cause": "schedule", "alone": near, "without": far}]}
        got = decode(results.Mixtures, given)
        self.assertEqual(untyped_keys(results.Mixtures, given), set())
        self.assertEqual(dataclasses.asdict(got), {**given, "causes": tuple(given["causes"])})
        self.assertTrue(got.causes[1].without.beyond)
        why = {**given, "unasked": "a floor file", "runs": 0, "level": None, "arms_at_most": None, "causes": []}
        self.assertIsNone(decode(results.Mixtures, why).level)
        with self.assertRaisesRegex(ResultError, r"causes\[0\].alone.beyond: expected"):
            decode(results.Mixtures, {**given, "causes": [{**given["causes"][0], "alone": {**far, "beyond": 1}}]})

    def test_a_missed_expectation_is_an_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            pair = {"twinstep": 1, "name": "same", "steps": 2, "arms": {"baseline": {}, "test": {}},
                    "expect": {"verdict": "outside-floor"}}
            answer = twinstep.run(pair, output=pathlib.Path(folder, "t.h5"))
            self.assertEqual((answer.status, answer.expectation, answer.cause), (1, "missed", None))
            self.assertIsNone(answer.first)

    def test_check_log(self):
        answer = twinstep.check_log(LOG, expect="olmo-core", schedule="linear", lr=5e-7, steps=5)
        self.check_whole(answer)
        self.assertEqual((answer.passed, answer.status, answer.bug), (False, 1, "lag1"))
        self.assertEqual(answer.first_mismatch, results.Mismatch(1, 12, 5e-7, 0.0, 4e-7))
        answer = twinstep.check_log(LOG, expect="hf", schedule="linear", lr=5e-7, steps=5, warmup=0)
        self.assertEqual((answer.passed, answer.status), (True, 0))

    def test_fit(self):
        answer = twinstep.fit(LOG)
        self.check_whole(answer)
        self.assertEqual((answer.fits[0].contract, answer.fits[0].steps), ("hf", 5.0))
        self.assertEqual({fit.contract for fit in twinstep.fit(LOG, contract="hf").fits}, {"hf"})

    def test_readback(self):
        answer = twinstep.readback(STEPS / "step-1", STEPS / "step-2", expect={"max_grad_norm": 0.1})
        self.check_whole(answer)
        (update,) = answer.updates
        lr = update.groups[0].lr
        self.assertEqual(lr.state, "read")
        self.assertLess(abs(lr.value - 0.000475), 1e-9)
        self.assertEqual(answer.status, 1)
        self.assertTrue(any("clip" in finding.text for finding in update.findings), update.findings)

    def test_rollout(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "step.jsonl")
            rows = [{"rollout_logprobs": [-0.5, -1.0 - i / 64], "trainer_logprobs": [-0.5, -1.0],
                     "reward": i % 2} for i in range(8)]
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            answer = twinstep.rollout(file)
            self.check_whole(answer)
            self.assertEqual((answer.counts["sequences"], answer.counts["tokens"]), (8, 16))
            self.assertEqual(answer.figures["mean_d"], sum(i / 64 for i in range(8)) / 16)
            self.assertEqual({claim.state for claim in answer.causes} - {"no", "named", "open"}, set())
            self.assertEqual((answer.reward.sequences, answer.reward.mean), (8, 0.5))
            self.assertGreater(answer.reward.trainer_mean, 0.5)
            file.write_text(json.dumps(rows[0] | {"reward": None}) + "\n", encoding="utf-8")
            self.assertIsNone(twinstep.rollout(file).reward)


class Versions(unittest.TestCase):
    def test_a_key_that_is_absent_is_an_error(self):
        with self.assertRaisesRegex(ResultError, "no 'state'"):
            decode(results.Rate, {"method": None, "value": None, "low": None, "high": None})

    def test_another_type_is_an_error(self):
        rate = {"state": "read", "method": None, "value": "1", "low": None, "high": None}
        with self.assertRaisesRegex(ResultError, r"result.value: expected .*float"):
            decode(results.Rate, rate)
        finding = {"kind": "a", "remark": 1, "group": None, "text": "b"}
        self.assertRaises(ResultError, decode, results.Finding, finding)
        self.assertRaises(ResultError, decode, results.Finding, finding | {"remark": True, "group": 1.5})


if __name__ == "__main__":
    unittest.main()
