/* SPDX-License-Identifier: Apache-2.0
 * One configuration key as a table row: path, type, unit, default, cause, help, and where its value
 * lies in its struct.
 *
 * The schema (scenarios/schema.c) is one table of such rows; optimizers and schedules hand in
 * theirs as data. Parsing, printing, comparing, swapping and documenting walk the same rows. Rows
 * know nothing of YAML.
 *
 * Invariant: every key belongs to exactly one cause. */
#ifndef TWINSTEP_BASE_KEY_H
#define TWINSTEP_BASE_KEY_H

#include <stddef.h>
#include <stdint.h>

/* What a difference between two configurations is attributed to. cause_name() gives the printed
 * name. */
enum cause {
    CAUSE_SCHEDULE = 0, /* loop order, LR, warm-up, totals, units, rounding, skip rule */
    CAUSE_OPTIMIZER,    /* algorithm, arithmetic variant, clipping, decay groups */
    CAUSE_DTYPE,        /* param, compute, accumulate, masters, state, rope table, loss, gradient */
    CAUSE_NONDETERMINISM, /* kernel mode, order seed, threads */
    CAUSE_BATCH_SHAPE,    /* micro-batch, padding, packing, layout */
    CAUSE_DATA_ORDER,     /* which samples, in which order */
    CAUSE_RNG,            /* seed, draws, dropout */
    CAUSE_NORMALISATION,  /* loss divisor over tokens, micro-batches, ranks */
    CAUSE_REFERENCE,      /* DPO reference source, batch, dtype, staleness */
    CAUSE_MODEL,          /* implementation variants and shape */
    CAUSE_PARALLELISM,    /* ranks, reduce order, shards */
    CAUSE_RESUME,         /* what a restart restores */
    CAUSE_INIT,           /* initial weights */
    CAUSE_OBJECTIVE,      /* task, loss, beta */
    CAUSE_BACKWARD,       /* formulas of the backward pass, where forwards are the same */
    CAUSE_CORRUPTION,     /* a bit that flips in one tensor of one update */
    CAUSE_COUNT
};

/* The printed name: "schedule", "optimizer", ..., "corruption". */
const char *cause_name(enum cause cause);

enum key_type {
    KEY_BOOL, /* uint8_t, 0 or 1 */
    KEY_UINT, /* uint64_t */
    KEY_INT,  /* int64_t */
    KEY_REAL, /* double */
    KEY_ENUM, /* int32_t, index into names */
    KEY_TEXT, /* char[size], NUL-terminated */
    KEY_LIST  /* struct key_list: indices into names, order kept */
};

/* Instead of a number or a name, a key may hold the special word in `word` (for example auto, free
 * or none). It is stored as one of these values, which no bounds admit. */
#define KEY_WORD_UINT UINT64_MAX
#define KEY_WORD_REAL (-1.0)
#define KEY_WORD_ENUM (-1)

#define KEY_LIST_MAX 30
struct key_list {
    uint8_t count;
    uint8_t item[KEY_LIST_MAX];
    uint8_t zero; /* no padding: comparing bytes compares all of it */
};

struct key_row {
    const char *path; /* "optimizer.lr"; rows of a class have no prefix: "beta1" */
    enum key_type type;
    const char *unit;     /* "1", "updates", "tokens", ... ; "" for names and flags */
    const char *standard; /* the default, as the text that a scenario would hold */
    enum cause cause;
    const char *help; /* one sentence without a full stop */
    size_t offset;    /* of the value in its struct */
    size_t size;      /* of the value */
    /* Inclusive bounds of KEY_UINT, KEY_INT and KEY_REAL. A KEY_UINT ends at 2^64 - 2, which is no
     * double: a `high` of 2^64 stands for it. */
    double low, high;
    const char *word;         /* the special word, or NULL */
    const char *const *names; /* the names of a KEY_ENUM or KEY_LIST, NULL-terminated; else NULL */
};

/* Builds a row for member `field` of type `owner`. Its path and type come first, everything else by
 * name (.standard = "1", .high = 10, ...) in any order. What is not named is zero: bounds of 0, no
 * special word, no names. A row needs at least .unit, .standard, .cause and .help. */
#define KEY_ROW(name, kind, owner, field, ...)                                                     \
    {                                                                                              \
        .path = (name), .type = (kind), .offset = offsetof(owner, field),                          \
        .size = sizeof(((owner *)0)->field), __VA_ARGS__                                           \
    }

#endif
