/* SPDX-License-Identifier: Apache-2.0
 * Makes the small experiment that helper_trace.h describes, and compares trace files with it. */
#include "tests/determinism/helper_trace.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "determinism/trace/twinstep_trace.h"

#define PHASES 7
#define SITES 4
#define CONSUMERS 3
#define STREAMS 2
#define RANKS 3
#define LONG_TEXT 100000 /* more than an object header can hold */

static const char *const phases[PHASES] = {"fetch",    "forward", "backward", "clip",
                                           "optimize", "log",     "schedule"};
static const char *const sites[SITES] = {"embedding", "layer-0", "norm", "logp"};
static const struct record_consumer consumers[CONSUMERS] = {
    {"init/embedding", 0, 0, 17, 4096},
    {"data/permute", 1, 0, UINT64_MAX, 0},
    {"dropout/attention", 2, 60, UINT64_C(1) << 63, 0},
};
static const char *const streams[STREAMS] = {"data", "dropout"};
static const char *const texts[] = {"verdict/json", "verdict/text", "notes"};
static const struct trace_array_plan arrays[] = {
    {"floor/distance", 2, {2, 3}, "1", "distance between runs"},
    {"attribution/value", 1, {4, 0}, "1", "distance by set of swapped factors"},
};
static const struct trace_pair_plan pairs[] = {{"baseline", "test"}};

static void must(enum status status) {
    if (status == STATUS_OK) return;
    fprintf(stderr, "sample: %s\n", status_text());
    abort();
}

/* splitmix64 (Steele, Lea, Flood). */
static uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static void fill(void *bytes, size_t length, uint64_t seed) {
    uint8_t *to = (uint8_t *)bytes;
    for (size_t i = 0; i < length; i++)
        to[i] = (uint8_t)(mix(seed + i / 8) >> (8 * (i % 8)));
}

static const char *const *tensor_names(struct arena *arena, uint32_t count) {
    char **names;
    must(arena_take(arena, count, sizeof *names, "names", &names));
    for (uint32_t i = 0; i < count; i++)
        must(arena_format(arena, &names[i], "model.layers.%u.self_attn.q_proj.weight", i));
    return (const char *const *)names;
}

static void open_runs(struct sample *sample, uint32_t tensors) {
    static const char *const ids[SAMPLE_RUNS] = {"baseline", "test", "floor-rerun"};
    struct trace_run_plan *runs;
    must(arena_take(&sample->arena, SAMPLE_RUNS, sizeof *runs, "runs", &runs));
    for (uint32_t i = 0; i < SAMPLE_RUNS; i++)
        runs[i] = (struct trace_run_plan){
            .id = ids[i],
            .arm = ids[i],
            .first_step = 1,
            .shape = {2, tensors, PHASES, SITES, 4, CONSUMERS, STREAMS, RANKS},
            .phases = phases,
            .sites = sites,
            .consumers = consumers,
            .streams = streams,
            .groups = "0110",
            .tensors = tensor_names(&sample->arena, tensors),
            .configuration = "steps: 5\nseed: 17\n"};
    runs[2].arm = "baseline";
    runs[2].replicate = 1;
    runs[2].mask = 0x8000000000000001u;
    runs[2].first_step = 3;
    runs[2].shape = (struct record_shape){.groups = 1};
    runs[2].groups = NULL;
    runs[2].configuration = "";
    sample->plan.runs = runs;
    sample->plan.run_count = SAMPLE_RUNS;
}

static void open_attributes(struct sample *sample) {
    char *text;
    struct trace_attribute *attributes;
    must(arena_take(&sample->arena, 5, sizeof *attributes, "attributes", &attributes));
    must(arena_take(&sample->arena, LONG_TEXT + 1, 1, "text", &text));
    memset(text, 'x', LONG_TEXT);
    attributes[0] = (struct trace_attribute){"", "scenario", text};
    attributes[1] = (struct trace_attribute){"", "title", ""};
    attributes[2] = (struct trace_attribute){"env", "cpu", "caf\xc3\xa9"};
    attributes[3] = (struct trace_attribute){"env/volatile", "host", "here"};
    attributes[4] = (struct trace_attribute){"runs/baseline", "note", "an arm"};
    sample->plan.attributes = attributes;
    sample->plan.attribute_count = 5;
}

static void open_record(struct sample *sample, uint32_t tensors) {
    struct record *record = &sample->record;
    struct arena *arena = &sample->arena;
    must(arena_take(arena, 2, sizeof *record->groups, "groups", &record->groups));
    must(arena_take(arena, tensors, sizeof *record->tensors, "tensors", &record->tensors));
    must(arena_take(arena, tensors, sizeof *record->tensor_digests, "digests",
                    &record->tensor_digests));
    must(arena_take(arena, PHASES, sizeof *record->phases, "phases", &record->phases));
    must(arena_take(arena, SITES, sizeof *record->sites, "sites", &record->sites));
    must(arena_take(arena, 4, sizeof *record->micros, "micros", &record->micros));
    must(arena_take(arena, CONSUMERS, sizeof *record->ledger, "ledger", &record->ledger));
    must(arena_take(arena, STREAMS, sizeof *record->places, "places", &record->places));
    must(arena_take(arena, RANKS, sizeof *record->rank_digests, "ranks", &record->rank_digests));
    must(arena_take(arena, RANKS, sizeof *record->ranks, "ranks", &record->ranks));
}

void sample_open(struct sample *sample, uint32_t tensors) {
    memset(sample, 0, sizeof *sample);
    char *path;
    const char *base = getenv("TMPDIR");
    must(arena_format(&sample->arena, &path, "%s/twinstep-trace-XXXXXX",
                      base == NULL ? "/tmp" : base));
    if (mkdtemp(path) == NULL) abort();
    sample->folder = path;
    must(arena_format(&sample->arena, &path, "%s/out.h5", sample->folder));
    sample->path = path;
    must(arena_format(&sample->arena, &path, "%s/out.h5.part", sample->folder));
    sample->part = path;
    open_runs(sample, tensors);
    open_attributes(sample);
    open_record(sample, tensors);
    sample->plan.pairs = pairs;
    sample->plan.pair_count = COUNT_OF(pairs);
    sample->plan.arrays = arrays;
    sample->plan.array_count = COUNT_OF(arrays);
    sample->plan.texts = texts;
    sample->plan.text_count = COUNT_OF(texts);
    for (size_t i = 0; i < sizeof sample->text; i++)
        sample->text[i] = (char)('a' + i % 26);
}

void sample_close(struct sample *sample) {
    DIR *folder = opendir(sample->folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%.500s/%.255s", sample->folder, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(path) != 0) rmdir(path);
    }
    if (folder != NULL) closedir(folder);
    rmdir(sample->folder);
    arena_close(&sample->arena);
}

const struct record *sample_record(struct sample *sample, uint32_t run, uint64_t step) {
    struct record *record = &sample->record;
    const struct record_shape *shape = &sample->plan.runs[run].shape;
    const uint64_t seed = mix(step * 64 + run);
    record->step = step;
    fill(record->reals, sizeof record->reals, seed + 1000000);
    fill(record->integers, sizeof record->integers, seed + 2000000);
    fill(record->digests, sizeof record->digests, seed + 3000000);
    fill(record->groups, shape->groups * sizeof *record->groups, seed + 4000000);
    fill(record->tensors, shape->tensors * sizeof *record->tensors, seed + 5000000);
    fill(record->tensor_digests, shape->tensors * sizeof *record->tensor_digests, seed + 6000000);
    fill(record->phases, shape->phases * sizeof *record->phases, seed + 7000000);
    fill(record->sites, shape->sites * sizeof *record->sites, seed + 8000000);
    fill(record->micros, shape->micros * sizeof *record->micros, seed + 9000000);
    fill(record->ledger, shape->consumers * sizeof *record->ledger, seed + 10000000);
    fill(record->places, shape->streams * sizeof *record->places, seed + 11000000);
    fill(record->rank_digests, shape->ranks * sizeof *record->rank_digests, seed + 12000000);
    fill(record->ranks, shape->ranks * sizeof *record->ranks, seed + 13000000);
    /* Patterns that a conversion would change: a signalling NaN, a NaN with payload, -0. */
    const uint64_t special[3] = {0x7ff0000000000001u, 0xfff8dead0000beefu, 0x8000000000000000u};
    memcpy(&record->reals[REAL_LOSS], &special[step % 3], sizeof special[0]);
    return record;
}

void sample_pair(uint64_t step, struct pair_record *out) {
    memset(out, 0, sizeof *out);
    fill(out->gaps, sizeof out->gaps, mix(step) + 1);
    fill(out->reals, sizeof out->reals, mix(step) + 2);
    fill(out->integers, sizeof out->integers, mix(step) + 3);
    out->step = step;
}

const double *sample_array(struct sample *sample, uint32_t index) {
    double *values;
    must(arena_take(&sample->arena, 6, sizeof *values, "values", &values));
    fill(values, 6 * sizeof *values, 77 + index);
    return values;
}

enum status sample_put(struct sample *sample, struct trace *trace, uint64_t first, uint64_t last) {
    struct pair_record pair;
    for (uint64_t step = first; step <= last; step++) {
        TRY(trace_put_record(trace, 0, sample_record(sample, 0, step)));
        TRY(trace_put_record(trace, 1, sample_record(sample, 1, step)));
        if (step % 2 == 1) TRY(trace_put_record(trace, 2, sample_record(sample, 2, step)));
        sample_pair(step, &pair);
        TRY(trace_put_pair(trace, 0, &pair));
    }
    return STATUS_OK;
}

enum status sample_put_late(struct sample *sample, struct trace *trace) {
    TRY(trace_put_array(trace, arrays[0].path, sample_array(sample, 0)));
    TRY(trace_put_array(trace, arrays[1].path, sample_array(sample, 1)));
    TRY(trace_put_text(trace, texts[0], sample->text, sizeof sample->text));
    TRY(trace_put_text(trace, texts[1], "short\n", 6));
    return trace_put_text(trace, texts[2], "", 0);
}

enum status sample_write(struct sample *sample, const char *path, uint64_t updates) {
    struct trace *trace;
    TRY(trace_create(path, &sample->plan, &sample->arena, &trace));
    TRY(sample_put(sample, trace, 1, updates));
    TRY(sample_put_late(sample, trace));
    return trace_finish(trace);
}

static void must_call(int failed) {
    if (failed == 0) return;
    fprintf(stderr, "sample: a call of twinstep_trace.h failed\n");
    abort();
}

void sample_write_foreign(const char *path, uint64_t updates) {
    static const uint64_t shape[2] = {2, 3};
    static const struct twinstep_trace_tensor tensors[] = {{"weight", "f32", 2, shape, 0}};
    static const char *const named[] = {"forward", "optimize"};
    static const float weights[6] = {1, 2, 3, 4, 5, 6};
    const struct twinstep_trace_options options = {.writer = "test",
                                                   .writer_version = "7",
                                                   .configuration = "lr: 0.5\n",
                                                   .groups = 1,
                                                   .tensors = tensors,
                                                   .tensor_count = 1,
                                                   .phases = named,
                                                   .phase_count = 2,
                                                   .overwrite = 1};
    struct twinstep_trace *trace;
    must_call(twinstep_trace_open(path, &options, &trace));
    for (uint64_t step = 1; step <= updates; step++) {
        for (int phase = 0; phase < 2; phase++)
            must_call(twinstep_trace_phase(trace, named[phase]));
        must_call(twinstep_trace_put(trace, "loss", 0.5));
        must_call(twinstep_trace_put_group(trace, "lr_applied", 0, 0.5));
        must_call(twinstep_trace_digest(trace, "digest_parameter", 0, weights, 0, 6));
        must_call(twinstep_trace_end(trace, step));
    }
    must_call(twinstep_trace_close(trace, 1));
}

static int told;

static int differ(int different, const char *what, uint64_t where) {
    if (different && !told++)
        fprintf(stderr, "differs: %s %llu\n", what, (unsigned long long)where);
    return different != 0;
}

static int differ_bytes(const void *a, const void *b, size_t length, const char *what,
                        uint64_t at) {
    return differ(length != 0 && memcmp(a, b, length) != 0, what, at);
}

static int record_differences(const struct record *a, const struct record *b,
                              const struct record_shape *shape) {
    const uint64_t step = a->step;
    int count = differ(a->step != b->step, "step", step);
    count += differ_bytes(a->reals, b->reals, sizeof a->reals, "reals", step);
    count += differ_bytes(a->integers, b->integers, sizeof a->integers, "integers", step);
    count += differ_bytes(a->digests, b->digests, sizeof a->digests, "digests", step);
    count += differ_bytes(a->groups, b->groups, shape->groups * sizeof *a->groups, "groups", step);
    count +=
        differ_bytes(a->tensors, b->tensors, shape->tensors * sizeof *a->tensors, "tensors", step);
    count += differ_bytes(a->tensor_digests, b->tensor_digests,
                          shape->tensors * sizeof *a->tensor_digests, "tensor digests", step);
    count += differ_bytes(a->phases, b->phases, shape->phases * sizeof *a->phases, "phases", step);
    count += differ_bytes(a->sites, b->sites, shape->sites * sizeof *a->sites, "sites", step);
    count += differ_bytes(a->rank_digests, b->rank_digests, shape->ranks * sizeof *a->rank_digests,
                          "rank digests", step);
    count += differ_bytes(a->ranks, b->ranks, shape->ranks * sizeof *a->ranks, "ranks", step);
    count += differ_bytes(a->places, b->places, shape->streams * sizeof *a->places, "places", step);
    count +=
        differ_bytes(a->ledger, b->ledger, shape->consumers * sizeof *a->ledger, "ledger", step);
    return count +
           differ_bytes(a->micros, b->micros, shape->micros * sizeof *a->micros, "micros", step);
}

static int names_differ(const char *const *a, const char *const *b, uint32_t count) {
    int different = 0;
    for (uint32_t i = 0; i < count; i++)
        different += strcmp(a[i], b[i]) != 0;
    return different;
}

static int consumers_differ(const struct record_consumer *a, const struct record_consumer *b,
                            uint32_t count) {
    int different = 0;
    for (uint32_t i = 0; i < count; i++)
        different += strcmp(a[i].name, b[i].name) != 0 || a[i].stream != b[i].stream ||
                     a[i].op != b[i].op || a[i].seed != b[i].seed || a[i].initial != b[i].initial;
    return different;
}

static int run_differences(struct sample *sample, const struct trace_run *run, uint32_t index,
                           uint64_t updates) {
    const struct trace_run_plan *plan = &sample->plan.runs[index];
    const uint64_t stride = index == 2 ? 2 : 1;
    int count = differ(run->updates != (updates + stride - 1) / stride, "updates", run->updates);
    count +=
        differ(memcmp(&run->plan.shape, &plan->shape, sizeof plan->shape) != 0, "shape", index);
    count += differ(strcmp(run->plan.id, plan->id) != 0 || strcmp(run->plan.arm, plan->arm) != 0 ||
                        run->plan.replicate != plan->replicate || run->plan.mask != plan->mask ||
                        run->plan.first_step != plan->first_step ||
                        strcmp(run->plan.configuration, plan->configuration) != 0,
                    "plan", index);
    if (count != 0) return count;
    count += differ(names_differ(run->plan.tensors, plan->tensors, plan->shape.tensors) +
                        names_differ(run->plan.phases, plan->phases, plan->shape.phases) +
                        names_differ(run->plan.sites, plan->sites, plan->shape.sites) +
                        names_differ(run->plan.streams, plan->streams, plan->shape.streams),
                    "names", index);
    count += differ(consumers_differ(run->plan.consumers, plan->consumers, plan->shape.consumers),
                    "consumers", index);
    count += differ(strcmp(run->plan.groups, plan->groups == NULL ? "" : plan->groups) != 0,
                    "groups of tensors", index);
    for (uint64_t i = 0; i < run->updates; i++)
        count += record_differences(trace_row(run, i), sample_record(sample, index, 1 + i * stride),
                                    &plan->shape);
    return count;
}

static int pair_differences(const struct trace_pair *pair, uint64_t updates) {
    int count = differ(pair->updates != updates, "updates of the pair", pair->updates);
    count += differ(strcmp(pair->plan.a, "baseline") != 0 || strcmp(pair->plan.b, "test") != 0,
                    "names of the pair", 0);
    for (uint64_t i = 0; i < pair->updates; i++) {
        struct pair_record expected;
        sample_pair(i + 1, &expected);
        count += differ_bytes(trace_pair_row(pair, i), &expected, sizeof expected, "pair", i + 1);
    }
    return count;
}

static int late_differences(struct sample *sample, const struct trace_image *image, int late) {
    int count = 0;
    for (uint32_t i = 0; i < COUNT_OF(arrays); i++) {
        const struct trace_array *array = trace_array_of(image, arrays[i].path);
        if (differ(array == NULL, "array", i)) return count + 1;
        const uint64_t cells = arrays[i].shape[0] * (arrays[i].rank == 2 ? arrays[i].shape[1] : 1);
        count += differ(array->plan.rank != arrays[i].rank ||
                            array->plan.shape[0] != arrays[i].shape[0] ||
                            array->plan.shape[1] != arrays[i].shape[1] ||
                            strcmp(array->plan.units, arrays[i].units) != 0 ||
                            strcmp(array->plan.long_name, arrays[i].long_name) != 0,
                        "array plan", i);
        if (late)
            count += differ_bytes(array->values, sample_array(sample, i), cells * sizeof(double),
                                  "array", i);
        for (uint64_t c = 0; c < cells && !late; c++)
            count += differ(array->values[c] == array->values[c], "unwritten array", c);
    }
    const struct trace_text *text = trace_text_of(image, texts[0]);
    if (differ(text == NULL || trace_text_of(image, texts[2]) == NULL, "text", 0)) return count + 1;
    count += differ(text->length != (late ? sizeof sample->text : 0), "text length", text->length);
    count += differ_bytes(text->text, sample->text, text->length, "text", 0);
    count += differ(text->text[text->length] != '\0', "end of text", 0);
    return count + differ(strcmp(trace_text_of(image, texts[1])->text, late ? "short\n" : "") != 0,
                          "text", 1);
}

static int attribute_differences(const struct sample *sample, const struct trace_image *image) {
    const struct trace_plan *plan = &sample->plan;
    int count = differ(image->attribute_count != plan->attribute_count, "attributes",
                       image->attribute_count);
    for (uint32_t i = 0; i < plan->attribute_count; i++) {
        const struct trace_attribute *wanted = &plan->attributes[i];
        const char *text = trace_attribute_of(image, wanted->path, wanted->name);
        count += differ(text == NULL || strcmp(text, wanted->text) != 0, "attribute", i);
    }
    return count;
}

int sample_differences(struct sample *sample, const struct trace_image *image, uint64_t updates,
                       int late) {
    told = 0;
    int count =
        differ(image->run_count != SAMPLE_RUNS || image->pair_count != COUNT_OF(pairs) ||
                   image->array_count != COUNT_OF(arrays) || image->text_count != COUNT_OF(texts),
               "number of objects", image->run_count);
    if (count != 0) return count;
    for (uint32_t i = 0; i < SAMPLE_RUNS; i++)
        count += run_differences(sample, &image->runs[i], i, updates);
    count += pair_differences(&image->pairs[0], updates);
    count += late_differences(sample, image, late);
    return count + attribute_differences(sample, image);
}

const char *sample_bytes(struct arena *arena, const char *path, size_t *out_length) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL || stat(path, &info) != 0) abort();
    char *bytes;
    must(arena_take(arena, (size_t)info.st_size, 1, "file", &bytes));
    if (fread(bytes, 1, (size_t)info.st_size, file) != (size_t)info.st_size) abort();
    fclose(file);
    *out_length = (size_t)info.st_size;
    return bytes;
}

void sample_store(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length) abort();
    fclose(file);
}

uint64_t sample_cut(struct trace_image *image) {
    uint64_t least = image->runs[0].updates;
    if (image->runs[1].updates < least) least = image->runs[1].updates;
    if (image->pairs[0].updates < least) least = image->pairs[0].updates;
    if (image->runs[2].updates * 2 < least) least = image->runs[2].updates * 2; /* odd ones only */
    image->runs[0].updates = image->runs[1].updates = image->pairs[0].updates = least;
    if (image->runs[2].updates > (least + 1) / 2) image->runs[2].updates = (least + 1) / 2;
    return least;
}
