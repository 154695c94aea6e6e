/* SPDX-License-Identifier: Apache-2.0
 * The table of mutants: real mistakes on a small scale (docs/CATALOG.md, docs/LR.md), and changes
 * that must change nothing. */
#include "tests/experiment/helper_mutants.h"

#define LR MUTANT_LR, 1.0
#define LR_TIMES(factor) MUTANT_LR, factor
#define OTHER MUTANT_OTHER, 1.0
#define EQUAL MUTANT_EQUAL, 1.0
#define COSINE "schedule.name=cosine"
#define WARM "schedule.warmup=3"
#define SCALED                                                                                     \
    "loop.update=[unscale, clip, optimize, log, count, schedule, zero];scaler.kind=static;"        \
    "scaler.init_scale=1024"
#define OVERFLOWS                                                                                  \
    "numerics.compute=f16;scaler.kind=dynamic;scaler.init_scale=4194304;"                          \
    "scaler.backoff_factor=0.0009765625;loop.skip=nonfinite;"                                      \
    "loop.update=[unscale, clip, optimize, log, count, schedule, zero]"

const struct mutant mutant_rows[] = {
    /* where in the loop the rate is set */
    {LR, "set before the step (H17)", "",
     "loop: {update: [count, clip, schedule, optimize, log, zero]}"},
    {LR, "the same, under warm-up", WARM,
     "loop: {update: [count, clip, schedule, optimize, log, zero]}"},
    {LR, "the same, cosine", COSINE,
     "loop: {update: [count, clip, schedule, optimize, log, zero]}"},
    {LR, "set before it is counted", "",
     "loop: {update: [clip, optimize, log, schedule, count, zero]}"},
    {LR, "one ahead from update 2 on", "", "schedule: {shift: 1}"},
    {LR, "one behind", "", "schedule: {shift: -1}"},
    {LR, "origin 1", "", "schedule: {origin: 1}"},
    {LR, "scheduler stepped twice", "",
     "loop: {update: [clip, optimize, log, count, schedule, count, schedule, zero]}"},
    {LR, "stepped per micro-batch", "",
     "loop: {micro: [fetch, forward, backward, count, schedule], update: [clip, optimize, log, "
     "zero]}"},
    {LR, "the same, under warm-up", WARM,
     "loop: {micro: [fetch, forward, backward, count, schedule], update: [clip, optimize, log, "
     "zero]}"},
    {LR, "never stepped", "", "loop: {update: [clip, optimize, log, count, zero]}"},
    {LR, "never stepped, under warm-up", WARM,
     "loop: {update: [clip, optimize, log, count, zero]}"},
    {LR, "never counted", "", "loop: {update: [clip, optimize, log, schedule, zero]}"},
    {LR, "stepped per epoch", "data.samples=12",
     "loop: {update: [clip, optimize, log, count, zero], epoch: [schedule]}"},
    {LR, "an evaluation steps it", "loop.eval_every=2", "loop: {eval: [count, schedule]}"},
    {LR, "skipped updates advance it", OVERFLOWS, "loop: {on_skip: [log, count, schedule, zero]}"},
    /* before the first update */
    {LR, "zero until first set", "", "schedule: {start: zero}"},
    {LR, "peak in the first step (H25)", WARM, "schedule: {start: base}"},
    {LR, "minimum until first set", COSINE ";schedule.min_lr_ratio=0.1", "schedule: {start: min}"},
    /* units and lengths */
    {LR, "counter x 2 processes", "", "schedule: {increment: 2}"},
    {LR, "counter x 8 processes", "", "schedule: {increment: 8}"},
    {LR, "x 2, under warm-up", WARM, "schedule: {increment: 2}"},
    {LR, "x 4, total rescaled alone", WARM, "schedule: {increment: 4, total: 40}"},
    {LR, "x 4, warm-up rescaled alone", WARM, "schedule: {increment: 4, warmup: 12, total: 13}"},
    {LR, "Accelerate, not rescaled", "schedule.contract=accelerate;schedule.processes=2;" WARM,
     "schedule: {rescaled: none}"},
    {LR, "total one less", "", "schedule: {total: 9}"},
    {LR, "total one more", "", "schedule: {total: 11}"},
    {LR, "max_steps ignored (H16)", "", "schedule: {total: 552}"},
    {LR, "total one more, cosine", COSINE, "schedule: {total: 11}"},
    {LR, "total of 1001 for 1000", "schedule.total=1000", "schedule: {total: 1001}"},
    {LR, "warm-up rounded down", "schedule.warmup_ratio=0.25",
     "schedule: {warmup_rounding: floor}"},
    {LR, "warm-up not rounded", "schedule.warmup_ratio=0.25", "schedule: {warmup_rounding: none}"},
    {LR, "warm-up one longer", WARM, "schedule: {warmup: 4}"},
    {LR, "warm-up one shorter", WARM, "schedule: {warmup: 2}"},
    {LR, "no warm-up", WARM, "schedule: {warmup: 0}"},
    {LR, "warm-up in samples", "schedule.warmup=2;schedule.total=40", "schedule: {warmup: 8}"},
    /* shapes and floors */
    {LR, "constant", "", "schedule: {name: constant}"},
    {LR, "cosine for linear", "", "schedule: {name: cosine}"},
    {LR, "cosine for linear, warm-up", WARM, "schedule: {name: cosine}"},
    {LR, "floor 0.1 of a cosine", COSINE ";schedule.min_lr_ratio=0",
     "schedule: {min_lr_ratio: 0.1}"},
    {LR, "floor 0.01 of a cosine", COSINE ";schedule.min_lr_ratio=0",
     "schedule: {min_lr_ratio: 0.01}"},
    {LR, "a whole cosine cycle", COSINE, "schedule: {num_cycles: 1}"},
    {LR, "OLMo-core for HF", "schedule.contract=hf;schedule.min_lr_ratio=0;schedule.warmup=2",
     "schedule: {contract: olmo-core}"},
    {LR_TIMES(10.0), "LR x 10", "", ""},
    {LR_TIMES(1.1), "LR x 1.1", "", ""},
    {LR_TIMES(1.01), "LR x 1.01", "", ""},
    {LR_TIMES(1.001), "LR x 1.001", "", ""},
    {LR_TIMES(1.00001), "LR x 1.00001", "", ""},
    {LR, "scheduler not restored", "resume.after=3",
     "resume: {restores: [optimizer, data, rng, scaler]}"},
    /* order of the other phases */
    {LR, "clipped after the step", "clip.max_norm=0.05",
     "loop: {update: [optimize, clip, log, count, schedule, zero]}"},
    {LR, "never clipped", "clip.max_norm=0.05",
     "loop: {update: [optimize, log, count, schedule, zero]}"},
    {LR, "clipped while scaled", SCALED ";optimizer.name=sgd",
     "loop: {update: [clip, unscale, optimize, log, count, schedule, zero]}"},
    {LR, "clipped per micro-batch", "clip.max_norm=0.05",
     "loop: {micro: [fetch, forward, backward, clip], update: [optimize, log, count, schedule, "
     "zero]}"},
    {LR, "gradients never cleared", "", "loop: {update: [clip, optimize, log, count, schedule]}"},
    {LR, "cleared per micro-batch", "",
     "loop: {micro: [zero, fetch, forward, backward], update: [clip, optimize, log, count, "
     "schedule]}"},
    {LR, "optimizer per micro-batch", "",
     "loop: {micro: [fetch, forward, backward, clip, optimize, zero], update: [log, count, "
     "schedule]}"},
    {LR, "optimizer twice", "",
     "loop: {update: [clip, optimize, optimize, log, count, schedule, zero]}"},

    {OTHER, "activations in f16", "", "numerics: {compute: f16}"},
    {OTHER, "rope table in bf16 (H15)", "", "numerics: {rope: bf16}"},
    {OTHER, "loss in bf16", "", "numerics: {loss: bf16}"},
    {OTHER, "moments in bf16", "", "numerics: {optimizer: bf16}"},
    {OTHER, "TF32 products", "", "numerics: {product: tf32}"},
    {OTHER, "mean of means", "task=sft", "loss: {divisor: mean-of-means}"},
    {OTHER, "not divided by micro-batches", "", "loss: {divisor: sum-of-means}"},
    {OTHER, "the same, SGD", "optimizer.name=sgd", "loss: {divisor: sum-of-means}"},
    {OTHER, "divided twice", "optimizer.name=sgd", "loss: {divisor: update-and-micros}"},
    {OTHER, "tokens of one rank", "task=sft", "loss: {divisor: mean-of-ranks, ranks: 2}"},
    {OTHER, "trailing window leaks", "task=sft;data.samples=10", "batch: {tail: leak}"},
    {OTHER, "clip eps 1e-2", "clip.max_norm=0.05", "clip: {eps: 1e-2}"},
    {OTHER, "only a copy is clipped", "clip.max_norm=0.05", "clip: {apply: copy}"},
    {OTHER, "norm of two replicas", "clip.max_norm=0.05", "clip: {replicas: 2}"},
    {OTHER, "norms in f32", "clip.max_norm=0.05", "clip: {dtype: f32}"},
    {OTHER, "norm weights decayed", "optimizer.weight_decay=0.1;optimizer.decay=matrices",
     "optimizer: {decay: all}"},
    {OTHER, "decay forgotten", "optimizer.weight_decay=0.1", "optimizer: {weight_decay: 0}"},
    {OTHER, "decay as L2", "optimizer.weight_decay=0.1", "optimizer: {name: adam}"},
    {OTHER, "beta2 0.95", "", "optimizer: {beta2: 0.95}"},
    {OTHER, "beta1 0.95", "", "optimizer: {beta1: 0.95}"},
    {OTHER, "eps 1e-5", "", "optimizer: {eps: 1e-5}"},
    {OTHER, "Adam's count frozen", "", "optimizer: {t: frozen}"},
    {OTHER, "Adam's count twice", "", "optimizer: {t: twice}"},
    {OTHER, "moments not restored", "resume.after=2",
     "resume: {restores: [schedule, data, rng, scaler]}"},
    {OTHER, "place in data not restored", "resume.after=2",
     "resume: {restores: [schedule, optimizer, rng, scaler]}"},
    {OTHER, "generator not restored", "resume.after=2;dropout.residual=0.1",
     "resume: {restores: [schedule, optimizer, data, scaler]}"},
    {OTHER, "other masks", "dropout.residual=0.1", "dropout: {seed: 5}"},
    {OTHER, "same masks on all ranks", "dropout.residual=0.1;dropout.ranks=2",
     "dropout: {masks: same}"},
    {OTHER, "recomputation redraws", "dropout.residual=0.1", "dropout: {recompute: redraw}"},
    {OTHER, "other order of the data", "", "data: {seed: 5}"},
    {OTHER, "not shuffled", "", "data: {shuffle: false}"},
    {OTHER, "a peek consumes a batch", "", "rng: {data: advance 1 at 1}"},
    {OTHER, "reference in bf16", "", "dpo: {reference_compute: bf16}"},
    {OTHER, "beta of DPO 0.11", "", "dpo: {beta: 0.11}"},
    {OTHER, "rope base 10000", "", "model: {rope_theta: 10000}"},
    {OTHER, "norm eps 1e-5", "", "model: {norm_eps: 1e-5}"},
    {OTHER, "init 1 % wider", "", "init: {std: 0.101}"},
    {OTHER, "one weight one ulp off", "", "init: {nudge: \"lm_head.weight[5]\"}"},

    {EQUAL, "logged first", "", "loop: {update: [log, clip, optimize, count, schedule, zero]}"},
    {EQUAL, "logged last", "", "loop: {update: [clip, optimize, count, schedule, zero, log]}"},
    {EQUAL, "logged after the scheduler", "",
     "loop: {update: [clip, optimize, count, schedule, log, zero]}"},
    {EQUAL, "logged LR computed anew", "", "schedule: {logged: recomputed}"},
    {EQUAL, "logged LR one off", "", "schedule: {logged: recomputed, logged_shift: 1}"},
    {EQUAL, "cleared before the log", "",
     "loop: {update: [clip, optimize, zero, log, count, schedule]}"},
    {EQUAL, "padded", "", "batch: {pad: 4}"},
    {EQUAL, "two threads", "", "numerics: {threads: 2}"},
    {EQUAL, "constant: other total", "schedule.name=constant", "schedule: {total: 77}"},
    {EQUAL, "bound never reached", "clip.max_norm=100000", "clip: {max_norm: 1e6}"},
    {EQUAL, "no decay, other groups", "", "optimizer: {decay: matrices}"},
    {EQUAL, "masks never drawn", "", "dropout: {seed: 5}"},
    {EQUAL, "evaluation that steps nothing", "", "loop: {eval_every: 2}"},
};

const size_t mutant_count = COUNT_OF(mutant_rows);
