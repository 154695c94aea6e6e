# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Archives of numpy.savez and savez_compressed: one content, stored and deflated, must give one answer;
an archive that is cut, damaged or says more than it holds is refused with what is wrong. The archives
are written by zipfile of the standard library, the members by the format's own page (NEP 1)."""
import io
import json
import os
import pathlib
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
