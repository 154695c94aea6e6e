/* SPDX-License-Identifier: Apache-2.0
 * Computes frequencies by the three rules of scaling, then the tables. It holds no ops: rotating
 * with them is kernels/cpu/rotary.c. Invariant: each rounding is one that transformers makes,
 * too. */
#include "model/rope_table.h"

#include "base/element.h"
#include "base/real.h"

#define TWO_PI 0x1.921fb54442d18p2

static int is_wide(const struct config *config) {
    return config->numerics.compute == DTYPE_F64 && config->numerics.rope == DTYPE_F64;
}

/* Without scaling. The exponent is an f32 number, as in transformers, and its rounding matters: it
 * is multiplied by ln(theta). */
static double plain(const struct config *config, uint32_t pair) {
    const double exact = (double)(2 * pair) / (double)config->model.head_dim;
    const double exponent = is_wide(config) ? exact : (double)(float)exact;
    return 1.0 / real_pow_f64(config->model.rope_theta, exponent);
}

/* Llama 3: long waves are stretched, short ones stay as they are, and between them both frequencies
 * are mixed. */
static double llama3(const struct config *config, double frequency) {
    const double low = config->model.rope_low_freq_factor;
    const double high = config->model.rope_high_freq_factor;
    const double length = (double)config->model.rope_original_positions;
    const double wave = TWO_PI / frequency, stretched = frequency / config->model.rope_factor;
    if (wave > length / low) return stretched;
    if (wave < length / high) return frequency;
    const double smooth = (length / wave - low) / (high - low);
    return (1.0 - smooth) * stretched + smooth * frequency;
}

/* YaRN's find_correction_dim: which dimension, as a real number, makes so many turns within the
 * original positions. */
static double place_of_turns(const struct config *config, double turns) {
    const double length = (double)config->model.rope_original_positions;
    const double dims = (double)config->model.head_dim;
    return dims * real_log_f64(length / (turns * TWO_PI)) /
           (2.0 * real_log_f64(config->model.rope_theta));
}

static double whole_below(double x) {
    if (!(real_abs_f64(x) < 0x1p52)) return x; /* from 2^52 on every f64 is a whole number */
    const double whole = (double)(int64_t)x;
    return whole > x ? whole - 1.0 : whole;
}

static double ramp(const struct config *config, double pair) {
    double low = place_of_turns(config, config->model.rope_beta_fast);
    double high = place_of_turns(config, config->model.rope_beta_slow);
    const double last = (double)config->model.head_dim - 1.0;
    if (config->model.rope_truncate) {
        low = whole_below(low);
        high = -whole_below(-high);
    }
    if (low < 0.0) low = 0.0;
    if (high > last) high = last;
    /* transformers' linear_ramp_factor adds this, too, so as not to divide by 0. */
    if (low == high) high += 0.001;
    const double at = (pair - low) / (high - low);
    return at < 0.0 ? 0.0 : at > 1.0 ? 1.0 : at;
}

static double yarn(const struct config *config, uint32_t pair, double frequency) {
    const double stretched = frequency / config->model.rope_factor;
    const double kept = 1.0 - ramp(config, (double)pair);
    return stretched * (1.0 - kept) + frequency * kept;
}

double rope_frequency(const struct config *config, uint32_t pair) {
    const double frequency = plain(config, pair);
    if (config->model.rope_scaling == ROPE_LLAMA3) return llama3(config, frequency);
    return config->model.rope_scaling == ROPE_YARN ? yarn(config, pair, frequency) : frequency;
}

/* An entry: the value times the factor, with its roundings. */
static double entry(const struct config *config, double value, double factor) {
    const double scaled = is_wide(config) ? value * factor : (double)((float)value * (float)factor);
    return dtype_round(scaled, (enum dtype)config->numerics.compute);
}

void rope_table_fill(const struct config *config, uint32_t positions, struct form form,
                     void *cosine, void *sine) {
    const enum dtype table = (enum dtype)config->numerics.rope;
    const uint32_t half = (uint32_t)(config->model.head_dim / 2);
    const double factor =
        config->model.rope_scaling == ROPE_YARN ? config->model.rope_attention_factor : 1.0;
    for (uint32_t i = 0; i < half; i++) {
        const double exact = rope_frequency(config, i);
        const float narrow =
            table == DTYPE_F64 ? (float)exact : (float)dtype_round((double)(float)exact, table);
        for (uint32_t p = 0; p < positions; p++) {
            const double angle = is_wide(config) ? (double)p * exact : (double)((float)p * narrow);
            const size_t at = (size_t)p * half + i;
            form_set(cosine, form, at, entry(config, real_cos_f64(angle), factor));
            form_set(sine, form, at, entry(config, real_sin_f64(angle), factor));
        }
    }
}
