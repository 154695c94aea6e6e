/* SPDX-License-Identifier: Apache-2.0
 * Growth in words. */
#include "report/law_words.h"

#include "base/real.h"

static enum status name_law(const struct growth *fit, struct arena *arena, char **out) {
    const struct growth_slope *power = &fit->power, *rate = &fit->rate;
    switch (fit->law) {
    case GROWTH_CONSTANT:
        return arena_format(arena, out, "stays the same");
    case GROWTH_POWER:
        return arena_format(arena, out, "grows like k^%.3g [%.3g, %.3g]", power->value, power->low,
                            power->high);
    case GROWTH_EXPONENTIAL:
        return arena_format(arena, out, "is multiplied by %.4g [%.4g, %.4g] in each update",
                            real_exp_f64(rate->value), real_exp_f64(rate->low),
                            real_exp_f64(rate->high));
    default:
        return arena_format(
            arena, out,
            "grows like k^%.3g [%.3g, %.3g] or by %.4g in each update, which fit about alike,",
            power->value, power->low, power->high, real_exp_f64(rate->value));
    }
}

enum status law_words(const char *what, const struct judged_growth *growth, struct arena *arena,
                      char **out) {
    char *law;
    TRY(name_law(&growth->fit, arena, &law));
    return arena_format(arena, out, " %s %s over updates %ju to %ju.", what, law,
                        (uintmax_t)growth->from, (uintmax_t)growth->to);
}
