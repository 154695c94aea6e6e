/* SPDX-License-Identifier: Apache-2.0
 * Judges the functions of base/real_*.h on many inputs: each result against the exact value.
 *
 * The exact value comes from a double-double reference (proof_reference.c) whose relative error is
 * below PROOF_BOUND. Where that error could change which number is nearest, MPFR is asked
 * (decide.c); so the counts are exact, and none is an estimate. The findings of a proof are a
 * tally; tallies add up in any order, so threads change nothing. */
#ifndef TWINSTEP_TESTS_BASE_PROOF_PROOF_H
#define TWINSTEP_TESTS_BASE_PROOF_PROOF_H

#include <stddef.h>
#include <stdint.h>

/* The order of the functions in all tables of the proof. */
enum proof_function {
    PROOF_EXP,
    PROOF_EXP2,
    PROOF_EXPM1,
    PROOF_TANH,
    PROOF_LOG,
    PROOF_LOG1P,
    PROOF_SIN,
    PROOF_COS,
    PROOF_POW,
    PROOF_FUNCTIONS
};

extern const char *const proof_names[PROOF_FUNCTIONS];

/* The relative error of the reference: the largest term is 745 * 2^-91 (pow: the logarithm's error
 * times the exponent); the others are below 2^-90. proof_reference.c derives it, test_real_proof.c
 * measures it. */
#define PROOF_BOUND 0x1p-80

#define PROOF_BLOCK 2048
#define PROOF_LONG ((uint64_t)1 << 20) /* blocks from which on `base` computes one of 16 */

/* y is used by pow alone. The judge fills `want`, `error` and `ask`. */
struct proof_block {
    size_t count;
    double x[PROOF_BLOCK], y[PROOF_BLOCK];
    double high[PROOF_BLOCK], low[PROOF_BLOCK];
    double result[PROOF_BLOCK]; /* what base/real.h returned; f32 widened */
    double want[PROOF_BLOCK];   /* the nearest number of the format */
    double error[PROOF_BLOCK];  /* in ulps of the exact value */
    uint8_t ask[PROOF_BLOCK];   /* 1: the reference cannot tell, 2: outside its domain */
    uint8_t
        plain[PROOF_BLOCK]; /* right at first sight: 1 the nearest number, 2 +0 by law 8, 3 NaN */
    uint64_t hash;          /* of every x, y, result */
    double worst;           /* error of plain results */
};

struct proof_tally {
    uint64_t inputs;
    uint64_t misrounded; /* results that are not the nearest number (or the special value) */
    uint64_t flushed;    /* f32 exp, exp2: results below 2^-126, +0 by law 8 */
    uint64_t special;    /* NaN, infinities, outside of the domain */
    uint64_t asked;      /* of MPFR */
    uint64_t hash;       /* sum over the inputs of a hash of (x, y, result): of every bit */
    uint64_t isa;        /* results that differ between instruction sets */
    double worst;        /* largest error, and the least input that has it */
    double at, at_y;
};

/* One file per instruction set: proof_evaluate_base, ... */
typedef void proof_evaluate(enum proof_function function, int wide, const double *x,
                            const double *y, double *result, size_t count);
proof_evaluate proof_evaluate_base, proof_evaluate_v3, proof_evaluate_v4;

/* Fills the fields that the judge finds from x, y and result. */
typedef void proof_judge(enum proof_function function, int wide, struct proof_block *block);
proof_judge proof_judge_base, proof_judge_v3, proof_judge_v4;

/* Computes high + low of the reference alone. */
typedef void proof_refer(enum proof_function function, struct proof_block *block);
proof_refer proof_refer_base, proof_refer_v3, proof_refer_v4;

/* Returns 1 where this machine has the instruction set "base", "v3" or "v4". */
int proof_machine_has(const char *isa);

/* Return the best judge and reference of this machine. */
proof_judge *proof_best_judge(void);
proof_refer *proof_best_refer(void);

/* Asks MPFR at 200 bits for the nearest number of the format and the error of `result`. */
void proof_ask(enum proof_function function, int wide, double x, double y, double result,
               double *want, double *error);

/* Returns |high + low - exact| / |exact|. */
double proof_reference_error(enum proof_function function, double x, double y, double high,
                             double low);

/* Fills block->x, y and count with block number `index`. */
typedef void proof_fill(enum proof_function function, uint64_t index, const void *context,
                        struct proof_block *block);

/* Judges blocks 0 .. blocks-1 on `threads` threads; `wide` chooses the f64 function. */
struct proof_tally proof_run(enum proof_function function, int wide, proof_fill *fill,
                             const void *context, uint64_t blocks, int threads);

void proof_merge(struct proof_tally *tally, const struct proof_tally *more);

#endif
