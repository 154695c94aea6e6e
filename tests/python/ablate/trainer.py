# SPDX-License-Identifier: Apache-2.0
"""A training small enough for paper: SGD on 1/2 sum h_i (w_i - t_i)^2, from w = 0.

Every number is a multiple of a power of two, so one update is exact: w_i = lr h_i t_i. It leaves
model.safetensors and log.jsonl in --out, and misbehaves in one of several ways if it is told to."""
import argparse
import json
import os
import pathlib
import struct
import sys
import time


def save(path: pathlib.Path, tensors: dict[str, list[float]]) -> None:
    """Writes f64 vectors as safetensors."""
    header, data = {}, b""
    for name in sorted(tensors):
        raw = struct.pack(f"<{len(tensors[name])}d", *tensors[name])
        header[name] = {"dtype": "F64", "shape": [len(tensors[name])],
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def start_child(out: pathlib.Path) -> None:
    """Starts a process that outlives this one, in a session of its own."""
    import subprocess  # costs a third of this program's time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                             start_new_session=True)
    (out / "child").write_text(str(child.pid))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--t", type=float, nargs=3, default=[1.0, 1.0, 1.0])
    parser.add_argument("--t0", type=float)
    parser.add_argument("--t1", type=float)
    parser.add_argument("--t2", type=float)
    parser.add_argument("--decay", type=float, default=0.0)
    parser.add_argument("--hidden", type=float, default=0.0)
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--inert")
    parser.add_argument("--do", default="train")
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    if given.config and given.config.endswith(".toml"):
        import tomllib
        tables = tomllib.loads(pathlib.Path(given.config).read_text())
        for key, value in tables["train"].items():
            setattr(given, key, value)
    elif given.config:
        for key, value in json.loads(pathlib.Path(given.config).read_text()).items():
            setattr(given, key, value)
    if os.environ.get("ABLATE_COUNT"):  # one line for each training that began
        with open(os.environ["ABLATE_COUNT"], "a") as count:
            count.write(given.out.parent.name + "\n")
    time.sleep(given.seconds)
    if given.do == "crash":
        print("epoch 1", file=sys.stderr)
        print("\x1b[31mRuntimeError: CUDA out of memory\x1b[0m", file=sys.stderr)
        return 7
    if given.do == "hang":  # with a child in a session of its own, as torchrun's workers are
        start_child(given.out)
        time.sleep(600)
    if given.do == "leave":  # ends, and leaves a process behind
        start_child(given.out)
    t = list(given.t)
    for i, value in enumerate([given.t0, given.t1, given.t2]):
        t[i] = t[i] if value is None else value
    t[2] += float(os.environ.get("SHIFT", "0")) + given.hidden
    w = [0.0] * 3
    if given.noise:
        draw = [int.from_bytes(os.urandom(2), "little") / 65536 - 0.5 for _ in w]
        t = [x + given.noise * d for x, d in zip(t, draw)]
    with open(given.out / "log.jsonl", "w") as log:
        for step in range(1, given.steps + 1):
            loss = sum((a - b) ** 2 for a, b in zip(w, t)) / 2
            print(json.dumps({"step": step, "loss": loss}), file=log)
            w = [a - given.lr * (a - b) - given.lr * given.decay * a for a, b in zip(w, t)]
    if given.do == "nothing":
        (given.out / "log.jsonl").unlink()
        return 0
    if given.do == "nan":
        w[1] = float("nan")
    save(given.out / "model.safetensors", {"w": (w + [0.0] * 8)[:given.size], "other": [1.0]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
