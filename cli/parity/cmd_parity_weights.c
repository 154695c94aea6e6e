/* SPDX-License-Identifier: Apache-2.0
 * twinstep parity weights: compares two checkpoints tensor by tensor. It trains nothing. Names of
 * tensors are escaped on the way to a terminal, because they come from files of others; only fixed
 * words of them, which the program compared before, are printed as they are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "checkpoints/shipped.h"
#include "checkpoints/training_folder.h"
#include "checkpoints/weights.h"
#include "cli/ci.h"
#include "cli/json.h"
#include "cli/perform.h"
#include "cli/progress.h"
#include "cli/verb.h"

#define TABLE_ROWS 40
#define NAME_WIDTH 52
#define LAYER_ROWS 12

static void print_name(const char *name, int width) {
    int printed = 0;
    for (; *name != '\0'; name++) {
        const unsigned char byte = (unsigned char)*name;
        if (byte < 0x20 || byte == 0x7F)
            printed += printf("\\x%02x", (unsigned)byte);
        else
            printed += printf("%c", *name);
    }
    printf("%*s", printed < width ? width - printed : 0, "");
}

/* The path is the user's own, and a wrapper is made of fixed words (layer_wrapper_length). */
static void print_side(const char *label, const struct checkpoint *checkpoint,
                       const char *wrapper) {
    printf("%s  %s: %zu tensors, %" PRIu64 " bytes", label, checkpoint->path, checkpoint->count,
           checkpoint->bytes);
    if (checkpoint->file_count > 1) printf(" in %zu files", checkpoint->file_count);
    if (wrapper[0] != '\0') printf(", names without \"%s\"", wrapper);
    putchar('\n');
}

/* The name is always that of the head, lm_head.weight. */
static void print_tied(const struct weights_report *report) {
    for (size_t i = 0; i < report->count; i++) {
        const struct weights_row *row = &report->rows[i];
        if (row->stands_for_head == 0) continue;
        const char absent = row->stands_for_head == 1 ? 'A' : 'B';
        printf("%s is not in %c: the embedding of %c stands for it (tied)%s\n", row->name, absent,
               absent, row->state == WEIGHTS_TIED ? ", and has its bytes" : "");
    }
}

/* The first line: whether they are equal, and if not, how far apart as a whole and where most. */
static void print_summary(const struct weights_report *report) {
    static const enum weights_state states[] = {WEIGHTS_VALUES, WEIGHTS_DTYPE, WEIGHTS_SHAPE,
                                                WEIGHTS_ONLY_A, WEIGHTS_ONLY_B};
    if (weights_equal(report)) {
        printf("equal: every byte of %zu tensors\n", report->count);
        return;
    }
    printf("differs: ");
    const double relative = weights_relative(&report->all);
    if (relative > 0.0) {
        printf("|A - B| is %.3g of |A|, cosine %.9g; most in ", relative,
               weights_cosine(&report->all));
        print_name(report->layers[0].name, 0);
        printf(" (%.3g); ", weights_relative(&report->layers[0].vectors));
    }
    printf("%zu of %zu tensors", report->worst_count, report->count);
    for (size_t i = 0, shown = 0; i < COUNT_OF(states); i++)
        if (report->counts[states[i]] > 0)
            printf("%s%zu %s", shown++ == 0 ? " (" : ", ", report->counts[states[i]],
                   weights_state_name(states[i]));
    puts(")");
}

static void print_elements(const struct weights_report *report) {
    if (report->differing > 0)
        printf("elements that differ: %" PRIu64 "; max abs %s", report->differing,
               number_text_f64(report->max_abs).text);
    if (report->one_nan > 0) printf("; %" PRIu64 " are NaN in one only", report->one_nan);
    if (report->differing > 0) putchar('\n');
}

/* The layers that are furthest apart. One layer says no more than the first line. */
static void print_layers(const struct weights_report *report) {
    if (report->layer_count < 2) return;
    printf("\n%-*s %8s %12s %12s\n", NAME_WIDTH, "layer", "tensors", "|A-B| / |A|", "1 - cosine");
    for (size_t i = 0; i < report->layer_count && i < LAYER_ROWS; i++) {
        const struct weights_layer *const layer = &report->layers[i];
        if (!(layer->vectors.difference > 0.0)) break;
        print_name(layer->name, NAME_WIDTH);
        printf(" %8zu %12.3g %12.3g\n", layer->tensors, weights_relative(&layer->vectors),
               1.0 - weights_cosine(&layer->vectors));
    }
}

static void print_shapes(const struct weights_row *row) {
    char text[SAFETENSORS_SHAPE_TEXT];
    if (row->a != NULL) {
        safetensors_shape_text(row->a, text);
        printf("%s", text);
    }
    if (row->a != NULL && row->b != NULL) {
        safetensors_shape_text(row->b, text);
        printf(" | %s", text);
    } else if (row->b != NULL) {
        safetensors_shape_text(row->b, text);
        printf("%s", text);
    }
}

/* A row of the table. Of two dtypes of which one is no number, elements were not compared, so that
 * how many differ is not known: a dash stands for it, and the JSON leaves it out. */
static void print_row(const struct weights_row *row) {
    print_name(row->name, NAME_WIDTH);
    printf(" %-9s", weights_state_name(row->state));
    if (row->state >= WEIGHTS_SHAPE) {
        putchar(' ');
        print_shapes(row);
    } else if (row->has_numbers) {
        printf(" %12" PRIu64 " %12" PRIu64 " %12.3g  %-24s", row->a->count, row->differing,
               weights_relative(&row->vectors), number_text_f64(row->max_abs).text);
        printf(" %" PRIu64 " %s", row->max_ulp, dtype_name(row->ulp_dtype));
        if (row->one_nan > 0) printf("  NaN in one: %" PRIu64, row->one_nan);
        if (row->state == WEIGHTS_DTYPE)
            printf("  %s | %s", safetensors_dtype_name(row->a->dtype),
                   safetensors_dtype_name(row->b->dtype));
    } else if (row->state == WEIGHTS_DTYPE) {
        printf(" %12" PRIu64 " %12s  ", row->a->count, "-");
        print_shapes(row);
    } else {
        printf(" %12" PRIu64 " %12" PRIu64 "  ", row->a->count, row->differing);
        print_shapes(row);
    }
    putchar('\n');
}

/* Prints a summary and a table of the worst tensors. */
static void print_text(const struct checkpoint *a, const struct checkpoint *b,
                       const struct weights_report *report) {
    print_summary(report);
    print_side("A", a, report->wrapper[0]);
    print_side("B", b, report->wrapper[1]);
    print_tied(report);
    if (weights_equal(report)) return;
    print_elements(report);
    print_layers(report);
    printf("\n%-*s %-9s %12s %12s %12s  %-24s %s\n", NAME_WIDTH, "tensor", "what", "elements",
           "differing", "|A-B| / |A|", "max abs", "max ulp");
    for (size_t i = 0; i < report->worst_count && i < TABLE_ROWS; i++)
        print_row(report->worst[i]);
    if (report->worst_count > TABLE_ROWS)
        printf("and %zu more; --json prints them all\n", report->worst_count - TABLE_ROWS);
}

/* Indexed by enum weights_state. */
static const char *const json_states[WEIGHTS_STATES] = {"equal", "tied",   "values", "dtype",
                                                        "shape", "only_a", "only_b"};

static json_t *json_shape(const struct safetensors_tensor *tensor) {
    if (tensor == NULL) return json_null();
    json_t *shape = json_array();
    for (size_t i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s,s:o}", "dtype", safetensors_dtype_name(tensor->dtype), "shape", shape);
}

static json_t *json_row(const struct weights_row *row) {
    json_t *object =
        json_pack("{s:s,s:s,s:o,s:o}", "name", row->name, "what", json_states[row->state], "a",
                  json_shape(row->a), "b", json_shape(row->b));
    if (row->stands_for_head != 0)
        json_object_set_new(object, "tied_in", json_string(row->stands_for_head == 1 ? "a" : "b"));
    if (row->state >= WEIGHTS_SHAPE || (row->state == WEIGHTS_DTYPE && !row->has_numbers))
        return object;
    json_object_set_new(object, "elements", json_integer((json_int_t)row->a->count));
    json_object_set_new(object, "differing", json_integer((json_int_t)row->differing));
    if (!row->has_numbers) return object;
    json_object_set_new(object, "one_nan", json_integer((json_int_t)row->one_nan));
    json_object_set_new(object, "relative", json_finite(weights_relative(&row->vectors)));
    json_object_set_new(object, "cosine", json_finite(weights_cosine(&row->vectors)));
    json_object_set_new(object, "max_abs", json_finite(row->max_abs));
    json_object_set_new(object, "infinite", json_boolean(isinf(row->max_abs)));
    json_object_set_new(object, "max_abs_at", json_integer((json_int_t)row->max_at));
    json_object_set_new(object, "max_ulp",
                        row->max_ulp <= INT64_MAX ? json_integer((json_int_t)row->max_ulp)
                                                  : json_real((double)row->max_ulp));
    json_object_set_new(object, "ulp_dtype", json_string(dtype_name(row->ulp_dtype)));
    return object;
}

static json_t *json_side(const struct checkpoint *checkpoint, const char *wrapper) {
    return json_pack("{s:s,s:I,s:I,s:I,s:s}", "path", checkpoint->path, "files",
                     (json_int_t)checkpoint->file_count, "tensors", (json_int_t)checkpoint->count,
                     "bytes", (json_int_t)checkpoint->bytes, "wrapper", wrapper);
}

static enum status print_json(const struct checkpoint *a, const struct checkpoint *b,
                              const struct weights_report *report) {
    json_t *counts = json_object(), *rows = json_array();
    for (size_t i = 0; i < WEIGHTS_STATES; i++)
        json_object_set_new(counts, json_states[i], json_integer((json_int_t)report->counts[i]));
    for (size_t i = 0; i < report->count; i++)
        if (report->rows[i].state == WEIGHTS_TIED)
            json_array_append_new(rows, json_row(&report->rows[i]));
    for (size_t i = 0; i < report->worst_count; i++)
        json_array_append_new(rows, json_row(report->worst[i]));
    json_t *const layers = json_array();
    for (size_t i = 0; i < report->layer_count; i++)
        json_array_append_new(
            layers, json_pack("{s:s,s:o,s:o}", "name", report->layers[i].name, "relative",
                              json_finite(weights_relative(&report->layers[i].vectors)), "cosine",
                              json_finite(weights_cosine(&report->layers[i].vectors))));
    return json_print(json_pack(
        "{s:o,s:o,s:b,s:o,s:I,s:o,s:o,s:o,s:o,s:b,s:o}", "a", json_side(a, report->wrapper[0]), "b",
        json_side(b, report->wrapper[1]), "equal", weights_equal(report), "counts", counts,
        "differing", (json_int_t)report->differing, "relative",
        json_finite(weights_relative(&report->all)), "cosine",
        json_finite(weights_cosine(&report->all)), "layers", layers, "max_abs",
        json_finite(report->max_abs), "infinite", isinf(report->max_abs) != 0, "tensors", rows));
}

static void tell(void *context, uint64_t done, uint64_t total) {
    progress_text((struct progress *)context, "%.1f of %.1f GB  %.0f %%", (double)done * 1e-9,
                  (double)total * 1e-9, 100.0 * (double)done / (double)total);
}

/* Tells a CI system how many tensors differ, and which one most. */
static enum status add_case(struct cli *cli, const struct options *options,
                            const struct weights_report *report) {
    char *name, *message;
    TRY(arena_format(&cli->arena, &name, "%s against %s", options->arguments[0],
                     options->arguments[1]));
    TRY(arena_format(&cli->arena, &message, "%s", "equal"));
    if (!weights_equal(report)) {
        const struct weights_row *worst = report->worst_count > 0 ? report->worst[0] : NULL;
        TRY(arena_format(&cli->arena, &message, "%zu of %zu tensors differ, %s most (%s)",
                         report->worst_count, report->count, worst != NULL ? worst->name : "none",
                         worst != NULL ? weights_state_name(worst->state) : ""));
    }
    return ci_add(
        cli, &(struct ci_case){.name = name,
                               .outcome = weights_equal(report) ? EXIT_AS_EXPECTED : EXIT_DIFFERS,
                               .title = "the weights differ",
                               .message = message,
                               .seconds = -1.0});
}

static enum status compare(struct cli *cli, const struct options *options,
                           const struct checkpoint *a, const struct checkpoint *b, int *out_exit) {
    struct weights_report report;
    struct progress line;
    const struct weights_progress progress = {tell, &line};

    progress_open(&line, "parity weights", progress_wanted(options));
    const enum status status =
        weights_compare(a, b, line.shown ? &progress : NULL, &cli->arena, &report);
    progress_close(&line);
    TRY(status);
    *out_exit = weights_equal(&report) ? EXIT_AS_EXPECTED : EXIT_DIFFERS;
    TRY(add_case(cli, options, &report));
    if (options->json) return print_json(a, b, &report);
    print_text(a, b, &report);
    return STATUS_OK;
}

/* One of the two models. Safetensors are read as they are; what a trainer saved in another way is
 * opened as a training, whose weights then stand in `checkpoint` without a file of their own. */
struct side {
    struct checkpoint checkpoint;
    struct training_folder *folder; /* NULL: safetensors */
};

static enum status open_side(const char *path, struct arena *arena, struct side *out) {
    struct checkpoint *const as = &out->checkpoint;
    out->folder = NULL;
    const enum status status = checkpoint_open(path, arena, as);
    if (status == STATUS_OK || shipped_is(path)) return status;
    TRY(arena_take(arena, 1, sizeof *out->folder, "folder", &out->folder));
    TRY(training_weights_open(path, arena, out->folder));
    *as = (struct checkpoint){.path = path, .count = out->folder->weight_count};
    TRY(arena_take(arena, as->count, sizeof *as->tensors, "weights", &as->tensors));
    for (size_t i = 0; i < as->count; i++) {
        as->tensors[i] = out->folder->weights[i];
        as->bytes += as->tensors[i]->end - as->tensors[i]->begin;
    }
    return STATUS_OK;
}

static void close_side(struct side *side) {
    if (side->folder != NULL)
        training_folder_close(side->folder);
    else
        checkpoint_close(&side->checkpoint);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct side a, b;
    TRY(open_side(options->arguments[0], &cli->arena, &a));
    enum status status = open_side(options->arguments[1], &cli->arena, &b);
    if (status == STATUS_OK) {
        status = compare(cli, options, &a.checkpoint, &b.checkpoint, out_exit);
        close_side(&b);
    }
    close_side(&a);
    return status;
}

static const struct argp_option option_rows[] = {OPTIONS_CI, OPTION_JSON, OPTION_QUIET,
                                                 OPTIONS_END};

const struct verb verb_parity_weights = {
    .name = "parity weights",
    .brief = "two checkpoints, tensor by tensor: equal to the byte, or how far apart",
    .arguments = "A B",
    .text =
        "A and B are checkpoint folders (model.safetensors, or shards with their index), single "
        ".safetensors files, or what a trainer saved with torch.save (model.pt in a folder, a file "
        "with a state dict; nothing in it is executed). Says which tensors differ in bytes, dtype "
        "or shape, and which are in one only; how far A and B are apart as vectors (|A - B| / |A| "
        "and cosine) as a whole, by layer and by tensor; of values the largest absolute difference "
        "and the largest distance in units in the last place of the coarser dtype. An lm_head that "
        "is in one only is compared with the other's embedding, to which it is tied. What "
        "DistributedDataParallel (module.), torch.compile (_orig_mod.), FSDP and checkpointing of "
        "activations put before all names of one side is left out. In JSON a number that is not "
        "finite is null, as everywhere in twinstep; \"infinite\" is true where max_abs is "
        "infinity.\v"
        "Exit status: 0 equal, 1 differs, 2 error.\n"
        "Example: twinstep parity weights base-model/ checkpoint-100/",
    .options = option_rows,
    .least = 2,
    .most = 2,
    .run = run,
};
