/* SPDX-License-Identifier: Apache-2.0
 * One piece of kernels/draws.h, per instruction set. Numbers are f64 until their one rounding, so
 * only the f64 pair has a use for it.
 *
 * normal_from_word() has three ranges. Here the central one, 85 % of all words, is computed for
 * every word, and the others are gathered, computed and put back, so that each loop has one thing
 * to do and vectorises; the arithmetic of a number is that function's in the same order. */
#include "kernels/cpu/draw_pieces.h"

#include "base/form.h"
#include "base/variant.h"
#include "determinism/normal.h"
#include "kernels/cpu/call.h"
#include "kernels/narrow.h"

#ifdef TWINSTEP_CARRIER_f64
/* Writes the words of elements first .. first+DRAW_PIECE-1. */
static void draw_words(const struct draws_args *args, size_t first, uint32_t *restrict words) {
    EACH for (size_t b = 0; b < DRAW_PIECE / 4; b++) {
        const struct philox_block block = stream_block4(args->seed, args->site, first / 4 + b);
        words[4 * b] = block.word[0];
        words[4 * b + 1] = block.word[1];
        words[4 * b + 2] = block.word[2];
        words[4 * b + 3] = block.word[3];
    }
}

/* Replaces the numbers outside the central range. The far range is never met: the largest
 * -log(tail) of a word is 33 ln 2, whose root is 4.78. */
static void draw_tails(const uint32_t *words, size_t count, double *restrict numbers) {
    uint32_t at[DRAW_PIECE];
    double size[DRAW_PIECE];
    size_t tails = 0;
    for (size_t i = 0; i < count; i++) {
        at[tails] = (uint32_t)i;
        tails += real_abs_f64(stream_uniform(words[i]) - 0.5) > 0.425;
    }
    for (size_t i = 0; i < tails; i++) {
        const double p = stream_uniform(words[at[i]]);
        size[i] = p - 0.5 < 0.0 ? p : 1.0 - p;
    }
    EACH for (size_t i = 0; i < tails; i++) {
        size[i] = normal_middle(real_sqrt_f64(-real_log_f64(size[i])) - 1.6);
    }
    for (size_t i = 0; i < tails; i++)
        numbers[at[i]] = stream_uniform(words[at[i]]) - 0.5 < 0.0 ? -size[i] : size[i];
}

static void draw_numbers(const uint32_t *words, size_t count, double *restrict numbers) {
    EACH for (size_t i = 0; i < count; i++) {
        const double q = stream_uniform(words[i]) - 0.5;
        numbers[i] = q * normal_central(0.180625 - q * q);
    }
    draw_tails(words, count, numbers);
}

NARROW(ROW_INLINE, narrow, double, f64)

ROW_INLINE void store(double std, const double *numbers, size_t count, void *values, size_t at,
                      enum dtype dtype) {
    EACH for (size_t i = 0; i < count; i++) {
        const double number = std * numbers[i] + 0.0; /* std 0 draws no -0, as torch adds a mean */
        if (dtype == DTYPE_F64)
            form_set_f64(values, at + i, number);
        else
            form_set_f32(values, form_carried(dtype), at + i, narrow(number, dtype));
    }
}

void VARIANT(draw_piece)(const struct draws_args *args, size_t first, size_t count) {
    uint32_t words[DRAW_PIECE];
    double numbers[DRAW_PIECE];
    draw_words(args, first, words);
    draw_numbers(words, count, numbers);
    size_t y = first / args->columns, x = first % args->columns;
    for (size_t done = 0, n; done < count; done += n, y++, x = 0) {
        n = least(args->columns - x, count - done);
        const size_t at = (args->row + y) * args->width + args->column + x;
#define STORE(d) store(args->std, numbers + done, n, args->values, at, d)
        STORAGE_SWITCH(args->dtype, STORE);
    }
}
#else
typedef int VARIANT(draw_pieces_unused); /* a translation unit is not empty */
#endif
