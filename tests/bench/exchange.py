#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs pairs in both orders of their arms, and counts words that the order changes.

    exchange.py --binary BINARY [--catalogue FOLDER]

What one ulp does is measured on the baseline alone, so "no-larger-than-rounding", and "as rounding"
of `eval`, may depend on which arm that is. Without --catalogue the pairs are those of this file,
which lie where rounding matters; with it they are all scenarios of a folder whose arms can be
exchanged, with `eval` of 16 rows. Prints each word that differs, and what one ulp of each arm does."""
import argparse
import json
import pathlib
import subprocess
import tempfile

MIRROR = {"worse": "better", "better": "worse", "higher": "lower", "lower": "higher"}
BF16 = {"compute": "bf16"}


def own_pairs():
    """Pairs of arms: LRs close to each other and far apart, an eps, a decay, a beta2."""
    def rate(lr, **more):
        return {"optimizer": {"lr": lr, **more}}
    for lr in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
        for factor in (1.0001, 2, 1000):
            yield rate(lr), rate(lr * factor)
    for lr in (1e-8, 1e-6):
        for decay in (1e-6, 1e-3, 0.1):
            yield rate(lr), rate(lr, weight_decay=decay)
        for factor in (1.0001, 1.02, 1.05, 1.1, 1.2, 1.5):
            yield {**rate(lr), "numerics": BF16}, {**rate(lr * factor), "numerics": BF16}
    for lr in (1e-8, 1e-6, 1e-3):
        for eps in (1.0001e-8, 1e-12):
            yield rate(lr), rate(lr, eps=eps)
    yield rate(1e-6), rate(1e-6, beta2=0.99900001)
    for pair in ((1e-2, 1e-12), (1e-2, 1e-9), (1e-1, 1e-4)):
        yield rate(pair[0]), rate(pair[1])


def own_scenarios():
    for number, (baseline, test) in enumerate(own_pairs()):
        yield f"{json.dumps(baseline)} {json.dumps(test)}", {
            "twinstep": 1, "name": f"pair-{number}", "steps": 3,
            "eval": {"from": "rest", "rows": 16, "training_rows": 16},
            "common": {"seed": 3, "data": {"samples": 16}, "model": {"layers": 1}},
            "arms": {"baseline": baseline, "test": test}}


def catalogue(folder):
    import yaml
    for path in sorted(folder.glob("*.yaml")):
        scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
        scenario.pop("expect", None)
        scenario.setdefault("common", {}).setdefault("data", {}).setdefault("samples", 32)
        scenario["eval"] = {"from": "rest", "rows": 16, "training_rows": 16}
        yield path.stem, scenario


def judge(binary, folder, scenario, dump):
    """What the program says of a scenario; None where it is refused or takes too long."""
    path = folder / "x.yaml"
    path.write_text(dump(scenario), encoding="utf-8")
    try:
        done = subprocess.run([binary, "run", path, "--quiet", "--json", "--overwrite"], cwd=folder,
                              capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode in (0, 1, 3) else None


def exchanged(scenario):
    (first, one), (second, other) = scenario["arms"].items()
    return {**scenario, "arms": {first: other, second: one}}


def figures(said):
    for rows in (said.get("eval") or {"sets": []})["sets"]:
        for measure in rows["measures"]:
            yield rows["set"], measure


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--binary", required=True, type=pathlib.Path)
    asked.add_argument("--catalogue", type=pathlib.Path)
    options = asked.parse_args()
    dump = json.dumps
    if options.catalogue:   # PyYAML takes 5e-7 for a text, and writes it as it stood; the pairs of this
        import yaml         # file need no package (Debian: python3-yaml)
        dump = yaml.safe_dump
    pairs = words = compared = apart = refused = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.catalogue:
            for path in options.catalogue.resolve().iterdir():
                if path.suffix != ".yaml":
                    (folder / path.name).symlink_to(path)
        for what, scenario in catalogue(options.catalogue) if options.catalogue else own_scenarios():
            said = [judge(options.binary.resolve(), folder, one, dump) for one in (scenario, exchanged(scenario))]
            if None in said:
                refused += 1
                continue
            pairs += 1
            told = [f'{one["verdict"]}, {one.get("word")}' for one in said]
            if told[0] != told[1]:
                words += 1
                print(f'{what}: {told[0]} | {told[1]}; response {said[0]["growth"]["response"]}, '
                      f'{said[1]["growth"]["response"]}', flush=True)
            for (rows, a), (_, b) in zip(figures(said[0]), figures(said[1])):
                compared += 1
                if MIRROR.get(a["verdict"], a["verdict"]) == b["verdict"]:
                    continue
                apart += 1
                print(f'{what}: {rows} {a["measure"]}: {a["verdict"]} | {b["verdict"]}; gap {a["gap"]:.3g}, '
                      f'one ulp {a["twin"]}, {b["twin"]}', flush=True)
    print(f"{pairs} pairs: {words} with another word; {compared} figures of eval: {apart} with another; "
          f"{refused} refused in one order")


if __name__ == "__main__":
    main()
