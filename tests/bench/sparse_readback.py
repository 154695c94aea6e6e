#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `twinstep readback` on two checkpoints of many gigabytes that stand on no disk.

    sparse_readback.py --binary B [--bytes N] [--most-bytes M] [FOLDER]

Writes two files of torch.save (a model's and an AdamW's state dict, weights and two moments in f32,
one tensor) of N bytes each, whose elements are a hole: all of them are 0. So every byte is read
and no number can be: the answer must be "its moments are 0", with exit status 3. Prints the seconds,
those of a processor, and the most memory of the process's own (RssAnon, sampled); pages of the mapped files are not its
own, and the system takes them back. Fails if the own memory exceeds M. FOLDER (default: a temporary
one) must be on a file system with holes."""

import argparse
import collections
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import time
import types
import zlib

WIDE = 0xFFFFFFFF


def stand_ins():
    """The names that torch.save writes, as things that pickle can refer to."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def rebuild(*_):
        raise AssertionError("it is written, and never read here")

    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    storage = type("FloatStorage", (), {"__module__": "torch"})
    torch.FloatStorage, utils._rebuild_tensor_v2, torch._utils = storage, rebuild, utils
    sys.modules.update({"torch": torch, "torch._utils": utils})
    return rebuild, storage


class Stored:
    """A storage of f32 in a member of its own, or a tensor over all of one."""

    def __init__(self, key, count):
        self.key, self.count = key, count


class Tensor(Stored):
    def __reduce__(self):
        return REBUILD, (Stored(self.key, self.count), 0, (self.count,), (1,), False,
                         collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, obj): # `obj`: the name that pickle gives
        if type(obj) is Stored:
            return ("storage", STORAGE, obj.key, "cpu", obj.count)
        return None


def content(count, update):
    """A training with one weight; the count of updates is a number, as in torch before 1.12."""
    state = {"step": float(update), "exp_avg": Tensor("1", count), "exp_avg_sq": Tensor("2", count)}
    group = {"lr": 5e-4, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "amsgrad": False,
             "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
             "fused": None, "decoupled_weight_decay": True, "params": [0]}
    held = {"model": collections.OrderedDict(weight=Tensor("0", count)), "step": update,
            "optimizer": {"state": {0: state}, "param_groups": [group]}}
    out = io.BytesIO()
    Pickler(out, 2).dump(held)
    return out.getvalue()


def write(path, members):
    """A zip of stored members: (name, bytes) or (name, length of a hole). Sizes and places of 4 GiB
    and more go into zip64 fields (APPNOTE.TXT 4.5.3)."""
    directory = b""
    with open(path, "wb") as file:
        for name, held in members:
            at, size = file.tell(), held if isinstance(held, int) else len(held)
            checksum = 0 if isinstance(held, int) else zlib.crc32(held)
            name, is_wide = name.encode(), size >= WIDE
            short = WIDE if is_wide else size
            wide = struct.pack("<HHQQ", 1, 16, size, size) if is_wide else b""
            file.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 0, checksum, short, short,
                                   len(name), len(wide)) + name + wide)
            if isinstance(held, int):
                file.seek(size, os.SEEK_CUR)
            else:
                file.write(held)
            places = (struct.pack("<QQ", size, size) if is_wide else b"") + (
                struct.pack("<Q", at) if at >= WIDE else b"")
            wide = struct.pack("<HH", 1, len(places)) + places if places else b""
            directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 0, checksum,
                                     short, short, len(name), len(wide), 0, 0, 0, 0,
                                     min(at, WIDE)) + name + wide
        at, count = file.tell(), len(members)
        file.write(directory)
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count,
                               len(directory), at))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, at + len(directory), 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(directory),
                               min(at, WIDE), 0))


def own_memory(process):
    """Bytes of RssAnon, or 0 where the process is gone."""
    try:
        with open(f"/proc/{process.pid}/status") as file:
            lines = [line.split() for line in file if line.startswith("RssAnon:")]
    except OSError:
        return 0
    return 1024 * int(lines[0][1]) if lines else 0


def measure(arguments, folder):
    count = arguments.bytes // 12
    paths = [os.path.join(folder, f"step-{update}.pt") for update in (1, 2)]
    for update, path in enumerate(paths, 1):
        write(path, [("a/data.pkl", content(count, update)), ("a/byteorder", b"little"),
                     *((f"a/data/{i}", 4 * count) for i in range(3)), ("a/version", b"3\n")])
    on_disk = sum(os.stat(path).st_blocks * 512 for path in paths)
    if on_disk > 1 << 20:
        print(f"{folder} keeps no holes: {on_disk} bytes are on the disk")
        return 77
    began, most = time.monotonic(), 0
    process = subprocess.Popen([arguments.binary, "readback", *paths, "--quiet"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None:
        most = max(most, own_memory(process))
        time.sleep(0.02)
    seconds, said = time.monotonic() - began, process.stdout.read()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"two files of {os.path.getsize(paths[0])} bytes, {count} weights: {seconds:.1f} s "
          f"({used.ru_utime + used.ru_stime:.1f} s of a processor), {most / 1e6:.1f} MB of its own")
    if process.returncode != 3 or "its moments are 0" not in said:
        print(f"exit status {process.returncode}: {said}")
        return 1
    return int(most > arguments.most_bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--bytes", type=int, default=10 ** 10)
    parser.add_argument("--most-bytes", type=int, default=64 * 10 ** 6)
    parser.add_argument("folder", nargs="?")
    arguments = parser.parse_args()
    if arguments.folder:
        return measure(arguments, arguments.folder)
    with tempfile.TemporaryDirectory() as folder:
        return measure(arguments, folder)


if __name__ == "__main__":
    REBUILD, STORAGE = stand_ins()
    sys.exit(main())
