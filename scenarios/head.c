/* SPDX-License-Identifier: Apache-2.0
 * The table of the keys outside the arms. `common` and `arms` are maps of schema keys and stand in
 * no table. */
#include "scenarios/head.h"

#include <stddef.h>

#include "determinism/orders.h"

#define AT(field) offsetof(struct head, field), sizeof(((struct head *)0)->field)
#define NO_BOUNDS 0.0, 0.0
#define NO_CAUSE CAUSE_COUNT

static const char *const design_names[] = {"auto", "baseline", "both", NULL};
static const char *const verdict_names[] = {"none",          "identical",  "inside-floor",
                                            "outside-floor", "untestable", NULL};
/* In the order of enum cause; a test holds them equal to cause_name(). */
static const char *const cause_names[] = {
    "schedule",    "optimizer", "dtype",         "nondeterminism", "batch-shape",
    "data-order",  "rng",       "normalisation", "reference",      "model",
    "parallelism", "resume",    "init",          "objective",      NULL};
static const char *const phase_names[] = {"fetch",   "forward",  "backward", "reduce",
                                          "unscale", "clip",     "optimize", "log",
                                          "count",   "schedule", "zero",     NULL};

static const struct key_row rows[] = {
    {"twinstep", KEY_UINT, "", "1", NO_CAUSE, "Version of the format; must be given", AT(version),
     1, 0x1p53, NULL, NULL},
    {"name", KEY_TEXT, "", "", NO_CAUSE,
     "Letters, digits, - and _; without it the name of the file", AT(name), NO_BOUNDS, NULL, NULL},
    {"about", KEY_TEXT, "", "", NO_CAUSE, "What the scenario shows", AT(about), NO_BOUNDS, NULL,
     NULL},
    {"source", KEY_TEXT, "", "", NO_CAUSE, "Where the case comes from", AT(source), NO_BOUNDS, NULL,
     NULL},
    {"steps", KEY_UINT, "updates", "5", NO_CAUSE, "Updates of each arm", AT(steps), 1, 1e9, NULL,
     NULL},
    {"record.probe_every", KEY_UINT, "updates", "0", NO_CAUSE,
     "Updates between two measurements on the probe batch; 0 is never", AT(probe_every), 0, 1e9,
     NULL, NULL},
    {"record.snapshots", KEY_UINT, "updates", "0", NO_CAUSE,
     "Updates between two stored states of every run, from which replay --from goes on; 0 is none",
     AT(snapshots), 0, 1e9, NULL, NULL},
    {"record.readback", KEY_BOOL, "", "true", NO_CAUSE,
     "Whether the learning rate is read back from the weights", AT(readback), NO_BOUNDS, NULL,
     NULL},
    {"record.tensors", KEY_BOOL, "", "true", NO_CAUSE,
     "Whether norms and digests of each tensor are kept", AT(tensors), NO_BOUNDS, NULL, NULL},
    {"record.phases", KEY_BOOL, "", "true", NO_CAUSE, "Whether a digest is kept after each phase",
     AT(phases), NO_BOUNDS, NULL, NULL},
    {"floor.design", KEY_ENUM, "", "auto", NO_CAUSE,
     "Which arm is repeated to measure the floor: the baseline, or both", AT(design), NO_BOUNDS,
     NULL, design_names},
    {"floor.replicates", KEY_UINT, "runs", "auto", NO_CAUSE,
     "Runs of each arm, its own included, at most 10; with design baseline repeats of the "
     "baseline. "
     "auto is what floor.alpha needs: at least 8 of each arm, 13 of the baseline at 0.01",
     AT(replicates), 1, FLOOR_REPEATS_MAX, "auto", NULL},
    {"floor.alpha", KEY_REAL, "1", "0.01", NO_CAUSE,
     "Level of the test: share of pairs meant to be the same that may be called different",
     AT(alpha), 1e-6, 0.5, NULL, NULL},
    {"attribution.orders", KEY_UINT, "orders", "auto", NO_CAUSE,
     "Sampled orders in which more than 5 factors enter, half of them reverses of the others; "
     "even. auto trains about 40 mixtures, more from 8 factors on",
     AT(orders), ORDERS_LEAST, ORDERS_MOST, "auto", NULL},
    {"attribution.replicates", KEY_UINT, "runs", "auto", NO_CAUSE,
     "Repeats of each mixture of noisy arms, which give its shares their intervals: 3 to 10, or 0 "
     "for none. auto is as many as the floor has of each arm, 4 of 5 factors; more factors have "
     "none",
     AT(mixture_runs), 0, 10, "auto", NULL},
    {"attribution.twin", KEY_BOOL, "", "true", NO_CAUSE,
     "Train the baseline once more with one weight one unit in the last place off, where its floor "
     "is exact: shows how fast rounding grows",
     AT(twin), NO_BOUNDS, NULL, NULL},
    {"expect.verdict", KEY_ENUM, "", "none", NO_CAUSE, "Verdict that a run must reach", AT(verdict),
     NO_BOUNDS, NULL, verdict_names},
    {"expect.cause", KEY_ENUM, "", "any", NO_CAUSE, "Cause with the largest share", AT(cause),
     NO_BOUNDS, "any", cause_names},
    {"expect.first_step", KEY_INT, "updates", "0", NO_CAUSE,
     "Update of the first difference, counted from 1; 0 is any", AT(first_step), 0, 1e9, NULL,
     NULL},
    {"expect.first_phase", KEY_ENUM, "", "any", NO_CAUSE, "Phase of the first difference",
     AT(first_phase), NO_BOUNDS, "any", phase_names},
    {"expect.first_tensor", KEY_TEXT, "", "", NO_CAUSE,
     "Tensor of the first difference; empty is any", AT(first_tensor), NO_BOUNDS, NULL, NULL},
};

const struct key_row *head_rows(size_t *out_count) {
    *out_count = COUNT_OF(rows);
    return rows;
}

const char *verdict_name(enum verdict verdict) {
    return verdict_names[verdict];
}
