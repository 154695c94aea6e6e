/* SPDX-License-Identifier: Apache-2.0
 * Reads what runs left by the readers that the other verbs use, and compares it. */
#include "ablate/ablate_points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sum.h"
#include "determinism/comparable.h"
#include "determinism/first.h"
#include "determinism/trace.h"
#include "logs/import.h"

#define BLOCK 4096

/* ---- reading ---- */

static enum status keep_hex(const struct digest *digest, struct arena *arena, const char **out) {
    char hex[DIGEST_HEX], *copy;
    digest_hex(digest, hex);
    TRY(arena_format(arena, &copy, "%s", hex));
    *out = copy;
    return STATUS_OK;
}

static enum status read_weights(const char *path, struct arena *arena, struct ablate_left *out) {
    struct digest digest;
    out->has_torch = ablate_torch_is(path);
    const enum status status =
        out->has_torch ? ablate_torch_open(path, arena, &out->torch, &out->weights, &out->wrappers)
                       : checkpoint_open(path, arena, &out->weights);
    if (status != STATUS_OK) return status;
    out->has_weights = 1;
    out->as_named = out->weights;
    if (!out->has_torch)
        TRY(ablate_names_unwrap(&out->weights, arena, &out->wrappers));
    else if (out->wrappers != 0)
        TRY(ablate_torch_as_named(&out->torch, arena, &out->as_named));
    TRY(checkpoint_digest(&out->weights, arena, &digest));
    return keep_hex(&digest, arena, &out->digest[READ_WEIGHTS]);
}

/* Keeps the rows of a log that have an update and a loss. Of an update that stands twice, as after
 * a resume, the later row counts. */
static enum status keep_losses(const struct log *log, const char *path, struct arena *arena,
                               struct ablate_left *out) {
    const struct log_column *loss = log_column_of(log, LOG_LOSS);
    int64_t *step;
    double *value;
    if (loss == NULL) FAIL(STATUS_INPUT, "%s: expected a log with a loss, got none", path);
    TRY(arena_take(arena, log->rows, sizeof *step, "losses", &step));
    TRY(arena_take(arena, log->rows, sizeof *value, "losses", &value));
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(loss, row) || log->step[row] <= 0) continue;
        const int ahead = out->rows == 0 || log->step[row] > step[out->rows - 1];
        size_t at = ahead ? out->rows : 0;
        while (at < out->rows && step[at] != log->step[row])
            at++;
        step[at] = log->step[row];
        value[at] = loss->value[row];
        out->rows += at == out->rows;
    }
    if (out->rows == 0)
        FAIL(STATUS_INPUT, "%s: expected losses of updates, got no row with both", path);
    out->step = step;
    out->loss = value;
    return STATUS_OK;
}

static enum status digest_losses(const struct ablate_left *left, struct arena *arena,
                                 const char **out) {
    struct digest digest, parts[2];
    digest_bytes("steps", left->step, left->rows * sizeof *left->step, &parts[0]);
    digest_bytes("losses", left->loss, left->rows * sizeof *left->loss, &parts[1]);
    digest_root("log", parts, COUNT_OF(parts), &digest);
    return keep_hex(&digest, arena, out);
}

static enum status read_log(const char *path, struct arena *arena, struct ablate_left *out) {
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    TRY(log_import(path, &options, arena, &log));
    TRY(keep_losses(log, path, arena, out));
    return digest_losses(out, arena, &out->digest[READ_LOG]);
}

static int has_root(const struct record *record) {
    return record_has_digest(record->digests[DIGEST_ROOT]);
}

/* Two traces are equal if the roots and losses of all their updates are. The last root alone would
 * pass over what came back before the end. */
static enum status digest_trace(const struct trace_run *run, struct arena *arena,
                                const char **out) {
    struct digest *roots, digest, parts[2];
    double *losses;
    TRY(arena_take(arena, run->updates, sizeof *roots, "digests", &roots));
    TRY(arena_take(arena, run->updates, sizeof *losses, "losses", &losses));
    for (uint64_t i = 0; i < run->updates; i++) {
        memcpy(roots[i].byte, run->records[i].digests[DIGEST_ROOT], DIGEST_BYTES);
        losses[i] = run->records[i].reals[REAL_LOSS];
    }
    digest_bytes("roots", roots, run->updates * sizeof *roots, &parts[0]);
    digest_bytes("losses", losses, run->updates * sizeof *losses, &parts[1]);
    digest_root("trace", parts, COUNT_OF(parts), &digest);
    return keep_hex(&digest, arena, out);
}

static enum status read_trace(const char *path, int losses, struct arena *arena,
                              struct ablate_left *out) {
    struct trace_image *image;
    TRY(trace_open(path, arena, &image));
    if (image->run_count != 1 || image->runs[0].updates == 0)
        FAIL(STATUS_INPUT, "%s: expected a trace of one run with updates, got %u runs", path,
             image->run_count);
    const struct trace_run *run = &image->runs[0];
    out->trace = image;
    if (losses) {
        int64_t *step;
        double *value;
        TRY(arena_take(arena, run->updates, sizeof *step, "losses", &step));
        TRY(arena_take(arena, run->updates, sizeof *value, "losses", &value));
        for (uint64_t i = 0; i < run->updates; i++) {
            if (isnan(run->records[i].reals[REAL_LOSS])) continue;
            step[out->rows] = (int64_t)run->records[i].step;
            value[out->rows++] = run->records[i].reals[REAL_LOSS];
        }
        out->step = step;
        out->loss = value;
    }
    int known = 0;
    for (uint64_t i = 0; i < run->updates; i++)
        known |= has_root(&run->records[i]) || !isnan(run->records[i].reals[REAL_LOSS]);
    if (!known) FAIL(STATUS_INPUT, "%s: expected roots or losses, got neither", path);
    return digest_trace(run, arena, &out->digest[READ_TRACE]);
}

static enum status read_bytes(const char *path, struct arena *arena, struct ablate_left *out) {
    char hex[DIGEST_HEX], *copy;
    TRY(digest_file(path, hex));
    TRY(arena_format(arena, &copy, "%s", hex));
    out->digest[READ_BYTES] = copy;
    return STATUS_OK;
}

static enum status read_left(const struct ablate_file *file, const struct ablate_values *values,
                             struct arena *arena, struct ablate_left *out) {
    for (int kind = 0; kind < READ_KINDS; kind++) {
        char *path;
        if (file->read[kind] == NULL) continue;
        TRY(ablate_expand(file, file->read[kind], values, arena, &path));
        switch ((enum ablate_read)kind) {
        case READ_WEIGHTS:
            TRY(read_weights(path, arena, out));
            break;
        case READ_LOG:
            TRY(read_log(path, arena, out));
            break;
        case READ_TRACE:
            TRY(read_trace(path, file->read[READ_LOG] == NULL, arena, out));
            break;
        default:
            TRY(read_bytes(path, arena, out));
        }
    }
    return STATUS_OK;
}

/* Slots and ports are not known any more when a run is read. */
static struct ablate_values values_of(const struct ablate_file *file, const struct ablate_run *run,
                                      const char *dir, char seed[24]) {
    snprintf(seed, 24, "%llu", (unsigned long long)file->seed);
    return (struct ablate_values){run->mask, dir, run->id, "", "", seed, NULL};
}

enum status ablate_left_path(const struct ablate_file *file, const struct ablate_run *run,
                             enum ablate_read kind, const char *dir, struct arena *arena,
                             char **out) {
    char seed[24];
    const struct ablate_values values = values_of(file, run, dir, seed);
    return ablate_expand(file, file->read[kind], &values, arena, out);
}

enum status ablate_left_open(const struct ablate_file *file, const struct ablate_run *run,
                             const char *dir, struct arena *arena, struct ablate_left *out) {
    char seed[24];
    const struct ablate_values values = values_of(file, run, dir, seed);
    memset(out, 0, sizeof *out);
    const enum status status = read_left(file, &values, arena, out);
    if (status != STATUS_OK) ablate_left_close(out);
    return status;
}

void ablate_left_close(struct ablate_left *left) {
    if (left->has_weights && left->has_torch) torch_file_close(&left->torch);
    if (left->has_weights) checkpoint_close(&left->weights);
    left->has_weights = 0;
}

enum status ablate_left_is(const struct ablate_left *left, enum ablate_read kind,
                           const char *recorded, struct arena *arena, int *out) {
    const char *const now = left->digest[kind], *older;
    struct digest digest;
    *out = now == recorded || (now != NULL && recorded != NULL && strcmp(now, recorded) == 0);
    if (*out || kind != READ_WEIGHTS || recorded == NULL || left->wrappers == 0) return STATUS_OK;
    TRY(checkpoint_digest(&left->as_named, arena, &digest));
    TRY(keep_hex(&digest, arena, &older));
    *out = strcmp(older, recorded) == 0;
    return STATUS_OK;
}

unsigned ablate_left_differ(const struct ablate_left *a, const struct ablate_left *b,
                            unsigned reads) {
    unsigned differ = 0;
    for (int kind = 0; kind < READ_KINDS; kind++)
        if ((reads >> kind & 1u) != 0 && (a->digest[kind] == NULL || b->digest[kind] == NULL ||
                                          strcmp(a->digest[kind], b->digest[kind]) != 0))
            differ |= 1u << kind;
    return differ;
}

/* ---- losses ---- */

int ablate_has_step(const struct ablate_left *left, int64_t step) {
    for (size_t i = left->rows; i > 0; i--)
        if (left->step[i - 1] == step) return 1;
    return 0;
}

int64_t ablate_common_step(const struct ablate_left *const *runs, uint32_t count) {
    int64_t best = 0;
    for (size_t i = count > 0 ? runs[0]->rows : 0; i > 0; i--) {
        const int64_t step = runs[0]->step[i - 1];
        int everywhere = step > best;
        for (uint32_t r = 1; r < count && everywhere; r++)
            everywhere = ablate_has_step(runs[r], step);
        if (everywhere) best = step;
    }
    return best;
}

double ablate_loss_at(const struct ablate_left *left, int64_t step) {
    for (size_t i = 0; i < left->rows; i++)
        if (left->step[i] == step) return left->loss[i];
    return (double)NAN;
}

/* ---- weights ---- */

static int is_number(const struct safetensors_tensor *tensor) {
    enum dtype dtype;
    return safetensors_dtype_number(tensor->dtype, &dtype);
}

static int same_shape(const struct safetensors_tensor *a, const struct safetensors_tensor *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0) &&
           is_number(a) == is_number(b);
}

/* Finds the common tensors of each run: picked[r * common->count + t]. */
static enum status pick(const struct ablate_left *const *runs, const char *const *names,
                        uint32_t count, const struct ablate_common *common,
                        const struct safetensors_tensor **picked) {
    if (common->count == 0) FAIL(STATUS_UNTESTABLE, "the arms have no tensor in common");
    for (uint32_t r = 0; r < count; r++)
        for (size_t t = 0; t < common->count; t++) {
            const char *const name = common->names[t];
            const struct safetensors_tensor *first = picked[t];
            const struct safetensors_tensor *here = checkpoint_find(&runs[r]->weights, name);
            if (here == NULL)
                FAIL(STATUS_UNTESTABLE, "%s is in both arms and not in %s", name, names[r]);
            picked[r * common->count + t] = here;
            if (r == 0 || same_shape(first, here)) continue;
            char have[SAFETENSORS_SHAPE_TEXT], got[SAFETENSORS_SHAPE_TEXT];
            safetensors_shape_text(first, have);
            safetensors_shape_text(here, got);
            FAIL(STATUS_UNTESTABLE, "%s is %s in %s and %s in %s", name, have, names[0], got,
                 names[r]);
        }
    return STATUS_OK;
}

/* One block of all runs, and the sums that it goes into. */
struct pass {
    const struct safetensors_tensor **tensors; /* (count, those that are common) */
    size_t common;
    uint32_t count, origin;
    struct ablate_pair *pairs;
    size_t pair_count;
    struct sum_lanes_f64 *sums; /* (pairs) */
    double *value;              /* (count, BLOCK) */
    double *spare;              /* (BLOCK) */
    float *narrow;              /* (BLOCK) */
    struct ablate_shape *out;
};

static enum status read_block(struct pass *pass, size_t tensor, uint64_t from, size_t length) {
    for (uint32_t r = 0; r < pass->count; r++) {
        const struct safetensors_tensor *of = pass->tensors[r * pass->common + tensor];
        double *const out = pass->value + (size_t)r * BLOCK;
        enum dtype dtype;
        (void)safetensors_dtype_number(of->dtype, &dtype); /* it is one: the caller asked */
        if (dtype_carrier(dtype) == sizeof(double)) {
            TRY(safetensors_numbers(of, from, length, out));
        } else {
            TRY(safetensors_numbers(of, from, length, pass->narrow));
            for (size_t i = 0; i < length; i++)
                out[i] = (double)pass->narrow[i];
        }
        for (size_t i = 0; i < length && r < pass->out->broken; i++)
            if (!isfinite(out[i])) {
                pass->out->broken = r;
                pass->out->broken_tensor = of->name;
            }
    }
    return STATUS_OK;
}

static void add_block(struct pass *pass, size_t length) {
    const double *const origin = pass->value + (size_t)pass->origin * BLOCK;
    for (size_t p = 0; p < pass->pair_count; p++) {
        const struct ablate_pair *pair = &pass->pairs[p];
        if (!pair->difference) continue;
        const double *a = pass->value + (size_t)pair->i * BLOCK;
        const double *b = pass->value + (size_t)pair->j * BLOCK;
        for (size_t i = 0; i < length; i++)
            pass->spare[i] = a[i] - b[i];
        sum_lanes_append_products_f64_f64(&pass->sums[p], pass->spare, pass->spare, length);
    }
    for (uint32_t r = 0; r < pass->count; r++) {
        double *const to = pass->value + (size_t)r * BLOCK;
        for (size_t i = 0; r != pass->origin && i < length; i++)
            to[i] -= origin[i];
    }
    memset(pass->value + (size_t)pass->origin * BLOCK, 0, length * sizeof(double));
    for (size_t p = 0; p < pass->pair_count; p++) {
        const struct ablate_pair *pair = &pass->pairs[p];
        if (pair->difference) continue;
        sum_lanes_append_products_f64_f64(&pass->sums[p], pass->value + (size_t)pair->i * BLOCK,
                                          pass->value + (size_t)pair->j * BLOCK, length);
    }
}

enum status ablate_products(const struct ablate_left *const *runs, const char *const *names,
                            uint32_t count, uint32_t origin, const struct ablate_common *common,
                            struct ablate_pair *pairs, size_t pair_count, struct arena *arena,
                            struct ablate_shape *out) {
    struct pass pass = {.common = common->count,
                        .count = count,
                        .origin = origin,
                        .pairs = pairs,
                        .pair_count = pair_count,
                        .out = out};
    *out = (struct ablate_shape){.tensors = common->count, .broken = count};
    TRY(arena_take(arena, count * common->count, sizeof(struct safetensors_tensor *), "tensors",
                   &pass.tensors));
    TRY(pick(runs, names, count, common, pass.tensors));
    TRY(arena_take(arena, pair_count, sizeof *pass.sums, "inner products", &pass.sums));
    TRY(arena_take(arena, (size_t)count * BLOCK, sizeof(double), "weights", &pass.value));
    TRY(arena_take(arena, BLOCK, sizeof(double), "weights", &pass.spare));
    TRY(arena_take(arena, BLOCK, sizeof(float), "weights", &pass.narrow));
    for (size_t p = 0; p < pair_count; p++)
        sum_lanes_open_f64(&pass.sums[p]);
    for (size_t t = 0; t < common->count; t++) {
        const uint64_t elements = pass.tensors[t]->count;
        if (!is_number(pass.tensors[t])) {
            out->others++;
            continue;
        }
        out->elements += elements;
        for (uint64_t from = 0; from < elements; from += BLOCK) {
            const size_t length = elements - from < BLOCK ? (size_t)(elements - from) : BLOCK;
            TRY(read_block(&pass, t, from, length));
            add_block(&pass, length);
        }
    }
    for (size_t p = 0; p < pair_count; p++)
        pairs[p].value = sum_lanes_close_f64(&pass.sums[p]);
    return STATUS_OK;
}

/* ---- first place ---- */

/* Returns the first update after which two logs hold another loss, or only one of them holds one.
 */
static int64_t first_loss(const struct ablate_left *a, const struct ablate_left *b) {
    for (size_t i = 0; i < a->rows || i < b->rows; i++) {
        if (i >= a->rows) return b->step[i];
        if (i >= b->rows) return a->step[i];
        if (a->step[i] != b->step[i]) return a->step[i] < b->step[i] ? a->step[i] : b->step[i];
        if (memcmp(&a->loss[i], &b->loss[i], sizeof a->loss[i]) != 0) return a->step[i];
    }
    return 0;
}

void ablate_find_first(const struct ablate_left *a, const struct ablate_left *b,
                       struct ablate_first *out) {
    *out = (struct ablate_first){0, "", ""};
    if (a->trace == NULL || b->trace == NULL) {
        out->update = first_loss(a, b);
        if (out->update > 0) out->phase = "loss";
        return;
    }
    const struct trace_run *x = &a->trace->runs[0], *y = &b->trace->runs[0];
    struct batch_gap gap; /* a batch that one of them did not record tells nothing */
    const uint64_t apart = runs_first_apart(x, y, &gap);
    for (uint64_t i = 0; i < x->updates && i < y->updates; i++) {
        const struct record *p = &x->records[i], *q = &y->records[i];
        const int roots = has_root(p) && has_root(q);
        if (p->step != q->step) return;
        const int alike =
            gap.updates == 0 ? record_equal_roots(p, q) : apart == 0 || p->step < apart;
        if (roots ? alike : p->reals[REAL_LOSS] == q->reals[REAL_LOSS]) continue;
        out->update = (int64_t)p->step;
        if (!roots) return;
        struct first_difference first = {"", ""};
        first_find(&x->plan, p, &y->plan, q, &first);
        out->phase = first.phase;
        out->tensor = first.tensor;
        return;
    }
}
