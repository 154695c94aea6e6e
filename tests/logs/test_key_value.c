/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The reader of last resort: which names and numbers of a line are taken, which counts are steps,
 * how finely numbers were printed, and what is an error because it would be a guess. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "logs/pairs.h"

#define N real_nan_f64()

/* Writes what was read of a line: "step=3/10 loss=2.5 'lr'=1e-05 bar=4/9". */
static void show(const char *line, char *out, size_t room) {
    static struct pairs p;
    size_t used = 0;
    pairs_read((struct log_span){line, strlen(line)}, &p);
    out[0] = '\0';
    for (size_t i = 0; i < p.step_count; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%.*s:%d/%d ",
                                 p.steps[i].other ? "?" : "", (int)p.steps[i].name.length,
                                 p.steps[i].name.text, (int)p.steps[i].step, (int)p.steps[i].total);
    for (size_t i = 0; i < p.count; i++)
        used += (size_t)snprintf(out + used, room - used,
                                 p.pair[i].in_dict ? "'%.*s'=%.*s " : "%.*s=%.*s ",
                                 (int)p.pair[i].name.length, p.pair[i].name.text,
                                 (int)p.pair[i].value.length, p.pair[i].value.text);
    if (p.bar.name.length > 0)
        used += (size_t)snprintf(out + used, room - used, "bar:%d/%d ", (int)p.bar.step,
                                 (int)p.bar.total);
    if (used > 0) out[used - 1] = '\0';
}

static void validate_pairs_of_a_line(void **state) {
    static const char *const cases[][2] = {
        /* signs and separators */
        {"step: 3, loss: 2.5", "step:3/0 loss=2.5"},
        {"step=3 loss=2.5 lr=1e-05", "step:3/0 loss=2.5 lr=1e-05"},
        {"step:3 loss:2.5;lr:-1E-5", "step:3/0 loss=2.5 lr=-1E-5"},
        {"Step 3 | Loss: 2.5 | Grad. Norm: 1.25", "Step:3/0 Loss=2.5 Grad. Norm=1.25"},
        {"iter 3: loss 2.5, time 12.5ms, mfu -100.00%", "iter:3/0 loss=2.5 mfu=-100.00"},
        {"2024-01-01 10:00:00,123 - root - INFO - step: 3 - loss: 2.5", "step:3/0 loss=2.5"},
        {"02:40:52 SUCCESS Step 3 | Time: 5.1s | Loss: 2.5", "Step:3/0 Loss=2.5"},
        {"INFO:root:step=3 loss=2.5", "step:3/0 loss=2.5"},
        {"INFO:tensorflow:global step 3: loss = 2.5 (5.1 sec/step)", "global step:3/0 loss=2.5"},
        {"epoch 1 step 3 loss 2.5 lr 0.1", "step:3/0 epoch=1 loss=2.5 lr=0.1"},
        {"step 3/10 (30.0%) | loss: 2.5", "step:3/10 loss=2.5"},
        {"step 3 of 10, loss: 2.5", "step:3/10 loss=2.5"},
        {"step 00003/00010\tloss\t2.5", "step:3/10"}, /* a name and its number in two fields */
        {"epoch 001:    100 / 3000 loss=2.5, num_updates=100", "num_updates:100/0 loss=2.5"},
        /* numbers */
        {"step: 3, tokens: 1,048,576, loss: nan", "step:3/0 tokens=1,048,576 loss=nan"},
        {"step=3,a=1,234,b=1,23", "step:3/0 a=1,234"},
        {"step 3 | tokens 28,590 | loss 2.5", "step:3/0 tokens=28,590 loss=2.5"},
        {"step 3 | loss 0.5,100 | b 1,23", "step:3/0"},
        {"490 | loss 2.5 | lr 1e-05", "step:490/0 loss=2.5 lr=1e-05"},
        {"490 loss 2.5", "loss=2.5"},
        {"7 | step 3 | loss 2.5", "step:3/0 loss=2.5"},
        {"step=3 a=1,2345 b=inf c=-inf d=Infinity", "step:3/0 b=inf c=-inf d=Infinity"},
        {"step=3 a=0,904 b=10,904 c=-0,5", "step:3/0 b=10,904"},
        {"step 3, a 0,904, b 2.5,3 | c 100,904", "step:3/0 c=100,904"},
        {"step 1,500 loss 2.5", "step:1500/0 loss=2.5"},
        {"step: 1,048,576/2,000,000 | loss: 2.5", "step:1048576/2000000 loss=2.5"},
        {"iter 12,5 loss 2.5", "loss=2.5"},
        {"iter 0,500: loss 2.5", "loss=2.5"},
        {"step=3 a=5.1/23.7 b=12ms c=1e-3 d=0x10 e=1.5k", "step:3/0 c=1e-3"},
        {"step=3 a=45.5% b=10 %", "step:3/0 a=45.5 b=10"},
        {"step=3 lr=[1e-05, 2e-05], mom=[(0.9, 0.99)], loss=2.5", "step:3/0 loss=2.5"},
        {"step=3 v=np.float64(0.5) w=tensor(0.25, device='cuda:0') x=f(y)",
         "step:3/0 v=0.5 w=0.25"},
        /* dicts */
        {"{'step': 3, 'loss': 2.5, 'name': 'a: 5, b=6'}", "step:3/0 'loss'=2.5"},
        {"step 3: {'train/loss': 2.5, 'v': '1.5'}", "step:3/0 'train/loss'=2.5 v=1.5"},
        {"{'train': {'loss': 2.5}, 'eval': {'loss': 3.5}, 'iteration': 3}",
         "iteration:3/0 'train/loss'=2.5 'eval/loss'=3.5"},
        {"{\"a\": {\"b\": {\"c\": 1}}, \"d\": 2}", "'a/b/c'=1 'd'=2"},
        /* seven dicts inside of one are read; what lies deeper is left out, and nothing moves up */
        {"{'a': {'b': {'c': {'d': {'e': {'f': {'g': {'x': 1}}}}}}}, 'y': 2}",
         "'a/b/c/d/e/f/g/x'=1 'y'=2"},
        {"{'a': {'b': {'c': {'d': {'e': {'f': {'g': {'h': {'x': 1}, 'u': 3}}}}, 'v': 4}, 'w': "
         "5}}, "
         "'y': 2}",
         "'a/b/c/d/e/f/g/u'=3 'a/b/c/v'=4 'a/b/w'=5 'y'=2"},
        {"{'a': {'b': {'c': {'d': {'e': {'f': {'g': {'h': {'i': {'step': 7, 'x': 1}}, 'u': "
         "3}}}}}}}, "
         "'step': 2}",
         "step:2/0 'a/b/c/d/e/f/g/u'=3"},
        {"{{{{{{{{{{step: 3, loss: 2.5}}}}}}}}}}, lr: 1", "step:3/0 loss=2.5 lr=1"},
        {"{{{{{{{{{{ step: 3, loss: 2.5", "step:3/0 loss=2.5"},
        /* counts that are none, or not this one */
        {"tokens per step: 4096, max_step: 9, 3 ms/step: 7, loss: 2.5",
         "tokens per step=4096 max_step=9 ms/step=7 loss=2.5"},
        {"g_step 2000, step 152, loss:2.5", "?g_step:2000/0 step:152/0 loss=2.5"},
        {"micro step 3 | eval step: 4 | loss: 2.5", "?micro step:3/0 ?eval step:4/0 loss=2.5"},
        {"epoch   0/ 10 | global iteration       20/    3402 | lm loss 7.5 |",
         "global iteration:20/3402 lm loss=7.5"},
        {"critic-step 3: {'x': 1}", "?critic-step:3/0 'x'=1"},
        {"global_step=103 step=3 loss=2.5", "global_step:103/0 step:3/0 loss=2.5"},
        {"step: 3.5, loss: 2.5", "step=3.5 loss=2.5"},
        {"step: 3.000, loss: 2.5", "step:3/0 loss=2.5"},
        {"Saving checkpoint at step 500 to /data/step-500", "step:500/0"},
        {"loaded 5 files in 3 seconds", ""},
        /* places in a source, times, addresses */
        {"model.py:500 - step 3: {'loss': 2.5}", "step:3/0 'loss'=2.5"},
        {"[10:00:00] step: 3, eta: 0:12:05, port: localhost:29500, loss: 2.5",
         "step:3/0 localhost=29500 loss=2.5"},
        {"I0219 19:34:48.976376 1364 trainer.py:255] step = 3 loss = 2.5", "step:3/0 loss=2.5"},
        /* bars */
        {"1|74|Loss: 2.5:   0%|2 | 74/90 [00:10<1:00:00, 1.0it/s]", "Loss=2.5 bar:74/90"},
        {" 12%|#2   | 3/9 [00:10<01:30, 1.0it/s, loss=2.5]", "loss=2.5 bar:3/9"},
        {"Progress on:train 10.0it/100it rate:1.0it/s elapsed:00:10 postfix:loss=5.7",
         "loss=5.7 bar:10/100"},
        {"Progress on:train 1.00it/10.0kit rate:1.1it/s remaining:2:52:33 postfix:loss=9.91",
         "loss=9.91 bar:1/0"},
        {"Progress on:train 640it/999it rate:1.1it/s postfix:loss=9.91", "loss=9.91 bar:640/999"},
        {"Progress on:train 1.2kit/100kit rate:1.0it/s postfix:loss=5.7", "loss=5.7"},
        /* brackets */
        {"Step [1/16] Loss: 2.5 LR: 1.000e-03", "Step:1/16 Loss=2.5 LR=1.000e-03"},
        {"10:00:01,123 - INFO - Epoch [1/3], Step [ 2/16 ], Loss: 2.5", "Step:2/16 Loss=2.5"},
        {"Iter [50/80000]\tlr: 2.000e-02, loss: 1.5", "Iter:50/80000 lr=2.000e-02 loss=1.5"},
        {"step [1,500] loss 2.5", "step:1500/0 loss=2.5"},
        {"Iteration: [3/9] loss: 2.5", "Iteration:3/9 loss=2.5"},
        {"step=[3] loss=2.5", "step:3/0 loss=2.5"},
        {"val step [3/9], loss: 2.5", "?val step:3/9 loss=2.5"},
        {"step [3/9 (33%)] loss: 2.5", "loss=2.5"},
        {"step [3.5] loss: 2.5", "loss=2.5"},
        {"step [3, 4] loss: 2.5", "loss=2.5"},
        {"step [1][3/9] loss: 2.5", "loss=2.5"},
        {"iter: [0][3/9] loss: 2.5", "loss=2.5"},
        {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.5", "Train Epoch=1 Loss=2.5"},
        {"Epoch: [0][10/5005]\tTime  0.1 ( 0.2)\tLoss 2.5 (3.5)", "Time=0.1 Loss=2.5"},
        {"loss=2.5 step [3", "loss=2.5"},
        /* ends */
        {"step=3 loss=", "step:3/0"},
        {"{'step': 3, 'loss", "step:3/0"},
        {"step=3 '", "step:3/0"},
        {":=,|;{}()[]'\"", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char got[512];
        show(cases[i][0], got, sizeof got);
        if (strcmp(got, cases[i][1]) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i][0], cases[i][1], got);
    }
}

/* modded-nanogpt evaluates at step 0, before it trains, and ends at step T of T. Steps of 0 to T -
 * 1 count from the first update. */
static void validate_steps_from_0(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena,
                                      "step:0/2 val_loss:10.83 train_time:0ms\n"
                                      "step:1/2 train_loss:10.81 train_time:9ms\n"
                                      "step:2/2 val_loss:9.95 train_time:18ms\n",
                                      NULL);
    assert_int_equal(log->step[2], 2);
    assert_int_equal(log->step[0], 0);
    assert_true(logs_has_note(log, "run from 0 to its own total"));
    log = logs_read(&arena,
                    "step:0/2 train_loss:10.83 train_time:0ms\n"
                    "step:1/2 train_loss:10.81 train_time:9ms\n",
                    NULL);
    assert_int_equal(log->step[1], 2);
    assert_true(logs_has_note(log, "taken as update 1"));
    arena_close(&arena);
}

/* An evaluation before the training has step 0, where the first update has step 1. It shifted each
 * update by one. Steps 9, 19 count from 0, and so does a row of step 0 that has a loss or an LR. */
static void validate_evaluation_before(void **state) {
    static const struct {
        const char *text;
        int64_t base, last;
    } cases[] = {
        {"step: 0 | val loss: 3.20 | ppl: 24.5\nstep: 1 | loss: 3.10\nstep: 2 | loss: 3.00\n", 1,
         2},
        {"step: 0 | val loss: 3.20 | ppl: 24.5\nstep: 10 | loss: 3.10\nstep: 20 | loss: 3.00\n", 1,
         20},
        {"step: 0 | val loss: 3.20 | ppl: 24.5\nstep: 9 | loss: 3.10\nstep: 19 | loss: 3.00\n", 0,
         20},
        {"step: 0 | val loss: 3.20 | ppl: 24.5\nstep: 1 | loss: 3.10\n", 1, 1},
        {"step: 0 | val loss: 3.2, lr: 0.1\nstep: 1 | loss: 3.10\nstep: 2 | loss: 3.0\n", 0, 3},
        {"step: 0 | val loss: 3.20 | ppl: 24.5\nstep: 0 | loss: 3.10\nstep: 1 | loss: 3.00\n", 0,
         2},
        {"step: 0 | val loss: 3.20 | ppl: 24.5\nstep: 5 | val loss: 3.10 | ppl: 24.5\n", 0, 6},
        {"step: 0 | val loss: 3.20 | ppl: 24.5\n", 0, 1},
        {"step:0 - val-core/acc:0.51\nstep:1 - actor/pg_loss:0.1 - actor/lr:0.1\n", 1, 1},
        {"step:0 - actor/pg_loss:0.2 - actor/lr:0.1\nstep:1 - actor/pg_loss:0.1\n", 0, 2}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = logs_read(
            &arena, cases[i].text, strstr(cases[i].text, " - ") != NULL ? NULL : "key-value");
        if (log->step_base != cases[i].base || log->step[log->rows - 1] != cases[i].last)
            fail_msg("%s: base %d, last %d", cases[i].text, (int)log->step_base,
                     (int)log->step[log->rows - 1]);
        arena_close(&arena);
    }
    struct arena arena = ARENA_EMPTY;
    const struct log *log = logs_read(&arena, cases[0].text, "key-value");
    assert_true(logs_has_note(log, "taken as an evaluation before the first update"));
    arena_close(&arena);
}

/* fairseq's "update" is the place in the epochs: 2.0 of two whole ones is no count. */
static void validate_updates_of_fairseq(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "{\"update\": 1.9, \"loss\": \"3.1\", \"num_updates\": \"190\"}\n"
                  "{\"update\": 2.0, \"loss\": \"3.0\", \"num_updates\": \"200\"}\n",
                  "key-value");
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 200);
    arena_close(&arena);
}

/* Names of dicts of which the third no longer fits: what is in it is left out, and what stands
 * behind it has the name of its own dict. */
static void validate_names_too_long(void **state) {
    (void)state;
    char name[101], line[600], got[1200], expected[600];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    snprintf(line, sizeof line, "{'%s': {'%s': {'%s': {'q': {'x': 1}, 'y': 2}, 'u': 3}, 'v': 4}}",
             name, name, name);
    show(line, got, sizeof got);
    snprintf(expected, sizeof expected, "'%s/%s/u'=3 '%s/v'=4", name, name, name);
    assert_string_equal(got, expected);
}

/* A console prints digits, a dict a repr; whole numbers of a dict are exact. */
static void validate_quanta(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "step 1 | loss: 2.50 | lr: 1.00e-06 | n: 12 | tokens: 4,096\n"
                  "step 2 | loss: 12.125 | lr: 9.5e-07 | n: 13 | tokens: 8192\n",
                  NULL);
    assert_string_equal(log->format, "key-value");
    logs_expect(log, "loss", 0, 2.5, 0.01);
    logs_expect(log, "loss", 1, 12.125, 0.001);
    logs_expect(log, "lr", 0, 1e-6, 1e-8);
    logs_expect(log, "lr", 1, 9.5e-7, 1e-8);
    logs_expect(log, "n", 0, 12.0, 1.0);
    logs_expect(log, "tokens", 0, 4096.0, 0.0);
    log = logs_read(&arena,
                    "step 1: {'loss': 2.5, 'lr': 1e-06, 'n': 12, 'x': 0.1}\n"
                    "step 2: {'loss': 2.125, 'lr': 9.5e-07, 'n': 13, 'x': 0.30000000000000004}\n",
                    NULL);
    logs_expect(log, "loss", 0, 2.5, 0.001); /* a repr drops zeros, so the column's finest holds */
    logs_expect(log, "lr", 0, 1e-6, 1e-7);
    logs_expect(log, "n", 0, 12.0, 0.0);
    logs_expect(log, "x", 0, 0.1, 0.0);
    log = logs_read(&arena, "step=1 loss=2.5000000000000004\nstep=2 loss=2.25\n", NULL);
    logs_expect(log, "loss", 1, 2.25, 0.0);
    arena_close(&arena);
}

static enum status read_mapped(struct arena *arena, const char *text, const char *step,
                               struct log **out) {
    struct log_options options;
    log_options_init(&options);
    options.format = "key-value";
    options.map[0].ours = "step";
    options.map[0].theirs = step;
    options.map_count = 1;
    return log_import_bytes("test", text, strlen(text), &options, arena, out);
}

/* Brackets and quotes that nobody closes: the time must grow with the line and not with its square,
 * which would be minutes here. */
static void verify_hostile_lines_take_no_time(void **state) {
    static const char *const pieces[] = {
        "a=[", "'", "\"'", "a={", "(", "a:", " 'x", "1 ", "a ", "a(", ","};
    static char line[1 << 18];
    static struct pairs p;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        const size_t step = strlen(pieces[i]);
        size_t length = 0;
        for (; length + step < sizeof line; length += step)
            memcpy(line + length, pieces[i], step);
        pairs_read((struct log_span){line, length}, &p);
        memset(line, ' ', sizeof line / 2);
        pairs_read((struct log_span){line, length}, &p);
        assert_int_equal(p.step_count, 0);
    }
}

static void validate_what_would_be_a_guess(void **state) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"iter 128 step 1 | loss: 2.5\niter 256 step 2 | loss: 2.25\n",
         "test:1: expected one count of updates, got \"iter\" 128 and \"step\" 1; say which it is: "
         "--map \"step=iter\" or --map \"step=step\""},
        {"g_step 2000, step 152, loss: 2.5\ng_step 2001, step 153, loss: 2.25\n",
         "got \"step\" 152 and \"g_step\" 2000"},
        {"step 40: loss 2.5\niter 5: reward 0.5\nstep 41: loss 2.5\n",
         "test:2: expected one count of updates, got \"step\" 40 and \"iter\" 5"},
        {"step: 5, loss: 2.1\nstep: 5, loss: 2.3\nstep: 6, loss: 2\n",
         "test:2: expected one \"loss\" for step 5, got 2.3, and 2.1 in line 1"},
        {"step=1 loss=2,5051 lr=1e-05\nstep=2 loss=1,904 lr=1e-05\n",
         "test:1: expected one number with a decimal point for \"loss\", got 2,5051; commas that "
         "part decimals"},
        {"step 1 | n 1,5 | a 1 | loss 1,904\nstep 2 | n 1,5 | a 1 | loss 0,904\n",
         "test:2: expected one number with a decimal point for \"loss\", got 0,904"},
        {"step=1 a=1\nstep=9 a=2\nstep=2 a=1\nstep=8 a=1\nstep=3 a=1\nstep=7 a=1\nstep=4 a=1\n"
         "step=6 a=1\nstep=5 a=1\nstep=9 a=1\nstep=2 a=1\n",
         "expected steps that rise, got 5 falls in 11 rows"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const char *got = logs_refuse(&arena, cases[i].text, strlen(cases[i].text), NULL);
        if (strstr(got, cases[i].words) == NULL) fail_msg("case %zu: %s", i, got);
        arena_close(&arena);
    }
}

/* The same without a format: --map step=bar tells it, where nobody else knows the file. */
static enum status read_by_content(struct arena *arena, const char *text, const char *step,
                                   struct log **out) {
    struct log_options options;
    log_options_init(&options);
    options.map[0].ours = "step";
    options.map[0].theirs = step;
    options.map_count = 1;
    return log_import_bytes("test", text, strlen(text), &options, arena, out);
}

/* The console of Levanter: a bar of tqdm_loggable, or of tqdm on a terminal, and nothing else that
 * counts. The shape is from its callbacks (pbar_logger) and tqdm_loggable's; the numbers are ours.
 * The count is the update for whoever says so, and where tqdm rounds it there is no row. */
static void validate_levanter(void **state) {
    static const char logger[] =
        "2024-01-19T19:34:09 - 0 - levanter.trainer - trainer.py:503 - INFO :: Tracing "
        "train_step.\n"
#define LINE "2024-01-19T19:34:20 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:145 - INFO :: "
        LINE "Progress on:train 1.00it/10.0kit rate:0.1it/s remaining:2:52:33 elapsed:00:18 "
        "postfix:loss=10.0\n" LINE
        "Progress on:train 47.0it/10.0kit rate:1.1it/s remaining:2:22:33 elapsed:00:58 "
        "postfix:loss=9.91\n" LINE
        "Progress on:eval 3.00it/8.00it rate:1.1it/s remaining:00:04 elapsed:00:58 "
        "postfix:\n" LINE
        "Progress on:train 640it/10.0kit rate:1.1it/s remaining:2:02:33 elapsed:10:58 "
        "postfix:loss=7.5\n" LINE
        "Progress on:train 1.25kit/10.0kit rate:1.1it/s remaining:2:02:33 elapsed:20:58 "
        "postfix:loss=7.1\n";
#undef LINE
    static const char terminal[] =
        "\x1b[32mtrain:   0%|          | 12/10000 [00:10<2:22:11,  1.21it/s, loss=9.9]\r"
        "train:   0%|          | 47/10000 [00:38<2:22:11,  1.21it/s, loss=9.1]\n";
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    (void)state;
    assert_int_equal(read_by_content(&arena, logger, "bar", &log), STATUS_OK);
    assert_string_equal(log->format, "key-value");
    assert_int_equal(log->rows, 3);
    assert_int_equal(log->step[2], 640);
    assert_true(log_column_of(log, LOG_LOSS)->value[2] == 7.5);
    assert_non_null(
        strstr(log->notes[0], "whose count is rounded (as 1.25kit) that were left out: 1"));
    assert_int_equal(read_by_content(&arena, terminal, "bar", &log), STATUS_OK);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 47);
    assert_int_equal(log->max_steps, 10000);
    /* Nobody said that bars count updates. */
    assert_int_equal(read_by_content(&arena, logger, "iteration", &log), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "(--map step=bar takes its count as the update)"));
    arena_close(&arena);
}

/* The bar of OpenRLHF, whose actor's LR is `act_lr`; the shape is that of its PPO trainer's, the
 * numbers are ours. */
static void validate_openrlhf(void **state) {
    static const char bars[] =
        "Train epoch [1/1]:  50%|#####     | 1/2 [00:02<00:02, pg=-0.09, kl=0, act_lr=1.74e-6]\n"
        "Train epoch [1/1]: 100%|##########| 2/2 [00:03<00:00, pg=0.16, kl=0.02, act_lr=1.1e-6]\n";
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    (void)state;
    assert_int_equal(read_by_content(&arena, bars, "bar", &log), STATUS_OK);
    assert_int_equal(log->rows, 2);
    const struct log_column *const lr = log_column_of(log, LOG_LR_LOGGED);
    assert_non_null(lr);
    assert_string_equal(lr->source, "act_lr");
    assert_true(lr->value[0] == 1.74e-6 && lr->value[1] == 1.1e-6);
    arena_close(&arena);
}

/* --map step=NAME decides, also between a count and a bar; what it leaves out is said. */
static void validate_the_step_that_the_user_names(void **state) {
    static const char text[] = "iter 128 step 1 | loss: 2.5\n 12%|# | 5/9 [00:10<0, acc=0.5]\n"
                               "iter 256 step 2 | loss: 2.25\niter 300 | loss: 2.125\n"
                               "{'episode': 7, 'loss': 1.5}\n";
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    (void)state;
    assert_int_equal(read_mapped(&arena, text, "step", &log), STATUS_OK);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 2);
    assert_true(logs_has_note(log, "lines without \"step\" that were left out: 1"));
    assert_int_equal(read_mapped(&arena, text, "iter", &log), STATUS_OK);
    assert_int_equal(log->step[2], 300);
    assert_int_equal(read_mapped(&arena, text, "bar", &log), STATUS_OK);
    assert_int_equal(log->rows, 1);
    assert_int_equal(log->step[0], 5);
    assert_int_equal(log->max_steps, 9);
    assert_int_equal(read_mapped(&arena, text, "episode", &log), STATUS_OK);
    assert_int_equal(log->rows, 1);
    assert_int_equal(log->step[0], 7);
    assert_null(log_column_by_source(log, "episode"));
    assert_int_equal(read_mapped(&arena, text, "nothing", &log), STATUS_INPUT);
    assert_int_equal(read_mapped(&arena,
                                 "Epoch 1/20, Actor Loss: 5.6780\nEpoch 2/20, Actor Loss: 5.5\n",
                                 "epoch", &log),
                     STATUS_OK);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[1], 2);
    assert_int_equal(log->max_steps, 20);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "Actor Loss");
    /* a name that no line has leaves no column to list */
    assert_int_equal(read_mapped(&arena, "a: 1.5\n", "Foo", &log), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "--map step=Foo: expected a column of the log behind the "
                                          "sign, got \"Foo\", of which no line has a value"));
    arena_close(&arena);
}

/* Lines of one step are one row while their columns differ, and a resumed run goes back once. */
static void validate_rows(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena,
                                      "step 0: train loss 4.5, val loss 4.25\n"
                                      "iter 0: loss 4.125, mfu 3.5%\n"
                                      "iter 10: loss 4.0, mfu 3.5%\n"
                                      "iter 10: loss 4.0\n"
                                      "iter 5: loss 4.0, mfu 3.5%\n",
                                      NULL);
    assert_int_equal(log->rows, 3);
    assert_int_equal(log->step_base, 0);
    logs_expect(log, "val loss", 0, 4.25, 0.01);
    logs_expect(log, "loss", 0, 4.125, 0.001);
    logs_expect(log, "val loss", 1, 0.0, N);
    assert_int_equal(log->part[2], 1);
    assert_true(logs_has_note(log, "values that a step shows twice, and equally: 1"));
    assert_string_equal(log_column_of(log, LOG_EVAL_LOSS)->source, "val loss");
    arena_close(&arena);
}

/* A step beside an epoch goes on over all of them or begins anew in each: a second epoch shows it,
 * and the total is that of all. One epoch of several says neither. */
static void verify_steps_of_epochs(void **state) {
    static const struct {
        const char *text;
        int64_t last;
        uint64_t total;
        const char *note; /* or the error, where `last` is 0 */
    } cases[] = {
        {"Epoch [1/3], Step [8/16], Loss: 2.5\nEpoch [1/3], Step [16/16], Loss: 2.25\n", 16, 0,
         "it shows one epoch of 3, and not whether its steps go on or begin anew"},
        {"Epoch [2/3], Step [8/16], Loss: 2.5\nEpoch [2/3], Step [16/16], Loss: 2.25\n", 16, 0,
         "is left out, and its rows may be later updates than these"},
        {"Epoch [1/1], Step [8/16], Loss: 2.5\nEpoch [1/1], Step [16/16], Loss: 2.25\n", 16, 16,
         NULL},
        {"Epoch [1/3], Step [8/16], Loss: 2.5\nEpoch [1/3], Step [16/16], Loss: 2.25\n"
         "Epoch [2/3], Step [8/16], Loss: 2.0\n",
         24, 48, "its steps begin anew in each epoch: they are numbered on, 16 an epoch"},
        {"Epoch [0/3], Step [0/16], Loss: 2.5\nEpoch [1/3], Step [0/16], Loss: 2.25\n", 17, 48,
         "begin anew in each"}, /* from 0: step 0 is update 1 */
        {"epoch 1/3 | step 16/16 | loss 2.5\nepoch 3/3 | step 16/16 | loss 2.25\n", 48, 48,
         "begin anew in each"},
        {"Epoch [1/3], Step [16/48], Loss: 2.5\nEpoch [2/3], Step [17/48], Loss: 2.25\n", 17, 48,
         NULL},
        {"epoch 1/3 | global step 16/48 | loss 2.5\nepoch 1/3 | global step 17/48 | loss 2.25\n",
         17, 48, NULL},
        {"Epoch [2/3], Step [8/16], Loss: 2.5\nEpoch [3/3], Step [8/16], Loss: 2.25\n", 0, 0,
         "test:2: expected a log from its first epoch on, got one from epoch 2"},
        {"Epoch [1/3], Step [8/16], Loss: 2.5\nEpoch [2/3], Step [8/15], Loss: 2.25\n", 0, 0,
         "test:2: expected a step of 16 in every epoch, since the steps begin anew in each, got "
         "step 8 of 15 in epoch 2"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        if (cases[i].last == 0) {
            const char *got = logs_refuse(&arena, cases[i].text, strlen(cases[i].text), NULL);
            if (strstr(got, cases[i].note) == NULL) fail_msg("case %zu: %s", i, got);
        } else {
            const struct log *log = logs_read(&arena, cases[i].text, NULL);
            assert_string_equal(log->format, "key-value");
            if (log->step[log->rows - 1] != cases[i].last || log->max_steps != cases[i].total)
                fail_msg("case %zu: %d of %d", i, (int)log->step[log->rows - 1],
                         (int)log->max_steps);
            assert_int_equal(log->part[log->rows - 1], 0);
            if (cases[i].note != NULL) assert_true(logs_has_note(log, cases[i].note));
            if (cases[i].note == NULL) assert_false(logs_has_note(log, "epoch"));
        }
        arena_close(&arena);
    }
}

/* What an evaluation prints among the rows is not a row of the training, and is counted. */
static void validate_lines_of_other_counts(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena,
                                      "[00:00:00] train step=100 loss=0.5\n"
                                      "[00:00:00] val step=100 loss=0.75\n"
                                      "[00:00:01] train step=200 loss=0.25\n",
                                      NULL);
    assert_int_equal(log->rows, 2);
    logs_expect(log, "loss", 1, 0.25, 0.01);
    assert_true(logs_has_note(log, "(such as \"val step\") that were left out: 1"));
    arena_close(&arena);
}

/* More values than a row holds, and longer names: the rest is counted. */
static void validate_what_does_not_fit(void **state) {
    static char text[40000];
    struct arena arena = ARENA_EMPTY;
    size_t used = 0;
    (void)state;
    for (int line = 1; line <= 2; line++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "step: %d", line);
        for (int i = 0; i < 300; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, ", k%d: %d.5", i, line);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    const struct log *log = logs_read(&arena, text, NULL);
    assert_int_equal(log->column_count, PAIRS_MAX);
    assert_true(logs_has_note(log, "whose rest was left out: 2"));
    arena_close(&arena);
}

/* One row proves no format, and prose about steps is no log. */
static void validate_claims(void **state) {
    static const char *const no_logs[] = {
        "step=1 loss=2.5\n", "step 1: mix flour\nstep 2: add 3 eggs\n",
        "Step 1: set a=5\nStep 2: set b=6\n", "loss: 2.5\nloss: 2.25\n",
        "max_steps: 500\nwarmup_steps: 50\nsave_steps: 100\n"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(no_logs); i++) {
        struct arena arena = ARENA_EMPTY;
        assert_non_null(strstr(logs_refuse(&arena, no_logs[i], strlen(no_logs[i]), NULL),
                               "expected a log of a known format"));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_levanter),
        cmocka_unit_test(validate_openrlhf),
        cmocka_unit_test(validate_pairs_of_a_line),
        cmocka_unit_test(validate_names_too_long),
        cmocka_unit_test(validate_quanta),
        cmocka_unit_test(validate_steps_from_0),
        cmocka_unit_test(validate_evaluation_before),
        cmocka_unit_test(validate_updates_of_fairseq),
        cmocka_unit_test(verify_hostile_lines_take_no_time),
        cmocka_unit_test(validate_what_would_be_a_guess),
        cmocka_unit_test(validate_the_step_that_the_user_names),
        cmocka_unit_test(validate_rows),
        cmocka_unit_test(verify_steps_of_epochs),
        cmocka_unit_test(validate_lines_of_other_counts),
        cmocka_unit_test(validate_what_does_not_fit),
        cmocka_unit_test(validate_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
