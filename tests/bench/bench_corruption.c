/* SPDX-License-Identifier: Apache-2.0
 * Who sees a flipped bit: plants single flips drawn from a seed into one training, each in a run of
 * its own, and counts which records and which gates would show it. This is not a test: it prints
 * the tables of docs/measurements/corruption.md.
 *
 *     bench_corruption [FLIPS-PER-CELL] [SEED]
 *
 * A cell is a dtype, a kind of tensor and a class of bits. Of the tensors of a kind each has the
 * same chance, then each element, each bit of the class, each micro-batch, each of the updates 12
 * to 16 of 20. The clean run up to the flip is trained once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "determinism/philox.h"
#include "optim/outlier.h"
#include "tests/bench/helper_bench.h"
#include "trainer/corruption_places.h"
#include "trainer/replay_check.h"
#include "trainer/run_private.h"

enum { UPDATES = 20, FIRST = 12, LAST = 16 };

enum kind { WEIGHTS, MOMENTS, WEIGHT_GRADIENTS, ACTIVATIONS, ACTIVATION_GRADIENTS, LOGITS, KINDS };
static const char *const kind_names[KINDS] = {
    "weights",        "moments", "gradients of weights", "activations", "gradients of activations",
    "logits and loss"};

enum bits { LOW, HIGH, EXPONENT, SIGN, CLASSES };
static const char *const bit_names[CLASSES] = {"mantissa, lower half", "mantissa, upper half",
                                               "exponent", "sign"};

/* Who may see it. With a clean twin: that the number differs at all. Alone: against a threshold. */
enum sight {
    ACTS,         /* the weights after the last update are other ones */
    ROOTS,        /* twin: a digest of an update, over weights, slots, LR and loss */
    LOSS,         /* twin: the loss of an update, as six decimals */
    NORM,         /* twin: the gradient norm, as six digits */
    SITES,        /* twin: digests of activations (record.phases) */
    REPLAY,       /* alone: every micro-batch again */
    REPLAY_FIRST, /* alone: the first micro-batch again, as torchtitan does */
    READBACK,     /* alone: the LR read back is not the one applied, beyond its bound */
    NONFINITE,    /* alone: loss or gradient norm is infinite or NaN */
    LOSS_SPIKE,   /* alone: loss above mean + 6 sigma of the updates before (OLMo-core) */
    NORM_SPIKE,   /* alone: gradient norm above mean + 6 sigma of the updates before */
    NORM_TENFOLD, /* alone: gradient norm above 10 times the largest before */
    SIGHTS
};
static const char *const sight_names[SIGHTS] = {
    "acts",        "roots",     "loss",       "norm",         "sites",        "replay",
    "replay of 1", "read-back", "not finite", "loss 6 sigma", "norm 6 sigma", "norm tenfold"};

struct count {
    uint32_t flips, seen[SIGHTS];
    uint32_t seen_acting[SIGHTS]; /* of those that act */
};

/* The training, and what its clean run left. */
struct bench {
    struct arena arena;
    struct config config;
    struct dataset dataset;
    unsigned char *states; /* before each update from FIRST to LAST */
    size_t bytes;
    struct record records[UPDATES];
    unsigned char *end; /* the state after the last update */
};

static void fatal(enum status status) {
    if (status == STATUS_OK) return;
    fprintf(stderr, "bench_corruption: %s\n", status_text());
    exit(1);
}

struct drawing {
    uint64_t seed;
    uint32_t number, next;
};

static uint64_t draw(struct drawing *drawing, uint64_t bound) {
    const struct philox_block counter = {{drawing->number, drawing->next++, 22, 5}};
    const struct philox_block drawn = philox_draw(counter, drawing->seed);
    return (((uint64_t)drawn.word[1] << 32 | drawn.word[0]) >> 11) % bound;
}

/* ---- tensors ---- */

static int kind_of(const struct corruption_place *place) {
    const int parameter = place->row != PARAM_ABSENT;
    if (place->slot >= 0) return MOMENTS;
    if (parameter &&
        (strcmp(place->tensor, "parameter") == 0 || strcmp(place->tensor, "master") == 0 ||
         strcmp(place->tensor, "compute copy") == 0))
        return WEIGHTS;
    if (parameter) return WEIGHT_GRADIENTS;
    if (place->phase == FAULT_AT_BACKWARD) return ACTIVATION_GRADIENTS;
    return place->axis == WATCH_LABELS ? LOGITS : ACTIVATIONS;
}

struct choice {
    enum kind kind;
    struct drawing *drawing;
    uint64_t count;
    struct corruption_place place;
};

static void choose(void *context, const struct corruption_place *place) {
    struct choice *choice = (struct choice *)context;
    if (kind_of(place) != (int)choice->kind) return;
    if (draw(choice->drawing, ++choice->count) == 0) choice->place = *place;
}

static unsigned mantissa_bits(enum dtype dtype) {
    return dtype == DTYPE_F64 ? 52 : dtype == DTYPE_F32 ? 23 : dtype == DTYPE_BF16 ? 7 : 10;
}

static uint64_t draw_bit(struct drawing *drawing, enum dtype dtype, enum bits class_) {
    const uint64_t mantissa = mantissa_bits(dtype), all = 8 * dtype_width(dtype);
    const uint64_t half = mantissa / 2;
    if (class_ == SIGN) return all - 1;
    if (class_ == LOW) return draw(drawing, half);
    if (class_ == HIGH) return half + draw(drawing, mantissa - half);
    return mantissa + draw(drawing, all - 1 - mantissa);
}

static void draw_fault(const struct bench *bench, const struct run *run, enum kind kind,
                       enum bits class_, struct drawing *drawing, struct config *out) {
    const struct corruption_source source = {.config = &bench->config,
                                             .table = run_table(run),
                                             .optimizer = run->optimizer,
                                             .layout = run_layout(run)};
    struct choice choice = {.kind = kind, .drawing = drawing};
    const struct corruption_place *place = &choice.place;
    corruption_places(&source, choose, &choice);
    const uint64_t micros = bench->config.batch.size / bench->config.batch.micro;
    const uint64_t tokens = place->axis == WATCH_WHOLE ? 1
                                                       : bench->config.batch.micro *
                                                             run->limits.sides * run->limits.length;
    *out = bench->config;
    out->fault.update = FIRST + draw(drawing, LAST - FIRST + 1);
    out->fault.phase = place->phase;
    out->fault.micro = place->repeats ? 1 + draw(drawing, micros) : 1;
    out->fault.layer = place->layer == UINT32_MAX ? KEY_WORD_UINT : place->layer;
    snprintf(out->fault.op, sizeof out->fault.op, "%s", place->op);
    snprintf(out->fault.tensor, sizeof out->fault.tensor, "%s", place->tensor);
    out->fault.element = draw(drawing, tokens * place->count);
    out->fault.bit = draw_bit(drawing, place->dtype, class_);
}

/* ---- one training ---- */

static void keep_record(struct bench *bench, const struct run *run, uint64_t update) {
    const struct record *record = run_record(run);
    struct record *kept = &bench->records[update - 1];
    fatal(record_take(&bench->arena, &run->shape, 1, kept));
    kept->step = update;
    memcpy(kept->reals, record->reals, sizeof kept->reals);
    memcpy(kept->digests, record->digests, sizeof kept->digests);
    memcpy(kept->sites, record->sites, run->shape.sites * sizeof *kept->sites);
    memcpy(kept->groups, record->groups, run->shape.groups * sizeof *kept->groups);
}

static const struct run_options options = {
    .readback = 1, .tensors = 1, .phases = 1, .replay_every = 1, .steps = UPDATES};

static struct run *train_clean(struct bench *bench) {
    struct run *run;
    fatal(run_open(&bench->config, &bench->dataset, &options, &run));
    bench->bytes = run_layout(run)->bytes;
    fatal(
        arena_take(&bench->arena, (LAST - FIRST + 1) * bench->bytes, 1, "states", &bench->states));
    fatal(arena_take(&bench->arena, bench->bytes, 1, "state", &bench->end));
    for (uint64_t k = 1; k <= UPDATES; k++) {
        const struct record *record;
        if (k >= FIRST && k <= LAST)
            fatal(run_snapshot(run, bench->states + (k - FIRST) * bench->bytes));
        fatal(run_step(run, &record));
        keep_record(bench, run, k);
    }
    fatal(run_snapshot(run, bench->end));
    const struct replay_seen seen = run_replay_seen(run);
    if (seen.checks != UPDATES || seen.differing != 0)
        fatal(status_fail(STATUS_INTERNAL, "the clean run does not repeat itself"));
    return run;
}

static int shows(double a, double b, const char *format) {
    char x[32], y[32];
    snprintf(x, sizeof x, format, a);
    snprintf(y, sizeof y, format, b);
    return strcmp(x, y) != 0;
}

/* The course of a number before an update, to judge the next one by. */
struct course {
    double values[UPDATES];
    size_t count;
    double largest;
};

static void add(struct course *course, double value) {
    course->values[course->count++] = value;
    if (value > course->largest || course->count == 1) course->largest = value;
}

static int spikes(const struct course *course, double value) {
    float std, mean;
    outlier_std_mean(course->values, course->count, &std, &mean);
    return !((float)value - mean <= 6.0f * std);
}

static int read_back_differs(const struct record *record, uint32_t groups) {
    int differs = 0;
    for (uint32_t g = 0; g < groups; g++) {
        const double *row = record->groups[g];
        differs |= fabs(row[GROUP_LR_READBACK] - row[GROUP_LR_APPLIED]) > row[GROUP_LR_ERROR];
    }
    return differs;
}

static void look(const struct bench *bench, const struct run *run, const struct record *now,
                 struct course courses[2], int seen[SIGHTS]) {
    const struct record *clean = &bench->records[now->step - 1];
    const double loss = now->reals[REAL_LOSS], norm = now->reals[REAL_GRAD_NORM];
    seen[ROOTS] |=
        memcmp(now->digests[DIGEST_ROOT], clean->digests[DIGEST_ROOT], RECORD_DIGEST_BYTES) != 0;
    seen[SITES] |= memcmp(now->sites, clean->sites, run->shape.sites * sizeof *now->sites) != 0;
    seen[LOSS] |= shows(loss, clean->reals[REAL_LOSS], "%.6f");
    seen[NORM] |= shows(norm, clean->reals[REAL_GRAD_NORM], "%.6g");
    seen[READBACK] |= read_back_differs(now, run->shape.groups);
    seen[NONFINITE] |= !isfinite(loss) || !isfinite(norm);
    seen[LOSS_SPIKE] |= spikes(&courses[0], loss);
    seen[NORM_SPIKE] |= spikes(&courses[1], norm);
    seen[NORM_TENFOLD] |= !(norm <= 10.0 * courses[1].largest);
    add(&courses[0], loss);
    add(&courses[1], norm);
}

static int same_weights(const struct bench *bench, const struct run *run) {
    for (uint32_t i = 0; i < run_owner_count(run); i++) {
        const uint32_t row = run_owners(run)[i];
        const struct param_row *param = &run_table(run)->rows[row];
        if (memcmp(run_param(run, row), bench->end + run_layout(run)->tensor[row].param,
                   param->count * dtype_carrier(param->dtype)) != 0)
            return 0;
    }
    return 1;
}

/* Returns 0 where the data have no such element. */
static int try_fault(const struct bench *bench, const struct config *config, int seen[SIGHTS]) {
    const uint64_t update = config->fault.update;
    struct course courses[2] = {{.count = 0}};
    const struct record *record;
    struct run *run;
    memset(seen, 0, SIGHTS * sizeof *seen);
    for (uint64_t k = 1; k < update; k++) {
        add(&courses[0], bench->records[k - 1].reals[REAL_LOSS]);
        add(&courses[1], bench->records[k - 1].reals[REAL_GRAD_NORM]);
    }
    fatal(run_open(config, &bench->dataset, &options, &run));
    fatal(run_restore(run, bench->states + (update - FIRST) * bench->bytes));
    for (uint64_t k = update; k <= UPDATES; k++) {
        const enum status status = run_step(run, &record);
        if (status == STATUS_INPUT && strstr(status_text(), "fault.element") != NULL) {
            run_close(run);
            return 0;
        }
        fatal(status);
        look(bench, run, record, courses, seen);
    }
    const struct replay_seen replay = run_replay_seen(run);
    seen[REPLAY] = replay.differing > 0;
    seen[REPLAY_FIRST] = replay.differing > 0 && config->fault.micro == 1;
    seen[ACTS] = !same_weights(bench, run);
    run_close(run);
    return 1;
}

/* The gates that need no twin, on the clean run itself: any that opens there is a false alarm. */
static void print_clean(const struct bench *bench, const struct run *run) {
    struct course courses[2] = {{.count = 0}};
    int seen[SIGHTS] = {0}, ignored[SIGHTS];
    for (uint64_t k = 1; k <= UPDATES; k++)
        look(bench, run, &bench->records[k - 1], courses, k < FIRST ? ignored : seen);
    printf("False alarms of the clean run, updates %d to %d:", FIRST, UPDATES);
    for (int s = READBACK; s < SIGHTS; s++)
        printf(" %s %d%s", sight_names[s], seen[s], s + 1 < SIGHTS ? "," : ".\n");
}

/* ---- tables ---- */

static void count_one(struct count *count, const int seen[SIGHTS]) {
    count->flips++;
    for (int s = 0; s < SIGHTS; s++) {
        count->seen[s] += (uint32_t)seen[s];
        count->seen_acting[s] += (uint32_t)(seen[s] && seen[ACTS]);
    }
}

/* The interval of Wilson (1927), 95 %, in percent. */
static void print_share(uint32_t x, uint32_t n) {
    const double z = 1.959963984540054, p = (double)x / n, nn = n;
    if (n == 0) {
        printf(" - |");
        return;
    }
    const double middle = (p + z * z / (2 * nn)) / (1 + z * z / nn);
    const double half = z / (1 + z * z / nn) * sqrt(p * (1 - p) / nn + z * z / (4 * nn * nn));
    printf(" %u [%.0f, %.0f] |", x, 100 * fmax(0.0, middle - half), 100 * fmin(1.0, middle + half));
}

static void print_head(const char *first) {
    printf("\n| %s | flips |", first);
    for (int s = 0; s < SIGHTS; s++)
        printf(" %s |", sight_names[s]);
    printf("\n|---|---|");
    for (int s = 0; s < SIGHTS; s++)
        printf("---|");
    printf("\n");
}

static void print_row(const char *name, const struct count *count) {
    printf("| %s | %u |", name, count->flips);
    for (int s = 0; s < SIGHTS; s++)
        print_share(count->seen[s], count->flips);
    printf("\n");
}

static void print_acting(const struct count *all) {
    printf("\nOf the %u of %u flips that act:", all->seen[ACTS], all->flips);
    for (int s = 1; s < SIGHTS; s++)
        printf(" %s %u%s", sight_names[s], all->seen_acting[s], s + 1 < SIGHTS ? "," : ".\n");
    printf("Of the %u that do not:", all->flips - all->seen[ACTS]);
    for (int s = 1; s < SIGHTS; s++)
        printf(" %s %u%s", sight_names[s], all->seen[s] - all->seen_acting[s],
               s + 1 < SIGHTS ? "," : ".\n");
}

static double cpu_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

/* The processor time of the updates with a check in each, over that without, of one process. */
static void print_cost(const struct bench *bench) {
    double seconds[2] = {0.0, 0.0};
    for (int repeat = 0; repeat < 3; repeat++)
        for (int checked = 0; checked < 2; checked++) {
            struct run_options asked = options;
            struct run *run;
            const struct record *record;
            asked.replay_every = (uint64_t)checked;
            fatal(run_open(&bench->config, &bench->dataset, &asked, &run));
            const double start = cpu_seconds();
            for (int k = 0; k < UPDATES; k++)
                fatal(run_step(run, &record));
            const double taken = cpu_seconds() - start;
            if (repeat == 0 || taken < seconds[checked]) seconds[checked] = taken;
            run_close(run);
        }
    printf("Processor time of %d updates: %.3f s, with a replay check in each %.3f s, ratio %.2f; "
           "the two states that it keeps are %.1f MiB.\n",
           UPDATES, seconds[0], seconds[1], seconds[1] / seconds[0],
           2.0 * (double)bench->bytes / 1048576.0);
}

#define TRAINING                                                                                   \
    "common.task=sft", "common.data.max_len=48", "common.batch.size=8", "common.batch.micro=4",    \
        "common.model.layers=2", "common.model.hidden=32", "common.model.heads=4",                 \
        "common.model.mlp=64", "common.optimizer.lr=1e-3", "common.schedule.name=constant",        \
        "steps=20"

static const struct {
    const char *name;
    const char *overrides[16];
} dtypes[] = {
    {"f32", {TRAINING}},
    {"bf16 (weights, activations, gradients and moments; no masters)",
     {TRAINING, "common.numerics.param=bf16", "common.numerics.compute=bf16"}},
};

static void measure(size_t which, uint32_t per_cell, uint64_t seed) {
    struct bench bench = {.arena = ARENA_EMPTY};
    const struct config *config;
    struct count kinds[KINDS] = {{0}}, classes[CLASSES] = {{0}}, all = {0};
    size_t words = 0;
    while (dtypes[which].overrides[words] != NULL)
        words++;
    fatal(bench_open(dtypes[which].overrides, words, &bench.arena, &config, &bench.dataset));
    bench.config = *config;
    struct run *clean = train_clean(&bench);
    struct drawing drawing = {seed, (uint32_t)which << 24, 0};
    for (int kind = 0; kind < KINDS; kind++)
        for (int class_ = 0; class_ < CLASSES; class_++)
            for (uint32_t i = 0; i < per_cell;) {
                struct config faulty;
                int seen[SIGHTS];
                drawing.number++;
                drawing.next = 0;
                draw_fault(&bench, clean, (enum kind)kind, (enum bits)class_, &drawing, &faulty);
                if (!try_fault(&bench, &faulty, seen)) continue;
                count_one(&kinds[kind], seen);
                count_one(&classes[class_], seen);
                count_one(&all, seen);
                i++;
            }
    printf("\n## %s\n", dtypes[which].name);
    print_head("kind of tensor");
    for (int kind = 0; kind < KINDS; kind++)
        print_row(kind_names[kind], &kinds[kind]);
    print_head("bit");
    for (int class_ = 0; class_ < CLASSES; class_++)
        print_row(bit_names[class_], &classes[class_]);
    print_row("**all**", &all);
    print_acting(&all);
    print_clean(&bench, clean);
    print_cost(&bench);
    run_close(clean);
    arena_close(&bench.arena);
}

int main(int argc, char **argv) {
    const uint32_t per_cell = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 15;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 22;
    printf("%u flips a cell, seed %llu\n", per_cell, (unsigned long long)seed);
    for (size_t which = 0; which < COUNT_OF(dtypes); which++)
        measure(which, per_cell, seed);
    return 0;
}
