/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/owed_zeros.h"

struct owed_zeros {
    int sums;     /* accumulators count as +0, whatever they hold */
    int gradient; /* so do stored gradients */
};

/* An accumulator that is an exact sum has another zero than a number's; shards and ranks move sums
 * and gradients by themselves, a backend is told by its own op, and what makes a bit flip looks at
 * the state by itself. */
static int may_owe(const struct run *run) {
    return run->backend == NULL && run->layout.sums == 0 && run->shards == NULL &&
           run->rank_gradients == NULL && run->replicas == NULL && run->zero == NULL &&
           run->tensor_ranks == NULL && run->options.ranks == NULL && run->corruption == NULL &&
           !run->options.apart;
}

enum status owed_zeros_open(struct run *run) {
    if (!may_owe(run)) return STATUS_OK;
    return arena_take(&run->arena, 1, sizeof *run->owed_zeros, "run", &run->owed_zeros);
}

/* Whether a product of matrices makes the accumulator: those of norms are sums over rows, and those
 * of an embedding are added to where a token stands. A tied head is use 1 of the embedding. */
static int is_product(const struct param_row *row, uint32_t use) {
    switch (row->role) {
    case ROLE_EMBEDDING:
        return use == 1;
    case ROLE_Q_NORM:
    case ROLE_K_NORM:
    case ROLE_NORM_A:
    case ROLE_NORM_B:
    case ROLE_NORM_FINAL:
        return 0;
    default:
        return 1;
    }
}

static void clear_sums(const struct run *run) {
    RUN_EACH_SPAN(run, span) {
        void *const *const sums = run->accumulators[span.row];
        for (uint32_t use = 0; use < run->table.rows[span.row].uses; use++)
            model_set(&run->model, sums[use], span.count * run->layout.accumulator, 0);
    }
}

static void clear_other_sums(const struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        for (uint32_t use = 0; use < row->uses; use++)
            if (!is_product(row, use))
                model_set(&run->model, run->accumulators[run->owner[i]][use],
                          row->count * run->layout.accumulator, 0);
    }
}

static void clear_gradients(const struct run *run) {
    const size_t gradient = dtype_carrier(run->layout.gradient_dtype);
    RUN_EACH_SPAN(run, span) {
        model_set(&run->model, run_at(run, run->layout.tensor[span.row].gradient),
                  span.count * gradient, 0);
    }
}

void owed_zeros_set(const struct run *run) {
    struct owed_zeros *const owed = run->owed_zeros;
    if (owed != NULL) {
        *owed = (struct owed_zeros){.sums = 1, .gradient = 1};
        return;
    }
    clear_sums(run);
    clear_gradients(run);
}

int owed_zeros_begin(const struct run *run) {
    struct owed_zeros *const owed = run->owed_zeros;
    if (owed == NULL || !owed->sums) return 0;
    clear_other_sums(run);
    owed->sums = 0;
    return 1;
}

void owed_zeros_pay(const struct run *run) {
    struct owed_zeros *const owed = run->owed_zeros;
    if (owed == NULL) return;
    if (owed->sums) clear_sums(run);
    if (owed->gradient) clear_gradients(run);
    owed_zeros_forget(run);
}

void owed_zeros_forget(const struct run *run) {
    if (run->owed_zeros != NULL) *run->owed_zeros = (struct owed_zeros){0};
}
