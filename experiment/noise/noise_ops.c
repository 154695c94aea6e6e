/* SPDX-License-Identifier: Apache-2.0
 * Puts an operation on the bench and changes one thing at a time. Every output is compared bit by
 * bit with that of a call in which nothing else was there. The inputs are the same for all
 * operations and in every run, as they come from an addressed stream. */
#include "experiment/noise/noise_ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "determinism/normal.h"
#include "determinism/stream.h"
#include "experiment/noise/noise_ops_private.h"
#include "kernels/backend_abi.h"
#include "kernels/distance.h"
#include "model/backends.h"

/* every number of rows up to it is tried; above, those of `above` */
#define DENSE_ROWS 96u
#define SEED UINT64_C(0x6E6F697365) /* "noise" */
#define SKEW 1u
#define REPEATS 3

const char *const noise_ops_classes[NOISE_OPS_CLASSES] = {"batch", "threads", "repeat",
                                                          "alignment"};

/* Both sides of the boundaries that tiles and tables have; where a boundary lies elsewhere,
 * bisection finds it. */
static const uint32_t above[] = {127, 128, 129, 191, 192, 193, 255, 256,     257,
                                 258, 383, 384, 385, 511, 512, 513, OPS_ROWS};

struct probing {
    const struct noise_ops_request *request;
    struct arena *arena;
    struct ops_bench bench;
    float *alone; /* the reference: every row by itself, or the sum by one call */
    size_t room;  /* elements of every buffer */
};

enum status noise_ops_check_mode(const char *mode) {
    static const char *const known[] = {"invariant",          "deterministic", "fast",
                                        "shuffled",           "shaped",        "shaped small-batch",
                                        "shaped large-batch", "atomic",        "order-free"};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strcmp(known[i], mode) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "expected invariant, deterministic, fast, shuffled, shaped or atomic, got \"%s\"", mode);
}

static enum status set_mode(struct probing *p) {
    const char *mode = p->request->mode;
    struct ops_bench *bench = &p->bench;
    const int device = p->request->backend != NULL;
    const uint32_t all = SUM_FORWARD | SUM_WEIGHT | SUM_DQ | SUM_EMBEDDING | SUM_NORM | SUM_LOSS;
    if (device && (strcmp(mode, "fast") == 0 || strcmp(mode, "deterministic") == 0)) {
        const int fixed = strcmp(mode, "deterministic") == 0;
        bench->library = (struct library_mode){
            .pinned = fixed, .ordered = fixed, .split_k = 1, .atomics = !fixed};
        bench->call.library = &bench->library;
        return STATUS_OK;
    }
    if (strcmp(mode, "invariant") == 0 || strcmp(mode, "deterministic") == 0) return STATUS_OK;
    if (strncmp(mode, "shaped", 6) == 0) {
        const int large = strcmp(mode, "shaped large-batch") == 0;
        if (large || strcmp(mode, "shaped") == 0 || strcmp(mode, "shaped small-batch") == 0) {
            bench->call.splits = &bench->splits;
            return splits_parse(large ? "builtin:large-batch" : "builtin:small-batch",
                                &bench->splits);
        }
    }
    if (strcmp(mode, "shuffled") == 0) {
        bench->order = (struct order){.seed = SEED, .kinds = all, .chunk = 16, .update = 1};
        bench->call.order = &bench->order;
        return STATUS_OK;
    }
    if (strcmp(mode, "atomic") == 0) {
        bench->racing = (struct racing){SUM_WEIGHT | SUM_DQ | SUM_EMBEDDING | SUM_NORM, 16};
        bench->call.racing = &bench->racing;
        bench->call.threads = p->request->threads;
        return STATUS_OK;
    }
    if (strcmp(mode, "fast") == 0) {
        TRY(blas_open(&bench->blas));
        bench->call.blas = &bench->blas;
        return STATUS_OK;
    }
    if (strcmp(mode, "order-free") == 0)
        FAIL(STATUS_UNSUPPORTED, "order-free keeps sums that are no tensors: measure a training");
    return noise_ops_check_mode(mode);
}

static enum status draw(struct probing *p) {
    const struct stream_address address = {.stream = STREAM_DATA,
                                           .last_element = p->bench.drawn_count};
    struct stream_site site;
    uint32_t words[64];
    TRY(stream_pack(&address, &site));
    for (size_t i = 0; i < p->bench.drawn_count; i++) {
        if (i % COUNT_OF(words) == 0) stream_words(SEED, site, i, COUNT_OF(words), words);
        const double value = 0.5 * normal_from_word(words[i % COUNT_OF(words)]);
        p->bench.drawn[i] = (float)dtype_round((double)(float)value, p->bench.dtype);
    }
    return STATUS_OK;
}

static enum status open_buffers(struct probing *p) {
    struct ops_bench *bench = &p->bench;
    struct arena *arena = p->arena;
    p->room = (size_t)OPS_ROWS * 1024 + 64;
    bench->drawn_count = 4 * p->room;
    TRY(arena_take(arena, bench->drawn_count, sizeof(float), "inputs", &bench->drawn));
    TRY(draw(p));
    for (int i = 0; i < OPS_BUFFERS; i++)
        TRY(arena_take(arena, p->room, sizeof(float), "inputs", &bench->input[i]));
    for (int i = 0; i < 3; i++)
        TRY(arena_take(arena, p->room, sizeof(float), "outputs", &bench->scratch_rows[i]));
    TRY(arena_take(arena, p->room, sizeof(float), "outputs", &bench->output));
    TRY(arena_take(arena, p->room, sizeof(float), "outputs", &p->alone));
    TRY(arena_take(arena, 2 * OPS_ROWS, sizeof *bench->ids, "ids", &bench->ids));
    TRY(arena_take(arena, OPS_ROWS, sizeof *bench->sequences, "sequences", &bench->sequences));
    for (uint32_t i = 0; i < OPS_ROWS; i++) {
        bench->ids[i] = i * 7 % 13;
        bench->sequences[i] = (struct sequence){i * OPS_LENGTH, OPS_LENGTH, i, 0};
    }
    return STATUS_OK;
}

/* Called after the mode is set, because a backend may lack it. */
static enum status open_ops(struct probing *p) {
    struct ops_bench *bench = &p->bench;
    const struct backend *const backend = p->request->backend;
    if (backend == NULL) return backend_ops(ISA_AUTO, bench->dtype, DTYPE_F32, &bench->ops);
    const char *const lacks = backend->refuses(&bench->call);
    if (lacks != NULL) FAIL(STATUS_UNSUPPORTED, "%s does not have %s yet", backend->name, lacks);
    return backend->ops(bench->dtype, DTYPE_F32, &bench->ops);
}

static enum status open_bench(struct probing *p) {
    struct ops_bench *bench = &p->bench;
    struct op_limits limits = {.rows = OPS_ROWS * 2,
                               .width = OPS_WIDEST,
                               .length = OPS_LENGTH,
                               .H = 4,
                               .G = 4,
                               .D = 16,
                               .threads = p->request->threads};
    size_t bytes;
    bench->dtype = p->request->dtype;
    bench->call.compute = bench->dtype;
    bench->call.threads = 1;
    bench->call.layer = 1;
    bench->call.site = SITE_Q_PROJ;
    if (bench->dtype != DTYPE_F32 && bench->dtype != DTYPE_BF16)
        FAIL(STATUS_UNSUPPORTED, "ops are probed in f32 and bf16, not in %s",
             dtype_name(bench->dtype));
    TRY(set_mode(p));
    TRY(open_ops(p));
    limits.width = 1024; /* of products; a row of log-probs is wider, but needs less scratch */
    if (bench->call.blas != NULL || bench->call.library != NULL)
        limits.library = (size_t)limits.width * limits.width;
    TRY(backends_scratch(p->request->backend, &limits, &bytes));
    size_t rows = 0;
    limits.rows = 64;
    limits.width = OPS_WIDEST;
    limits.library = 0;
    TRY(backends_scratch(p->request->backend, &limits, &rows));
    TRY(arena_take(p->arena, bytes > rows ? bytes : rows, 1, "scratch", &bench->call.scratch));
    return open_buffers(p);
}

/* Fills the inputs with the same numbers wherever the buffers begin. */
static void fill(struct probing *p, size_t skew) {
    struct ops_bench *bench = &p->bench;
    bench->skew = skew;
    for (int i = 0; i < OPS_BUFFERS; i++)
        memcpy(bench->input[i] + skew, bench->drawn + (size_t)i * 1009,
               (p->room - 64) * sizeof(float));
}

static size_t elements(const struct ops_probe *probe, uint32_t rows) {
    return probe->width(probe) * (probe->sums ? 1 : rows);
}

static float *result(const struct probing *p) {
    return p->bench.output + p->bench.skew;
}

/* Makes the reference: rows one by one, or a sum by one call. */
static void run_alone(struct probing *p, const struct ops_probe *probe, uint32_t rows) {
    memset(p->bench.output, 0, p->room * sizeof(float));
    for (uint32_t r = 0; r < rows && !probe->sums; r++)
        probe->run(&p->bench, probe, r, 1);
    if (probe->sums) probe->run(&p->bench, probe, 0, rows);
    memcpy(p->alone, result(p), elements(probe, rows) * sizeof(float));
}

/* Makes what is compared: one call, or, for a sum, two calls, the first with a third of the rows.
 */
static void run_together(struct probing *p, const struct ops_probe *probe, uint32_t rows,
                         int split) {
    const uint32_t first = split ? (rows + 2) / 3 : rows;
    memset(p->bench.output, 0, p->room * sizeof(float));
    probe->run(&p->bench, probe, 0, first);
    if (rows > first) probe->run(&p->bench, probe, first, rows - first);
}

/* The largest difference from the reference in ulps. Accumulators are f32; what an operation writes
 * by rows has the bench's dtype. */
static int64_t apart(const struct probing *p, const struct ops_probe *probe, uint32_t rows) {
    const size_t count = elements(probe, rows);
    const enum dtype dtype = probe->sums ? DTYPE_F32 : p->bench.dtype;
    if (distance_changed(p->alone, result(p), DTYPE_F32, count) == 0) return 0;
    const int64_t ulp = distance_ulp(p->alone, result(p), dtype, count);
    /* a zero's sign or less than a unit: bits differ, so it counts as 1 */
    return ulp == 0 ? 1 : ulp;
}

static int64_t try_rows(struct probing *p, const struct ops_probe *probe, uint32_t rows) {
    if (probe->sums) run_alone(p, probe, rows);
    run_together(p, probe, rows, probe->sums);
    return apart(p, probe, rows);
}

/* The smallest number of rows above `low` (equal) and up to `high` (not equal) that moves a bit. */
static uint32_t bisect(struct probing *p, const struct ops_probe *probe, uint32_t low,
                       uint32_t high) {
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (try_rows(p, probe, middle) == 0)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void note(struct noise_ops_cell *cell, int64_t ulp) {
    cell->looked++;
    if (ulp == 0) return;
    cell->equal = 0;
    cell->differing++;
    if (ulp > cell->ulp) cell->ulp = ulp;
}

static void probe_batch(struct probing *p, const struct ops_probe *probe,
                        struct noise_ops_cell *cell) {
    uint32_t last = 1;
    if (!probe->splits) {
        cell->untestable = "one sum over all";
        return;
    }
    if (!probe->sums) run_alone(p, probe, probe->rows);
    for (uint32_t i = 2; i <= DENSE_ROWS + COUNT_OF(above); i++) {
        const uint32_t rows = i <= DENSE_ROWS ? i : above[i - DENSE_ROWS - 1];
        if (rows > probe->rows) break;
        const int64_t ulp = try_rows(p, probe, rows);
        note(cell, ulp);
        if (ulp != 0 && cell->from == 0) cell->from = bisect(p, probe, last, rows);
        cell->beyond += cell->from != 0;
        last = rows;
    }
}

/* Makes the whole call again, after its caller changed one thing. */
static void probe_again(struct probing *p, const struct ops_probe *probe,
                        struct noise_ops_cell *cell) {
    run_together(p, probe, probe->rows, 0);
    note(cell, apart(p, probe, probe->rows));
}

/* Holds the call against itself: made again, with other numbers of threads, and with its inputs and
 * outputs moved by one number, so that none begins where vectors do. The first result is the
 * reference of all three. */
static void probe_others(struct probing *p, const struct ops_probe *probe,
                         struct noise_ops_row *row) {
    const int own = p->bench.call.threads;
    run_together(p, probe, probe->rows, 0);
    memcpy(p->alone, result(p), elements(probe, probe->rows) * sizeof(float));
    for (int i = 0; i < REPEATS; i++)
        probe_again(p, probe, &row->cells[NOISE_OPS_REPEAT]);
    const int most = p->request->backend == NULL ? p->request->threads : 0;
    for (int threads = 1; threads <= most; threads++) {
        p->bench.call.threads = threads;
        if (threads != own) probe_again(p, probe, &row->cells[NOISE_OPS_THREADS]);
    }
    p->bench.call.threads = own;
    if (row->cells[NOISE_OPS_THREADS].looked == 0)
        row->cells[NOISE_OPS_THREADS].untestable =
            p->request->backend == NULL ? "one processor" : "the device's own";
    fill(p, SKEW);
    probe_again(p, probe, &row->cells[NOISE_OPS_ALIGNMENT]);
    fill(p, 0);
}

static enum status measure(struct probing *p, struct noise_ops_row *rows, uint32_t *out_count) {
    const char *const op = p->request->op;
    uint32_t count = 0;
    fill(p, 0);
    for (uint32_t i = 0; i < ops_probe_count; i++) {
        const struct ops_probe *probe = &ops_probes[i];
        if (p->request->interrupted != NULL && *p->request->interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted while ops were probed");
        if (op != NULL && strcmp(op, probe->op) != 0) continue;
        struct noise_ops_row *const row = &rows[count++];
        *row = (struct noise_ops_row){.op = probe->op, .size = probe->size};
        for (int c = 0; c < NOISE_OPS_CLASSES; c++)
            row->cells[c].equal = 1;
        probe_batch(p, probe, &row->cells[NOISE_OPS_BATCH]);
        probe_others(p, probe, row);
    }
    *out_count = count;
    return STATUS_OK;
}

enum status noise_ops_measure(const struct noise_ops_request *request, struct arena *arena,
                              const struct noise_ops_row **out, uint32_t *out_count) {
    struct arena seen = ARENA_EMPTY; /* in the memory that the operations can read */
    struct probing *p;
    struct noise_ops_row *rows;
    TRY(arena_take(arena, 1, sizeof *p, "ops", &p));
    TRY(arena_take(arena, ops_probe_count, sizeof *rows, "ops", &rows));
    p->request = request;
    p->arena = &seen;
    backends_memory(request->backend, &seen, NULL);
    enum status status = open_bench(p);
    if (status == STATUS_OK) status = measure(p, rows, out_count);
    if (status == STATUS_OK) status = backends_wait(request->backend);
    arena_close(&seen);
    TRY(status);
    *out = rows;
    return STATUS_OK;
}

int noise_ops_is_equal(const struct noise_ops_row *row) {
    int equal = 1;
    for (int c = 0; c < NOISE_OPS_CLASSES; c++)
        equal = equal && row->cells[c].equal;
    return equal;
}

static enum status find_dtype(const char *name, enum dtype *out) {
    static const enum dtype known[] = {DTYPE_F32, DTYPE_BF16};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        *out = known[i];
        if (strcmp(dtype_name(known[i]), name) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "expected f32 or bf16, got \"%s\"", name);
}

enum status noise_ops_check_dtype(const char *dtype) {
    enum dtype found;
    return find_dtype(dtype, &found);
}

enum status noise_ops_measure_case(const struct config *config, int threads,
                                   const volatile int *interrupted, struct arena *arena,
                                   struct noise_ops_case *one) {
    struct noise_ops_request request = {
        .mode = one->mode, .threads = threads, .interrupted = interrupted};
    TRY(find_dtype(one->dtype, &request.dtype));
    TRY(backends_open(config, &request.backend));
    const enum status status = noise_ops_measure(&request, arena, &one->rows, &one->count);
    if (status == STATUS_UNSUPPORTED) {
        snprintf(one->untestable, sizeof one->untestable, "%s", status_text());
        return STATUS_OK;
    }
    TRY(status);
    for (uint32_t i = 0; i < one->count; i++)
        for (int c = 0; c < NOISE_OPS_CLASSES; c++) {
            const struct noise_ops_cell *const cell = &one->rows[i].cells[c];
            if (cell->untestable != NULL) continue;
            one->equal += cell->equal != 0;
            one->apart += cell->equal == 0;
        }
    return STATUS_OK;
}
