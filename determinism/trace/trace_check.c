/* SPDX-License-Identifier: Apache-2.0
 * Looks at everything in a foreign trace that docs/FOREIGN.md names, in the order of the file, and
 * goes on after a problem, so that one call says all that is wrong.
 *
 * Names are read only after their datasets fit, through the reader that bounds everything. */
#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "determinism/digest.h"
#include "determinism/keyed_digest.h"
#include "determinism/trace/trace_look.h"
#include "determinism/trace/trace_seal.h"

/* The run that is looked at. */
struct checked_run {
    struct record_shape shape;
    const char *const *dtypes, *const *shapes;
    hid_t group, steps;
    hsize_t rows;
    int digests; /* it has a column of digests of tensors, phases or sites */
};

static int is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return 1;
    return 0;
}

/* Notes the links of a group that nothing here reads: one of them may be a name misspelt. */
static void note_unknown(struct checker *checker, hid_t group, const char *const *names,
                         size_t count) {
    struct reader_links links;
    if (checker->status != STATUS_OK) return;
    checker->status = reader_list(checker->reader, group, &links);
    for (uint32_t i = 0; i < links.count && checker->status == STATUS_OK; i++)
        if (!is_one_of(links.names[i], names, count)) look_note(checker, links.names[i]);
}

/* ---- texts ---- */

int foreign_shape(const char *text, uint64_t *out_shape, uint32_t room, uint32_t *out_rank) {
    *out_rank = 0;
    while (*text != '\0') {
        const size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 18 || *out_rank == room) return 0;
        uint64_t length = 0;
        for (size_t i = 0; i < digits; i++)
            length = length * 10 + (uint64_t)(text[i] - '0');
        out_shape[(*out_rank)++] = length;
        text += digits;
        if (*text == ',' && text[1] != '\0')
            text++;
        else if (*text != '\0')
            return 0;
    }
    return 1;
}

static int is_name(const char *name) {
    const char *at = name;
    while (*at != '\0') {
        const size_t length = look_character(at);
        if (length == 0) return 0;
        at += length;
    }
    return at != name && at - name <= 1000;
}

static int before(const void *a, const void *b, const void *context) {
    const char *x, *y;
    (void)context;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return strcmp(x, y) < 0;
}

/* Every name is printable, and none occurs twice. */
static enum status check_names(struct checker *checker, const char *label, uint32_t count,
                               const char *const *names) {
    struct arena arena = ARENA_EMPTY;
    const char **sorted, **spare;
    enum status status = arena_take(&arena, count, sizeof *sorted, "names", &sorted);
    if (status == STATUS_OK) status = arena_take(&arena, count, sizeof *spare, "names", &spare);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (!is_name(names[i]))
            look_problem(checker, label,
                         "name %u: expected 1 to 1000 printable bytes of UTF-8, got \"%.60s\"", i,
                         names[i]);
        sorted[i] = names[i];
    }
    if (status == STATUS_OK && count > 0) {
        sorted = (const char **)sort_stable(sorted, spare, count, sizeof *sorted, before, NULL);
        for (uint32_t i = 1; i < count; i++)
            if (strcmp(sorted[i - 1], sorted[i]) == 0)
                look_problem(checker, label, "expected each name once, got \"%.60s\" twice",
                             sorted[i]);
    }
    arena_close(&arena);
    return status;
}

/* Every line is "key: value", or empty. */
static void check_lines(struct checker *checker, const char *name, const char *text) {
    for (unsigned line = 1; *text != '\0'; line++) {
        const size_t length = strcspn(text, "\n");
        const char *colon = (const char *)memchr(text, ':', length);
        size_t plain = 0;
        while (plain < length) {
            const size_t bytes = text[plain] == '\t' ? 1 : look_character(text + plain);
            if (bytes == 0) break;
            plain += bytes;
        }
        if (length > 0 && (plain < length || colon == NULL || colon == text))
            look_problem(checker, "",
                         "attribute \"%s\": line %u: expected \"key: value\", got \"%.*s\"", name,
                         line, length > 60 ? 60 : (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static enum status check_text(struct checker *checker, hid_t object, const char *name, int required,
                              const char **out) {
    *out = NULL;
    if (!look_attribute(checker, object, name, LOOK_TEXT, required)) return STATUS_OK;
    return reader_text(checker->reader, object, name, out);
}

static enum status check_texts(struct checker *checker, const struct checked_run *run) {
    const char *text;
    static const char *const lines[] = {"configuration", "causes"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        TRY(check_text(checker, run->group, lines[i], 0, &text));
        if (text != NULL) check_lines(checker, lines[i], text);
    }
    TRY(check_text(checker, run->group, "digest", run->digests, &text));
    if (text != NULL && strcmp(text, "keyed 1") != 0 && strcmp(text, "leaf 1") != 0)
        look_problem(checker, "",
                     "attribute \"digest\": expected \"keyed 1\" or \"leaf 1\", got \"%.60s\"",
                     text);
    return STATUS_OK;
}

static enum status check_rank(struct checker *checker, const struct checked_run *run) {
    int64_t rank = 0, world = 1;
    if (look_attribute(checker, run->group, "rank", LOOK_I64, 0))
        TRY(reader_integer(checker->reader, run->group, "rank", H5T_NATIVE_INT64, &rank));
    if (look_attribute(checker, run->group, "world", LOOK_I64, 0))
        TRY(reader_integer(checker->reader, run->group, "world", H5T_NATIVE_INT64, &world));
    if (world < 1 || rank < 0 || rank >= world)
        look_problem(checker, "",
                     "attributes \"rank\" and \"world\": expected 0 <= rank < world, got "
                     "%lld and %lld",
                     (long long)rank, (long long)world);
    return STATUS_OK;
}

/* ---- axes ---- */

/* Looks at a list of texts of an axis, of any length where *count is 0, and reads it. */
static enum status check_list(struct checker *checker, hid_t folder, const char *name,
                              uint32_t *count, const char *const **out) {
    const struct look_form form = {.type = LOOK_TEXT, .rank = 1, .shape = {*count}, .required = 1};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    *out = NULL;
    if (!look_dataset(checker, folder, name, &form, shape)) return STATUS_OK;
    return reader_names(checker->reader, folder, name, count, out);
}

/* The digests of tensors before the first update, which a run may lack. Each is 64 hexadecimal
 * digits, or nothing where it was not taken. */
static enum status check_initial(struct checker *checker, hid_t folder, uint32_t count) {
    const struct look_form form = {.type = LOOK_TEXT, .rank = 1, .shape = {count}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    const char *const *texts;
    if (!look_dataset(checker, folder, "initial", &form, shape)) return STATUS_OK;
    TRY(reader_names(checker->reader, folder, "initial", &count, &texts));
    for (uint32_t i = 0; i < count; i++) {
        const size_t digits = strspn(texts[i], "0123456789abcdef");
        if (texts[i][digits] != '\0' || (digits != 0 && digits != 2 * DIGEST_BYTES))
            look_problem(checker, "initial",
                         "tensor %u: expected a digest as %d hexadecimal digits (0-9, a-f), or "
                         "an empty text, got \"%.80s\"",
                         i, 2 * DIGEST_BYTES, texts[i]);
    }
    return STATUS_OK;
}

/* An axis without names: 0, 1, ... n - 1. Its scale may be missing if no column uses it. */
static void check_count(struct checker *checker, hid_t where, const char *name, uint32_t *out) {
    const struct look_form form = {.type = LOOK_I64, .rank = 1};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    *out = 0;
    if (look_dataset(checker, where, name, &form, shape)) *out = (uint32_t)shape[0];
    if (shape[0] > UINT32_MAX) {
        look_problem(checker, name, "expected fewer than 2^32 entries");
        *out = 0;
    }
}

static enum status check_tensors(struct checker *checker, hid_t folder, struct checked_run *run) {
    const struct look_form group = {.type = LOOK_U32,
                                    .rank = 1,
                                    .shape = {run->shape.tensors},
                                    .required = run->shape.groups > 1};
    hsize_t shape[HDF5_MAX_RANK];
    uint32_t *count = &run->shape.tensors;
    if (*count == 0) return STATUS_OK;
    look_dataset(checker, folder, "group", &group, shape);
    TRY(check_list(checker, folder, "dtype", count, &run->dtypes));
    TRY(check_list(checker, folder, "shape", count, &run->shapes));
    TRY(check_initial(checker, folder, *count));
    for (uint32_t i = 0; i < *count && run->dtypes != NULL; i++)
        if (keyed_width(run->dtypes[i]) == 0)
            look_problem(checker, "dtype",
                         "tensor %u: expected a dtype such as \"bf16\" or \"f32\", "
                         "got \"%.60s\"",
                         i, run->dtypes[i]);
    for (uint32_t i = 0; i < *count && run->shapes != NULL; i++) {
        uint64_t lengths[DIGEST_MAX_RANK];
        uint32_t rank;
        if (!foreign_shape(run->shapes[i], lengths, DIGEST_MAX_RANK, &rank))
            look_problem(checker, "shape",
                         "tensor %u: expected at most %d lengths as in \"64,512\", got \"%.60s\"",
                         i, DIGEST_MAX_RANK, run->shapes[i]);
    }
    return STATUS_OK;
}

/* Looks at the folder of an axis with names, its names and the columns in it. */
static enum status check_folder(struct checker *checker, struct checked_run *run,
                                enum layout_axis axis, uint32_t *count) {
    static const char *const known[] = {"tensor",  "group", "dtype",           "shape",
                                        "phase",   "place", "digest_gradient", "digest_parameter",
                                        "site",    "micro", "grad_norm",       "update_norm",
                                        "initial", "loss",  "digest",          "tokens"};
    const struct layout_axis_name *label = &layout_axes[axis];
    const char *const path = checker->path;
    const char *const *names;
    char *below;
    hid_t folder;
    *count = 0;
    if (!look_group(checker, run->steps, label->folder, 0, &folder)) return STATUS_OK;
    TRY(arena_format(checker->reader->arena, &below, "%s/%s", path, label->folder));
    checker->path = below;
    if (axis == AXIS_MICRO) {
        check_count(checker, folder, label->scale, count);
    } else {
        TRY(check_list(checker, folder, label->scale, count, &names));
        if (names != NULL) TRY(check_names(checker, label->scale, *count, names));
    }
    if (axis == AXIS_TENSOR) TRY(check_tensors(checker, folder, run));
    note_unknown(checker, folder, known, COUNT_OF(known));
    checker->path = path;
    H5Gclose(folder);
    return STATUS_OK;
}

/* ---- columns ---- */

static enum status check_steps(struct checker *checker, struct checked_run *run) {
    const struct look_form form = {.type = LOOK_I64, .rank = 1, .required = 1};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    struct arena arena = ARENA_EMPTY;
    int64_t *steps, last = 0;
    if (!look_dataset(checker, run->steps, "step", &form, shape)) return STATUS_OK;
    const uint64_t spent = checker->reader->spent;
    TRY(reader_spend(checker->reader, shape[0], sizeof *steps, "step"));
    checker->reader->spent = spent;
    run->rows = shape[0];
    if (run->rows == 0) return STATUS_OK;
    enum status status = arena_take(&arena, run->rows, sizeof *steps, "step", &steps);
    const hid_t dataset = H5Dopen2(run->steps, "step", H5P_DEFAULT);
    if (status == STATUS_OK &&
        (dataset < 0 || reader_rows(dataset, H5T_NATIVE_INT64, 1, 0, shape, steps) < 0))
        status = hdf5_fail(STATUS_INPUT, checker->reader->file.name, "read \"step\"");
    for (hsize_t i = 0; i < run->rows && status == STATUS_OK; last = steps[i++])
        if (steps[i] <= last) {
            look_problem(checker, "step",
                         "row %llu: expected update numbers that increase, from 1 on, got %lld "
                         "after %lld",
                         (unsigned long long)i, (long long)steps[i], (long long)last);
            break;
        }
    if (dataset >= 0) H5Dclose(dataset);
    arena_close(&arena);
    return status;
}

static void check_column(struct checker *checker, struct checked_run *run,
                         const struct layout_column *column) {
    static const enum look_type types[] = {
        [KIND_REAL] = LOOK_F64, [KIND_INTEGER] = LOOK_I64, [KIND_DIGEST] = LOOK_U8};
    struct look_form form = {
        .type = types[column->kind], .rank = 1, .shape = {run->rows}, .grows = 1};
    hsize_t shape[HDF5_MAX_RANK];
    char name[LAYOUT_NAME];
    layout_name(column, name);
    if (column->axis != AXIS_NONE) form.shape[form.rank++] = column->length;
    if (column->kind == KIND_DIGEST) form.shape[form.rank++] = RECORD_DIGEST_BYTES;
    if (look_dataset(checker, run->steps, name, &form, shape) && column->kind == KIND_DIGEST &&
        column->axis != AXIS_NONE)
        run->digests = 1;
}

static int has_folder(const struct checked_run *run, enum layout_axis axis) {
    const char *const folder = layout_axes[axis].folder;
    return folder[0] == '\0' || H5Lexists(run->steps, folder, H5P_DEFAULT) > 0;
}

/* Looks at every column that a run can have. Of an axis without entries the columns are looked for
 * all the same, with one entry, since their axis is then what is missing. */
static void check_columns(struct checker *checker, struct checked_run *run) {
    struct layout layout;
    struct record_shape shape = run->shape;
    shape.groups += shape.groups == 0;
    shape.consumers = shape.streams = 0;
    layout_init_run(&layout, &shape, 1);
    for (uint32_t c = 0; c < layout.count; c++) {
        const struct layout_column *column = &layout.columns[c];
        char name[LAYOUT_NAME];
        if (!has_folder(run, column->axis)) continue;
        layout_name(column, name);
        if (column->axis == AXIS_GROUP && run->shape.groups == 0) {
            if (H5Lexists(run->steps, name, H5P_DEFAULT) > 0)
                look_problem(checker, name,
                             "expected the dataset \"group\" ('<i8', 0 to the number of "
                             "groups less 1) beside it, got none");
            continue;
        }
        check_column(checker, run, column);
    }
    check_column(checker, run, &layout_check);
}

static void note_columns(struct checker *checker, const struct checked_run *run) {
    static const struct {
        const struct record_column *columns;
        size_t count;
    } tables[] = {{record_reals, RECORD_REALS},
                  {record_integers, RECORD_INTEGERS},
                  {record_digests, RECORD_DIGESTS},
                  {record_groups, RECORD_GROUPS}};
    static const char *const others[] = {"step",   "check", "group",   "byte",
                                         "phases", "sites", "tensors", "micro"};
    const char
        *known[RECORD_REALS + RECORD_INTEGERS + RECORD_DIGESTS + RECORD_GROUPS + COUNT_OF(others)];
    size_t count = 0;
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++)
            known[count++] = tables[t].columns[i].name;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        known[count++] = others[i];
    note_unknown(checker, run->steps, known, count);
}

/* ---- runs ---- */

static enum status check_run_columns(struct checker *checker, struct checked_run *run) {
    TRY(check_steps(checker, run));
    check_count(checker, run->steps, "group", &run->shape.groups);
    TRY(check_folder(checker, run, AXIS_TENSOR, &run->shape.tensors));
    TRY(check_folder(checker, run, AXIS_PHASE, &run->shape.phases));
    TRY(check_folder(checker, run, AXIS_SITE, &run->shape.sites));
    TRY(check_folder(checker, run, AXIS_MICRO, &run->shape.micros));
    check_columns(checker, run);
    note_columns(checker, run);
    return STATUS_OK;
}

static enum status check_run(struct checker *checker, hid_t runs, const char *name) {
    struct checked_run run = {.steps = H5I_INVALID_HID};
    char *path, *below;
    checker->path = "runs";
    if (!is_name(name) || strlen(name) > 200)
        look_problem(checker, name, "expected a name of 1 to 200 printable bytes of UTF-8");
    if (!look_group(checker, runs, name, 1, &run.group)) return STATUS_OK;
    TRY(arena_format(checker->reader->arena, &path, "runs/%s", name));
    TRY(arena_format(checker->reader->arena, &below, "%s/steps", path));
    checker->path = path;
    if (look_group(checker, run.group, "steps", 1, &run.steps)) {
        checker->path = below;
        TRY(check_run_columns(checker, &run));
        H5Gclose(run.steps);
        checker->path = path;
    }
    TRY(check_texts(checker, &run));
    TRY(check_rank(checker, &run));
    H5Gclose(run.group);
    return STATUS_OK;
}

static enum status check_runs(struct checker *checker, hid_t root) {
    struct reader_links links;
    hid_t runs;
    if (!look_group(checker, root, "runs", 1, &runs)) return STATUS_OK;
    TRY(reader_list(checker->reader, runs, &links));
    if (links.count == 0)
        look_problem(checker, "runs", "expected a group for each run, got an empty group");
    for (uint32_t i = 0; i < links.count; i++)
        TRY(check_run(checker, runs, links.names[i]));
    H5Gclose(runs);
    return STATUS_OK;
}

static enum status check_root(struct checker *checker, hid_t root) {
    const struct look_form complete = {.type = LOOK_I64, .rank = 0, .required = 1};
    const struct look_form seal = {.type = LOOK_U8, .rank = 1, .shape = {SEAL_BYTES}};
    hsize_t shape[HDF5_MAX_RANK];
    const char *text;
    TRY(check_text(checker, root, "kind", 1, &text));
    if (text != NULL && strcmp(text, "foreign") != 0)
        look_problem(checker, "", "attribute \"kind\": expected \"foreign\", got \"%.60s\"", text);
    TRY(check_text(checker, root, "writer", 1, &text));
    if (text != NULL && !is_name(text))
        look_problem(checker, "", "attribute \"writer\": expected the name of a program");
    TRY(check_text(checker, root, "writer_version", 0, &text));
    if (text != NULL && text[0] != '\0' && !is_name(text))
        look_problem(checker, "", "attribute \"writer_version\": expected a version");
    look_dataset(checker, root, "complete", &complete, shape);
    look_dataset(checker, root, SEAL_NAME, &seal, shape);
    TRY(check_runs(checker, root));
    return checker->status;
}

/* What was read here is read again, so it does not count against the file's length. */
static enum status check(struct reader *reader, struct checker *checker) {
    const uint64_t spent = reader->spent;
    hid_t root;
    *checker = (struct checker){.reader = reader, .path = ""};
    TRY(reader_group(reader, reader->file.id, "/", &root));
    TRY(check_root(checker, root));
    H5Gclose(root);
    reader->spent = spent;
    return STATUS_OK;
}

enum status reader_check_foreign(struct reader *reader) {
    struct checker checker;
    TRY(check(reader, &checker));
    if (checker.problem_count == 0) return STATUS_OK;
    const uint32_t more = checker.problem_count - 1 + checker.left_out;
    if (more == 0) FAIL(STATUS_INPUT, "%s: %s", reader->file.name, checker.problems[0]);
    FAIL(STATUS_INPUT, "%s: %s; and %u more (twinstep import --check %s)", reader->file.name,
         checker.problems[0], more, reader->path);
}

enum status reader_report(const char *path, struct arena *arena, struct foreign_report *out) {
    struct reader reader = {.file = {.id = H5I_INVALID_HID, .name = path}, .arena = arena};
    struct checker checker = {.problem_count = 0};
    hid_t root;
    *out = (struct foreign_report){.foreign = 0};
    TRY(reader_open(&reader, path));
    enum status status = reader_group(&reader, reader.file.id, "/", &root);
    if (status == STATUS_OK) status = reader_version(&reader, root);
    if (status == STATUS_OK && reader.file.foreign) status = check(&reader, &checker);
    *out = (struct foreign_report){.foreign = reader.file.foreign,
                                   .problems = (const char *const *)checker.problems,
                                   .problem_count = checker.problem_count,
                                   .left_out = checker.left_out,
                                   .notes = (const char *const *)checker.notes,
                                   .note_count = checker.note_count};
    reader_close(&reader);
    return status;
}
