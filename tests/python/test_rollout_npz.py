# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Archives of numpy.savez and savez_compressed: one content, stored and deflated, must give one answer;
an archive that is cut, damaged or says more than it holds is refused with what is wrong. The archives
are written by zipfile of the standard library, the members by the format's own page (NEP 1)."""
import io
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest
import zipfile

PROGRAM = os.environ["TWINSTEP_PROGRAM"]
ROWS, TOKENS = 40, 24


def npy(values, shape, code, descr):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + \
        struct.pack(f"<{len(values)}{code}", *values)


def archive(method):
    trainer = [-0.2 - 0.1 * ((7 * i) % 29) for i in range(ROWS * TOKENS)]
    engine = [x + 0.001 * ((11 * i) % 17 - 8) for i, x in enumerate(trainer)]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, values in (("rollout_logprobs", engine), ("trainer_logprobs", trainer)):
            file.writestr(f"{name}.npy", npy(values, (ROWS, TOKENS), "d", "<f8"))
        file.writestr("mask.npy", npy([1] * (ROWS * TOKENS), (ROWS, TOKENS), "B", "|u1"))
        file.writestr("notes.npy", b"not an array")
    return out.getvalue()


def padded(width, front=0, mask=None, ids=None, length=None, likely=0.02):
    """Rows of TOKENS tokens in `width` columns, 0 on both sides elsewhere. Unlikely tokens are apart
    by up to 0.01, likely ones by up to `likely`: only the mean of |d| sees these."""
    engine, trainer = [], []
    for row in range(ROWS):
        rng = random.Random(f"{row} {likely}")
        one = [(-0.04 if t % 2 else -0.5 - 3 * rng.random()) for t in range(TOKENS)]
        two = [x + rng.uniform(-1, 1) * (likely if t % 2 else 0.01) for t, x in enumerate(one)]
        for out, values in ((trainer, one), (engine, two)):
            out += [0.0] * front + values + [0.0] * (width - front - TOKENS)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        def put(name, values, shape, code="d", descr="<f8"):
            file.writestr(f"{name}.npy", npy(values, shape, code, descr))
        put("rollout_logprobs", engine, (ROWS, width))
        put("trainer_logprobs", trainer, (ROWS, width))
        if mask:
            put("mask", mask * ROWS, (ROWS, width), "B", "|u1")
        if ids:
            put("token_ids", ids * ROWS, (ROWS, width), "i", "<i4")
        if length:
            put("length", [length] * ROWS, (ROWS,), "q", "<i8")
    return out.getvalue()


class Npz(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rollout(self, data):
        (self.folder / "a.npz").write_bytes(data)
        return subprocess.run([PROGRAM, "rollout", "a.npz", "--json"], cwd=self.folder,
                              capture_output=True, text=True, check=False)

    def test_deflated_is_stored(self):
        stored, deflated = (self.rollout(archive(method)) for method in
                            (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        self.assertEqual(deflated.returncode, 3, deflated.stderr)
        self.assertEqual(json.loads(deflated.stdout), json.loads(stored.stdout))
        self.assertEqual(json.loads(stored.stdout)["counts"]["tokens"], ROWS * TOKENS)

    def test_zeros_that_pad_are_left_out(self):
        """What pads changes nothing, in front or behind, with a mask of ones or without."""
        (self.folder / "floor.npz").write_bytes(padded(TOKENS, likely=0.002))

        def judged(data, *more):
            (self.folder / "a.npz").write_bytes(data)
            done = subprocess.run([PROGRAM, "rollout", "a.npz", "--floor", "floor.npz", *more],
                                  cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 2, done.stderr)
            return done.stdout

        whole = json.loads(judged(padded(TOKENS), "--json"))
        self.assertNotEqual(whole["verdict"], "within")
        for width, more in ((480, {}), (480, {"front": 456}), (480, {"front": 30}),
                            (480, {"mask": [1] * 480}), (480, {"ids": [7] * 480}),
                            (26, {})):
            one = json.loads(judged(padded(width, **more), "--json"))
            self.assertEqual(one["counts"].pop("padding"), ROWS * (width - TOKENS))
            for name in ("verdict", "figures", "floor", "by_probability"):
                self.assertEqual(one[name], whole[name], name)
        self.assertIn("left out 18240 tokens of exactly 0 on both sides at an end of their row",
                      judged(padded(480)))
        # They may be certain tokens where something says so.
        for more in ({"ids": list(range(30))}, {"length": 30}, {"mask": [1] * 29 + [0]}):
            counts = json.loads(judged(padded(30, **more), "--json"))["counts"]
            self.assertEqual(counts["padding"], 0)
            self.assertEqual(counts["tokens"] + counts["masked"], ROWS * 30)

    def test_lists_keep_their_zeros(self):
        """In a list they count, and nothing is judged by them."""
        def written(name, likely, zeros):
            with open(self.folder / name, "w", encoding="utf-8") as out:
                for row in range(ROWS):
                    rng = random.Random(f"{row} {likely}")
                    one = [(-0.04 if t % 2 else -0.5 - 3 * rng.random()) for t in range(TOKENS)]
                    two = [x + rng.uniform(-1, 1) * (likely if t % 2 else 0.01)
                           for t, x in enumerate(one)]
                    print(json.dumps({"rollout_logprobs": two + [0.0] * zeros,
                                      "trainer_logprobs": one + [0] * zeros}), file=out)

        written("floor.jsonl", 0.002, 0)
        verdicts = []
        for zeros in (0, 400):
            written("a.jsonl", 0.02, zeros)
            done = subprocess.run([PROGRAM, "rollout", "a.jsonl", "--floor", "floor.jsonl",
                                   "--json"], cwd=self.folder, capture_output=True, text=True,
                                  check=False)
            one = json.loads(done.stdout)
            self.assertEqual(one["counts"]["zero_at_ends"], ROWS * zeros)
            self.assertEqual(one["counts"]["tokens"], ROWS * (TOKENS + zeros))
            verdicts.append((one["verdict"], one["floor"]["strength"], one["floor"]["rank"]))
        self.assertEqual(verdicts[0], verdicts[1])
        self.assertNotEqual(verdicts[0][0], "within")

    def rewarded(self, name, values, shape, flat=False, descr="<f8", code="d"):
        """An archive of rows of two tokens with an array of rewards. Rows of odd number are half as
        likely for the trainer."""
        out = io.BytesIO()
        trainer = [-1.0 - (math.log(2) if t == 0 and row % 2 else 0.0)
                   for row in range(ROWS) for t in range(2)]
        sides = (2 * ROWS,) if flat else (ROWS, 2)
        with zipfile.ZipFile(out, "w") as file:
            for key, data in (("rollout_logprobs", [-1.0] * 2 * ROWS), ("trainer_logprobs", trainer)):
                file.writestr(f"{key}.npy", npy(data, sides, "d", "<f8"))
            if flat:
                file.writestr("length.npy", npy([2] * ROWS, (ROWS,), "q", "<i8"))
            file.writestr(f"{name}.npy", npy(values, shape, code, descr))
        return out.getvalue()

    def test_rewards_of_a_sequence_or_of_its_tokens(self):
        """Weights of 1/2 for rewards of 1 and of 1 for those of 0 make 1/3 of their mean 1/2."""
        one = [float(row % 2) for row in range(ROWS)]
        last = [x for r in one for x in (0.0, r)]
        parts = [x for r in one for x in (2.0 * r, -r)]
        wide = [x for r in one for x in (0.0, 0.0, r)]
        for flat, name, values, shape in (
                (0, "reward", one, (ROWS,)), (0, "rewards", one, (ROWS, 1)),
                (0, "token_level_scores", last, (ROWS, 2)), (0, "rm_scores", parts, (ROWS, 2)),
                (0, "token_level_rewards", wide, (ROWS, 3)), (1, "score", one, (ROWS,)),
                (1, "token_level_scores", parts, (2 * ROWS,))):
            done = self.rollout(self.rewarded(name, values, shape, flat=flat))
            self.assertEqual(done.returncode, 3, done.stderr)
            answer = json.loads(done.stdout)
            self.assertEqual(answer["fields"]["reward"], name)
            self.assertEqual([row["reward"] for row in answer["by_reward"]], ["0", "1 and above"])
            reward = answer["reward"]
            self.assertEqual((reward["sequences"], reward["without"], reward["mean"]),
                             (ROWS, 0, 0.5), name)
            self.assertAlmostEqual(reward["trainer_mean"], 1 / 3, delta=1e-14)
            self.assertAlmostEqual(reward["correlation"], -1, delta=1e-14)

    def test_rows_without_a_reward(self):
        values = [math.nan, math.inf, 0.25] + [math.nan] * (ROWS - 3)
        reward = json.loads(self.rollout(self.rewarded("reward", values, (ROWS,))).stdout)["reward"]
        self.assertEqual((reward["sequences"], reward["without"], reward["mean"]),
                         (1, ROWS - 1, 0.25))
        self.assertIsNone(reward["difference_error"])
        none = self.rollout(self.rewarded("reward", [math.nan] * ROWS, (ROWS,)))
        self.assertIsNone(json.loads(none.stdout)["reward"])

    def test_arrays_that_are_no_rewards(self):
        """Objects are left out unless --field names them; another shape is an error."""
        objects = self.rewarded("reward", [0] * ROWS, (ROWS,), descr="|O", code="Q")
        self.assertIsNone(json.loads(self.rollout(objects).stdout)["reward"])
        done = subprocess.run([PROGRAM, "rollout", "a.npz", "--field", "reward=reward"],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a.npz: reward: expected an array of numbers in C order", done.stderr)
        self.refused(self.rewarded("reward", [0.0] * 3, (3,)),
                     "a.npz: reward: expected at least 4 elements, for sequence 4, got 3")
        self.refused(self.rewarded("rm_scores", [0.0] * 4 * ROWS, (ROWS, 2, 2)),
                     "a.npz: rm_scores: expected rewards of shape (sequences) or (sequences, tokens), "
                     "got an array of 3 axes")
        self.refused(self.rewarded("rm_scores", [0.0] * 2 * ROWS, (ROWS, 2), flat=True),
                     "a.npz: rm_scores: expected rewards of shape (sequences) or (tokens), got an "
                     "array of 2 axes")

    def refused(self, data, words):
        done = self.rollout(data)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(words, done.stderr)

    def change(self, offset, form, value):
        """Changes a number of the first member's entry in the directory."""
        data = bytearray(archive(zipfile.ZIP_DEFLATED))
        struct.pack_into(form, data, data.index(b"PK\1\2") + offset, value)
        return bytes(data)

    def test_what_is_wrong_is_refused(self):
        whole = zipfile.ZipFile(io.BytesIO(archive(zipfile.ZIP_DEFLATED))).infolist()[0]
        name = "a.npz: rollout_logprobs: cannot be unpacked: "
        self.refused(self.change(16, "<I", whole.CRC ^ 1), name + "its checksum is another one")
        self.refused(self.change(24, "<I", whole.file_size - 8),
                     name + "it unpacks to more than its directory says")
        self.refused(self.change(24, "<I", whole.file_size + 8),
                     name + "it unpacks to less than its directory says")
        self.refused(self.change(20, "<I", whole.compress_size // 2), name + "it is cut short")
        self.refused(self.change(24, "<I", 0xfffffff0), "says that it unpacks to more than it can")
        self.refused(self.change(10, "<H", 12), "expected a member that is stored or deflated, as "
                     "numpy.savez and savez_compressed write it, got ZIP method 12")
        data = bytearray(archive(zipfile.ZIP_DEFLATED))
        data[whole.header_offset + 30 + len(whole.filename) + 40] ^= 0x55
        self.refused(bytes(data), name)


if __name__ == "__main__":
    unittest.main()
