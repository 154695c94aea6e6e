# SPDX-License-Identifier: Apache-2.0
"""The trainings whose logs are judged: what runs, what is planted, and what is expected of a log.

`doctor`, `check`, `points` and `says` tell what counts as a right answer: findings or remarks of
`twinstep doctor` (any of them), the verdict of `lr check` (`pass`, `fail`, or None where it is not
asked), the causes that `twinstep compare` with the healthy twin may point to, and what its sentence
has to name where it points to none. What counts was written before a program read the logs, but for
the spelling of causes and of names that say the same, and for `says`. UNSEEN says of the other bugs
of the catalogue why no log is here."""

HF, SFT, DPO, ACCELERATE, LIGHTNING = "hf-trainer", "trl-sft", "trl-dpo", "accelerate", "lightning"
KTO, REWARD, GRPO, RLOO = "trl-kto", "trl-reward", "trl-grpo", "trl-rloo"
CASES = []


def add(case):
    """Each log lies in a folder of its name, so a second one of a name would replace the first."""
    if any(other["name"] == case["name"] for other in CASES):
        raise ValueError(f"two cases are called {case['name']}")
    CASES.append(case)


def healthy(name, kind, **options):
    add({"name": name, "kind": kind, "twin": None, "plant": None, "number": None,
         "options": options, "doctor": [], "check": "pass", "points": [], "says": [],
         "arguments": []})


def bug(number, name, twin, doctor=(), check=None, points=(), says=(), arguments=(), plant=None,
        **options):
    base = next(case for case in CASES if case["name"] == twin)
    add({"name": name, "kind": base["kind"], "twin": twin, "number": number,
         "plant": plant or name, "options": {**base["options"], **options},
         "doctor": list(doctor), "check": check, "points": list(points), "says": list(says),
         "arguments": list(arguments)})


# Healthy: at least twenty, and the twins of the bugs among them.
healthy("lm", HF)
healthy("lm-cosine", HF, schedule="cosine")
healthy("lm-constant", HF, schedule="constant_with_warmup", total=40)
healthy("lm-wsd", HF, schedule="warmup_stable_decay", total=80, values={"num_decay_steps": 20})
healthy("lm-min-lr", HF, schedule="cosine_with_min_lr", values={"min_lr_rate": 0.1}, total=100)
healthy("lm-cold", HF, warmup=0, total=50)
healthy("lm-four", HF, accumulate=4, batch=2)
healthy("lm-epochs", HF, epochs=3.0, rows=90, accumulate=2, evaluate=10)
healthy("lm-every-five", HF, every=5, total=200, warmup=20)
healthy("lm-bf16", HF, bf16=True)
healthy("lm-dropout", HF, dropout=0.1)
healthy("lm-clip", HF, clip=0.1)
healthy("lm-restored", HF, restart=30, dropout=0.1)
healthy("lm-scaler", HF, overflow=(1, 12, 33), evaluate=0, optim="adamw_torch")
healthy("lm-scaler-late", HF, overflow=(2, 3, 41), evaluate=0, schedule="cosine", total=80,
        optim="adamw_torch")
healthy("lm-scaler-fused", HF, overflow=(1, 12, 33), evaluate=0)
healthy("lm-tuned", HF, tuned=True, lr=1e-4)
healthy("lm-plateau", HF, schedule="reduce_lr_on_plateau", warmup=0, evaluate=5,
        values={"patience": 1, "factor": 0.5}, total=80)
healthy("lm-plateau-falls", HF, schedule="reduce_lr_on_plateau", warmup=0, evaluate=5, lr=5e-2,
        values={"patience": 0, "factor": 0.5}, total=80)
healthy("lm-plateau-often", HF, schedule="reduce_lr_on_plateau", warmup=0, evaluate=2, lr=2e-1,
        values={"patience": 0, "factor": 0.5}, total=80)
for schedule in ("constant", "polynomial", "inverse_sqrt", "cosine_with_restarts"):
    healthy("lm-" + {"constant": "flat"}.get(schedule, schedule).replace("_", "-"), HF,
            schedule=schedule)
healthy("sft", SFT)
healthy("sft-cosine-four", SFT, schedule="cosine", accumulate=4, batch=2, evaluate=15)
healthy("dpo", DPO)
healthy("dpo-two", DPO, accumulate=2, batch=4)
healthy("dpo-cosine-eval", DPO, schedule="cosine", evaluate=15, total=40)
healthy("dpo-bf16", DPO, weights="bf16", lr=2e-3)
healthy("dpo-eight", DPO, batch=8)
healthy("dpo-ipo", DPO, loss="ipo")
for loss in ("hinge", "robust", "bco_pair", "sppo_hard", "apo_zero", "apo_down", "aot",
             "nca_pair", "discopop", "sigmoid_norm"):
    healthy("dpo-" + loss.replace("_", "-"), DPO, loss=loss, total=40)
healthy("dpo-cold", DPO, lr=5e-7, batch=8)
healthy("kto", KTO, total=40)
healthy("reward", REWARD, total=40)
healthy("grpo", GRPO, total=40)
healthy("grpo-cold", GRPO, total=40, warmup=0, beta=0.0)
healthy("rloo-cold", RLOO, total=40, warmup=0, beta=0.0)
healthy("accelerate", ACCELERATE)
healthy("accelerate-four", ACCELERATE, accumulate=4, batch=2, schedule="cosine")
healthy("accelerate-tail", ACCELERATE, accumulate=4, batch=2, rows=84)
healthy("accelerate-restored", ACCELERATE, restart=30)
healthy("lightning", LIGHTNING)
healthy("lightning-four", LIGHTNING, accumulate=4, batch=2, schedule="cosine", evaluate=1)
healthy("lightning-epochs", LIGHTNING, total=120, rows=96, schedule="constant_with_warmup")

ONE = ("schedule",)
# an LR that no log prints: compare can only name it beside the settings of the optimizer
AHEAD = ("An LR that is applied one update earlier or later",)
LATER = ("optimizer",)
DATA = ("data-order",)
FORWARD = ("other data", "slightly other weights or data")
EVENT = ("something happened there",)
# Names that say the same: the LR is 0 at 1/N of the run, or as one of a shorter schedule.
STRIDE = ("lr_zero_at_1/N_of_run", "xP_scheduler or per_microbatch_stepping", "schedule_too_short")

# A. Schedules
bug("1", "lr_ahead_by_one", "lm", points=ONE)
bug("1", "lr_ahead_accelerate", "accelerate", points=ONE, says=AHEAD, plant="lr_ahead_by_one")
bug("1", "lr_ahead_dpo", "dpo", points=ONE, plant="lr_ahead_by_one")
bug("2", "step_then_set", "lm", doctor=("step_then_set",), check="fail", points=ONE)
bug("3", "zero_init_patch", "lm-cold", doctor=("zero_lr_first_step", "lr_zero_first_step"),
    check="fail", points=ONE, says=AHEAD)
bug("4", "max_steps_ignored", "lm", doctor=("max_steps_ignored",), check="fail", points=ONE)
bug("5", "double_zero_start", "lm", doctor=("zero_lr_first_step", "double_zero_start", "lag1"),
    check="fail", points=ONE)
bug("7", "xP_scheduler", "lm", doctor=("xP_scheduler", *STRIDE), check="fail", points=ONE)
bug("7", "xP_scheduler_cosine", "lm-cosine", check="fail", points=ONE, plant="xP_scheduler",
    doctor=("xP_scheduler", "cosine_comes_back", *STRIDE))
bug("8", "per_microbatch_stepping", "lm-four", doctor=("per_microbatch_stepping",), check="fail",
    points=ONE, arguments=("--accumulate", "4"))
bug("9", "plateau_xP", "lm-plateau", points=ONE)
bug("11", "floor_vs_ceil_steps", "lm-epochs", check="fail", points=ONE,
    doctor=("floor_vs_ceil_steps", "schedule_too_short"))
bug("12", "warmup_rounding", "lm", check="fail", points=ONE)
bug("13", "virtual_last_step", "lm", check="fail", points=ONE)
bug("14", "cosine_floor_mismatch", "lm-cosine", check="fail", points=ONE)
bug("15", "default_lr_overrides", "lm", doctor=("other_peak",), check="fail", points=ONE)
bug("16", "unit_mismatch", "lm", doctor=("warmup_never_ends",), check="fail", points=ONE)
bug("17", "eval_steps_scheduler", "lm", doctor=("eval_steps_scheduler",), check="fail", points=ONE)
bug("17", "eval_also_steps", "lm", doctor=("eval_steps_scheduler", "lr_jump"), check="fail",
    points=ONE)
bug("18", "two_schedulers", "lm", doctor=("two_schedulers", "xP_scheduler", *STRIDE),
    check="fail", points=ONE)
bug("19", "skip_advances_schedule", "lm-scaler", doctor=("skip_advances_schedule",), check="fail",
    points=ONE)
bug("21", "scheduler_epoch_default", "lightning-epochs", doctor=("scheduler_epoch_default",),
    check="fail", points=ONE)

# B. Resumes
bug("23", "scheduler_not_restored", "lm-restored", doctor=("scheduler_not_restored",), check="fail",
    points=ONE)
bug("24", "initial_lr_overwritten", "lm-restored",
    doctor=("initial_lr_overwritten", "lr_jump_at_resume", "lr_jump"), check="fail", points=ONE)
bug("26", "double_counter", "lm-restored",
    doctor=("double_counter", "lr_jump_at_resume", "lr_jump"), check="fail", points=ONE)
bug("27", "rng_not_saved", "lm-restored", check="pass", says=EVENT)
bug("29", "skip_batches_every_epoch", "accelerate-restored", points=DATA, says=EVENT)
bug("30", "epoch_index_seed", "lm", check="pass", points=DATA, says=FORWARD)
bug("31", "peek_consumes_batch", "lm", check="pass", points=DATA, says=FORWARD)
bug("34", "base_seed_draw", "lm-dropout", check="pass", says=EVENT)

# C. Accumulation, reduction, clipping
bug("36", "mean_of_means", "lm-four", check="pass", says=("mean of means", "another loss"),
    arguments=("--accumulate", "4"))
bug("37", "num_items_double_scale", "lm-four",
    doctor=("loss_not_divided", "num_items_double_scale"), check="pass",
    points=("normalisation",), arguments=("--accumulate", "4"))
bug("39", "dpo_loss_not_divided", "dpo-two",
    doctor=("num_items_double_scale", "loss_summed_over_ranks"), check="pass",
    points=("normalisation",), arguments=("--accumulate", "2"))
bug("41", "trailing_window_leaked", "accelerate-tail", says=EVENT)
bug("45", "zero_grad_inside_loop", "lm-four", check="pass", says=("accumulation",))
bug("46", "clip_scaled_grads", "lm-scaler", points=("normalisation",), says=("scaled gradients",))
bug("47", "clip_on_copy", "lm-clip", check="pass", points=LATER, says=("clipping",))
bug("48", "hsdp_double_count", "lm", check="pass", points=("normalisation",))
bug("49", "clip_per_microbatch", "lm-four", check="pass", says=("before or after clipping",))
bug("50", "metric_last_microbatch", "dpo-two", check="pass", says=("averaged or gathered",))
bug("51", "accuracy_of_means", "dpo-eight", doctor=("accuracy_of_means",), check="pass",
    arguments=("--pairs", "8"))
bug("51b", "loss_summed_over_ranks", "dpo", doctor=("loss_summed_over_ranks",), check="pass",
    points=("normalisation",), arguments=("--processes", "2"))

# D. Loss, labels, reference. With a beta of 0.1 another reference and another batch shape look
# alike, and the finding names both.
bug("52", "ref_batch_shape", "dpo-bf16", doctor=("ref_batch_shape",), check="pass",
    points=("dtype",))
bug("52", "other_reference", "dpo", doctor=("other_reference", "ref_batch_shape"),
    check="pass", says=("another reference",))
bug("55", "ipo_sum_vs_mean", "dpo-ipo", check="pass", says=("another loss", "another average"))
bug("56", "eos_equals_pad_masked", "sft", check="pass", says=("another loss", "another average"))
bug("57", "label_double_shift", "lm", check="pass", says=("another loss",))
bug("59", "weights_reinitialised", "lm-tuned", doctor=("weights_reinitialised",), check="pass",
    says=("other weights",), arguments=("--vocab", "48"))
bug("-", "labels_swapped", "dpo", doctor=("labels_swapped",), check="pass",
    says=("another direction",))

# E. Formats, optimizer, skips
bug("60", "inv_freq_bf16", "lm", check="pass", points=("dtype",),
    says=("differs below the printed digits",))
bug("61", "bf16_update_lost", "lm-bf16", doctor=("bf16_update_lost",), lr=5e-7,
    arguments=("--dtype", "bf16", "--master", "none"))
bug("61", "bf16_update_lost_dpo", "dpo-cold", doctor=("bf16_update_lost", "loss_stuck_at_ln2"),
    weights="bf16", plant="bf16_update_lost")
bug("62", "decay_underflow", "lm", doctor=("decay_underflow",), lr=5e-8,
    arguments=("--weight-decay", "0.1"))
bug("63", "adam_step_frozen", "lm", check="pass", points=LATER, says=("optimizer arithmetic",))
bug("64", "adam_step_twice", "lm", check="pass", points=LATER, says=("optimizer arithmetic",))
bug("65", "no_decay_groups_lost", "lm", check="pass", points=LATER, says=("decay",))
bug("68", "ac_rng_not_preserved", "lm-dropout", check="pass", says=("recomputed forward pass",))
bug("70", "nan_skip_poison", "lm-scaler", doctor=("nan_skip_poison", "grad_norm_not_finite"))
bug("-", "nan_loss_filtered", "lm", doctor=("nan_loss_filtered", "grad_norm_not_finite"))
bug("-", "interleaved_writers", "accelerate", doctor=("interleaved_writers",))

# Bugs of the catalogue whose traces no log of one training holds, or that were not run.
UNSEEN = {
    "6": "what every Hugging Face warm-up does: the healthy logs have it, as a remark",
    "10": "torch raises an exception", "20": "the run ends with an exception",
    "22": "a convention: the Accelerate logs here have it", "25": "no trainer logs the decay used",
    "28": "a log of it is one of 27", "32": "a log of it is one of 30",
    "33": "a log of it is one of 30",
    "35": "augmentation of images only",
    "38": "`foreign_reasoned.py`: `compare` differs, and names another average of the same "
          "numbers (a mean of means) among others; `doctor` has nothing",
    "40": "needs ZeRO-2; a log of it is one of 45", "42": "what Accelerate does: `accelerate-tail`",
    "43": "a log shows another total only", "44": "a log shows another total only",
    "53": "a log of it is one of 52", "54": "both runs are equal",
    "58": "`foreign_reasoned.py`: `compare` differs from update 1 on, and names other data and "
          "another loss; no column tells of the mask; `doctor` has nothing",
    "66": "needs a GPU", "67": "needs two GPUs",
    "69": "`foreign_reasoned.py`: `compare` differs from update 1 on, and names other data, "
          "weights or loss, but not the random numbers; `doctor` has nothing",
    "71": "a bit of the master weights, no log prints it", "72": "needs two processes on a GPU"}
