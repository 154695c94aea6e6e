/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Every class of bad scenario, with its status and its whole text: file, line, column, key, what
 * was expected and what was found. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenarios/yaml.h"
#include "tests/scenarios/helper_scenario.h"

/* The bodies follow "twinstep: 1\n", so that they begin in line 2. */
#define LEADING_ZERO                                                                               \
    "; YAML 1.1 reads digits behind a zero as octal, YAML 1.2 as decimal: write it without the "   \
    "zero"

static const struct {
    const char *body;
    const char *message;
} bodies[] = {
    /* unknown keys */
    {"common: {sed: 1}", "f.yaml:2:10: error: unknown key \"sed\"; did you mean seed?"},
    {"common: {optimizer: {learning: 1}}",
     "f.yaml:2:22: error: optimizer: unknown key \"learning\""},
    {"common: {optimizer: {lrr: 1}}",
     "f.yaml:2:22: error: optimizer: unknown key \"lrr\"; did you mean optimizer.lr?"},
    {"common: {optimizer: {bta1: 1}}",
     "f.yaml:2:22: error: optimizer: unknown key \"bta1\"; did you mean optimizer.beta1?"},
    {"common: {optimizre: {lr: 1}}",
     "f.yaml:2:10: error: unknown key \"optimizre\"; did you mean optimizer?"},
    /* the last rows of the table are looked at, too */
    {"common: {parallel: {rnks: 1}}",
     "f.yaml:2:21: error: parallel: unknown key \"rnks\"; did you mean parallel.ranks?"},
    {"common: {paralel: {ranks: 1}}",
     "f.yaml:2:10: error: unknown key \"paralel\"; did you mean parallel?"},
    {"common: {lr: 1}", "f.yaml:2:10: error: unknown key \"lr\": here it is optimizer.lr"},
    {"common: {shift: 1}",
     "f.yaml:2:10: error: unknown key \"shift\"; did you mean schedule.shift?"},
    {"max_steps: 3",
     "f.yaml:2:1: error: unknown key \"max_steps\": here it is steps (at the head of the file)"},
    {"common: {schedule: {micro: 2}}",
     "f.yaml:2:21: error: schedule: unknown key \"micro\"; did you mean batch.micro?"},
    {"common: {optimizer.lr: 1}",
     "f.yaml:2:10: error: unknown key \"optimizer.lr\"; sections are maps, not dots"},
    {"common: {steps: 3}", "f.yaml:2:10: error: unknown key \"steps\""},
    {"common: {\"\": 3}", "f.yaml:2:10: error: unknown key \"\""},
    {"stps: 3", "f.yaml:2:1: error: unknown key \"stps\"; did you mean steps?"},
    {"optimizer: {lr: 1}",
     "f.yaml:2:1: error: unknown key \"optimizer\"; it belongs under common or under an arm"},
    {"seed: 1", "f.yaml:2:1: error: unknown key \"seed\"; it belongs under common or under an arm"},
    {"expect.cause: dtype", "f.yaml:2:1: error: unknown key \"expect.cause\""},
    {"expect: {verdct: none}",
     "f.yaml:2:10: error: expect: unknown key \"verdct\"; did you mean expect.verdict?"},
    {"floor: {zzzzz: 1}", "f.yaml:2:9: error: floor: unknown key \"zzzzz\""},
    {"? \"a\\nb\"\n: 1", "f.yaml:2:3: error: unknown key \"a\\x0ab\""},
    /* duplicates */
    {"steps: 3\nsteps: 4", "f.yaml:3:1: error: key \"steps\" is given twice, first in line 2"},
    {"common: {batch: {size: 1, size: 1}}",
     "f.yaml:2:27: error: key \"size\" is given twice, first in line 2"},
    /* wrong types */
    {"common: {schedule: {warmup: ten}}",
     "f.yaml:2:29: error: schedule.warmup: expected a number >= 0, got \"ten\""},
    {"common: {schedule: {warmup: -1}}",
     "f.yaml:2:29: error: schedule.warmup: expected a number from 0 to 1e+15, got \"-1\""},
    {"common: {batch: {size: 1e3}}",
     "f.yaml:2:24: error: batch.size: expected an integer from 1 to 4194303, got \"1e3\"; integers "
     "are written in digits"},
    {"common: {batch: {size: 2.5}}",
     "f.yaml:2:24: error: batch.size: expected an integer from 1 to 4194303, got \"2.5\"; integers "
     "are written in digits"},
    /* octal to YAML 1.1, decimal to YAML 1.2 */
    {"common: {batch: {size: 010}}", "f.yaml:2:24: error: batch.size: expected an integer from 1 "
                                     "to 4194303, got \"010\"" LEADING_ZERO},
    {"common: {schedule: {shift: -010}}",
     "f.yaml:2:28: error: schedule.shift: expected an integer, got \"-010\"" LEADING_ZERO},
    {"common: {schedule: {warmup: 08}}",
     "f.yaml:2:29: error: schedule.warmup: expected a number >= 0, got \"08\"" LEADING_ZERO},
    {"common: {batch: {size: 0x10}}",
     "f.yaml:2:24: error: batch.size: expected an integer from 1 to 4194303, got \"0x10\""},
    {"common: {batch: {size: \"8\"}}",
     "f.yaml:2:24: error: batch.size: expected an integer from 1 to 4194303, got the text \"8\"; "
     "remove the quotes"},
    {"common: {optimizer: {lr: '5e-7'}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got the text \"5e-7\"; remove the "
     "quotes"},
    {"common: {optimizer: {lr: fast}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got \"fast\""},
    {"common: {optimizer: {lr: .inf}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got \".inf\""},
    {"common: {optimizer: {lr: nan}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got \"nan\""},
    {"common: {optimizer: {lr: [1]}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got a list"},
    {"common: {optimizer: {lr: {a: 1}}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got a map"},
    {"common: {optimizer: {lr: }}",
     "f.yaml:2:22: error: optimizer.lr: expected a number >= 0, got nothing"},
    {"common: {batch: 8}", "f.yaml:2:17: error: batch: expected a map of keys, got \"8\""},
    {"common: {batch: [size]}", "f.yaml:2:17: error: batch: expected a map of keys, got a list"},
    {"common: [a]", "f.yaml:2:9: error: common: expected a map, got a list"},
    {"arms: 2", "f.yaml:2:7: error: arms: expected a map, got \"2\""},
    {"record: 1", "f.yaml:2:9: error: record: expected a map of keys, got \"1\""},
    {"record: {tensors: yes}",
     "f.yaml:2:19: error: record.tensors: expected true or false, got \"yes\""},
    {"record: {tensors: \"true\"}",
     "f.yaml:2:19: error: record.tensors: expected true or false, got the text \"true\""},
    {"common: {data: {pairs: 5}}",
     "f.yaml:2:24: error: data.pairs: expected text, got \"5\"; put it in quotes if it is meant as "
     "text"},
    {"common: {data: {pairs: true}}",
     "f.yaml:2:24: error: data.pairs: expected text, got \"true\"; put it in quotes if it is meant "
     "as text"},
    {"common: {data: {pairs: \"\"}}",
     "f.yaml:2:24: error: data.pairs: expected text, got the text \"\""},
    {"common: {data: {pairs: \"a\\x01\"}}",
     "f.yaml:2:24: error: data.pairs: expected text, got the text \"a\\x01\", with a control "
     "character"},
    {"common: {task: [sft]}", "f.yaml:2:16: error: task: expected one of sft, dpo, got a list"},
    {"common: {task: ppo}",
     "f.yaml:2:16: error: task: expected one of sft, dpo, got \"ppo\"; did you mean dpo?"},
    {"common: {numerics: {compute: fp32}}",
     "f.yaml:2:30: error: numerics.compute: expected one of f32, f64, bf16, f16, tf32, e4m3, "
     "e5m2, got \"fp32\"; did you mean f32?"},
    {"common: {numerics: {master: bf16}}",
     "f.yaml:2:29: error: numerics.master: expected one of f32, f64, none, got \"bf16\""},
    {"common: {loop: {epoch: log}}",
     "f.yaml:2:24: error: loop.epoch: expected a list [...] of fetch, forward, backward, reduce, "
     "unscale, clip, optimize, log, count, schedule, zero, scheduler_step (count, schedule), got "
     "\"log\""},
    {"common: {loop: {epoch: [log,\n  optimise]}}",
     "f.yaml:3:3: error: loop.epoch: expected one of fetch, forward, backward, reduce, unscale, "
     "clip, optimize, log, count, schedule, zero, scheduler_step (count, schedule), got "
     "\"optimise\"; did you mean optimize?"},
    {"common: {loop: {on_skip: [schedulerstep]}}",
     "f.yaml:2:27: error: loop.on_skip: expected one of fetch, forward, backward, reduce, unscale, "
     "clip, optimize, log, count, schedule, zero, scheduler_step (count, schedule), got "
     "\"schedulerstep\"; did you mean scheduler_step?"},
    {"expect: {verdict: outside-floor, first_phase: scheduler_step}",
     "f.yaml:2:47: error: expect.first_phase: expected one of before-the-update, fetch, forward, "
     "backward, reduce, unscale, clip, optimize, log, count, schedule, zero, "
     "forward-of-the-reference, end-of-the-update, any, got \"scheduler_step\""},
    {"expect: {shares: schedule 3}",
     "f.yaml:2:18: error: expect.shares: expected +- and a tolerance after the share of schedule, "
     "got \"\""},
    {"expect: {shares: schedule 3 + 1}",
     "f.yaml:2:18: error: expect.shares: expected +- and a tolerance after the share of schedule, "
     "got \"+\""},
    {"expect: {shares: lr 3 +- 1}",
     "f.yaml:2:18: error: expect.shares: expected the name of a cause as in \"schedule 0.9 +- "
     "0.05\", got \"lr\""},
    {"expect: {shares: schedule 3 +- -1}",
     "f.yaml:2:18: error: expect.shares: expected a tolerance of at least 0 for schedule, got -1"},
    {"expect: {shares: schedule 3 +- 1 dtype 2 +- 1}",
     "f.yaml:2:18: error: expect.shares: expected ; after the tolerance of schedule, got \"dtype 2 "
     "+- 1\""},
    {"expect: {shares: schedule 3 +- 1; schedule 3 +- 1}",
     "f.yaml:2:18: error: expect.shares: expected each cause once, got schedule twice"},
    {"expect: {order: [lr]}",
     "f.yaml:2:18: error: expect.order: expected one of schedule, "
     "optimizer, dtype, nondeterminism, batch-shape, data-order, rng, "
     "normalisation, reference, model, parallelism, resume, init, objective, "
     "backward, corruption, got \"lr\""},
    {"expect: {verdict: identical, shares: schedule 3 +- 1}",
     "f.yaml:2:30: error: expect.shares: two identical arms have no first difference and no cause "
     "(expect.verdict is identical)"},
    {"expect: {verdict: identical, order: [init]}",
     "f.yaml:2:30: error: expect.order: two identical arms have no first difference and no cause "
     "(expect.verdict is identical)"},
    {"common: {shuffle: {kinds: [scheduler_step]}}",
     "f.yaml:2:28: error: shuffle.kinds: expected one of forward, weight, dq, embedding, norm, "
     "loss, got \"scheduler_step\""},
    {"common: {loop: {epoch: [[log]]}}",
     "f.yaml:2:25: error: loop.epoch: expected one of fetch, forward, backward, reduce, unscale, "
     "clip, optimize, log, count, schedule, zero, scheduler_step (count, schedule), got a list"},
    {"common: {loop: {epoch: [log, log, log, log, log, log, log, log, log, log, log, log, log, "
     "log, log, log, log, log, log, log, log, log, log, log, log, log, log, log, log, log, log]}}",
     "f.yaml:2:24: error: loop.epoch: expected at most 30 entries, got 31"},
    {"common: {loop: {epoch: [log, log, log, log, log, log, log, log, log, log, log, log, log, "
     "log, log, log, log, log, log, log, log, log, log, log, log, log, log, log, log, "
     "scheduler_step]}}",
     "f.yaml:2:24: error: loop.epoch: expected at most 30 entries, got 31"},
    /* overflow and bounds */
    {"steps: 0", "f.yaml:2:8: error: steps: expected an integer from 1 to 1000000000, got \"0\""},
    {"steps: 1000000001",
     "f.yaml:2:8: error: steps: expected an integer from 1 to 1000000000, got \"1000000001\""},
    {"steps: 99999999999999999999999999",
     "f.yaml:2:8: error: steps: expected an integer from 1 to 1000000000, got "
     "\"99999999999999999999999999\""},
    {"common: {seed: 18446744073709551615}",
     "f.yaml:2:16: error: seed: expected an integer from 0 to 18446744073709551614, got "
     "\"18446744073709551615\""},
    {"common: {seed: 18446744073709551616}",
     "f.yaml:2:16: error: seed: expected an integer from 0 to 18446744073709551614, got "
     "\"18446744073709551616\""},
    /* a rotary angle, position * theta^(-2i/D), stays within REAL_TRIG_LIMIT = 2^20
     * (base/real_trig.h): positions are below max_len, frequencies at most 1 */
    {"common: {data: {max_len: 1048577}}",
     "f.yaml:2:26: error: data.max_len: expected an integer from 2 to 1048576, got \"1048577\""},
    {"common: {model: {rope_theta: 0.5}}", "f.yaml:2:30: error: model.rope_theta: expected a "
                                           "number from 1 to 1000000000000, or auto, got "
                                           "\"0.5\""},
    {"common: {model: {rope_scaling: llama3, rope_factor: 0.5}}",
     "f.yaml:2:53: error: model.rope_factor: expected a number from 1 to 1000000, got \"0.5\""},
    {"common: {model: {rope_scaling: llama3, rope_high_freq_factor: 1}}",
     "f.yaml:2:63: error: model.rope_high_freq_factor: expected more than "
     "model.rope_low_freq_factor (1), got 1"},
    {"common: {model: {rope_scaling: yarn, rope_beta_fast: 1}}",
     "f.yaml:2:54: error: model.rope_beta_fast: expected more than model.rope_beta_slow (1), got "
     "1"},
    {"common: {model: {rope_scaling: yarn, rope_theta: 1}}",
     "f.yaml:2:50: error: model.rope_theta: expected more than 1 with model.rope_scaling yarn, got "
     "1"},
    {"common: {schedule: {shift: 9007199254740993}}",
     "f.yaml:2:28: error: schedule.shift: expected an integer from -9007199254740992 to "
     "9007199254740992, got \"9007199254740993\""},
    {"common: {optimizer: {lr: 1e400}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number >= 0, got \"1e400\"; it is too large for "
     "a double"},
    {"common: {optimizer: {lr: 1e-400}}", "f.yaml:2:26: error: optimizer.lr: expected a number >= "
                                          "0, got \"1e-400\"; it is too small for "
                                          "a double"},
    {"common: {optimizer: {lr: -1e-6}}",
     "f.yaml:2:26: error: optimizer.lr: expected a number from 0 to 1000000, got \"-1e-6\""},
    {"common: {schedule: {warmup_ratio: 1.5}}",
     "f.yaml:2:35: error: schedule.warmup_ratio: expected a number from 0 to 1, or none, got "
     "\"1.5\""},
    {"common: {schedule: {warmup_ratio: -1}}",
     "f.yaml:2:35: error: schedule.warmup_ratio: expected a number from 0 to 1, or none, got "
     "\"-1\""},
    {"common: {optimizer: {beta1: 1.5}}",
     "f.yaml:2:29: error: optimizer.beta1: expected a number from 0 to 1, got \"1.5\""},
    {"name: 0123456789012345678901234567890123456789012345678901234567890123a",
     "f.yaml:2:7: error: name: expected at most 63 bytes, got 65"},
    {"name: ../x", "f.yaml:2:7: error: name: expected letters, digits, - and _, got \"../x\""},
    /* classes */
    {"common: {optimizer: {name: adm}}",
     "f.yaml:2:28: error: optimizer.name: expected one of adamw, sgd, got \"adm\""},
    {"common: {optimizer: {name: adam}}",
     "f.yaml:2:28: error: optimizer.name: expected one of adamw, sgd, got \"adam\"; did you mean "
     "adamw?"},
    {"common: {schedule: {name: lin}}",
     "f.yaml:2:27: error: schedule.name: expected one of linear, constant, steps, got \"lin\""},
    {"common: {optimizer: {momentum: 0.5}}",
     "f.yaml:2:22: error: optimizer.momentum belongs to sgd; optimizer.name is adamw in arm "
     "baseline"},
    {"common: {optimizer: {name: adamw}}\narms: {a: {}, b: {optimizer: {momentum: 0.5}}}",
     "f.yaml:3:31: error: optimizer.momentum belongs to sgd; optimizer.name is adamw in arm b"},
    {"arms: {a: {}, b: {optimizer: {name: sgd, beta1: 0.5}}}",
     "f.yaml:2:42: error: optimizer.beta1 belongs to adamw; optimizer.name is sgd in arm b"},
    /* arms */
    {"arms: {a: {}}", "f.yaml:2:1: error: arms: expected two arms, got 1"},
    {"arms: {}", "f.yaml:2:1: error: arms: expected two arms, got 0"},
    {"arms: {a: {}, b: {}, c: {}}", "f.yaml:2:1: error: arms: expected two arms, got 3"},
    {"arms: {a: {}, b: 1}", "f.yaml:2:18: error: arms.b: expected a map, got \"1\""},
    {"arms: {a: {}, a/b: {}}",
     "f.yaml:2:15: error: arms: expected a name of letters, digits, - and _, got \"a/b\""},
    {"arms: {a: {}, \"\": {}}",
     "f.yaml:2:15: error: arms: expected a name of letters, digits, - and _, got \"\""},
    /* across keys */
    {"common: {schedule: {total: 10, warmup: 3, warmup_ratio: 0.5}}",
     "f.yaml:2:40: error: schedule.warmup: 3 contradicts schedule.warmup_ratio, which gives 5 of "
     "10"},
    {"common: {model: {heads: 5}}",
     "f.yaml:2:25: error: model.heads: model.head_dim: auto needs model.heads (5) to divide "
     "model.hidden (64)"},
    {"common: {model: {heads: 32}}\narms: {a: {}, b: {model: {heads: 64}}}",
     "f.yaml:3:34: error: model.heads: model.head_dim: expected an integer from 2 to 65536, or "
     "auto, got 1, derived from other keys"},
    {"common: {model: {hidden: 72}}\narms: {a: {}, b: {model: {heads: 7}}}",
     "f.yaml:3:34: error: model.heads: model.head_dim: auto needs model.heads (7) to divide "
     "model.hidden (72)"},
    {"common: {model: {hidden: 62}}",
     "f.yaml:2:26: error: model.hidden: model.head_dim: auto needs model.heads (4) to divide "
     "model.hidden (62)"},
    {"common: {model: {hidden: 60, head_dim: auto}}",
     "f.yaml:2:40: error: model.head_dim: expected an even number (rotary pairs), got 15"},
    {"common: {model: {hidden: 60}}",
     "f.yaml:2:26: error: model.hidden: model.head_dim: expected an even number (rotary pairs), "
     "got 15"},
    {"common: {schedule: {shift: 9007199254740992}}",
     "f.yaml:2:28: error: schedule.shift: schedule.increment: the counter of 5 updates passes "
     "2^53"},
    /* checks of a class */
    {"common: {optimizer: {amsgrad: true, variant: apex}}",
     "f.yaml:2:31: error: optimizer.amsgrad: expected false with variant apex, got true"},
    {"common: {optimizer: {variant: apex}}\narms: {a: {}, b: {optimizer: {amsgrad: true}}}",
     "f.yaml:3:40: error: optimizer.amsgrad: expected false with variant apex, got true"},
    {"common: {schedule: {name: constant, total: 99}}",
     "f.yaml:2:44: error: schedule.total: 99 is refused"},
    {"steps: 99\ncommon: {schedule: {name: constant}}",
     "f.yaml:3:27: error: schedule.total: 99 is refused"},
    {"common: {schedule: {name: constant}, optimizer: {lr: 99}}",
     "f.yaml:2:54: error: optimizer.lr: 99 is refused"},
    /* what the floor can enumerate */
    {"floor: {replicates: 11}",
     "f.yaml:2:21: error: floor.replicates: expected at most 10 runs of each arm, got 11; "
     "floor.design: baseline takes up to 62"},
    {"floor: {design: baseline, replicates: 63}",
     "f.yaml:2:39: error: floor.replicates: expected an integer from 1 to 62, or auto, got "
     "\"63\""},
    {"floor: {alpha: 1e-6}\ncommon: {numerics: {mode: shuffled}}",
     "f.yaml:2:16: error: floor.alpha: 1e-06 needs 12 runs of each arm, more than 10; raise it"},
    {"floor: {alpha: 1e-6}\narms: {a: {}, b: {numerics: {mode: atomic}}}",
     "f.yaml:2:16: error: floor.alpha: 1e-06 needs 12 runs of each arm, more than 10; raise it"},
    {"floor: {alpha: 1e-4, design: baseline}\ncommon: {numerics: {mode: shuffled}}",
     "f.yaml:2:16: error: floor.alpha: 0.0001 needs 140 runs of the baseline, more than 62; raise "
     "it"},
    {"attribution: {orders: 7}",
     "f.yaml:2:23: error: attribution.orders: expected an even number, because each order is taken "
     "with its reverse, got 7"},
    {"attribution: {orders: 2}",
     "f.yaml:2:23: error: attribution.orders: expected an integer from 4 to 256, or auto, got "
     "\"2\""},
    {"common: {batch: {size: 8, micro: 3}}",
     "f.yaml:2:34: error: batch.micro: expected a divisor of batch.size (8), got 3"},
    {"common: {loss: {divisor: mean-of-ranks, ranks: 3}}",
     "f.yaml:2:48: error: loss.ranks: expected a divisor of batch.size (8), got 3"},
    {"common: {batch: {tail: keep}, loss: {divisor: mean-of-ranks, ranks: 2}}",
     "f.yaml:2:24: error: batch.tail: expected drop with loss.divisor mean-of-ranks: samples that "
     "do not fill an update do not fill its ranks"},
    {"common: {numerics: {shards: 4, grad_accumulate: storage}}",
     "f.yaml:2:49: error: numerics.grad_accumulate: storage rounds the gradient after each "
     "micro-batch, but shards are joined before it is rounded; expected wide with numerics.shards "
     "4"},
    {"common: {numerics: {cuts: 3}}",
     "f.yaml:2:27: error: numerics.cuts: expected 1, 2, 4 or 8, got 3"},
    {"common: {parallel: {tensor: 4}, numerics: {cuts: 2}}",
     "f.yaml:2:29: error: parallel.tensor: expected a divisor of numerics.cuts (2), got 4: a rank "
     "has whole parts, and bits depend on their number alone; set numerics.cuts to 4 or more, too"},
    {"common: {parallel: {tensor: 3}, numerics: {cuts: 4}}",
     "f.yaml:2:29: error: parallel.tensor: expected 1, 2, 4 or 8, got 3"},
    {"common: {numerics: {cuts: 16}}",
     "f.yaml:2:27: error: numerics.cuts: expected an integer from 1 to 8, got \"16\""},
    {"common: {model: {kv_heads: 2}, numerics: {cuts: 4}}",
     "f.yaml:2:49: error: numerics.cuts: expected a divisor of model.kv_heads (2), got 4: a part "
     "has whole heads, and key and value heads are not held twice"},
    {"common: {model: {heads: 8}, numerics: {cuts: 8}}",
     "f.yaml:2:46: error: numerics.cuts: expected a divisor of model.mlp (172), got 8: parts have "
     "equal widths"},
    {"common: {parallel: {ranks: 3}, numerics: {shards: 2}}",
     "f.yaml:2:28: error: parallel.ranks: expected at most numerics.shards (2), got 3: a rank has "
     "the samples of whole shards, and bits depend on shards alone; set numerics.shards to 4 or a "
     "larger power of two, in both arms if they are to agree"},
    {"common: {parallel: {ranks: 9}}",
     "f.yaml:2:28: error: parallel.ranks: expected at most batch.size (8), got 9: a rank without "
     "samples"},
    {"common: {parallel: {ranks: 3}, numerics: {grad_accumulate: storage}}",
     "f.yaml:2:60: error: numerics.grad_accumulate: storage rounds the gradient after each "
     "micro-batch, so bits would depend on the number of ranks; expected wide with parallel.ranks "
     "3"},
    {"common: {parallel: {ranks: 3, feeds: same}}",
     "f.yaml:2:38: error: parallel.feeds: expected own with several ranks of one shard, which have "
     "no sums of their own; the bug is simulated with at least as many numerics.shards as ranks"},
    {"common: {parallel: {ranks: 3, sync: first}}",
     "f.yaml:2:37: error: parallel.sync: expected every with several ranks of one shard, which "
     "have no sums of their own; the bug is simulated with at least as many numerics.shards as "
     "ranks"},
    {"common: {parallel: {ranks: 3}, numerics: {mode: fast}}",
     "f.yaml:2:28: error: parallel.ranks: expected 1 in numerics.mode fast, got 3: several ranks "
     "are in modes invariant, deterministic and order-free, where they join shards, and in shaped "
     "and shuffled, where each closes a gradient of its own"},
    {"common: {parallel: {ranks: 3}, numerics: {mode: atomic}}",
     "f.yaml:2:28: error: parallel.ranks: expected 1 in numerics.mode atomic, got 3: several ranks "
     "are in modes invariant, deterministic and order-free, where they join shards, and in shaped "
     "and shuffled, where each closes a gradient of its own"},
    {"common: {batch: {size: 2}, parallel: {ranks: 3}, numerics: {shards: 4}}",
     "f.yaml:2:46: error: parallel.ranks: expected at most batch.size (2), got 3: a rank without "
     "samples"},
    {"common: {batch: {size: 6}, parallel: {ranks: 5}, numerics: {shards: 8}}",
     "f.yaml:2:46: error: parallel.ranks: expected ranks that all have samples, as a divisor of "
     "numerics.shards (8) gives, got 5: none of the 6 samples of batch.size belongs to the shards "
     "of rank 2"},
    {"common: {batch: {tail: keep}, parallel: {ranks: 2}, numerics: {shards: 4}}",
     "f.yaml:2:24: error: batch.tail: expected drop with parallel.ranks 2 and parallel.deal "
     "blocks: an update that is not full would leave ranks without their share"},
    {"common: {parallel: {ranks: 2, zero: 4}, numerics: {shards: 4}}",
     "f.yaml:2:37: error: parallel.zero: expected an integer from 0 to 3, got \"4\""},
    {"common: {parallel: {ranks: 2, zero: 2, sync: first}, numerics: {shards: 4}}",
     "f.yaml:2:37: error: parallel.zero: expected 0 or 1 with parallel.sync first, got 2: "
     "DeepSpeed's no_sync refuses stages that cut the gradient"},
    {"common: {parallel: {ranks: 2, zero: 3}, numerics: {mode: shaped}}",
     "f.yaml:2:37: error: parallel.zero: expected 0 with several ranks in modes shaped and "
     "shuffled: the norm that a framework makes of parts is a sum by ranks, whose order is not "
     "simulated (buckets: fsdp2 adds gradients as FSDP2 does)"},
    {"common: {parallel: {ranks: 3, deal: cyclic}, numerics: {shards: 4}, batch: {size: 6}}",
     "f.yaml:2:28: error: parallel.ranks: expected a divisor of numerics.shards (4) with "
     "parallel.deal cyclic, which deals equal shares, got 3"},
    {"common: {parallel: {ranks: 2, deal: micros}, numerics: {shards: 4}, batch: {size: 5}}",
     "f.yaml:2:28: error: parallel.ranks: expected a divisor of batch.size (5) with "
     "parallel.deal micros, which deals equal shares, got 2"},
    {"common: {parallel: {ranks: 2, deal: micros}, numerics: {shards: 4}, batch: {size: 6, "
     "micro: 2}}",
     "f.yaml:2:93: error: batch.micro: expected a divisor of the 3 samples that a rank has of an "
     "update with parallel.deal micros, which deals whole batches, got 2"},
    {"common: {parallel: {ranks: 2, deal: cyclic}, numerics: {shards: 4}, "
     "batch: {tail: keep-underscaled}, loss: {divisor: mean-of-means}}",
     "f.yaml:2:83: error: batch.tail: expected drop or keep with parallel.ranks 2"},
    {"common: {parallel: {ranks: 3}, numerics: {shards: 4}, batch: {size: 6}, "
     "loss: {divisor: mean-of-ranks}}",
     "f.yaml:2:28: error: parallel.ranks: expected a divisor of numerics.shards (4) with "
     "loss.divisor mean-of-ranks, whose ranks have equal shares, got 3"},
    {"common: {parallel: {ranks: 2}, numerics: {shards: 4}, dropout: {residual: 0.1}, "
     "rng: {kind: torch}}",
     "f.yaml:2:93: error: rng.kind: expected addressed with parallel.ranks 2: torch's generator "
     "draws for the micro-batches of one process, one after the other"},
    {"common: {parallel: {ranks: 2}, numerics: {shards: 4}, "
     "loss: {divisor: mean-of-ranks, ranks: 4}}",
     "f.yaml:2:93: error: loss.ranks: 4 contradicts parallel.ranks 2, which train; leave it out, "
     "or write auto"},
    {"common: {parallel: {ranks: 2, sync: first, keeps: last}, numerics: {shards: 2}}",
     "f.yaml:2:51: error: parallel.keeps: expected all with parallel.sync first: a gradient that "
     "is joined and then wiped is no case that is simulated"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, "
     "loop: {update: [reduce, optimize, log, count, schedule]}}",
     "f.yaml:2:83: error: loop.update: expected zero in it with parallel.sync first, whose ranks "
     "begin each update with gradients that are clear"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, clip: {over: local}}",
     "f.yaml:2:81: error: clip.over: expected global with parallel.sync first: local is of ranks "
     "that own shards, first of ranks that hold replicas"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, clip: {over: averaged}}",
     "f.yaml:2:81: error: clip.over: expected global with parallel.sync first: averaged is of "
     "ranks that own shards, first of ranks that hold replicas"},
    {"common: {parallel: {ranks: 2}, numerics: {shards: 2}, clip: {over: local}, "
     "loop: {skip: olmo-outlier}}",
     "f.yaml:2:89: error: loop.skip: expected another rule than olmo-outlier with clip.over local: "
     "ranks with norms of their own would decide apart"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, "
     "loop: {skip: nonfinite}}",
     "f.yaml:2:81: error: loop.skip: expected none with parallel.sync first: ranks with gradients "
     "of their own would decide apart"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, "
     "scaler: {kind: dynamic}}",
     "f.yaml:2:83: error: scaler.kind: expected none or static with parallel.sync first: ranks "
     "with gradients of their own would have loss scales of their own"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, resume: {after: 1}}",
     "f.yaml:2:84: error: resume.after: expected 0 with parallel.sync first: one checkpoint ends "
     "what parts ranks, and that is not simulated"},
    {"common: {parallel: {ranks: 2, sync: first}, numerics: {shards: 2}, fault: {update: 1}}",
     "f.yaml:2:84: error: fault.update: expected 0 with parallel.sync first: a fault has no key "
     "for the rank whose bit flips"},
    {"common: {parallel: {tensor: 2, forgets: qk-norms}, numerics: {cuts: 2}, model: {family: "
     "llama}}",
     "f.yaml:2:41: error: parallel.forgets: expected another word than qk-norms with model.family "
     "llama: it is of norms over each head, whose one weight all heads share (qwen3)"},
    {"common: {parallel: {tensor: 2, ranks: 2, forgets: norms}, numerics: {cuts: 2, shards: 2}}",
     "f.yaml:2:39: error: parallel.ranks: expected 1 with parallel.forgets norms, which is "
     "simulated for the tensor-parallel ranks of one data-parallel rank, got 2"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2, shards: 2}}",
     "f.yaml:2:77: error: numerics.shards: expected 1 with parallel.forgets norms, whose ranks "
     "have a chain each for what they hold apart, got 2"},
#define FED "common: {parallel: {tensor: 2, feeds: own-on-tensor}, numerics: {cuts: 2}, task: sft, "
    {FED "model: {family: qwen3, tied: false}}",
     "f.yaml:2:103: error: model.family: expected llama or qwen2 with parallel.feeds "
     "own-on-tensor: norms of q and k are over widths that ranks share, and that is not simulated, "
     "got qwen3"},
    {FED "model: {family: llama, tied: true}}",
     "f.yaml:2:116: error: model.tied: expected false with parallel.feeds own-on-tensor: the head "
     "is cut into slices, the embedding is whole on every rank"},
    {FED "model: {family: llama, tied: false, output_bias: true}}",
     "f.yaml:2:136: error: model.output_bias: expected false with parallel.feeds own-on-tensor: a "
     "bias behind a sum over ranks is not simulated"},
    {FED "model: {family: llama, tied: false}, dropout: {attention: 0.1}}",
     "f.yaml:2:145: error: dropout.attention: expected 0 everywhere with parallel.feeds "
     "own-on-tensor: masks of ranks are not simulated"},
    {FED "model: {family: llama, tied: false}, batch: {tail: keep}}",
     "f.yaml:2:138: error: batch.tail: expected drop with parallel.feeds own-on-tensor"},
    {FED "model: {family: llama, tied: false}, loss: {divisor: mean-of-ranks, ranks: 2}}",
     "f.yaml:2:140: error: loss.divisor: expected another word than mean-of-ranks with "
     "parallel.feeds own-on-tensor"},
    {FED "model: {family: llama, tied: false}, resume: {after: 1}}",
     "f.yaml:2:140: error: resume.after: expected 0 with parallel.feeds own-on-tensor: one "
     "checkpoint ends what parts ranks, and that is not simulated"},
    {"common: {parallel: {tensor: 2, feeds: own-on-tensor}, numerics: {cuts: 2}, task: dpo}",
     "f.yaml:2:82: error: task: expected sft with parallel.feeds own-on-tensor: a reference's "
     "forward would be of other samples, too, and that is not simulated"},
    {"common: {parallel: {tensor: 2, feeds: own-on-tensor, forgets: norms}, numerics: {cuts: 2}, "
     "task: sft}",
     "f.yaml:2:63: error: parallel.forgets: expected none with parallel.feeds own-on-tensor, whose "
     "ranks part by all that they hold whole"},
    {"common: {parallel: {tensor: 2, ranks: 2, feeds: own-on-tensor}, numerics: {cuts: 2, shards: "
     "2}, task: sft, model: {family: llama, tied: false}}",
     "f.yaml:2:39: error: parallel.ranks: expected 1 with parallel.feeds own-on-tensor, which is "
     "simulated for the tensor-parallel ranks of one data-parallel rank, got 2"},
#undef FED
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2, grad_accumulate: "
     "storage}}",
     "f.yaml:2:86: error: numerics.grad_accumulate: expected wide with parallel.forgets norms, "
     "whose ranks close their gradients once in an update"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, loop: {micro: [fetch, "
     "forward, backward, clip], update: [optimize, log, count, schedule, zero]}}",
     "f.yaml:2:84: error: loop.micro: expected fetch, forward and backward alone with "
     "parallel.forgets norms, whose ranks close their gradients once in an update"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, batch: {tail: leak}}",
     "f.yaml:2:84: error: batch.tail: expected drop, keep or keep-underscaled with "
     "parallel.forgets norms"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, loop: {update: [clip, "
     "optimize, log, count, schedule]}}",
     "f.yaml:2:85: error: loop.update: expected zero in it with parallel.forgets norms, whose "
     "ranks begin each update with gradients that are clear"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, loop: {skip: "
     "nonfinite}}",
     "f.yaml:2:83: error: loop.skip: expected none with parallel.forgets norms: ranks with "
     "gradients of their own would decide apart"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, scaler: {kind: "
     "dynamic}}",
     "f.yaml:2:85: error: scaler.kind: expected none or static with parallel.forgets norms: ranks "
     "with gradients of their own would have loss scales of their own"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, resume: {after: 1}}",
     "f.yaml:2:86: error: resume.after: expected 0 with parallel.forgets norms: one checkpoint "
     "ends what parts ranks, and that is not simulated"},
    {"common: {parallel: {tensor: 2, forgets: norms}, numerics: {cuts: 2}, fault: {update: 1}}",
     "f.yaml:2:86: error: fault.update: expected 0 with parallel.forgets norms: a fault has no key "
     "for the rank whose bit flips"},
    {"common: {parallel: {tensor: 2, forgets: norms, counts: each}, numerics: {cuts: 2}}",
     "f.yaml:2:56: error: parallel.counts: expected once with parallel.forgets norms: what the "
     "ranks hold of a norm differs there"},
    {"common: {parallel: {tensor: 2, counts: each, ranks: 2}, numerics: {cuts: 2, shards: 2}, "
     "clip: {over: local}}",
     "f.yaml:2:102: error: clip.over: expected global with parallel.counts each: one bug of the "
     "norm at a time"},
    {"common: {parallel: {ranks: 4, node: 3, reduce: nccl-tree}, numerics: {mode: shaped}}",
     "f.yaml:2:37: error: parallel.node: expected a divisor of parallel.ranks (4) with "
     "parallel.reduce nccl-tree, whose nodes have equally many, got 3"},
    {"common: {parallel: {tensor: 2, draws: same-rows}, numerics: {cuts: 2}}",
     "f.yaml:2:39: error: parallel.draws: expected whole, own or same with parallel.tensor 2: rows "
     "of slices are not simulated"},
    {"common: {batch: {tail: leak}, numerics: {shards: 2}}",
     "f.yaml:2:24: error: batch.tail: leak puts samples of two epochs into one update, and only "
     "those of one are dealt to shards; expected drop, keep or keep-underscaled with "
     "numerics.shards 2"},
    {"common: {parallel: {ranks: 3}, numerics: {mode: shaped}}",
     "f.yaml:2:28: error: parallel.ranks: expected a divisor of batch.size (8) in modes shaped and "
     "shuffled, whose ranks have equal shares, got 3"},
    {"common: {parallel: {ranks: 2}, numerics: {mode: shaped, gradient: f64, compute: f64}}",
     "f.yaml:2:67: error: numerics.gradient: expected f32, bf16 or f16, which ranks exchange, got "
     "f64"},
    {"common: {numerics: {mode: shaped}, parallel: {ranks: 2, reduce_dtype: e4m3}}",
     "f.yaml:2:71: error: parallel.reduce_dtype: expected one of f32, bf16, f16, auto, got "
     "\"e4m3\""},
    {"common: {numerics: {mode: shaped}, parallel: {ranks: 2, reduce: arrival}}",
     "f.yaml:2:65: error: parallel.reduce: arrival has no order of its own, so one is drawn: "
     "expected numerics.mode shuffled"},
    {"common: {numerics: {mode: shaped}, parallel: {ranks: 2, reduce: nccl-ring, chunk: 40}}",
     "f.yaml:2:83: error: parallel.chunk: expected the bytes of a chunk, a multiple of 16, with "
     "parallel.reduce nccl-ring (NCCL takes them from the machine and prints them with "
     "NCCL_DEBUG=TRACE), got 40"},
    {"common: {numerics: {mode: shaped}, parallel: {ranks: 2, buckets: once, reduce: "
     "ring-scatter}}",
     "f.yaml:2:66: error: parallel.buckets: expected fsdp2 with parallel.reduce ring-scatter, a "
     "reduce-scatter: buckets of DDP have no part for each rank"},
    {"common: {numerics: {mode: shaped}, parallel: {ranks: 2}, loss: {divisor: sum-of-means}}",
     "f.yaml:2:74: error: loss.divisor: sum-of-means has no share of one rank: expected update, "
     "update-unshifted, mean-of-means, mean-of-ranks or micros-by-tokens with parallel.ranks 2 in "
     "modes shaped and shuffled, which take the mean over ranks"},
    {"common: {numerics: {mode: shuffled}, parallel: {ranks: 2}, batch: {tail: keep}}",
     "f.yaml:2:74: error: batch.tail: expected drop with parallel.ranks 2 and parallel.deal "
     "blocks: an update that is not full would leave ranks without their share"},
    {"common: {numerics: {shards: 512}}",
     "f.yaml:2:29: error: numerics.shards: expected an integer from 1 to 256, got \"512\""},
    {"common: {batch: {tail: keep-underscaled}}",
     "f.yaml:2:24: error: batch.tail: keep-underscaled divides by the micro-batches of a full "
     "update; expected loss.divisor mean-of-means or update-and-micros, which divide by their "
     "number"},
    {"common: {batch: {micro: 4}}\narms: {a: {}, b: {batch: {size: 6}}}",
     "f.yaml:2:25: error: batch.micro: expected a divisor of batch.size (6), got 4"},
    {"expect: {verdict: outside-floor, cause: ranks}",
     "f.yaml:2:41: error: expect.cause: expected one of schedule, optimizer, dtype, "
     "nondeterminism, "
     "batch-shape, data-order, rng, normalisation, reference, model, parallelism, resume, init, "
     "objective, backward, corruption, any, got \"ranks\""},
    {"expect: {verdict: identical, cause: dtype}",
     "f.yaml:2:30: error: expect.cause: two identical arms have no first difference and no cause "
     "(expect.verdict is identical)"},
    {"expect: {verdict: identical, first_phase: clip}",
     "f.yaml:2:30: error: expect.first_phase: two identical arms have no first difference and no "
     "cause (expect.verdict is identical)"},
};

static void validate_bodies(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        assert_int_equal(arena_format(&arena, &text, "twinstep: 1\n%s\n", bodies[i].body),
                         STATUS_OK);
        helper_refuse(text, NULL, STATUS_INPUT, bodies[i].message);
        arena_close(&arena);
    }
}

static const struct {
    const char *text;
    const char *message;
} documents[] = {
    {"", "f.yaml: error: the file is empty; expected a map with twinstep: 1"},
    {"# nothing\n", "f.yaml: error: the file is empty; expected a map with twinstep: 1"},
    {"[1]", "f.yaml:1:1: error: expected a map with twinstep: 1, got a list"},
    {"hello", "f.yaml:1:1: error: expected a map with twinstep: 1, got \"hello\""},
    {"steps: 3", "f.yaml: error: twinstep: expected the version of the format (twinstep: 1)"},
    {"twinstep: 2\nbrandnew: 1",
     "f.yaml:1:11: error: twinstep: 2 is newer than this program, which reads version 1"},
    {"twinstep: 0", "f.yaml:1:11: error: twinstep: expected an integer >= 1, got \"0\""},
    {"twinstep: one", "f.yaml:1:11: error: twinstep: expected an integer >= 1, got \"one\""},
    {"\x89HDF\r\n\x1a\n", "f.yaml:1:1: error: expected UTF-8 text, got byte 0x89"},
    {"twinstep: 1\nabout: \"\xff\"", "f.yaml:2:9: error: expected UTF-8 text, got byte 0xff"},
    {"twinstep: 1\nabout: a\x7f", "f.yaml:2:9: error: expected text, got control character U+007F"},
    {"twinstep: 1\ncommon: &x {batch: *x}", "f.yaml:2:20: error: *x: stands inside its own anchor"},
    {"twinstep: 1\n---\ntwinstep: 1", "f.yaml:2:1: error: expected one document, got a second one"},
};

static void validate_documents(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(documents); i++)
        helper_refuse(documents[i].text, NULL, STATUS_INPUT, documents[i].message);
}

static void validate_nul_byte(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct scenario *s = NULL;
    assert_int_equal(
        scenario_parse(&arena, &helper_schema, "f.yaml", "twinstep: 1\0\n", 13, NULL, 0, &s),
        STATUS_INPUT);
    assert_string_equal(status_text(),
                        "f.yaml:1:12: error: expected text, got control character U+0000");
    arena_close(&arena);
}

static const struct {
    const char *option;
    const char *message;
} options[] = {
    {"common.optimizer.lr=abc", "optimizer.lr: expected a number >= 0, got \"abc\""},
    {"common.optimizer.lr=", "optimizer.lr: expected a number >= 0, got nothing"},
    {"common.optimizer.lr='1'",
     "optimizer.lr: expected a number >= 0, got the text \"1\"; remove the quotes"},
    {"arms.tset.seed=1", "arms.tset: no such arm; there are baseline and test"},
    {"arms.test=1", "arms.test: expected a map, got \"1\""},
    {"arms=1", "arms: expected a map, got \"1\""},
    {"common.sed=1", "unknown key \"sed\"; did you mean seed?"},
    {"seed=1", "unknown key \"seed\"; it belongs under common or under an arm"},
    {"common.loop.update=[log", "flow sequence without a closing bracket"},
    {"common.batch.size={a: 1}", "batch.size: expected an integer from 1 to 4194303, got a map"},
    {"steps", "expected KEY=VALUE, such as common.optimizer.lr=1e-6"},
    {"=3", "expected KEY=VALUE, such as common.optimizer.lr=1e-6"},
    {".steps=3", "expected keys joined by dots before the ="},
    {"common..seed=3", "expected keys joined by dots before the ="},
    {"common.=3", "expected keys joined by dots before the ="},
    {"a.b.c.d.e.f.g.h.i.j=3", "expected keys joined by dots before the ="},
    {"common.batch.micro=3", "batch.micro: expected a divisor of batch.size (8), got 3"},
    {"arms.test.optimizer.momentum=1",
     "optimizer.momentum belongs to sgd; optimizer.name is adamw in arm test"},
};

static void validate_options(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        struct arena arena = ARENA_EMPTY;
        char *message = NULL;
        const char *const overrides[] = {options[i].option, NULL};
        assert_int_equal(arena_format(&arena, &message, "--set %s: error: %s", options[i].option,
                                      options[i].message),
                         STATUS_OK);
        helper_refuse("twinstep: 1", overrides, STATUS_INPUT, message);
        arena_close(&arena);
    }
    const char *const bytes[] = {"common.data.pairs=\xff", NULL};
    helper_refuse("twinstep: 1", bytes, STATUS_INPUT,
                  "--set:1:19: error: expected UTF-8 text, got byte 0xff");
    const char *const newer[] = {"twinstep=2", NULL};
    helper_refuse("twinstep: 1", newer, STATUS_INPUT,
                  "f.yaml: error: twinstep: this program reads version 1");
}

/* tf32 is known, but it is no format to store numbers in. */
static void validate_operand_format(void **state) {
    (void)state;
    static const char *const keys[] = {"param", "compute", "gradient", "optimizer", "rope", "loss"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        char *message = NULL;
        assert_int_equal(
            arena_format(&arena, &text, "twinstep: 1\ncommon: {numerics: {%s: tf32}}", keys[i]),
            STATUS_OK);
        assert_int_equal(
            arena_format(&arena, &message,
                         "f.yaml:2:%zu: error: numerics.%s: expected f32, f64, bf16 or f16, got "
                         "tf32: it is a format of operands, not of stored numbers (torch's "
                         "allow_tf32 is numerics.compute: f32 with numerics.product: tf32)",
                         23 + strlen(keys[i]), keys[i]),
            STATUS_OK);
        helper_refuse(text, NULL, STATUS_INPUT, message);
        arena_close(&arena);
    }
}

/* Values whose names are known but which are not available have a status of their own, and the
 * place all the same. */
static void validate_unsupported(void **state) {
    (void)state;
    helper_refuse(
        "twinstep: 1\ncommon: {numerics: {shards: 4, mode: shaped}}", NULL, STATUS_UNSUPPORTED,
        "f.yaml:2:29: error: numerics.shards: 4 is not available in numerics.mode "
        "shaped, which orders sums in its own way; expected mode invariant, deterministic "
        "or order-free, or one shard");
    helper_refuse("twinstep: 1\ncommon: {numerics: {cuts: 4, mode: shuffled}}", NULL,
                  STATUS_UNSUPPORTED,
                  "f.yaml:2:27: error: numerics.cuts: 4 is not available in numerics.mode "
                  "shuffled, which orders sums in its own way; expected mode invariant, "
                  "deterministic or order-free, or 1");
    helper_refuse("twinstep: 1\ncommon: {numerics: {cuts: 4, backend: cuda}}", NULL,
                  STATUS_UNSUPPORTED,
                  "f.yaml:2:27: error: numerics.cuts: 4 is not available on numerics.backend cuda; "
                  "available there: 1");
    helper_refuse("twinstep: 1\ncommon: {numerics: {shards: 4, backend: cuda}}", NULL,
                  STATUS_UNSUPPORTED,
                  "f.yaml:2:29: error: numerics.shards: 4 is not available on numerics.backend "
                  "cuda; available there: 1");
    helper_refuse(
        "twinstep: 1\ncommon: {numerics: {mode: shaped, backend: cuda}, "
        "parallel: {ranks: 2}}",
        NULL, STATUS_UNSUPPORTED,
        "f.yaml:2:69: error: parallel.ranks: 2 is not available on numerics.backend cuda; "
        "available there: 1");
    helper_refuse(
        "twinstep: 1\ncommon: {numerics: {mode: shaped}, parallel: {ranks: 2}, "
        "fault: {update: 1}}",
        NULL, STATUS_UNSUPPORTED,
        "f.yaml:2:74: error: fault.update: a flipped bit is not available with "
        "parallel.ranks 2 in modes shaped and shuffled, where each rank has a gradient of "
        "its own");
}

static void refuse_file(const char *path, enum status status, const char *reason) {
    struct arena arena = ARENA_EMPTY;
    struct scenario *s = NULL;
    char *message = NULL;
    assert_int_equal(scenario_open(&arena, &helper_schema, path, NULL, 0, &s), status);
    assert_int_equal(arena_format(&arena, &message, "%s: error: %s", path, reason), STATUS_OK);
    assert_string_equal(status_text(), message);
    arena_close(&arena);
}

static void validate_files(void **state) {
    (void)state;
    char path[] = "/tmp/twinstep-scenario-XXXXXX";
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    refuse_file("/tmp/no/such/file.yaml", STATUS_IO, "cannot open: No such file or directory");
    refuse_file("/tmp", STATUS_INPUT, "expected a file of text, got a folder");
    refuse_file(path, STATUS_INPUT, "the file is empty; expected a map with twinstep: 1");
    assert_int_equal(ftruncate(handle, (off_t)YAML_BYTES_MAX + 1), 0);
    refuse_file(path, STATUS_INPUT, "expected at most 16777216 bytes, got 16777217");
    assert_int_equal(ftruncate(handle, (off_t)YAML_BYTES_MAX * 4), 0);
    refuse_file(path, STATUS_INPUT, "expected at most 16777216 bytes, got more");
    close(handle);
    unlink(path);
}

/* Every cause against arms that differ in each: an expectation stands where it is that one, and is
 * refused by name where no key of it differs. */
static void verify_expected_causes(void **state) {
    (void)state;
    static const char *const differing[CAUSE_COUNT] = {
        [CAUSE_SCHEDULE] = "optimizer: {lr: 2e-6}",
        [CAUSE_OPTIMIZER] = "optimizer: {beta1: 0.8}",
        [CAUSE_DTYPE] = "numerics: {param: bf16}",
        [CAUSE_NONDETERMINISM] = "numerics: {threads: 2}",
        [CAUSE_BATCH_SHAPE] = "batch: {pad: 4}",
        [CAUSE_DATA_ORDER] = "data: {seed: 11}",
        [CAUSE_RNG] = "dropout: {residual: 0.1}",
        [CAUSE_NORMALISATION] = "loss: {divisor: sum-of-means}",
        [CAUSE_REFERENCE] = "dpo: {reference: live}",
        [CAUSE_MODEL] = "model: {norm_eps: 1e-5}",
        [CAUSE_PARALLELISM] = "numerics: {cuts: 2}",
        [CAUSE_RESUME] = "resume: {after: 2}",
        [CAUSE_INIT] = "init: {std: 0.1}",
        [CAUSE_OBJECTIVE] = "dpo: {beta: 0.2}",
        [CAUSE_BACKWARD] = "numerics: {backward: {norm: autograd}}",
        [CAUSE_CORRUPTION] = "fault: {update: 2}",
    };
    for (int cause = 0; cause < CAUSE_COUNT; cause++)
        for (int arm = 0; arm < CAUSE_COUNT; arm++) {
            struct arena arena = ARENA_EMPTY;
            char *text, *message;
            const char *const name = cause_name((enum cause)cause);
            assert_int_equal(arena_format(&arena, &text,
                                          "twinstep: 1\nexpect: {order: [%s]}\nsteps: 4\n"
                                          "arms: {a: {}, b: {%s}}\n",
                                          name, differing[arm]),
                             STATUS_OK);
            assert_int_equal(arena_format(&arena, &message,
                                          "f.yaml:2:18: error: expect.order: %s cannot be a cause "
                                          "here: the arms have the same value of every key of it "
                                          "that is read",
                                          name),
                             STATUS_OK);
            if (cause == arm)
                helper_parse(&arena, text, NULL);
            else
                helper_refuse(text, NULL, STATUS_INPUT, message);
            arena_close(&arena);
        }
}

/* Orders that are drawn differ between arms of equal keys, and fixed ones do not. An expectation of
 * the file is let through where an option changed the arms, one of the option itself is not. */
static void verify_expected_causes_of_options(void **state) {
    (void)state;
    static const char drawn[] = "twinstep: 1\nexpect: {cause: nondeterminism}\n"
                                "common: {numerics: {mode: shuffled, order_seed: free}}\n",
                      fixed[] = "twinstep: 1\nexpect: {cause: nondeterminism}\n"
                                "common: {numerics: {mode: shuffled, order_seed: 3}}\n",
                      file[] = "twinstep: 1\nexpect: {cause: schedule, shares: schedule 1 +- 0.1}\n"
                               "arms: {a: {}, b: {optimizer: {lr: 2e-6}}}\n",
                      shares[] = "twinstep: 1\nexpect:\n  shares: model 1 +- 0.1\n",
                      second[] = "twinstep: 1\nexpect: {order: [schedule, parallelism]}\n"
                                 "arms: {a: {}, b: {optimizer: {lr: 2e-6}}}\n";
    static const char *const equal[] = {"arms.b.optimizer.lr=1e-6", NULL},
                             *const other[] = {"expect.cause=parallelism", NULL};
    struct arena arena = ARENA_EMPTY;
    helper_parse(&arena, drawn, NULL);
    helper_parse(&arena, file, NULL);
    helper_parse(&arena, file, equal);
    helper_refuse(fixed, NULL, STATUS_INPUT,
                  "f.yaml:2:17: error: expect.cause: nondeterminism cannot be a cause here: the "
                  "arms have the same value of every key of it that is read");
    helper_refuse(shares, NULL, STATUS_INPUT,
                  "f.yaml:3:11: error: expect.shares: model cannot be a cause here: the arms have "
                  "the same value of every key of it that is read");
    helper_refuse(second, NULL, STATUS_INPUT,
                  "f.yaml:2:28: error: expect.order: parallelism cannot be a cause here: the arms "
                  "have the same value of every key of it that is read");
    helper_refuse(file, other, STATUS_INPUT,
                  "--set expect.cause=parallelism: error: expect.cause: parallelism cannot be a "
                  "cause here: the arms have the same value of every key of it that is read");
    arena_close(&arena);
}

/* An update behind the last one cannot be the first that differs, nor has a cause two places in an
 * order. An expectation of the file is let through where an option shortened the run. */
static void verify_expected_updates_and_orders(void **state) {
    (void)state;
#define PAIR "arms: {a: {}, b: {optimizer: {lr: 2e-6}, data: {seed: 4}}}\n"
    static const char step[] = "twinstep: 1\nsteps: 3\nexpect: {first_step: 4}\n" PAIR,
                      parting[] = "twinstep: 1\nexpect:\n  replicas_part: 6\n" PAIR,
                      order[] = "twinstep: 1\n"
                                "expect: {order: [schedule, data-order, schedule]}\n" PAIR,
                      last[] = "twinstep: 1\nsteps: 4\nexpect: {first_step: 4}\n" PAIR;
#undef PAIR
    static const char *const fewer[] = {"steps=3", NULL}, *const other[] = {"expect.first_step=5",
                                                                            NULL};
    struct arena arena = ARENA_EMPTY;
    helper_parse(&arena, last, NULL);
    helper_parse(&arena, last, fewer);
    helper_refuse(step, NULL, STATUS_INPUT,
                  "f.yaml:3:22: error: expect.first_step: expected an update up to steps (3), or 0 "
                  "(any), got 4");
    helper_refuse(
        parting, NULL, STATUS_INPUT,
        "f.yaml:3:18: error: expect.replicas_part: expected an update up to steps (5), or "
        "0 (any), got 6");
    helper_refuse(order, NULL, STATUS_INPUT,
                  "f.yaml:2:40: error: expect.order: expected each cause once, got schedule twice");
    helper_refuse(last, other, STATUS_INPUT,
                  "--set expect.first_step=5: error: expect.first_step: expected an update up to "
                  "steps (4), or 0 (any), got 5");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_expected_updates_and_orders),
        cmocka_unit_test(validate_bodies),
        cmocka_unit_test(validate_documents),
        cmocka_unit_test(validate_nul_byte),
        cmocka_unit_test(validate_options),
        cmocka_unit_test(validate_unsupported),
        cmocka_unit_test(validate_operand_format),
        cmocka_unit_test(validate_files),
        cmocka_unit_test(verify_expected_causes),
        cmocka_unit_test(verify_expected_causes_of_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
