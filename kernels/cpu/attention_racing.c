/* SPDX-License-Identifier: Apache-2.0
 * The rounds in which threads race on attention's sums over keys (law 14): open a block each, race
 * on the chunks of all of them, close each one's own. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/race.h"

enum { RACERS = 1024 };

struct racer {
    struct attention_task task;
    struct attention_block block;
    int busy; /* 1: this racer has a block */
};

struct field {
    const struct attention_pass *race;
    size_t units, chunks; /* chunks: of the longest sequence */
    size_t taken;         /* units that somebody took */
    const struct racer *racers[RACERS];
};

/* Goes to the next block of the racer's unit; 0 when there is none. */
static int next_block(struct racer *racer) {
    size_t head = racer->block.head;
    size_t first = racer->block.first + ATTENTION_QUERIES;
    if (first >= racer->task.length) {
        head++;
        first = 0;
    }
    if (head == racer->task.first_head + racer->task.heads) return 0;
    racer->block = attention_block_at(&racer->task, head, first);
    return 1;
}

/* Opens the racer's next block, if need be of the next unit that nobody took. */
static void move_racer(struct field *field, struct racer *racer) {
    const struct attention_pass *const race = field->race;
    if (racer->busy && !next_block(racer)) {
        if (race->close_unit != NULL) race->close_unit(&racer->task, race->data);
        racer->busy = 0;
    }
    while (!racer->busy) {
        const size_t i = race_take(&field->taken);
        if (i >= field->units) return;
        racer->task = VARIANT(attention_task)(race->call, race->problem, race->own, i);
        if (racer->task.length == 0) continue;
        race->open_unit(&racer->task);
        racer->block = attention_block_at(&racer->task, racer->task.first_head, 0);
        racer->busy = 1;
    }
    race->open_block(&racer->task, &racer->block, race->data);
    memset(racer->task.space.result, 0,
           racer->block.count * racer->task.wide * sizeof *racer->task.space.result);
}

/* Keys first .. first+chunk-1: for each query of the block that has some of them, a chain from +0,
 * added to the shared sum. */
static void race_keys(const struct racer *racer, size_t first, int backward) {
    const struct attention_task *const task = &racer->task;
    const struct attention_space *const space = &task->space;
    const accumulator *const rows = backward ? space->k_rows : space->v_rows;
    for (size_t i = 0; i < racer->block.count; i++) {
        const accumulator *const weights = (backward ? space->dp : space->p) + i * task->far;
        const size_t last = least(first + task->call->racing->chunk, racer->block.first + i + 1);
        if (first >= last) continue;
        for (size_t d = 0; d < task->D; d += SHUFFLE_TILE) {
            const size_t n = least(SHUFFLE_TILE, task->D - d);
            accumulator sum[SHUFFLE_TILE] = {0};
            for (size_t j = first; j < last; j++) {
                const accumulator *const key = rows + j * task->wide + d;
                EACH for (size_t e = 0; e < n; e++) sum[e] = acc_fma(weights[j], key[e], sum[e]);
            }
            race_add(space->result + i * task->wide + d, sum, n);
        }
    }
}

static int some_are_busy(const struct field *field, size_t team) {
    int busy = 0;
    for (size_t i = 0; i < team; i++)
        busy |= field->racers[i]->busy;
    return busy;
}

static size_t most_chunks(const struct attention_pass *race) {
    size_t most = 0;
    for (uint32_t i = 0; i < race->problem->count; i++) {
        const size_t chunks = race_chunks(race->call, race->problem->sequences[i].length);
        most = chunks > most ? chunks : most;
    }
    return most;
}

void VARIANT(attention_racing)(const struct attention_pass *race) {
    struct field field = {.race = race,
                          .units = (size_t)race->problem->count * race->problem->G,
                          .chunks = most_chunks(race)};
    const size_t chunk = race->call->racing->chunk;
    const int threads = race_threads(race->call, 2);
#pragma omp parallel num_threads(threads > RACERS ? RACERS : threads)
    {
        const size_t team = (size_t)omp_get_num_threads();
        struct racer own = {.busy = 0};
        field.racers[omp_get_thread_num()] = &own;
        for (int busy = 1; busy;) {
            move_racer(&field, &own);
#pragma omp barrier
            busy = some_are_busy(&field, team);
#pragma omp for schedule(dynamic, 1)
            for (size_t i = 0; i < team * field.chunks; i++) {
                const struct racer *const racer = field.racers[i / field.chunks];
                if (racer->busy) race_keys(racer, i % field.chunks * chunk, race->backward);
            }
            if (own.busy) race->close_block(&own.task, &own.block, race->data);
        }
    }
}
