# SPDX-License-Identifier: Apache-2.0
"""labels: unit

tests/fuzz/rounds.py: what HDF5 does with a wrong file is not ours, and everything else is."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import rounds  # noqa: E402

HEADS = {"crash": "==1== ERROR: AddressSanitizer: heap-buffer-overflow on address 0x0\n",
         "large demand": "==1== ERROR: libFuzzer: out-of-memory (malloc(1660944392))\n",
         "demand above the sanitizer's limit":
             "==1==ERROR: AddressSanitizer: requested allocation size 0x40000006e (0x400001070 after "
             "adjustments for alignment, red zones etc.) exceeds maximum supported size of 0x40000000\n",
         "endless walk": "==1== ERROR: libFuzzer: timeout after 60 seconds\n"}
SANITIZER = ("    #0 0x1 in __sanitizer_print_stack_trace (/b/fuzz_verbs+0x8202e1)\n"
             "    #1 0x2 in fuzzer::Fuzzer::HandleMalloc(unsigned long) crtstuff.c\n"
             "    #2 0x3 in __interceptor_malloc (/b/fuzz_verbs+0x81625d)\n")
HDF5 = "    #3 0x4 in H5O_msg_read (/lib/x86_64-linux-gnu/libhdf5_serial.so.103+0x1b42c9)\n"
OURS = "    #3 0x4 in open_column /b/../determinism/trace/trace_rows.c:26:5\n"


class Rounds(unittest.TestCase):
    def test_the_first_frame_says_whose_it_is(self):
        for what, head in HEADS.items():
            self.assertTrue(rounds.in_hdf5("INFO: x\n" + head + SANITIZER + HDF5 + OURS), what)
            self.assertFalse(rounds.in_hdf5("INFO: x\n" + head + SANITIZER + OURS + HDF5), what)

    def test_without_a_frame_it_is_ours(self):
        # -rss_limit_mb is watched by a thread of its own, which shows no stack of the target
        self.assertFalse(rounds.in_hdf5("==1== ERROR: libFuzzer: out-of-memory (used: 1025Mb)\n"))
        self.assertFalse(rounds.in_hdf5("==1== ERROR: libFuzzer: deadly signal\n" + SANITIZER + HDF5))


if __name__ == "__main__":
    unittest.main()
