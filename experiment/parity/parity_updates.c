/* SPDX-License-Identifier: Apache-2.0
 * Compares the first update of B, low, high and replicas, tensor by tensor and all together: the
 * change of the stored parameters, as each configuration trains. Weights are moved here and
 * restored by the caller. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "experiment/pair.h"
#include "experiment/parity/parity_measuring.h"
#include "trainer/run_tensors.h"

/* A tensor before and after the first update, for the host to read. */
struct moved {
    enum dtype dtype;
    const void *start, *now;
};

static enum status moved_open(const struct run *run, uint32_t row, struct moved *out) {
    const struct param_row *const param = &run_table(run)->rows[row];
    out->dtype = param->dtype;
    TRY(run_read(run, WINDOW_OLD, run_param_initial(run, row),
                 param->count * dtype_carrier(param->dtype), &out->start));
    return run_read_param(run, WINDOW_NOW, row, &out->now);
}

static double start_of(const struct moved *of, size_t i) {
    return element_get(of->start, of->dtype, i);
}

static double changed_by(const struct moved *of, size_t i) {
    return element_get(of->now, of->dtype, i) - start_of(of, i);
}

/* Sums one tensor's update. A stored parameter is no nearer to the exact one than rounding lets it
 * be, so a spacing's square over 12, the variance of rounding, joins the baseline; otherwise
 * updates of a few spacings could make it 0. */
static enum status sum_update(const struct parity *parity, const struct run *run, uint32_t row,
                              struct parity_sums *out) {
    const struct run *low = parity->run[PARITY_LOW];
    struct moved of_target, of_low, of_high;
    TRY(moved_open(run, row, &of_target));
    TRY(moved_open(low, row, &of_low));
    TRY(moved_open(parity->run[PARITY_HIGH], row, &of_high));
    for (size_t i = 0; i < run_table(low)->rows[row].count; i++) {
        const double t = changed_by(&of_target, i), l = changed_by(&of_low, i);
        const double h = changed_by(&of_high, i);
        const double space = dtype_spacing(start_of(&of_low, i), of_low.dtype);
        parity_sums_add(out, t, l, h);
        out->baseline = real_fma_f64(space, space / 12.0, out->baseline);
    }
    return STATUS_OK;
}

/* Appends the rows of updates: one per tensor, then one for all together. */
static enum status open_updates(struct parity_measuring *m) {
    const struct run *low = m->parity->run[PARITY_LOW];
    for (uint32_t i = 0; i < run_owner_count(low); i++) {
        const struct parity_component_row row = {.level = PARITY_WHOLE,
                                                 .component = PARITY_TENSOR,
                                                 .side = PARITY_UPDATE,
                                                 .layer = PASS_NO_LAYER,
                                                 .op =
                                                     run_table(low)->rows[run_owners(low)[i]].name,
                                                 .tensor = "first update"};
        TRY(parity_add_row(m, &row));
    }
    return parity_make_pool(m, PARITY_UPDATE, "first update");
}

static enum status collect_updates(struct parity_measuring *m, const struct run *run, int target) {
    const struct run *low = m->parity->run[PARITY_LOW];
    struct parity_component_row *rows = m->out->rows + m->out->count - run_owner_count(low) - 1;
    struct parity_sums all = {0};
    for (uint32_t i = 0; i <= run_owner_count(low); i++) {
        struct parity_sums sums = all;
        if (i < run_owner_count(low)) {
            sums = (struct parity_sums){0};
            TRY(sum_update(m->parity, run, run_owners(low)[i], &sums));
            parity_pool(&all, &sums);
        }
        if (!target) {
            parity_sample_add(&rows[i].replica, parity_sums_ratio(&sums));
            continue;
        }
        parity_add_ratio(&rows[i], &sums);
        rows[i].equal = (double)sums.equal / (double)sums.elements;
    }
    return STATUS_OK;
}

static enum status step_replica(struct parity_measuring *m, uint64_t seed) {
    const struct record *record;
    struct run *replica;
    TRY(parity_replica_open(m->parity, seed, &replica));
    enum status status = run_step(replica, &record);
    if (status == STATUS_OK) status = collect_updates(m, replica, 0);
    run_close(replica);
    return status;
}

/* Trains each run by its first update, as its own configuration has it, and compares the changes.
 */
enum status parity_compare_updates(struct parity_measuring *m) {
    const struct parity *parity = m->parity;
    const struct record *record;
    TRY(open_updates(m));
    for (int who = PARITY_B; who < PARITY_RUNS; who++) {
        TRY(parity_tick(parity, "first updates", (uint64_t)who, PARITY_RUNS));
        TRY(run_step(parity->run[who], &record));
    }
    TRY(collect_updates(m, parity->run[PARITY_B], 1));
    for (uint32_t r = 0; r < m->out->replicas; r++)
        TRY(step_replica(m, parity->request->seed + 2000 + r));
    return STATUS_OK;
}
