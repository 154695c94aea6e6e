#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of `twinstep rollout` against formulas written out anew, in another language.

    metrics_oracle.py BINARY

Draws sequences with differences of many sizes, masks, gaps and infinities, writes them as JSONL in
the names of several projects, as .npz and, where h5py is installed, as HDF5, and computes every
figure once more: sums by math.fsum, exponentials in 60 decimal digits where a difference would
cancel. Knows nothing of the program but its JSON. Returns 1 where a figure is off."""
import decimal
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

decimal.getcontext().prec = 60
D = decimal.Decimal
BOUND = 20.0


def draw(seed, sequences, size):
    """Sequences of (id, engine, trainer, mask, batch, reward); None stands for null. Rewards lean
    with d, and are given at the last token as well, where verl has them."""
    rng = random.Random(seed)
    out = []
    for i in range(sequences):
        n = rng.choice([1, 2, 7, 30, 65, 128])
        engine, trainer, mask, ids = [], [], [], []
        for _ in range(n):
            p = -rng.expovariate(0.7) if rng.random() < 0.8 else -rng.random() * 1e-4
            d = rng.gauss(0, size) if rng.random() < 0.9 else rng.gauss(0, 40 * size)
            q = min(p - d, 0.0)
            if rng.random() < 0.1:
                q = p
            engine.append(None if rng.random() < 0.01 else q)
            trainer.append(p if rng.random() < 0.995 else float("-inf"))
            mask.append(1 if rng.random() < 0.9 else 0)
            ids.append(rng.randrange(50))
        lean = math.fsum(p - q for q, p in zip(engine, trainer) if q is not None and p > -1e9) / n
        reward = rng.choice([-0.5, 0.0, 1.0, rng.random() + lean / size])
        reward = None if rng.random() < 0.1 else reward
        out.append({"id": f"r{i}", "engine": engine, "trainer": trainer, "mask": mask, "ids": ids,
                    "batch": i // 5, "reward": reward,
                    "scores": [0.0] * (n - 1) + [reward]})
    return out


def kept(sequences):
    out = []
    for s in sequences:
        tokens = [(q, p, t) for t, (q, p, m) in enumerate(zip(s["engine"], s["trainer"], s["mask"]))
                  if m and q is not None and math.isfinite(q) and math.isfinite(p)]
        if tokens:
            out.append((s, tokens))
    return out


def exp(x):
    return D(x).exp()


def k3(d):
    return float(exp(d) - 1 - D(d))


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def js(p, q):
    log_m = ((exp(p) + exp(q)) / 2).ln()
    x, y = D(p) - log_m, D(q) - log_m
    return float(((x.exp() - x - 1) + (y.exp() - y - 1)) / 2)


def held(x, low, high):
    return min(max(x, low), high)


def rank_value(values, q):
    values = sorted(values)
    return values[max(math.ceil(q * len(values)), 1) - 1]


def ess(w):
    return math.fsum(w) ** 2 / (len(w) * math.fsum(x * x for x in w))


def expected(sequences):
    """Every figure by the path that it has in the JSON."""
    rows = kept(sequences)
    tokens = [(q, p) for _, r in rows for q, p, _ in r]
    d = [p - q for q, p in tokens]
    a = [abs(x) for x in d]
    w = [math.exp(held(x, -BOUND, BOUND)) for x in d]
    prob = [(math.exp(p), math.exp(q)) for q, p in tokens]
    gap = [abs(x - y) for x, y in prob]
    seq = [[p - q for q, p, _ in r] for _, r in rows]
    sums = [math.fsum(s) for s in seq]
    sw = [math.exp(held(s, -BOUND, BOUND)) for s in sums]
    md = [s / len(x) for s, x in zip(sums, seq)]
    factor = [mean(math.exp(abs(x)) for x in s) for s in seq]
    lp = [mean(p for _, p, _ in r) for _, r in rows]
    lq = [mean(q for q, _, _ in r) for _, r in rows]
    tight = [held(x, 0.5, 2.0) for x in w]
    share = lambda test, values: sum(1 for v in values if test(v)) / len(values)
    figures = {
        "mean_exp_abs_d": mean(math.exp(x) for x in a), "mean_d": mean(d), "mean_abs_d": mean(a),
        "rms_d": math.sqrt(mean(x * x for x in d)), "k1": -mean(d), "k3": mean(k3(x) for x in d),
        "sequence_k1": -mean(sums),
        "sequence_k3": mean(k3(held(s, -BOUND, BOUND)) for s in sums),
        "ess_tokens": ess(w), "ess_sequences": ess(sw), "max_exp_abs_d": math.exp(max(a)),
        "median_exp_abs_d": math.exp(rank_value(a, 0.5)),
        "q999_exp_abs_d": math.exp(rank_value(a, 0.999))}
    mp, mq = mean(x for x, _ in prob), mean(y for _, y in prob)
    pearson = (math.fsum((x - mp) * (y - mq) for x, y in prob) /
               math.sqrt(math.fsum((x - mp) ** 2 for x, _ in prob) *
                         math.fsum((y - mq) ** 2 for _, y in prob)))
    mt, mg = mean(tight), mean(gap)
    corr, nemo, slime = "rollout_corr/", "", ""
    metrics = {
        "token_mult_prob_error": figures["mean_exp_abs_d"], "gen_kl_error": figures["k3"],
        "policy_kl_error": mean(k3(-x) for x in d),
        "js_divergence_error": mean(js(p, q) for q, p in tokens),
        "sampling_importance_ratio": mean(w),
        "is_oob_ratio (icepop, 0.5 to 5)": share(lambda x: x < 0.5 or x > 5, w),
        "is_oob_ratio (seq-mask-tis, 0.999 to 1.002)":
            share(lambda x: not 0.999 <= math.exp(x) <= 1.002, md),
        "mean_seq_mult_prob_error": mean(factor), "max_seq_mult_prob_error": max(factor),
        "min_seq_mult_prob_error": min(factor),
        corr + "kl": -mean(d), corr + "k3_kl": figures["k3"],
        corr + "training_ppl": mean(math.exp(-x) for x in lp),
        corr + "training_log_ppl": -mean(lp),
        corr + "rollout_ppl": mean(math.exp(-x) for x in lq), corr + "rollout_log_ppl": -mean(lq),
        corr + "log_ppl_diff": -mean(md), corr + "log_ppl_abs_diff": mean(abs(x) for x in md),
        corr + "log_ppl_diff_max": max(-x for x in md),
        corr + "log_ppl_diff_min": min(-x for x in md),
        corr + "ppl_ratio": mean(math.exp(-x) for x in md),
        corr + "chi2_token": mean(x * x for x in w) - 1, corr + "chi2_seq": mean(x * x for x in sw) - 1,
        corr + "rollout_is_mean (token)": mean(w), corr + "rollout_is_max (token)": max(w),
        corr + "rollout_is_min (token)": min(w),
        corr + "rollout_is_std (token, 2)": math.sqrt(mean((x - mt) ** 2 for x in tight)),
        corr + "rollout_is_eff_sample_size (token, 2)": 1 / mean((x / mt) ** 2 for x in tight),
        corr + "rollout_is_ratio_fraction_high (token, 2)": share(lambda x: x > 2, w),
        corr + "rollout_is_ratio_fraction_low (token, 2)": share(lambda x: x < 0.5, w),
        corr + "rollout_is_max (sequence)": max(sw), corr + "rollout_is_min (sequence)": min(sw),
        corr + "rollout_is_ratio_fraction_high (sequence, 2)": share(lambda x: x > 2, sw),
        corr + "rollout_is_ratio_fraction_low (sequence, 2)": share(lambda x: x < 0.5, sw),
        "training/rollout_probs_diff_max": max(gap), "training/rollout_probs_diff_mean": mg,
        "training/rollout_probs_diff_std":
            math.sqrt(math.fsum((x - mg) ** 2 for x in gap) / (len(gap) - 1)),
        "training/rollout_actor_probs_pearson_corr": pearson,
        "train_rollout_logprob_abs_diff": mean(mean(abs(x) for x in s) for s in seq),
        "tis (per token)": mean(w), "tis_abs (per token)": mean(abs(x - 1) for x in w),
        "tis_clipfrac (0 to 2)": mean(share(lambda x: math.exp(x) > 2, s) for s in seq),
        "tis_truncate_fraction (2, per token)": share(lambda x: x > 2, w),
        "tis_mask_fraction (0.5 to 2, per token)": share(lambda x: x < 0.5 or x > 2, w),
        "rs_catastrophic_token_fraction (1e-4, per token)": share(lambda x: x < 1e-4, w),
        "rs_catastrophic_seq_fraction (1e-4)":
            share(lambda s: any(math.exp(x) < 1e-4 for x in s), seq),
        "sampling/sampling_logp_difference/mean": mean(a),
        "sampling/sampling_logp_difference/max": max(a),
        "sampling/importance_sampling_ratio/mean (sequence, unclipped)": mean(sw),
        "masked by sequence_mask (C_max 3)": share(lambda x: x > 3, sw),
        "behave_approx_kl (nothing masked)": mean(d), "behave_imp_weight (nothing masked)": mean(w),
        "masked by rejection_sampling (token ratio, 5)": share(lambda x: x > 5, w)}
    return figures, metrics, rows


def rewards(rows):
    """The object of rewards, or None, and which sequences have which of them."""
    have = [(s["reward"], [p - q for q, p, _ in r]) for s, r in rows if s["reward"] is not None]
    if not have:
        return None
    r, d = [x for x, _ in have], [math.fsum(x) for _, x in have]
    w = [math.exp(held(x, -BOUND, BOUND)) for x in d]
    n, plain = len(r), mean(r)
    ours = math.fsum(a * x for a, x in zip(w, r)) / math.fsum(w)
    moves = [a / mean(w) * (x - ours) - (x - plain) for a, x in zip(w, r)]
    lean = [x / len(s) for x, (_, s) in zip(d, have)]
    square = [math.fsum((x - mean(v)) ** 2 for x in v) for v in (r, lean)]
    product = math.fsum((x - plain) * (y - mean(lean)) for x, y in zip(r, lean))
    return {"sequences": n, "without": len(rows) - n, "mean": plain, "trainer_mean": ours,
            "difference": ours - plain, "ess_sequences": ess(w),
            "difference_error": math.sqrt(math.fsum(x * x for x in moves) / (n * (n - 1))),
            "correlation": product / math.sqrt(square[0] * square[1])}


def class_of(reward):
    if reward is None:
        return None
    return "below 0" if reward < 0 else "0" if reward == 0 else \
        "between 0 and 1" if reward < 1 else "1 and above"


def slices(rows, of):
    """{key: (tokens, mean |d|)}"""
    out = {}
    for s, tokens in rows:
        for t, (q, p, at) in enumerate(tokens):
            out.setdefault(of(s, tokens, q, p, at), []).append(abs(p - q))
    return {k: (len(v), mean(v)) for k, v in out.items()}


def octave(n):
    return 0 if n == 0 else 1 << (n.bit_length() - 1)


def probability(q, p):
    pi = math.exp((q + p) / 2)
    return max(x for x in (0.0, 1e-3, 1e-2, 0.1, 0.5, 0.9, 0.99) if x <= pi)


class Judge:
    def __init__(self):
        self.bad = self.looked = 0

    def near(self, what, got, want, tolerance=1e-9):
        self.looked += 1
        if got is None or not math.isclose(got, want, rel_tol=tolerance, abs_tol=1e-13):
            self.bad += 1
            print(f"{what}: got {got!r}, expected {want!r}")


def run(binary, *words):
    done = subprocess.run([binary, "rollout", *map(str, words), "--json"], capture_output=True,
                          text=True)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"rollout {words}: status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def compare(judge, label, got, sequences):
    figures, metrics, rows = expected(sequences)
    for name, want in figures.items():
        # A quantile is the middle of a cell of 2^-11 of an octave.
        wide = name.startswith(("median", "q999"))
        judge.near(f"{label} {name}", math.log(got["figures"][name]) if wide else
                   got["figures"][name], math.log(want) if wide else want, 2.5e-4 if wide else 1e-9)
    listed = {m["name"]: m["value"] for m in got["metrics"]}
    if set(listed) != set(metrics):
        judge.bad += 1
        print(f"{label}: metrics {sorted(set(listed) ^ set(metrics))} are on one side only")
    for name in set(listed) & set(metrics):
        judge.near(f"{label} {name}", listed[name], metrics[name])
    for by, key, of in (("by_position", "from", lambda s, r, q, p, at: octave(at)),
                        ("by_length", "from", lambda s, r, q, p, at: octave(len(r))),
                        ("by_batch", "batch", lambda s, r, q, p, at: s["batch"]),
                        ("by_reward", "reward", lambda s, r, q, p, at: class_of(s["reward"])),
                        ("by_probability", "from", lambda s, r, q, p, at: probability(q, p))):
        want = slices(rows, of)
        want.pop(None, None)
        if {r[key] for r in got[by]} != set(want):
            judge.bad += 1
            print(f"{label} {by}: keys {[r[key] for r in got[by]]}, expected {sorted(want)}")
            continue
        for row in got[by]:
            judge.near(f"{label} {by} {row[key]} tokens", row["tokens"], want[row[key]][0])
            judge.near(f"{label} {by} {row[key]}", row["mean_abs_d"], want[row[key]][1])
    for name, want in rewards(rows).items():
        judge.near(f"{label} reward {name}", got["reward"][name], want)
    counts = got["counts"]
    judge.near(f"{label} tokens", counts["tokens"], sum(len(r) for _, r in rows))
    judge.near(f"{label} sequences", counts["sequences"], len(rows))
    judge.near(f"{label} masked", counts["masked"],
               sum(1 for s in sequences for m in s["mask"] if not m))


NAMES = {
    "twinstep": ("rollout_logprobs", "trainer_logprobs", "token_ids", "mask", "batch", "reward"),
    "verl": ("rollout_log_probs", "old_log_probs", "responses", "response_mask", "step",
             "token_level_scores"),
    "trl": ("sampling_per_token_logps", "old_per_token_logps", "completion_ids", "completion_mask",
            "step", "reward"),
    "nemo": ("generation_logprobs", "prev_logprobs", "token_ids", "token_loss_mask", "batch",
             "rewards"),
    "slime": ("rollout_log_probs", "log_probs", "tokens", "loss_mask", "rollout_id", "reward")}


def write_lines(path, sequences, names, form=None):
    engine, trainer, ids, mask, batch, reward = names
    with open(path, "w") as out:
        for s in sequences:
            row = {"id": s["id"], engine: s["engine"], trainer: s["trainer"], ids: s["ids"],
                   mask: s["mask"], batch: s["batch"],
                   reward: s["scores" if form == "verl" else "reward"]}
            if form == "nemo":  # one sequence as a batch of one
                row = {k: [v] if isinstance(v, list) or k == reward else v for k, v in row.items()}
            if form == "slime":  # ids with the prompt in front
                row[ids] = [900, 901, 902] + s["ids"]
            out.write(json.dumps(row) + "\n")


def npy(values, shape, code):
    head = f"{{'descr': '<{ {'d': 'f8', 'q': 'i8', 'f': 'f4'}[code] }', 'fortran_order': False, " \
           f"'shape': ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}), }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
            struct.pack(f"<{len(values)}{code}", *values))


def number(x):
    return float("nan") if x is None else x


def padded(sequences, key, fill):
    width = max(len(s["ids"]) for s in sequences)
    return [number(v) for s in sequences for v in s[key] + [fill] * (width - len(s[key]))], \
        (len(sequences), width)


def arrays(sequences, flat, by_token):
    """{name: (values, shape, code)} of a padded or a flat file."""
    if flat:
        offsets = [0]
        for s in sequences:
            offsets.append(offsets[-1] + len(s["ids"]))
        column = lambda key: ([number(v) for s in sequences for v in s[key]], (offsets[-1],))
        out = {"offsets": (offsets, (len(offsets),), "q")}
    else:
        column = lambda key: padded(sequences, key, 0)
        out = {}
    for name, key, code in (("rollout_logprobs", "engine", "d"), ("trainer_logprobs", "trainer", "d"),
                            ("token_ids", "ids", "q"), ("mask", "mask", "q")):
        values, shape = column(key)
        out[name] = ([int(v) for v in values] if code == "q" else values, shape, code)
    out["batch"] = ([s["batch"] for s in sequences], (len(sequences),), "q")
    out["rm_scores" if by_token else "score"] = \
        (*column("scores"), "d") if by_token else \
        ([number(s["reward"]) for s in sequences], (len(sequences),), "d")
    return out


def write_npz(path, sequences, flat, by_token):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, (values, shape, code) in arrays(sequences, flat, by_token).items():
            archive.writestr(name + ".npy", npy(values, shape, code))


def write_hdf5(path, sequences, flat, by_token):
    import h5py
    with h5py.File(path, "w") as file:
        for name, (values, shape, code) in arrays(sequences, flat, by_token).items():
            file.create_dataset(name, data=values, dtype={"d": "f8", "q": "i8"}[code],
                                shape=shape, chunks=flat or None)


def main(binary):
    judge = Judge()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="twinstep-rollout-"))
    path = folder / "rows"
    for seed, size in ((1, 0.01), (2, 1e-6), (3, 0.4)):
        sequences = draw(seed, 16, size)
        for name, names in NAMES.items() if seed == 1 else [("twinstep", NAMES["twinstep"])]:
            write_lines(path, sequences, names, name)
            compare(judge, f"{name} {size}", run(binary, path), sequences)
    sequences = draw(4, 16, 0.02)
    for flat, by_token in ((0, 0), (0, 1), (1, 0), (1, 1)):
        if flat == 0:  # padding is masked out, so it counts as such
            longest = max(len(s["ids"]) for s in sequences)
            judged = [dict(s, mask=s["mask"] + [0] * (longest - len(s["mask"])),
                           engine=s["engine"] + [0.0] * (longest - len(s["mask"])),
                           trainer=s["trainer"] + [0.0] * (longest - len(s["mask"])))
                      for s in sequences]
        write_npz(path, sequences, flat, by_token)
        compare(judge, f"npz {flat} {by_token}", run(binary, path), sequences if flat else judged)
        try:
            write_hdf5(path, sequences, flat, by_token)
        except ImportError:
            print("h5py is not installed: HDF5 is not compared")
            continue
        compare(judge, f"hdf5 {flat} {by_token}", run(binary, path), sequences if flat else judged)
    first, second = folder / "engine", folder / "trainer"
    order = sequences[:]
    random.Random(9).shuffle(order)
    with open(first, "w") as a, open(second, "w") as b:
        for s in sequences:
            a.write(json.dumps({"request_id": s["id"], "step": s["batch"], "meta_info": {
                "output_token_logprobs": [[x, i, None] for x, i in zip(s["engine"], s["ids"])]}})
                    + "\n")
        for s in order:
            b.write(json.dumps({"id": s["id"], "logprobs": s["trainer"], "mask": s["mask"],
                                "reward": s["reward"]}) + "\n")
    compare(judge, "two files", run(binary, first, second), sequences)
    print(f"{judge.looked} figures, {judge.bad} off")
    return 1 if judge.bad or judge.looked < 500 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
