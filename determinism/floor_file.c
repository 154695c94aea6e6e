/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads floor files as traces without runs: attributes, texts, and f64 arrays. */
#include "determinism/floor_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/number.h"
#include "determinism/digest.h"
#include "determinism/trace.h"

const struct record_column floor_columns[FLOOR_COLUMNS] = {
    {"loss", "nat", "|a - b| of the loss of an A/A pair"},
    {"grad_norm", "1", "|a - b| / |a| of the gradient norm of an A/A pair"},
    {"distance", "1", "|a - b| of the weights of an A/A pair"},
};

/* The texts of a file. All must be there, except that version 1 has no TEXT_PARTS. */
enum text_index {
    TEXT_SCENARIO = 0,
    TEXT_CONFIGURATION,
    TEXT_STRATA,
    TEXT_TENSORS,
    TEXT_DIGEST,
    TEXT_PARTS, /* since version 2 */
    TEXT_COUNT
};
static const char *const text_paths[TEXT_COUNT] = {"noise/scenario", "noise/configuration",
                                                   "noise/strata",   "noise/twin_tensors",
                                                   "noise/sha256",   "noise/parts"};

enum array_index {
    ARRAY_PAIRS = 0, /* the first of FLOOR_COLUMNS arrays */
    ARRAY_FIGURES = FLOOR_COLUMNS,
    ARRAY_SHARE,
    ARRAY_TWIN_GRADIENT,
    ARRAY_TWIN_DISTANCE,
    ARRAY_COUNT
};

static const char *const array_paths[ARRAY_COUNT] = {
    "noise/pairs_loss", "noise/pairs_grad_norm", "noise/pairs_distance", "noise/figures",
    "noise/share",      "noise/twin_gradient",   "noise/twin_distance"};

struct contents {
    const char *texts[TEXT_COUNT];
    const double *arrays[ARRAY_COUNT];
    uint64_t shapes[ARRAY_COUNT][2];
};

/* Sets the shapes that the file's counts imply. An array with an empty axis is not stored, because
 * HDF5's contiguous storage has no empty ones. */
static void shape_arrays(const struct floor_file *file, struct contents *out) {
    const uint64_t rows = file->stratum_count, tensors = file->twin.tensors;
    const uint64_t pairs = file->pairs, steps = file->steps;
    const uint64_t shapes[ARRAY_COUNT][2] = {
        {pairs, steps}, {pairs, steps},   {pairs, steps},  {rows, FLOOR_FIGURES},
        {rows, steps},  {steps, tensors}, {steps, tensors}};
    memcpy(out->shapes, shapes, sizeof shapes);
    for (int i = 0; i < FLOOR_COLUMNS; i++)
        if (file->writer != NULL && file->columns[i] == NULL) out->shapes[i][0] = 0;
}

static uint64_t count_of(const struct contents *contents, int array) {
    return contents->shapes[array][0] * contents->shapes[array][1];
}

/* The digest of all texts but itself and of all arrays, in this order. TEXT_PARTS comes last, so
 * that the digests of version 1 stay what they were. */
static void digest_contents(const struct contents *contents, char out_hex[DIGEST_HEX]) {
    struct digest parts[TEXT_DIGEST + ARRAY_COUNT + 1], all;
    const char *const last = contents->texts[TEXT_PARTS];
    for (int i = 0; i < TEXT_DIGEST; i++)
        digest_bytes(text_paths[i], contents->texts[i], strlen(contents->texts[i]), &parts[i]);
    for (int i = 0; i < ARRAY_COUNT; i++)
        digest_bytes("array", contents->arrays[i], (size_t)count_of(contents, i) * sizeof(double),
                     &parts[TEXT_DIGEST + i]);
    if (last != NULL)
        digest_bytes(text_paths[TEXT_PARTS], last, strlen(last), &parts[COUNT_OF(parts) - 1]);
    digest_root("floor", parts, COUNT_OF(parts) - (last == NULL), &all);
    digest_hex(&all, out_hex);
}

/* One line for each stratum, its words separated by tabs. Other control characters become blanks,
 * so that the reader finds the words again. */
static enum status strata_text(const struct floor_file *file, struct arena *arena, char **out) {
    size_t length = 1;
    for (uint32_t i = 0; i < file->stratum_count; i++)
        for (int w = 0; w < FLOOR_WORDS; w++)
            length += strlen(file->strata[i].words[w]) + 1;
    TRY(arena_take(arena, length, 1, "strata", out));
    char *to = *out;
    for (uint32_t i = 0; i < file->stratum_count; i++)
        for (int w = 0; w < FLOOR_WORDS; w++)
            to += sprintf(to, "%s%c", file->strata[i].words[w], w + 1 < FLOOR_WORDS ? '\t' : '\n');
    for (char *c = *out; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' && *c != '\t' && *c != '\n') *c = ' ';
    return STATUS_OK;
}

static enum status names_text(const struct floor_twin *twin, struct arena *arena, char **out) {
    size_t length = 1;
    for (uint32_t i = 0; i < twin->tensors; i++)
        length += strlen(twin->names[i]) + 1;
    TRY(arena_take(arena, length, 1, "names", out));
    char *to = *out;
    for (uint32_t i = 0; i < twin->tensors; i++)
        to += sprintf(to, "%s\n", twin->names[i]);
    return STATUS_OK;
}

static int has_parts(const struct floor_file *file) {
    return file->parts != NULL && file->parts[0] != '\0';
}

static enum status fill_contents(const struct floor_file *file, struct arena *arena,
                                 struct contents *out) {
    char *strata, *names, *hex;
    double *figures, *share;
    shape_arrays(file, out);
    TRY(strata_text(file, arena, &strata));
    TRY(names_text(&file->twin, arena, &names));
    TRY(arena_take(arena, DIGEST_HEX, 1, "digest", &hex));
    TRY(arena_take(arena, count_of(out, ARRAY_FIGURES), sizeof *figures, "strata", &figures));
    TRY(arena_take(arena, count_of(out, ARRAY_SHARE), sizeof *share, "strata", &share));
    for (uint32_t i = 0; i < file->stratum_count; i++) {
        memcpy(figures + (size_t)i * FLOOR_FIGURES, file->strata[i].figures,
               sizeof file->strata[i].figures);
        memcpy(share + i * file->steps, file->strata[i].share, file->steps * sizeof *share);
    }
    out->texts[TEXT_SCENARIO] = file->text;
    out->texts[TEXT_CONFIGURATION] = file->configuration;
    out->texts[TEXT_STRATA] = strata;
    out->texts[TEXT_TENSORS] = names;
    out->texts[TEXT_DIGEST] = hex;
    out->texts[TEXT_PARTS] = has_parts(file) ? file->parts : NULL;
    for (int i = 0; i < FLOOR_COLUMNS; i++)
        out->arrays[i] = file->columns[i];
    out->arrays[ARRAY_FIGURES] = figures;
    out->arrays[ARRAY_SHARE] = share;
    out->arrays[ARRAY_TWIN_GRADIENT] = file->twin.gradient;
    out->arrays[ARRAY_TWIN_DISTANCE] = file->twin.distance;
    digest_contents(out, hex);
    return STATUS_OK;
}

/* Which columns a file of foreign runs lacks: no program's weights are known here. */
static const char without_norm[] = "grad_norm distance", without_distance[] = "distance";

static const char *without_text(const struct floor_file *file) {
    return file->columns[FLOOR_GRAD_NORM] == NULL ? without_norm : without_distance;
}

static enum status describe(const struct floor_file *file, struct arena *arena,
                            struct trace_attribute **out, uint32_t *out_count) {
    char *version, *steps, *pairs, *strata;
    TRY(arena_format(arena, &version, "%d", has_parts(file) ? FLOOR_FILE_VERSION : 1));
    TRY(arena_format(arena, &steps, "%ju", (uintmax_t)file->steps));
    TRY(arena_format(arena, &pairs, "%ju", (uintmax_t)file->pairs));
    TRY(arena_format(arena, &strata, "%u", file->stratum_count));
    const struct trace_attribute own[] = {{"noise", "version", version},
                                          {"noise", "scenario_name", file->scenario},
                                          {"noise", "arm", file->arm},
                                          {"noise", "determines", file->determines},
                                          {"noise", "protocol", file->protocol},
                                          {"noise", "twin_weight", file->twin.weight},
                                          {"noise", "steps", steps},
                                          {"noise", "pairs", pairs},
                                          {"noise", "strata_count", strata}};
    const struct trace_attribute foreign[] = {{"noise", "writer", file->writer},
                                              {"noise", "exact", file->exact ? "1" : "0"},
                                              {"noise", "without", without_text(file)}};
    const uint32_t more = file->writer != NULL ? (uint32_t)COUNT_OF(foreign) : 0;
    *out_count = (uint32_t)COUNT_OF(own) + more + file->environment_count;
    TRY(arena_take(arena, *out_count, sizeof **out, "attributes", out));
    memcpy(*out, own, sizeof own);
    if (more > 0) memcpy(*out + COUNT_OF(own), foreign, sizeof foreign);
    if (file->environment_count > 0)
        memcpy(*out + COUNT_OF(own) + more, file->environment,
               file->environment_count * sizeof *file->environment);
    return STATUS_OK;
}

static enum status put_all(struct trace *trace, struct contents *contents) {
    for (int i = 0; i < TEXT_COUNT - (contents->texts[TEXT_PARTS] == NULL); i++)
        TRY(trace_put_text(trace, text_paths[i], contents->texts[i], strlen(contents->texts[i])));
    for (int i = 0; i < ARRAY_COUNT; i++)
        if (count_of(contents, i) > 0)
            TRY(trace_put_array(trace, array_paths[i], contents->arrays[i]));
    return STATUS_OK;
}

enum status floor_file_write(const char *path, const struct floor_file *file, int overwrite,
                             struct arena *arena) {
    struct contents contents = {.texts = {NULL}};
    struct trace_array_plan arrays[ARRAY_COUNT];
    struct trace_attribute *attributes;
    uint32_t attribute_count, array_count = 0;
    TRY(fill_contents(file, arena, &contents));
    TRY(describe(file, arena, &attributes, &attribute_count));
    for (int i = 0; i < ARRAY_COUNT; i++) {
        if (count_of(&contents, i) == 0) continue;
        const int pair = i < FLOOR_COLUMNS;
        arrays[array_count++] =
            (struct trace_array_plan){array_paths[i],
                                      2,
                                      {contents.shapes[i][0], contents.shapes[i][1]},
                                      pair ? floor_columns[i].units : "1",
                                      pair ? floor_columns[i].long_name : "docs/NOISE.md"};
    }
    const struct trace_plan plan = {.arrays = arrays,
                                    .array_count = array_count,
                                    .texts = text_paths,
                                    .text_count = TEXT_COUNT - !has_parts(file),
                                    .attributes = attributes,
                                    .attribute_count = attribute_count,
                                    .overwrite = overwrite};
    struct trace *trace;
    TRY(trace_create(path, &plan, arena, &trace));
    const enum status status = put_all(trace, &contents);
    if (status == STATUS_OK) return trace_finish(trace);
    trace_abandon(trace);
    return status;
}

/* ---- reading ---- */

struct opening {
    const char *path;
    const struct trace_image *image;
    struct arena *arena;
    struct floor_file *out;
    struct contents contents;
    int text_count;
};

static enum status damaged(const struct opening *opening, const char *what) {
    return status_fail(STATUS_INPUT, "%s: damaged, or not a floor file: %s", opening->path, what);
}

static enum status read_text(const struct opening *opening, const char *name, const char **out) {
    *out = trace_attribute_of(opening->image, "noise", name);
    if (*out != NULL) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: expected a floor file (twinstep noise -o): it has no noise/%s",
         opening->path, name);
}

static enum status read_count(const struct opening *opening, const char *name, uint64_t most,
                              uint64_t *out) {
    const char *text;
    TRY(read_text(opening, name, &text));
    if (number_parse_uint(text, out) == STATUS_OK && *out <= most) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: damaged: noise/%s: expected a number up to %ju, got \"%.40s\"",
         opening->path, name, (uintmax_t)most, text);
}

static enum status read_head(struct opening *opening) {
    struct floor_file *out = opening->out;
    uint64_t version, strata;
    TRY(read_count(opening, "version", UINT32_MAX, &version));
    if (version < 1 || version > FLOOR_FILE_VERSION)
        FAIL(STATUS_INPUT, "%s: floor file of version %ju; this program reads versions 1 to %d",
             opening->path, (uintmax_t)version, FLOOR_FILE_VERSION);
    opening->text_count = version == 1 ? TEXT_PARTS : TEXT_COUNT;
    TRY(read_text(opening, "scenario_name", &out->scenario));
    TRY(read_text(opening, "arm", &out->arm));
    TRY(read_text(opening, "determines", &out->determines));
    TRY(read_text(opening, "protocol", &out->protocol));
    TRY(read_text(opening, "twin_weight", &out->twin.weight));
    TRY(read_count(opening, "steps", 1u << 30, &out->steps));
    TRY(read_count(opening, "pairs", 1u << 30, &out->pairs));
    TRY(read_count(opening, "strata_count", 1u << 20, &strata));
    if (out->steps == 0) return damaged(opening, "it has no update");
    out->writer = trace_attribute_of(opening->image, "noise", "writer");
    const char *exact = trace_attribute_of(opening->image, "noise", "exact");
    out->exact = out->writer != NULL && exact != NULL && strcmp(exact, "1") == 0;
    out->stratum_count = (uint32_t)strata;
    out->environment = opening->image->attributes;
    out->environment_count = opening->image->attribute_count;
    return STATUS_OK;
}

static enum status read_texts(struct opening *opening) {
    for (int i = 0; i < opening->text_count; i++) {
        const struct trace_text *text = trace_text_of(opening->image, text_paths[i]);
        if (text == NULL || memchr(text->text, '\0', text->length) != NULL)
            return damaged(opening, text_paths[i]);
        opening->contents.texts[i] = text->text;
    }
    opening->out->text = opening->contents.texts[TEXT_SCENARIO];
    opening->out->configuration = opening->contents.texts[TEXT_CONFIGURATION];
    opening->out->parts =
        opening->text_count == TEXT_COUNT ? opening->contents.texts[TEXT_PARTS] : "";
    return STATUS_OK;
}

static uint32_t count_lines(const char *text) {
    uint32_t lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static enum status read_names(struct opening *opening) {
    struct floor_twin *twin = &opening->out->twin;
    const char *text = opening->contents.texts[TEXT_TENSORS];
    char **names;
    twin->tensors = count_lines(text);
    TRY(arena_take(opening->arena, twin->tensors, sizeof *names, "names", &names));
    for (uint32_t i = 0; i < twin->tensors; i++) {
        const size_t length = strcspn(text, "\n");
        TRY(arena_text(opening->arena, text, length, &names[i]));
        text += length + 1;
    }
    twin->names = (const char *const *)names;
    return STATUS_OK;
}

/* Checks that no distance is negative or NaN. Only a share may be NaN, where nothing has moved. */
static enum status check_values(const struct opening *opening, int array) {
    const double *values = opening->contents.arrays[array];
    for (uint64_t i = 0; i < count_of(&opening->contents, array); i++) {
        const int unknown = array == ARRAY_SHARE && isnan(values[i]);
        if (!unknown && !(values[i] >= 0.0)) {
            const struct number_text text = number_text_f64(values[i]);
            FAIL(STATUS_INPUT, "%s: damaged: array %d: expected distances >= 0, got %s",
                 opening->path, array, text.text);
        }
    }
    return STATUS_OK;
}

static enum status read_arrays(struct opening *opening) {
    struct contents *contents = &opening->contents;
    static const double nothing = 0.0;
    const char *without = trace_attribute_of(opening->image, "noise", "without");
    const int foreign = opening->out->writer != NULL && without != NULL;
    for (int i = 0; i < FLOOR_COLUMNS; i++) /* until they are read, what is there counts as such */
        opening->out->columns[i] =
            foreign && (i == FLOOR_DISTANCE ||
                        (i == FLOOR_GRAD_NORM && strcmp(without, without_norm) == 0))
                ? NULL
                : &nothing;
    shape_arrays(opening->out, contents);
    for (int i = 0; i < ARRAY_COUNT; i++) {
        contents->arrays[i] = &nothing;
        if (contents->shapes[i][0] == 0 || contents->shapes[i][1] == 0) continue;
        const struct trace_array *array = trace_array_of(opening->image, array_paths[i]);
        if (array == NULL || array->plan.rank != 2 ||
            array->plan.shape[0] != contents->shapes[i][0] ||
            array->plan.shape[1] != contents->shapes[i][1])
            return damaged(opening, array_paths[i]);
        contents->arrays[i] = array->values;
        TRY(check_values(opening, i));
    }
    for (int i = 0; i < FLOOR_COLUMNS; i++)
        if (opening->out->columns[i] != NULL) opening->out->columns[i] = contents->arrays[i];
    opening->out->twin.gradient = contents->arrays[ARRAY_TWIN_GRADIENT];
    opening->out->twin.distance = contents->arrays[ARRAY_TWIN_DISTANCE];
    return STATUS_OK;
}

static enum status read_strata(struct opening *opening) {
    struct floor_file *out = opening->out;
    const char *text = opening->contents.texts[TEXT_STRATA];
    struct floor_stratum *strata;
    if (count_lines(text) != out->stratum_count) return damaged(opening, "noise/strata");
    TRY(arena_take(opening->arena, out->stratum_count, sizeof *strata, "strata", &strata));
    for (uint32_t i = 0; i < out->stratum_count; i++) {
        for (int w = 0; w < FLOOR_WORDS; w++) {
            char *word;
            const size_t length = strcspn(text, "\t\n");
            if ((text[length] == '\n') != (w + 1 == FLOOR_WORDS))
                return damaged(opening, "noise/strata");
            TRY(arena_text(opening->arena, text, length, &word));
            strata[i].words[w] = word;
            text += length + 1;
        }
        memcpy(strata[i].figures,
               opening->contents.arrays[ARRAY_FIGURES] + (size_t)i * FLOOR_FIGURES,
               sizeof strata[i].figures);
        strata[i].share = opening->contents.arrays[ARRAY_SHARE] + i * out->steps;
    }
    out->strata = strata;
    return STATUS_OK;
}

static enum status read_all(struct opening *opening) {
    char hex[DIGEST_HEX];
    if (trace_attribute_of(opening->image, "noise", "version") == NULL ||
        opening->image->run_count != 0)
        FAIL(STATUS_INPUT, "%s: expected a floor file (twinstep noise -o), got another trace",
             opening->path);
    if (!opening->image->complete) return damaged(opening, "it is not whole");
    TRY(read_head(opening));
    TRY(read_texts(opening));
    TRY(read_names(opening));
    TRY(read_arrays(opening));
    digest_contents(&opening->contents, hex);
    if (strcmp(hex, opening->contents.texts[TEXT_DIGEST]) != 0)
        return damaged(opening, "its digest is of other contents");
    return read_strata(opening);
}

enum status floor_file_open(const char *path, struct arena *arena, struct floor_file *out) {
    struct opening opening = {.path = path, .arena = arena, .out = out};
    struct trace_image *image;
    memset(out, 0, sizeof *out);
    TRY(trace_open(path, arena, &image));
    opening.image = image;
    return read_all(&opening);
}

void floor_file_at(const struct floor_file *file, enum floor_column column, uint64_t step,
                   double *out) {
    for (uint64_t i = 0; i < file->pairs; i++)
        out[i] = file->columns[column][i * file->steps + step - 1];
}
