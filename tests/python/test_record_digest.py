# SPDX-License-Identifier: Apache-2.0
"""labels: unit

"keyed 1" as the recorder computes it on a host, by C and by numpy: the vectors of docs/FOREIGN.md,
each other, any cut into shards, and every small change of a tensor."""
import ctypes
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

try:
    import numpy as np
except ImportError:
    print("left out: no numpy")
    sys.exit(77)

COMPILER = shutil.which(os.environ.get("CC", "cc").split()[0])
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/src/twinstep/record"))    # the package itself needs torch
import digest  # noqa: E402

VECTORS = {
    "f32 [1, -0, 2.5]": ("f32", np.array([1, -0.0, 2.5], "<f4")),
    "bf16, the same numbers": ("bf16", np.array([0x3F80, 0x8000, 0x4020], "<u2")),
    "f16, the same": ("f16", np.array([1, -0.0, 2.5], "<f2")),
    "f64, the same": ("f64", np.array([1, -0.0, 2.5], "<f8")),
    "i64 [-1, 2^40, 3]": ("i64", np.array([-1, 2 ** 40, 3], "<i8")),
    "i8 [-1, 0, 127]": ("i8", np.array([-1, 0, 127], "i1")),
    "f32, shape (0)": ("f32", np.zeros(0, "<f4")),
    "f32 7.25, shape ()": ("f32", np.array(7.25, "<f4")),
    "f32 0 to 5, shape (2, 3)": ("f32", np.arange(6, dtype="<f4").reshape(2, 3)),
}


def compiled(folder):
    """The library as python/twinstep_build.py compiles it, or None without a compiler."""
    compiler = os.environ.get("CC", "cc").split()
    if shutil.which(compiler[0]) is None:
        return None
    out = pathlib.Path(folder) / digest.LIBRARY
    subprocess.run([*compiler, "-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared", "-Wall",
                    "-Werror", "-pthread", "-fvisibility=hidden", "-o", str(out),
                    str(ROOT / "python/digest/keyed.c")], check=True)
    return out


class Digest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.sums = {"numpy": digest._sum_by_numpy}
        library = compiled(cls.folder.name)
        if library is not None:
            os.environ["TWINSTEP_DIGEST"] = str(library)
            cls.sums["c"], name = digest.load()
            assert name == "c"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def of(self, way, array, first=0):
        return self.sums[way](array.ctypes.data, array.itemsize, first, array.size)

    def test_validate_vectors_of_the_page(self):
        page = (ROOT / "docs/FOREIGN.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (.*?) \| `([0-9a-f]{16})` \| `([0-9a-f]{64})` \|$", page, re.M)
        self.assertEqual({r[0] for r in rows}, set(VECTORS))
        for name, total, whole in rows:
            dtype, array = VECTORS[name]
            for way in self.sums:
                self.assertEqual(f"{self.of(way, array):016x}", total, (way, name))
            self.assertEqual(digest.close("weight", dtype, array.shape, int(total, 16)).hex(), whole)

    def test_verify_shards_and_unaligned_memory(self):
        draw = np.random.default_rng(3)
        for width in (1, 2, 4, 8):
            array = draw.integers(0, 256, 4099 * width, "u1").view(f"<u{width}")
            whole = self.of("numpy", array)
            for way, take in self.sums.items():
                for cut in (0, 1, 7, 64, 1000, 4099):
                    parts = self.of(way, array[:cut]) + self.of(way, array[cut:], cut)
                    self.assertEqual(parts % 2 ** 64, whole, (way, width, cut))
                moved = np.empty(array.nbytes + 1, "u1")
                moved[1:] = array.view("u1")
                self.assertEqual(take(moved.ctypes.data + 1, width, 0, array.size), whole)

    def test_corroborate_threads_with_numpy(self):
        draw = np.random.default_rng(5)
        # more than one piece of work (2^20 elements) of each width, none, one, and a few
        arrays = [draw.integers(0, 256, n * width, "u1").view(f"<u{width}")
                  for width in (1, 2, 4, 8) for n in (0, 1, 17, 63, 64, 65, 2 ** 20, 2 ** 20 + 33)]
        arrays += [draw.integers(0, 2 ** 32, 2_300_001, "u4")]
        firsts = [int(f) for f in draw.integers(0, 2 ** 40, len(arrays))]
        pieces = [(a.ctypes.data, a.itemsize, f, a.size) for a, f in zip(arrays, firsts)]
        wanted = [self.of("numpy", a, f) for a, f in zip(arrays, firsts)]
        many = digest.load_many()
        for threads in (1, 2, 3, 5, 1000, 0, -1):
            self.assertEqual(many(pieces, threads), wanted, threads)
        self.assertEqual(many([], 4), [])

    def built(self, name, first_lines, *options):
        """The library with other lines before it, compiled; its file."""
        source = pathlib.Path(self.folder.name) / f"{name}.c"
        source.write_text("#define _POSIX_C_SOURCE 200809L\n#include <pthread.h>\n"
                          f"#include <stdlib.h>\n{first_lines}\n#undef _POSIX_C_SOURCE\n"
                          f'#include "{ROOT}/python/digest/keyed.c"\n', encoding="utf-8")
        out = source.with_suffix(".so")
        subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", "-O1", "-fPIC", "-shared",
                        "-pthread", *options, "-o", out, source], check=True)
        return out

    def sums_of_two(self, library):
        """What a library says of two pieces by four threads, and what numpy does."""
        array = np.arange(3_000_000, dtype="<u4")
        pieces = [(array.ctypes.data, 4, 3, array.size), (array.ctypes.data, 2, 0, 17)]
        wanted = [self.of("numpy", array, 3), self.of("numpy", array.view("<u2")[:17])]
        with unittest.mock.patch.dict(os.environ, {"TWINSTEP_DIGEST": str(library)}):
            return digest.load_many()(pieces, 4), wanted

    @unittest.skipUnless(COMPILER, "no compiler")
    def test_corroborate_the_loops_for_other_processors_with_numpy(self):
        draw = np.random.default_rng(7)
        # less than one turn of a loop, whole ones, and some that are left; an index beyond 2^32
        arrays = [draw.integers(0, 256, n * width, "u1").view(f"<u{width}")
                  for width in (1, 2, 4, 8) for n in (0, 1, 19, 20, 21, 39, 40, 640, 4099)]
        arrays.append(np.full(997, 2 ** 32 - 1, "<u4"))         # each sum of halves carries
        pieces = [(a.ctypes.data, a.itemsize, f, a.size)
                  for a in arrays for f in (0, 2 ** 33 + 2 ** 31 - 7)]
        wanted = [digest._sum_by_numpy(*p) for p in pieces]
        library = self.built("chosen", """
            #include <string.h>
            #define __builtin_cpu_supports(name) \\
                (strcmp(name, getenv("CHOSEN")) == 0 && (__builtin_cpu_supports)(name))""")
        for chosen in ("none", "avx2"):     # the other tests take the best that this machine has
            with unittest.mock.patch.dict(os.environ, {"TWINSTEP_DIGEST": str(library),
                                                       "CHOSEN": chosen}):
                self.assertEqual(digest.load_many()(pieces, 1), wanted, chosen)

    @unittest.skipUnless(COMPILER, "no compiler")
    def test_verify_a_mutex_that_cannot_be_made_is_not_locked(self):
        found, wanted = self.sums_of_two(self.built("lockless", """
            static int locked(void) { abort(); }
            #define pthread_mutex_init(lock, how) 1
            #define pthread_mutex_lock(lock) locked()
            #define pthread_mutex_unlock(lock) locked()"""))
        self.assertEqual(found, wanted)

    @unittest.skipUnless(COMPILER, "no compiler")
    def test_verify_threads_that_cannot_be_made_are_not_needed(self):
        for made in (0, 1):         # none at all; the second one fails
            found, wanted = self.sums_of_two(self.built(f"threadless{made}", f"""
                static int calls;
                #define pthread_create(to, how, what, with) \\
                    (calls++ % 2 < {made} ? pthread_create(to, how, what, with) : 11)"""))
            self.assertEqual(found, wanted)

    @unittest.skipUnless(COMPILER, "no compiler")
    def test_verify_no_thread_is_left_and_a_fork_is_whole(self):
        many, array = digest.load_many(), np.arange(3_000_000, dtype="<u4")
        pieces = [(array.ctypes.data, 4, 0, array.size)]
        wanted = [self.of("numpy", array)]
        before = len(os.listdir("/proc/self/task"))
        self.assertEqual(many(pieces, 3), wanted)
        self.assertEqual(len(os.listdir("/proc/self/task")), before)
        ended = threading.Event()
        others = threading.Thread(target=lambda: [many(pieces, 3) for _ in iter(ended.is_set, True)])
        others.start()              # so that forks fall into sums
        try:
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    signal.alarm(60)
                    os._exit(0 if many(pieces, 3) == wanted else 1)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            ended.set()
            others.join()

    @unittest.skipUnless(COMPILER, "no compiler")
    def test_verify_threads_do_not_race(self):
        source = pathlib.Path(self.folder.name) / "watched.c"
        source.write_text(f'#include "{ROOT}/python/digest/keyed.c"' """
            static uint32_t words[3000001];
            int main(void) {
                const struct twinstep_piece pieces[] = {{words, 4, 0, 3000001},
                                                        {words, 4, 0, 3000000}, {words, 2, 5, 99}};
                uint64_t sums[3];
                twinstep_keyed_sums(pieces, 3, sums, 3);
                return sums[0] == sums[1];
            }""", encoding="utf-8")
        program = source.with_suffix("")
        made = subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", "-O1", "-g",
                               "-pthread", "-fsanitize=thread", "-o", program, source],
                              check=False, capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest("the compiler has no ThreadSanitizer")
        done = subprocess.run([program], check=False, capture_output=True, text=True)
        if "unexpected memory mapping" in done.stderr:
            self.skipTest("ThreadSanitizer does not begin here")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_verify_small_changes_are_seen(self):
        draw = random.Random(4)
        take = self.sums.get("c", self.sums["numpy"])
        array = np.arange(257, dtype="<u4")
        whole = take(array.ctypes.data, 4, 0, array.size)
        for _ in range(2000):
            changed = array.copy()
            i, j = draw.sample(range(array.size), 2)
            kind = draw.randrange(3)
            if kind == 0:
                changed[i] ^= np.uint32(1 << draw.randrange(32))
            elif kind == 1:
                changed[i], changed[j] = array[j], array[i]
            else:       # two equal flips, which an exclusive or does not see
                changed[[i, j]] ^= np.uint32(1 << draw.randrange(32))
            self.assertNotEqual(take(changed.ctypes.data, 4, 0, array.size), whole)

    @unittest.skipUnless(COMPILER, "no compiler")
    def test_verify_other_widths_are_refused(self):
        self.assertEqual(self.sums["c"](ctypes.addressof(ctypes.c_uint64(1)), 3, 0, 1), 0)


if __name__ == "__main__":
    unittest.main()
