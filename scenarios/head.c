/* SPDX-License-Identifier: Apache-2.0
 * The table of the keys outside the arms. `common` and `arms` are maps of schema keys and stand in
 * no table. */
#include "scenarios/head.h"

#include "determinism/orders.h"
#include "scenarios/rows.h"

#define OWNER struct head
#define NO_CAUSE CAUSE_COUNT

static const char *const verdict_names[] = {"none",          "identical",  "inside-floor",
                                            "outside-floor", "untestable", "same-training",
                                            "same-weights",  NULL};

static const char *const readback_names[] = {"false", "true", "all", NULL};

/* The words of evidence/attribution.h, but for none; a test holds them equal. */
static const char *const word_names[] = {"equal",
                                         "cancel-exactly",
                                         "no-larger-than-rounding",
                                         "nearly-cancel",
                                         "oppose",
                                         "only-together",
                                         "each-enough",
                                         "cause",
                                         "several",
                                         "first-place-open",
                                         NULL};

/* The causes, as words in the order of enum cause. A test holds them equal to cause_name(). */
static const char *const cause_words[] = {
    "schedule", "optimizer",     "dtype",     "nondeterminism", "batch-shape", "data-order",
    "rng",      "normalisation", "reference", "model",          "parallelism", "resume",
    "init",     "objective",     "backward",  "corruption",     NULL};
_Static_assert(COUNT_OF(cause_words) == CAUSE_COUNT + 1, "a word for each cause");

static const struct key_row rows[] = {
    UINT_AT("twinstep", version, "", "1", NO_CAUSE, .low = 1, .high = 0x1p53,
            .help = "Version of the format; must be given"),
    TEXT(name, "", NO_CAUSE, .help = "Letters, digits, - and _; without it the name of the file"),
    TEXT(about, "", NO_CAUSE, .help = "What the scenario shows"),
    TEXT(source, "", NO_CAUSE, .help = "Where the case comes from"),
    UINT(steps, "updates", "5", NO_CAUSE, .low = 1, .high = 1e9, .help = "Updates of each arm"),
    UINT(record.probe_every, "updates", "0", NO_CAUSE, .high = 1e9,
         .help = "Updates between two measurements on the probe batch; 0 is never"),
    UINT(record.snapshots, "updates", "0", NO_CAUSE, .high = 1e9,
         .help = "Updates between two stored states of every run, from which replay --from goes "
                 "on; 0 is none"),
    UINT(record.replay_check, "updates", "0", NO_CAUSE, .high = 1e9,
         .help = "Updates between two in which forward and backward of both arms run again before "
                 "the optimizer and must leave the same bits, as torchtitan's sdc_replay asks; 0 "
                 "is never (docs/CORRUPTION.md)"),
    ENUM(record.readback, "true", NO_CAUSE, readback_names,
         .help =
             "Whether the learning rate is read back from the weights. Of a tensor of more than "
             "126,976 numbers true reads a part, blocks of 4,096 that take turns; all reads it "
             "whole in every update, which takes longer"),
    BOOL(record.tensors, "true", NO_CAUSE,
         .help = "Whether norms and digests of each tensor are kept"),
    BOOL(record.phases, "true", NO_CAUSE, .help = "Whether a digest is kept after each phase"),
    ENUM(floor.design, "auto", NO_CAUSE, NAMES("auto", "baseline", "both"),
         .help = "Which arm is repeated to measure the floor: the baseline, or both, which auto "
                 "is. With baseline the one run of the test arm is ranked among all pairs of runs, "
                 "its pairs with the repeats among them, so a difference of any size is mostly "
                 "untestable; the verdict tells the power"),
    UINT(floor.replicates, "runs", "auto", NO_CAUSE, .low = 1, .high = FLOOR_REPEATS_MAX,
         .word = "auto",
         .help = "Runs of each arm, its own included, at most 10; with design baseline repeats of "
                 "the baseline. auto is what floor.alpha needs: at least 8 of each arm, 13 of the "
                 "baseline at 0.01"),
    REAL(floor.alpha, "1", "0.01", NO_CAUSE, .low = 1e-6, .high = 0.5,
         .help =
             "Level of the test: share of pairs meant to be the same that may be called different"),
    UINT(attribution.orders, "orders", "auto", NO_CAUSE, .low = ORDERS_LEAST, .high = ORDERS_MOST,
         .word = "auto",
         .help = "Sampled orders in which more than 5 factors enter, half of them reverses of the "
                 "others; even. auto trains about 40 hybrids, more from 8 factors on"),
    UINT(attribution.replicates, "runs", "auto", NO_CAUSE, .high = 10, .word = "auto",
         .help = "Repeats of each hybrid of noisy arms, which give its shares their intervals: 3 "
                 "to 10, or 0 for none. auto is as many as the floor has of each arm, 4 of 5 "
                 "factors; more factors have none"),
    BOOL(attribution.twin, "true", NO_CAUSE,
         .help = "Train the baseline once more with one weight one unit in the last place off, "
                 "where its floor is exact: shows how fast rounding grows"),
    TEXT(eval.from, EVAL_NOTHING, NO_CAUSE,
         .help =
             "Rows held out of both arms' training, on which their last weights are measured: a "
             "JSONL file, or rest, the rows of the arms' own data behind the first "
             "data.samples; none measures nothing (docs/EVAL.md)"),
    UINT(eval.rows, "samples", "all", NO_CAUSE, .low = 1, .high = 4294967294, .word = "all",
         .help = "Rows of eval.from that are used, the first of them"),
    UINT(eval.training_rows, "samples", "64", NO_CAUSE, .high = 4294967294,
         .help = "Rows that both arms trained on and that are measured, too: at most so many, the "
                 "first of the data; 0 is none"),
    ENUM_AT("expect.verdict", verdict, "none", NO_CAUSE, verdict_names,
            .help =
                "Verdict that a run must reach. Where it is untestable and that is not expected, "
                "no other expectation is met"),
    ENUM_AT("expect.cause", cause, "any", NO_CAUSE, cause_words, .word = "any",
            .help =
                "Cause that the verdict names alone (\"Cause: X\"); one in which the arms differ. "
                "What says several causes is expected by expect.word, order and shares"),
    TEXT_AT("expect.shares", shares, "", NO_CAUSE,
            .help = "Shares of causes with tolerances, in parts of the way: schedule 3.0 +- 0.05; "
                    "normalisation -2.0 +- 0.05; the ends are inside, and 1e-9 is left to "
                    "rounding; only a verdict that shows shares meets it; empty is any"),
    NAMED_AT("expect.order", KEY_LIST, order, "[]", NO_CAUSE, cause_words,
             .help = "Causes that have the largest shares, without their signs, the largest first; "
                     "only a verdict that shows shares, in this order for certain, meets it; [] is "
                     "any"),
    ENUM_AT("expect.word", word, "any", NO_CAUSE, word_names, .word = "any",
            .help = "Sentence of the headline about causes (docs/ATTRIBUTION.md)"),
    INT_AT("expect.first_step", first_step, "updates", "0", NO_CAUSE, .high = 1e9,
           .help = "Update of the first difference, counted from 1; 0 is any"),
    INT_AT("expect.replicas_part", replicas_part, "updates", "0", NO_CAUSE, .high = 1e9,
           .help = "Update after which the data-parallel ranks of the test arm first hold other "
                   "weights or slots than rank 0, counted from 1; 0 is any"),
    ENUM_AT("expect.first_phase", first_phase, "any", NO_CAUSE, schema_stage_names, .word = "any",
            .help = "Phase of the first difference, or where it is between phases"),
    TEXT_AT("expect.first_tensor", first_tensor, "", NO_CAUSE,
            .help = "Op and tensor of the first difference, as the verdict names them: reference "
                    "log-probs of both sides, attention dQ; empty is any"),
};

const struct key_row *head_rows(size_t *out_count) {
    *out_count = COUNT_OF(rows);
    return rows;
}

enum cause head_cause(int32_t word) {
    return (enum cause)word;
}

const char *head_word(int32_t word) {
    return word < 0 ? NULL : word_names[word];
}

const char *readback_share_name(enum readback_share share) {
    return readback_names[share];
}

const char *verdict_name(enum verdict verdict) {
    return verdict_names[verdict];
}
