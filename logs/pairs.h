/* SPDX-License-Identifier: Apache-2.0
 * The names and numbers of one line, whoever wrote it: "loss: 2.5", "loss=2.5", "loss 2.5",
 * {'loss': 2.5}, between commas, bars, semicolons, blanks or " - ". Private to logs/.
 *
 * Knows which names count updates, and no framework. What is no plain number (a time, "5.1/23.7",
 * "12ms", a list) is left out. Invariant: nothing is kept from one line to the next. */
#ifndef TWINSTEP_LOGS_PAIRS_H
#define TWINSTEP_LOGS_PAIRS_H

#include "logs/lines.h"

#define PAIRS_MAX 256
#define PAIRS_NAMES 8192
#define PAIRS_STEPS 8
#define PAIRS_DEPTH 8
/* The name by which --map step=.. asks for the count of a progress bar. */
#define PAIRS_BAR "bar"

struct pair {
    struct log_span name; /* of a dict inside a dict: "train/loss" */
    struct log_span value;
    int in_dict; /* 1: the name is a string of a dict, so the number is Python's or JSON's repr */
};

struct step_pair {
    struct log_span name; /* "step", "iter", "Global step", .. as written; PAIRS_BAR of a bar */
    int64_t step;
    uint64_t total; /* 0: the line does not say */
    int other; /* 1: it counts something by its name ("g_step", "micro step"), who knows what */
};

struct pairs {
    struct pair pair[PAIRS_MAX];
    size_t count;
    int cut;                             /* 1: the line holds more than fits here */
    struct step_pair steps[PAIRS_STEPS]; /* what counts updates by its name; bars are not here */
    size_t step_count;
    struct step_pair counts[PAIRS_STEPS]; /* other names with a count and a total: "Epoch 1/200" */
    size_t count_count;
    struct step_pair bar; /* name.length 0: the line holds no progress bar with a whole count */
    int bar_rounded;      /* 1: it holds one whose count is rounded ("1.25kit") */
    struct pair comma;    /* the first loss, rate or the like that may have a decimal comma, whole
                             ("2,5051") and in no pair; name.length 0: there is none */
    char names[PAIRS_NAMES];
    size_t used;
};

void pairs_read(struct log_span line, struct pairs *out);
/* Finds the first progress bar of a line, and returns whether there is one with a whole count. A
 * total of 0 is one that it does not say. */
int pairs_bar(struct log_span line, int64_t *out_step, uint64_t *out_total);
/* Finds what counts a part of an epoch, which PyTorch's examples print: PAIRS_SAMPLES of "Epoch: 1
 * [640/60000 (1%)]", PAIRS_BATCHES of "Epoch: [0][10/5005]". *out is that text. Returns 0 where the
 * line has none. */
#define PAIRS_SAMPLES 1
#define PAIRS_BATCHES 2
int pairs_part_of_epoch(struct log_span line, struct log_span *out);
/* Says whether the whole name is one that counts updates: "Step", "global_step", "Train step". */
int pairs_is_step(struct log_span name);
/* Says whether two names of a step are the same but for case, blanks and underscores. */
int pairs_same_step(struct log_span a, struct log_span b);
/* Returns what a call was made with: 0.5 of "np.float64(0.5)" and of "tensor(0.5,
 * device='cuda:0')"; anything else as it is. */
struct log_span pairs_argument(struct log_span value);

#endif
