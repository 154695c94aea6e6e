# SPDX-License-Identifier: Apache-2.0
"""Does `twinstep.ablate` name what was planted into a PyTorch training? Prints a table.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/torch_causes.py [--pairs N [--rate R | --generated | --clock]]

The training is a usual loop of DPO (a frozen reference, two micro-batches an update, AdamW, clipping,
LambdaLR) on a transformer of some 3,000 weights. Fifteen slips and three harmless changes can be
switched on. A *single* case has one slip and two changes that are harmless or absent; a *hybrid* case has two
or three slips that act at once. The truth is made here, by torch alone: every subset is trained again
with another loop over subsets, and words follow the table of tests/experiment/interventions.py, which
is not the program's. With --pairs N, N pairs of arms that are meant to be the same, whose sums race
(tests/python/racing.c), are judged at alpha = 1 %: each one outside the floor is a false alarm. With
--rate 1e-4 the test arm's learning rate is higher by that part, and each one inside is a miss; with
--generated the noise is drawn by a generator, so that nothing of it hangs on the machine, and with
--clock it is the machine alone: what a run leaves is how long eight pieces of work took (turns.py)."""
import argparse
import copy
import itertools
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "experiment"), str(TESTS / "python")]
import interventions  # noqa: E402
from turns import clock  # noqa: E402

import twinstep  # noqa: E402

WORDS, LENGTH, UPDATES = 40, 10, 6


class Model(nn.Module):
    """Two blocks over 40 words; the head is the embedding."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 12)
        block = nn.TransformerEncoderLayer(12, 2, 24, dropout, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(12)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Returns the sum of log-probs of the tokens of each row that the mask keeps."""
        ahead = nn.Transformer.generate_square_subsequent_mask(ids.shape[1] - 1)
        hidden = self.norm(self.blocks(self.words(ids[:, :-1]), mask=ahead, is_causal=True))
        logs = (hidden @ self.words.weight.T).log_softmax(-1)
        return (logs.gather(-1, ids[:, 1:, None])[..., 0] * mask[:, 1:]).sum(1)


def pairs() -> list[dict[str, torch.Tensor]]:
    """Micro-batches of three pairs, whose answers have unlike lengths."""
    made = torch.Generator().manual_seed(3)
    batches = []
    for _ in range(2 * UPDATES):
        ids = torch.randint(WORDS, (6, LENGTH), generator=made)
        ends = torch.randint(4, LENGTH + 1, (6, 1), generator=made)
        batches.append({"ids": ids, "mask": (torch.arange(LENGTH) < ends).float() * (torch.arange(LENGTH) > 1)})
    return batches


def train(*, ahead=False, twice=False, decay_on_norms=False, coupled=False, count_ahead=False,
          clip_after=False, not_divided=False, bf16=False, reversed_data=False, beta=0.1, eps=1e-8,
          dropout_seed=None, other_reference=False, not_zeroed=False, clip=1.0, lr=2e-3,
          foreach=False, set_to_none=True, workers=0):
    """One training from the same state each time; returns the model."""
    torch.manual_seed(11)
    model = Model(0.0 if dropout_seed is None else 0.1)
    reference = copy.deepcopy(model).eval()
    if other_reference:
        with torch.no_grad():
            for weight in reference.parameters():
                weight.copy_(weight.bfloat16())
    torch.manual_seed(0 if dropout_seed is None else dropout_seed)
    flat = [p for p in model.parameters() if p.ndim < 2]
    deep = [p for p in model.parameters() if p.ndim >= 2]
    kind = torch.optim.Adam if coupled else torch.optim.AdamW
    optimizer = kind([{"params": deep, "weight_decay": 0.1},
                      {"params": flat, "weight_decay": 0.1 if decay_on_norms else 0.0}],
                     lr=lr, eps=eps, foreach=foreach)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1.0 - k / (2 * UPDATES))
    batches = pairs()
    if reversed_data:
        batches.reverse()
    for update in range(UPDATES):
        for batch in batches[2 * update:2 * update + 2]:
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                logs = model(**batch)
                with torch.no_grad():
                    base = reference(**batch)
            margin = (logs - base).float()
            loss = -nn.functional.logsigmoid(beta * (margin[:3] - margin[3:])).mean()
            (loss if not_divided else loss / 2).backward()
        if ahead:
            schedule.step()
        if not clip_after:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if count_ahead and update == 0:
            for weight in model.parameters():
                optimizer.state[weight] = {"step": torch.tensor(1.0), "exp_avg": torch.zeros_like(weight),
                                           "exp_avg_sq": torch.zeros_like(weight)}
        optimizer.step()
        if clip_after:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if not ahead:
            schedule.step()
        if twice:
            schedule.step()
        if not (not_zeroed and update == 2):
            optimizer.zero_grad(set_to_none=set_to_none)
    return model


HARMLESS = {"foreach": True, "set_to_none": False, "workers": 2}
SLIPS = {"ahead": True, "twice": True, "decay_on_norms": True, "coupled": True, "count_ahead": True,
         "clip_after": True, "not_divided": True, "bf16": True, "reversed_data": True, "beta": 0.3,
         "eps": 1e-3, "other_reference": True, "not_zeroed": True, "clip": 0.05, "lr": 3e-3}
DEFAULTS = {"beta": 0.1, "eps": 1e-8, "clip": 1.0, "lr": 2e-3, "set_to_none": True, "workers": 0}


def levels(name):
    """The baseline's level and the test arm's."""
    return DEFAULTS.get(name, False), {**HARMLESS, **SLIPS}[name]


def end(chosen, given):
    """The end point of the training with these levels of the test arm, as a list of f64."""
    model = train(**{name: levels(name)[1] for name in chosen}, **given)
    return torch.cat([tensor.detach().double().flatten() for tensor in model.state_dict().values()]).tolist()


def truth(names, given):
    """What the table of words needs, from trainings made here."""
    start = end((), given)
    way = {mask: interventions.minus(end([names[i] for i in mask], given), start)
           for size in range(len(names) + 1) for mask in itertools.combinations(range(len(names)), size)}
    whole = tuple(range(len(names)))
    size = interventions.norm(way[whole])
    shares = []
    for c in whole:  # the average over all orders in which the others may come before c
        parts = []
        for order in itertools.permutations(whole):
            before = tuple(sorted(order[:order.index(c)]))
            after = tuple(sorted((*before, c)))
            parts.append(interventions.dot(way[after], way[whole]) - interventions.dot(way[before], way[whole]))
        shares.append(math.fsum(parts) / len(parts) / size ** 2 if size else math.nan)
    left = [interventions.norm(way[tuple(i for i in whole if i != c)]) / size if size else math.nan for c in whole]
    alone = [interventions.norm(way[(c,)]) / size if size else math.nan for c in whole]
    return {"share": shares, "left": left, "alone": alone, "distance": size, "noise": None, "response": None,
            "moved": any(map(interventions.norm, way.values())),
            "largest": max(map(interventions.norm, way.values()))}


def judge(names, given=None):
    """Returns (the program's word, the truth's word, the program's first factor, whether figures agree)."""
    given = given or {}
    told = twinstep.ablate(lambda **chosen: train(**chosen, **given), {name: levels(name) for name in names})
    known = truth(names, given)
    agree = True
    for factor in told.factors:
        c = names.index(factor.name)
        for said, true in ((factor.share, known["share"]), (factor.left, known["left"]), (factor.alone, known["alone"])):
            agree &= said.value is not None and abs(said.value - true[c]) <= 1e-9 * max(1.0, abs(true[c]))
    best = min(range(len(names)), key=lambda c: known["left"][c])
    return told, interventions.word_of(known), names[best], agree


def cases():
    """Every slip with two harmless changes, and twelve sets of slips that act together."""
    harmless = list(HARMLESS)
    for i, slip in enumerate(SLIPS):
        yield "single", [slip, harmless[i % 3], harmless[(i + 1) % 3]], {}
    for names in (("ahead", "lr"), ("twice", "beta"), ("coupled", "decay_on_norms"), ("reversed_data", "bf16"),
                  ("count_ahead", "lr"), ("not_divided", "clip"), ("not_zeroed", "eps"), ("clip_after", "not_divided"),
                  ("ahead", "beta", "bf16"), ("lr", "twice", "other_reference"), ("reversed_data", "lr", "eps"),
                  ("ahead", "count_ahead", "coupled")):
        yield "hybrid", list(names), {}


def generated():
    """A function that leaves sparse noise of heavy tails: often none, or one number a little off."""
    draw = torch.Generator().manual_seed(5)

    def run(arm):
        weights = torch.zeros(40, dtype=torch.float64)
        for _ in range(int(torch.poisson(torch.ones(1), generator=draw))):
            size = torch.randn(3, generator=draw, dtype=torch.float64)
            at = int(torch.randint(40, (1,), generator=draw))
            weights[at] += 1e-7 * size[0] / (0.5 * (size[1] ** 2 + size[2] ** 2)).sqrt()
        return {"w": weights}

    return run


def raced(folder, rate):
    """A training whose sums race; the test arm's rate is higher by this part."""
    library = pathlib.Path(folder, "libracing.so")
    subprocess.run(["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-pthread", "-o", library,
                    TESTS / "python/racing.c"], check=True)
    os.environ["TWINSTEP_RACING"] = str(library)
    import racing

    def run(arm):
        model, _, _, step = racing.training(lr=1e-2 * (1.0 + (rate if arm == "test" else 0.0)))
        for k in range(3):
            step(k)
        return model

    return run


def judge_pairs(count, run):
    """Judges `count` pairs of arms; prints how many got which verdict, and how p is spread."""
    kinds, chances = {}, []
    for _ in range(count):
        told = twinstep.ablate(run, {"arm": ("baseline", "test")}, noisy=6)
        kind = f"{told.verdict}, floor {told.raw['floor']['kind']}"
        kinds[kind] = kinds.get(kind, 0) + 1
        if told.raw["floor"]["p"] is not None:
            chances.append(told.raw["floor"]["p"])
    for kind, number in sorted(kinds.items()):
        print(f"{number} of {count} pairs: {kind}")
    for most in (0.01, 0.05, 0.1, 0.5):
        print(f"p at most {most}: {sum(p <= most for p in chances)} of {len(chances)}")
    print("load averages at the end:", *os.getloadavg())


def main() -> int:
    """Returns 0 if everything was named rightly."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--clock", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")  # a planted slip
    if asked.pairs:
        with tempfile.TemporaryDirectory() as folder:
            judge_pairs(asked.pairs, generated() if asked.generated else
                        (lambda arm: {"w": clock()}) if asked.clock else raced(folder, asked.rate))
        return 0
    print("| case | factors | said | first | truth | best repair | figures |\n|---|---|---|---|---|---|---|")
    wrong = 0
    for kind, names, given in cases():
        told, word, best, agree = judge(names, given)
        first = told.factors[0].name if told.factors else "-"
        right = agree and told.word == word and (word != "cause" or first == best)
        if kind == "single":
            right = right and first == names[0]
        wrong += not right
        print(f"| {kind} | {', '.join(names)} | {told.word} | {first} | {word} | {best} | "
              f"{'equal' if agree else 'differ'} |{'' if right else ' **WRONG**'}")
    print(f"\n{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
