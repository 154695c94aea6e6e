/* SPDX-License-Identifier: Apache-2.0
 * The table of the keys outside the arms. `common` and `arms` are maps of schema keys and stand in
 * no table. */
#include "scenarios/head.h"

#include <stddef.h>

#include "determinism/orders.h"

/* Rows as in schema.c, over struct head, and without a cause. */
#define NUMBER_AT(name, kind, field, ...)                                                          \
    KEY_ROW(name, kind, struct head, field, .cause = CAUSE_COUNT, __VA_ARGS__)
#define WORDS_AT(name, kind, field, ...) NUMBER_AT(name, kind, field, .unit = "", __VA_ARGS__)
#define NUMBER(kind, field, ...) NUMBER_AT(#field, kind, field, __VA_ARGS__)
#define WORDS(kind, field, ...) WORDS_AT(#field, kind, field, __VA_ARGS__)

static const char *const design_names[] = {"auto", "baseline", "both", NULL};
static const char *const verdict_names[] = {"none",          "identical",  "inside-floor",
                                            "outside-floor", "untestable", NULL};
/* In the order of enum cause; a test holds them equal to cause_name(). */
static const char *const cause_names[] = {
    "schedule",    "optimizer", "dtype",         "nondeterminism", "batch-shape",
    "data-order",  "rng",       "normalisation", "reference",      "model",
    "parallelism", "resume",    "init",          "objective",      NULL};
static const struct key_row rows[] = {
    NUMBER_AT("twinstep", KEY_UINT, version, .unit = "", .standard = "1", .low = 1, .high = 0x1p53,
              .help = "Version of the format; must be given"),
    WORDS(KEY_TEXT, name, .standard = "",
          .help = "Letters, digits, - and _; without it the name of the file"),
    WORDS(KEY_TEXT, about, .standard = "", .help = "What the scenario shows"),
    WORDS(KEY_TEXT, source, .standard = "", .help = "Where the case comes from"),
    NUMBER(KEY_UINT, steps, .unit = "updates", .standard = "5", .low = 1, .high = 1e9,
           .help = "Updates of each arm"),
    NUMBER(KEY_UINT, record.probe_every, .unit = "updates", .standard = "0", .high = 1e9,
           .help = "Updates between two measurements on the probe batch; 0 is never"),
    NUMBER(KEY_UINT, record.snapshots, .unit = "updates", .standard = "0", .high = 1e9,
           .help = "Updates between two stored states of every run, from which replay --from "
                   "goes on; 0 is none"),
    WORDS(KEY_BOOL, record.readback, .standard = "true",
          .help = "Whether the learning rate is read back from the weights"),
    WORDS(KEY_BOOL, record.tensors, .standard = "true",
          .help = "Whether norms and digests of each tensor are kept"),
    WORDS(KEY_BOOL, record.phases, .standard = "true",
          .help = "Whether a digest is kept after each phase"),
    WORDS(KEY_ENUM, floor.design, .standard = "auto", .names = design_names,
          .help = "Which arm is repeated to measure the floor: the baseline, or both"),
    NUMBER(KEY_UINT, floor.replicates, .unit = "runs", .standard = "auto", .low = 1,
           .high = FLOOR_REPEATS_MAX, .word = "auto",
           .help = "Runs of each arm, its own included, at most 10; with design baseline "
                   "repeats of the baseline. auto is what floor.alpha needs: at least 8 of each "
                   "arm, 13 of the baseline at 0.01"),
    NUMBER(
        KEY_REAL, floor.alpha, .unit = "1", .standard = "0.01", .low = 1e-6, .high = 0.5,
        .help =
            "Level of the test: share of pairs meant to be the same that may be called different"),
    NUMBER(KEY_UINT, attribution.orders, .unit = "orders", .standard = "auto", .low = ORDERS_LEAST,
           .high = ORDERS_MOST, .word = "auto",
           .help = "Sampled orders in which more than 5 factors enter, half of them reverses of "
                   "the others; even. auto trains about 40 mixtures, more from 8 factors on"),
    NUMBER(KEY_UINT, attribution.replicates, .unit = "runs", .standard = "auto", .high = 10,
           .word = "auto",
           .help = "Repeats of each mixture of noisy arms, which give its shares their "
                   "intervals: 3 to 10, or 0 for none. auto is as many as the floor has of each "
                   "arm, 4 of 5 factors; more factors have none"),
    WORDS(KEY_BOOL, attribution.twin, .standard = "true",
          .help = "Train the baseline once more with one weight one unit in the last place off, "
                  "where its floor is exact: shows how fast rounding grows"),
    WORDS_AT("expect.verdict", KEY_ENUM, verdict, .standard = "none", .names = verdict_names,
             .help = "Verdict that a run must reach"),
    WORDS_AT("expect.cause", KEY_ENUM, cause, .standard = "any", .word = "any",
             .names = cause_names, .help = "Cause with the largest share"),
    NUMBER_AT("expect.first_step", KEY_INT, first_step, .unit = "updates", .standard = "0",
              .high = 1e9, .help = "Update of the first difference, counted from 1; 0 is any"),
    WORDS_AT("expect.first_phase", KEY_ENUM, first_phase, .standard = "any", .word = "any",
             .names = schema_phase_names, .help = "Phase of the first difference"),
    WORDS_AT("expect.first_tensor", KEY_TEXT, first_tensor, .standard = "",
             .help = "Tensor of the first difference; empty is any"),
};

const struct key_row *head_rows(size_t *out_count) {
    *out_count = COUNT_OF(rows);
    return rows;
}

const char *verdict_name(enum verdict verdict) {
    return verdict_names[verdict];
}
