/* SPDX-License-Identifier: Apache-2.0
 * Measures pairs of runs: two runs in lockstep, update by update, then two others. It keeps no run
 * and no path, only three columns of distances. Invariant: no run is in two pairs, so pairs are
 * independent. */
#include <math.h>

#include "base/real.h"
#include "experiment/noise/noise.h"
#include "experiment/pair.h"

const char noise_pairs_protocol[] =
    "both runs of a pair opened in one process, one after the other, and stepped in turn; no run "
    "in two pairs; a free order seed drawn for each run";

struct pairing {
    const struct noise_pairs_plan *plan;
    const struct noise_request *request;
    struct dataset dataset;
    struct arena scratch; /* memory of the pair at hand */
    uint64_t done;        /* pairs that are done */
};

static double norm_of(const struct run *run) {
    double squares = 0.0;
    for (uint32_t i = 0; i < run_owner_count(run); i++) {
        const double norm = run_record(run)->tensors[i][TENSOR_GRAD_NORM];
        squares += norm * norm;
    }
    return real_sqrt_f64(squares);
}

static enum status step_both(struct pairing *pairing, struct run *a, struct run *b,
                             double *columns[FLOOR_COLUMNS]) {
    const uint64_t steps = pairing->request->steps;
    const volatile int *interrupted = pairing->request->interrupted;
    const enum dtype dtype = point_dtype(run_config(a), run_config(b));
    void *ends[2];
    for (int i = 0; i < 2; i++)
        TRY(arena_take(&pairing->scratch, point_count(a), dtype_carrier(dtype), "end point",
                       &ends[i]));
    for (uint64_t step = 0; step < steps; step++) {
        const struct record *x, *y;
        if (interrupted != NULL && *interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted after %ju A/A pairs", (uintmax_t)pairing->done);
        TRY(run_step(a, &x));
        TRY(run_step(b, &y));
        TRY(point_copy(a, dtype, ends[0]));
        TRY(point_copy(b, dtype, ends[1]));
        const uint64_t place = pairing->done * steps + step;
        const double distance = point_distance(ends[0], ends[1], dtype, point_count(a));
        columns[FLOOR_LOSS][place] = noise_gap(x->reals[REAL_LOSS], y->reals[REAL_LOSS]);
        columns[FLOOR_GRAD_NORM][place] = noise_relative(norm_of(a), norm_of(b));
        columns[FLOOR_DISTANCE][place] = isnan(distance) ? (double)INFINITY : distance;
    }
    return STATUS_OK;
}

/* Opens side 0 or 1 of the pair at hand. */
static enum status open_one(struct pairing *pairing, uint64_t side, struct run **out) {
    const struct noise_pairs_plan *plan = pairing->plan;
    struct config config = side == 0 ? *plan->of->config : *plan->other;
    config.numerics.order_seed =
        noise_order_seed(&config, plan->first_run + 2 * pairing->done + side);
    const struct run_options options = {
        .tensors = 1, .steps = pairing->request->steps, .order_seed = config.numerics.order_seed};
    return run_open(&config, &pairing->dataset, &options, out);
}

static enum status measure_pair(struct pairing *pairing, double *columns[FLOOR_COLUMNS]) {
    struct run *a, *b;
    TRY(open_one(pairing, 0, &a));
    const uint64_t like = run_backend(a) == NULL ? run_memory(a) : 0;
    enum status status = STATUS_OK;
    if (pairing->done == 0)
        status = noise_ask_room(pairing->request, a, like + 2 * point_count(a) * sizeof(double));
    if (status != STATUS_OK) {
        run_close(a);
        return status;
    }
    status = open_one(pairing, 1, &b);
    if (status == STATUS_OK) {
        status = step_both(pairing, a, b, columns);
        run_close(b);
    }
    run_close(a);
    arena_close(&pairing->scratch);
    return status;
}

enum status noise_pairs_measure(const struct noise_pairs_plan *plan, struct arena *arena,
                                double *columns[FLOOR_COLUMNS]) {
    const struct noise_request *request = plan->of;
    const uint64_t pairs = plan->pairs;
    struct pairing pairing = {.plan = plan, .request = request, .scratch = ARENA_EMPTY};
    const struct dataset_options source = run_dataset_options(request->config);
    TRY(dataset_open(&source, arena, &pairing.dataset));
    for (int i = 0; i < FLOOR_COLUMNS; i++)
        TRY(arena_take(arena, (size_t)(pairs * request->steps), sizeof *columns[i], "A/A pairs",
                       &columns[i]));
    noise_tell(request, plan->what, 0, pairs);
    while (pairing.done < pairs) {
        TRY(measure_pair(&pairing, columns));
        noise_tell(request, plan->what, ++pairing.done, pairs);
    }
    return STATUS_OK;
}
