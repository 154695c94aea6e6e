/* SPDX-License-Identifier: Apache-2.0
 * The sum of losses in mode atomic, which threads race on. */
#include "kernels/racing_sum.h"

#include "base/sum.h"
#include "kernels/cpu/race.h"

int race_loss(const struct op_call *call) {
    return race_active(call, SUM_LOSS);
}

double race_sum(const struct op_call *call, double total, const double *terms, size_t count) {
    const size_t chunk = call->racing->chunk;
    const size_t chunks = race_chunks(call, count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, chunks))
    for (size_t i = 0; i < chunks; i++) {
        const size_t first = i * chunk;
        const size_t some = count - first < chunk ? count - first : chunk;
        race_add_f64(&total, sum_chain_terms_f64_f64(0.0, terms + first, some));
    }
    return total;
}
