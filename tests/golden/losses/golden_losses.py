# SPDX-License-Identifier: Apache-2.0
"""Writes LOSS.csv for every dpo.loss: inputs, what the real code gives, what 1200 digits give.

TRL's part is DPOTrainer._compute_loss itself, called with a stub for the model and the trainer;
open-instruct's formulas are written out after the function that each comment names. Derivatives are
autograd's. The exact columns are the definition in mpmath, differentiated with a step of 1e-40.
Versions: requirements.txt. Usage: python golden_losses.py FOLDER
"""
import collections
import csv
import pathlib
import random
import sys
import types

import mpmath
import torch
import torch.nn.functional as F
from trl.trainer.dpo_trainer import DPOTrainer

torch.set_default_dtype(torch.float64)
mpmath.mp.dps = 1200 # e^1000 beside a difference of 1e-40

NAMES = ["chosen", "rejected"]
SETTINGS = ["f_divergence", "f_alpha", "beta", "label_smoothing", "gamma_beta_ratio", "discopop_tau"]
INPUTS = ["logp_chosen", "logp_rejected", "reference_chosen", "reference_rejected", "count_chosen",
          "count_rejected"]
VALUES = ["loss", "slope_chosen", "slope_rejected"]


# ---- the real code ----

def trl_loss(loss_type):
    """trl/trainer/dpo_trainer.py, DPOTrainer._compute_loss, of one pair."""
    def call(settings, logps, references, counts):
        dtype = logps[0].dtype
        length = 1 + max(counts)
        mask = torch.tensor([[0] + [1] * n + [0] * (length - 1 - n) for n in counts])
        rest = torch.zeros(2, length - 2, dtype=dtype)
        outputs = types.SimpleNamespace(
            log_probs=torch.cat([torch.stack(logps)[:, None], rest], dim=1),
            entropy=torch.zeros(2, length - 1), mean_logits=torch.zeros(2, length - 1),
            is_top1=torch.zeros(2, length - 1, dtype=torch.bool))
        same = lambda x: x
        metrics = {"train": collections.defaultdict(list)}
        trainer = types.SimpleNamespace(
            model=types.SimpleNamespace(training=True),
            accelerator=types.SimpleNamespace(device="cpu", gather=same, gather_for_metrics=same),
            args=types.SimpleNamespace(discopop_tau=settings["discopop_tau"]),
            aux_loss_enabled=False, ld_alpha=None, precompute_ref_logps=True, use_weighting=False,
            f_divergence_type={"reverse-kl": "reverse_kl", "forward-kl": "forward_kl",
                               "js": "js_divergence", "alpha": "alpha_divergence"}[
                                   settings["f_divergence"]],
            f_alpha_divergence_coef=settings["f_alpha"], beta=settings["beta"],
            label_smoothing=settings["label_smoothing"], loss_types=[loss_type],
            loss_weights=[1.0], _metrics=metrics, _total_train_tokens=0, _tp_size=1)
        inputs = {"input_ids": torch.zeros(2, length, dtype=torch.long), "completion_mask": mask,
                  "attention_mask": mask, "ref_chosen_logps": references[0][None],
                  "ref_rejected_logps": references[1][None]}
        loss = DPOTrainer._compute_loss(trainer, lambda **kwargs: outputs, inputs, False)
        got = {name: values[-1] for name, values in metrics["train"].items()}
        return (loss, [got["rewards/chosen"], got["rewards/rejected"]],
                [got["logps/chosen"], got["logps/rejected"]])
    return call


def smoothed(beta, logits, label_smoothing):
    return (-F.logsigmoid(beta * logits) * (1 - label_smoothing)
            - F.logsigmoid(-beta * logits) * label_smoothing)


def open_instruct_dpo(average):
    """open_instruct/dpo_utils.py, dpo_loss; _get_batch_logps with average_log_prob for dpo_norm."""
    def call(settings, logps, references, counts):
        if average:
            logps = [logp / n for logp, n in zip(logps, counts)]
            references = [reference / n for reference, n in zip(references, counts)]
        logits = (logps[0] - logps[1]) - (references[0] - references[1])
        rewards = [settings["beta"] * (p - q).detach() for p, q in zip(logps, references)]
        return (smoothed(settings["beta"], logits, settings["label_smoothing"]),
                [x.item() for x in rewards], [x.item() for x in logps])
    return call


def open_instruct_simpo(settings, logps, references, counts):
    """open_instruct/dpo_utils.py, simpo_loss; _get_batch_logps with average_log_prob."""
    logps = [logp / n for logp, n in zip(logps, counts)]
    logits = logps[0] - logps[1] - settings["gamma_beta_ratio"]
    return (smoothed(settings["beta"], logits, settings["label_smoothing"]),
            [(settings["beta"] * logp).item() for logp in logps], [logp.item() for logp in logps])


def trl_summed_ipo(settings, logps, references, counts):
    """trl/trainer/dpo_trainer.py before pull request 1265, dpo_loss: (logits - 1/(2 beta))^2."""
    ratios = [p - q for p, q in zip(logps, references)]
    rewards = [(settings["beta"] * ratio).item() for ratio in ratios]
    return (ratios[0] - ratios[1] - 1 / (2 * settings["beta"])) ** 2, rewards, [
        logp.item() for logp in logps]


# ---- the definitions: lists of terms whose sum is the loss ----

def sp(x):
    return x + mpmath.log1p(mpmath.exp(-x)) if x > 0 else mpmath.log1p(mpmath.exp(x))


def sg(x):
    return 1 / (1 + mpmath.exp(-x)) if x > 0 else mpmath.exp(x) / (1 + mpmath.exp(x))


def score(s, ratio):
    kind, alpha = s["f_divergence"], s["f_alpha"]
    if kind == "forward-kl":
        return 1 - mpmath.exp(-ratio)
    if kind == "js":
        return mpmath.log(2) - sp(-ratio)
    if kind == "alpha" and abs(alpha - 1) >= 1e-6:
        return (mpmath.exp(min((alpha - 1) * ratio, mpmath.mpf(80))) - 1) / (alpha - 1)
    return ratio


def margin(s, u, v, n):
    return score(s, u) - score(s, v)


def margin_per_token(s, u, v, n):
    return score(s, u) / n[0] - score(s, v) / n[1]


def square(h, k):
    return [h * h, -2 * h * k, k * k]


def of_margin(function, h=margin):
    return lambda s, p, q, n: function(s, s["beta"] * h(s, p[0] - q[0], p[1] - q[1], n))


def of_ratios(function):
    return lambda s, p, q, n: function(s, p[0] - q[0], p[1] - q[1])


def smoothed_terms(s, z):
    return [(1 - s["label_smoothing"]) * sp(-z), s["label_smoothing"] * sp(z)]


def robust_terms(s, z):
    e = s["label_smoothing"]
    return [(1 - e) * sp(-z) / (1 - 2 * e), -e * sp(z) / (1 - 2 * e)]


def exo_terms(s, z):
    e = s["label_smoothing"]
    return [-sg(z) * sp(-z), -sg(z) * mpmath.log1p(-e), -sg(-z) * sp(z), -sg(-z) * mpmath.log(e)]


def discopop_terms(s, z):
    t = z / s["discopop_tau"]
    return [sp(-z) * sg(-t), mpmath.exp(-z) * sg(t)]


def simpo_terms(s, p, q, n):
    return smoothed_terms(s, s["beta"] * (p[0] / n[0] - p[1] / n[1] - s["gamma_beta_ratio"]))


def ipo_terms(h):
    return lambda s, p, q, n: square(h(s, p[0] - q[0], p[1] - q[1], n), 1 / (2 * s["beta"]))


Loss = collections.namedtuple("Loss", "real terms smoothings divergences", defaults=[[0], False])
SMOOTHINGS = [0, 0.1, 0.01, 0.3]
LOSSES = {
    "sigmoid": Loss(trl_loss("sigmoid"), of_margin(lambda s, z: [sp(-z)]), [0, 0.1], True),
    "cdpo": Loss(open_instruct_dpo(False), of_margin(smoothed_terms), SMOOTHINGS),
    "robust": Loss(trl_loss("robust"), of_margin(robust_terms), SMOOTHINGS, True),
    "hinge": Loss(trl_loss("hinge"), of_margin(lambda s, z: [max(1 - z, mpmath.mpf(0))]), [0], True),
    "ipo": Loss(trl_loss("ipo"), ipo_terms(margin_per_token), [0], True),
    "ipo-sum": Loss(trl_summed_ipo, ipo_terms(margin)),
    "dpo-norm": Loss(open_instruct_dpo(True), of_margin(smoothed_terms, margin_per_token), SMOOTHINGS),
    "sigmoid-norm": Loss(trl_loss("sigmoid_norm"),
                         of_margin(lambda s, z: [sp(-z)], margin_per_token), [0], True),
    "simpo": Loss(open_instruct_simpo, simpo_terms, SMOOTHINGS),
    "apo-zero": Loss(trl_loss("apo_zero"), of_ratios(
        lambda s, u, v: [sg(-s["beta"] * u), sg(s["beta"] * v)])),
    "apo-down": Loss(trl_loss("apo_down"), of_ratios(
        lambda s, u, v: [sg(s["beta"] * u), sg(-s["beta"] * (u - v))])),
    "exo-pair": Loss(trl_loss("exo_pair"), of_margin(exo_terms), [1e-3, 0.1, 0.5, 0.9], True),
    "nca-pair": Loss(trl_loss("nca_pair"), of_ratios(
        lambda s, u, v: [sp(-s["beta"] * u), sp(s["beta"] * u) / 2, sp(s["beta"] * v) / 2])),
    "bco-pair": Loss(trl_loss("bco_pair"), of_ratios(
        lambda s, u, v: [sp(-s["beta"] * u), sp(s["beta"] * v)])),
    "sppo-hard": Loss(trl_loss("sppo_hard"), of_ratios(
        lambda s, u, v: square(u, 1 / (2 * s["beta"])) + square(v, -1 / (2 * s["beta"])))),
    "discopop": Loss(trl_loss("discopop"), of_margin(discopop_terms), [0], True),
}


# ---- rows ----

def grid(x):
    return round(x * 64) / 64


def pairs():
    """Draws log-probs in units of 1/64 below 4096, so that differences are exact in f32 and f64."""
    draw = random.Random(17)
    rows = []
    for width, count in [(0.5, 6), (3, 10), (20, 6)]:
        for _ in range(count):
            rows.append((draw.uniform(-width, width), draw.uniform(-width, width)))
    rows += [(0, 0), (2, 2), (2, 0), (0, 2), (1, -1), (-0.25, 0.25), (25, -25), (-25, 25), (50, 0),
             (0, 50), (-50, 0), (0, -50), (500, -500), (-500, 500), (1000, 0), (0, 1000), (0, -1000),
             (-1000, 0), (50, 49), (-300, -301)]
    for u, v in rows:
        reference = [grid(draw.uniform(-3000, -1000)) for _ in range(2)]
        counts = [draw.randint(3, 300) for _ in range(2)]
        yield [reference[0] + grid(u), reference[1] + grid(v), *reference, *counts]


def settings_of(loss, row, divergence):
    betas = [0.1, 0.5, 1.0, 5.0, 0.05]
    s = {"f_divergence": divergence, "f_alpha": [0.5, -1.0, 2.0, 1.0][row % 4],
         "beta": betas[row % len(betas)], "gamma_beta_ratio": [0.3, 0.0, 1.5][row % 3],
         "label_smoothing": loss.smoothings[row % len(loss.smoothings)],
         "discopop_tau": [0.05, 1.0, 3.0][row % 3]}
    return s


def real_row(loss, s, row):
    single = s["f_divergence"] == "alpha" # TRL's alpha divergence computes in f32
    dtype = torch.float32 if single else torch.float64
    logps = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in row[:2]]
    references = [torch.tensor(x, dtype=dtype) for x in row[2:4]]
    value, rewards, logged = loss.real(s, logps, references, row[4:])
    slopes = torch.autograd.grad(value, logps, allow_unused=True)
    return [value.item(), *(x.item() for x in slopes)], [*rewards, *logged]


def exact_row(loss, s, row):
    """Returns the values, and the sums of the absolute terms that make them."""
    exact = {k: mpmath.mpf(x) if isinstance(x, (int, float)) else x for k, x in s.items()}
    p = [mpmath.mpf(x) for x in row[:2]]
    q = [mpmath.mpf(x) for x in row[2:4]]
    terms = loss.terms(exact, p, q, row[4:])
    values, scales = [sum(terms)], [sum(abs(t) for t in terms)]
    step = mpmath.mpf(10) ** -40
    for side in range(2):
        ends = []
        for sign in (1, -1):
            moved = list(p)
            moved[side] += sign * step
            ends.append(loss.terms(exact, moved, q, row[4:]))
        slopes = [(a - b) / (2 * step) for a, b in zip(*ends)]
        values.append(sum(slopes))
        scales.append(sum(abs(x) for x in slopes))
    return [float(x) for x in values], [float(x) for x in scales]


def within(s, row, scales):
    """Returns how far the real code may be off by its own rounding: torch's 1 - sigmoid and sigmoid
    (1 - sigmoid) are off by an epsilon of 1; in f32 (alpha) the error of the scores is added."""
    most = max(1.0, s["beta"])
    if s["f_divergence"] != "alpha":
        return [1e-12 * scale + 2.0 ** -48 * most for scale in scales]
    exact = {k: x for k, x in s.items()}
    size = max(abs(float(score(exact, mpmath.mpf(row[i] - row[i + 2])))) for i in range(2))
    return [2.0 ** -18 * scale * (1 + s["beta"] * size) + 2.0 ** -21 * most for scale in scales]


def rows_of(loss):
    for divergence in ["reverse-kl"] + ["forward-kl", "js", "alpha"] * loss.divergences:
        for i, row in enumerate(pairs()):
            if divergence != "reverse-kl" and i % 3 != 0 and i < 22:
                continue
            s = settings_of(loss, i, divergence)
            real, logged = real_row(loss, s, row)
            exact, scales = exact_row(loss, s, row)
            if loss is LOSSES["hinge"] and exact[0] == 0.0:
                exact = [0.0, 0.0, 0.0] # at the kink, too, as torch's relu
            if loss is LOSSES["hinge"] and 0.0 < exact[0] < 1e-30:
                continue # so near to the kink that the step crosses it
            bounds = within(s, row, scales)
            for a, b, bound in zip(real, exact, bounds):
                if not abs(a - b) <= bound and abs(a) != float("inf") and a == a:
                    print("off:", s, row, a, b, bound)
            short = [[f"{x:.3g}" for x in values] for values in (bounds, scales)]
            yield [*(s[k] for k in SETTINGS), *row, *real, *short[0], *exact, *short[1], *logged]


def main(folder):
    columns = (SETTINGS + INPUTS + VALUES + [f"within_{v}" for v in VALUES]
               + [f"exact_{v}" for v in VALUES] + [f"scale_{v}" for v in VALUES]
               + [f"reward_{n}" for n in NAMES] + [f"logged_{n}" for n in NAMES])
    for name, loss in LOSSES.items():
        with open(pathlib.Path(folder) / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for row in rows_of(loss):
                writer.writerow(row)


if __name__ == "__main__":
    main(sys.argv[1])
