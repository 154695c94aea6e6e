# SPDX-License-Identifier: Apache-2.0
"""A training small enough for paper: SGD on 1/2 sum h_i (w_i - t_i)^2, from w = 0.

Every number is a multiple of a power of two, so one update is exact: w_i = lr h_i t_i. It leaves
model.safetensors and log.jsonl in --out, and misbehaves in one of several ways if it is told to.

Tests start it hundreds of times. argparse, json and pathlib, of which it needs little, would take
twice the processor time that the rest of a start takes, so they are not imported."""
import os
import struct
import sys
import time

# option: type, number of words, default
OPTIONS = {
    "config": (str, 1, None), "out": (str, 1, None), "lr": (float, 1, 1.0), "steps": (int, 1, 1),
    "t": (float, 3, [1.0, 1.0, 1.0]), "t0": (float, 1, None), "t1": (float, 1, None),
    "t2": (float, 1, None), "decay": (float, 1, 0.0), "hidden": (float, 1, 0.0),
    "size": (int, 1, 3), "noise": (float, 1, 0.0), "inert": (str, 1, None),
    "do": (str, 1, "train"), "seconds": (float, 1, 0.0), "wrapper": (str, 1, ""),
}


def save(path: str, tensors: dict[str, list[float]]) -> None:
    """Writes f64 vectors as safetensors."""
    header, data = [], b""
    for name in sorted(tensors):
        raw = struct.pack(f"<{len(tensors[name])}d", *tensors[name])
        header.append('"%s": {"dtype": "F64", "shape": [%d], "data_offsets": [%d, %d]}'
                      % (name, len(tensors[name]), len(data), len(data) + len(raw)))
        data += raw
    text = ("{" + ", ".join(header) + "}").encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def drawn(name: str, count: int) -> list[float]:
    """So many multiples of 2^-16 in [-1/2, 1/2) that belong to the name: FNV-1a and the finaliser of
    splitmix64. Runs have names of their own, so their noise differs, and a test that passes does so
    every time: noise of the machine would have one verdict in a hundred be the false alarm that
    alpha = 1 % allows."""
    found = []
    for i in range(count):
        x = 0xCBF29CE484222325
        for byte in f"{name} {i}".encode():
            x = (x ^ byte) * 0x100000001B3 % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        found.append(((x ^ x >> 31) & 0xFFFF) / 65536 - 0.5)
    return found


def start_child(out: str) -> None:
    """Starts a process that outlives this one, in a session of its own."""
    import subprocess  # costs a third of this program's time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                             start_new_session=True)
    with open(os.path.join(out, "child"), "w") as file:
        file.write(str(child.pid))


def read_words(words: list[str]) -> dict:
    given = {name: default for name, (_, _, default) in OPTIONS.items()}
    at = 0
    while at < len(words):
        name = words[at].removeprefix("--")
        if not words[at].startswith("--") or name not in OPTIONS:
            sys.exit(f"trainer.py: no option {words[at]}")
        kind, count, _ = OPTIONS[name]
        if at + count >= len(words):
            sys.exit(f"trainer.py: {words[at]}: expected {count} words behind it")
        values = [kind(word) for word in words[at + 1:at + 1 + count]]
        given[name] = values if count > 1 else values[0]
        at += 1 + count
    return given


def read_config(path: str) -> dict:
    if path.endswith(".toml"):
        import tomllib
        with open(path, "rb") as file:
            return tomllib.load(file)["train"]
    import json
    with open(path) as file:
        return json.load(file)


def main() -> int:
    given = read_words(sys.argv[1:])
    if given["config"]:
        given.update(read_config(given["config"]))
    out, do = given["out"], given["do"]
    if os.environ.get("ABLATE_COUNT"):  # one line for each training that began
        with open(os.environ["ABLATE_COUNT"], "a") as count:
            count.write(os.path.basename(os.path.dirname(out)) + "\n")
    time.sleep(given["seconds"])
    if do == "crash":
        print("epoch 1", file=sys.stderr)
        print("\x1b[31mRuntimeError: CUDA out of memory\x1b[0m", file=sys.stderr)
        return 7
    if do == "hang":  # with a child in a session of its own, as torchrun's workers are
        start_child(out)
        time.sleep(600)
    if do == "leave":  # ends, and leaves a process behind
        start_child(out)
    t = list(given["t"])
    for i in range(3):
        value = given[f"t{i}"]
        t[i] = t[i] if value is None else value
    t[2] += float(os.environ.get("SHIFT", "0")) + given["hidden"]
    w = [0.0] * 3
    if given["noise"]:
        draw = drawn(f"{os.environ.get('ABLATE_SALT', '')} {os.path.basename(os.path.dirname(out))}", len(w))
        t = [x + given["noise"] * d for x, d in zip(t, draw)]
    with open(os.path.join(out, "log.jsonl"), "w") as log:
        for step in range(1, given["steps"] + 1):
            loss = sum((a - b) ** 2 for a, b in zip(w, t)) / 2
            log.write(f'{{"step": {step}, "loss": {loss!r}}}\n')
            w = [a - given["lr"] * (a - b) - given["lr"] * given["decay"] * a
                 for a, b in zip(w, t)]
    if do == "nothing":
        os.remove(os.path.join(out, "log.jsonl"))
        return 0
    if do == "nan":
        w[1] = float("nan")
    save(os.path.join(out, "model.safetensors"),
         {given["wrapper"] + "w": (w + [0.0] * 8)[:given["size"]], "other": [1.0]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
