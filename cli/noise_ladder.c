/* SPDX-License-Identifier: Apache-2.0
 * One table per mode and dtype, one line per op. */
#include "cli/noise_ladder.h"

#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/noise_report.h"
#include "experiment/backend_record.h"
#include "experiment/noise/noise_ops.h"
#include "model/backends.h"

struct text {
    char text[64];
};

static struct text cell_text(const struct noise_ops_cell *cell, int batch) {
    struct text out;
    if (cell->untestable != NULL)
        snprintf(out.text, sizeof out.text, "(%s)", cell->untestable);
    else if (cell->equal)
        snprintf(out.text, sizeof out.text, "bit-equal");
    else if (batch && cell->differing < cell->beyond)
        snprintf(out.text, sizeof out.text, "from %u: %u of %u, %jd ulp", cell->from,
                 cell->differing, cell->beyond, (intmax_t)cell->ulp);
    else if (batch)
        snprintf(out.text, sizeof out.text, "from %u on, %jd ulp", cell->from, (intmax_t)cell->ulp);
    else
        snprintf(out.text, sizeof out.text, "%jd ulp", (intmax_t)cell->ulp);
    return out;
}

static int is_equal(const struct noise_ops_row *row) {
    int equal = 1;
    for (int c = 0; c < NOISE_OPS_CLASSES; c++)
        equal = equal && row->cells[c].equal;
    return equal;
}

/* Those that differ somewhere; the others are counted. */
static void print_rows(const struct noise_ops_row *rows, uint32_t count) {
    uint32_t equal = 0;
    for (uint32_t i = 0; i < count; i++)
        equal += is_equal(&rows[i]) != 0;
    printf("  %u of %u ops and sizes bit-equal in every class\n", equal, count);
    if (equal == count) return;
    printf("  %-19s %-10s %-27s %-10s %-10s %s\n", "op", "size", "batch", "threads", "repeat",
           "alignment");
    for (uint32_t i = 0; i < count; i++) {
        struct text cells[NOISE_OPS_CLASSES];
        if (is_equal(&rows[i])) continue;
        for (int c = 0; c < NOISE_OPS_CLASSES; c++)
            cells[c] = cell_text(&rows[i].cells[c], c == NOISE_OPS_BATCH);
        printf("  %-19s %-10s %-27s %-10s %-10s %s\n", rows[i].op, rows[i].size, cells[0].text,
               cells[1].text, cells[2].text, cells[3].text);
    }
}

static json_t *rows_json(const struct noise_ops_row *rows, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *row = json_pack("{ss ss}", "op", rows[i].op, "size", rows[i].size);
        for (int c = 0; c < NOISE_OPS_CLASSES; c++) {
            const struct noise_ops_cell *cell = &rows[i].cells[c];
            json_object_set_new(
                row, noise_ops_classes[c],
                cell->untestable != NULL
                    ? json_pack("{ss}", "untestable", cell->untestable)
                    : json_pack("{sb sI sI sI so}", "bit_equal", cell->equal, "ulp",
                                (json_int_t)cell->ulp, "differing", (json_int_t)cell->differing,
                                "looked", (json_int_t)cell->looked, "from",
                                cell->from == 0 ? json_null() : json_integer(cell->from)));
        }
        json_array_append_new(list, row);
    }
    return list;
}

static void count_cells(const struct noise_ops_row *rows, uint32_t count, uint32_t *equal,
                        uint32_t *apart) {
    for (uint32_t i = 0; i < count; i++)
        for (int c = 0; c < NOISE_OPS_CLASSES; c++) {
            if (rows[i].cells[c].untestable != NULL) continue;
            *equal += rows[i].cells[c].equal != 0;
            *apart += rows[i].cells[c].equal == 0;
        }
}

static enum status find_dtype(const char *name, enum dtype *out) {
    static const enum dtype known[] = {DTYPE_F32, DTYPE_BF16};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        *out = known[i];
        if (strcmp(dtype_name(known[i]), name) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "expected f32 or bf16, got \"%s\"", name);
}

/* A mode that is not here is named in its place. */
static enum status run_case(const struct noise_ladder *ladder, const char *mode, const char *name,
                            json_t *list, uint32_t *equal, uint32_t *apart) {
    enum dtype dtype = DTYPE_F32;
    const struct backend *backend;
    const struct noise_ops_row *rows;
    uint32_t count;
    TRY(find_dtype(name, &dtype));
    TRY(backends_open(ladder->config, &backend));
    const struct noise_ops_request request = {
        mode, dtype, ladder->threads, ladder->cli->interrupted, backend, NULL};
    const enum status status = noise_ops_measure(&request, &ladder->cli->arena, &rows, &count);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED) return status;
    if (status == STATUS_OK) count_cells(rows, count, equal, apart);
    if (list != NULL) {
        json_array_append_new(list, status == STATUS_OK
                                        ? json_pack("{ss ss so}", "mode", mode, "dtype", name,
                                                    "ops", rows_json(rows, count))
                                        : json_pack("{ss ss ss}", "mode", mode, "dtype", name,
                                                    "untestable", status_text()));
        return STATUS_OK;
    }
    printf("%s, %s\n", mode, name);
    if (status == STATUS_OK)
        print_rows(rows, count);
    else
        printf("  untestable: %s\n", status_text());
    printf("\n");
    return STATUS_OK;
}

static enum status run_cases(const struct noise_ladder *ladder, json_t *list, uint32_t *equal,
                             uint32_t *apart) {
    for (uint32_t m = 0; m < ladder->mode_count; m++)
        for (uint32_t d = 0; d < ladder->dtype_count; d++) {
            const enum status status =
                run_case(ladder, ladder->modes[m], ladder->dtypes[d], list, equal, apart);
            if (status != STATUS_OK) return status_prefix(status, "noise: --ops");
        }
    return STATUS_OK;
}

enum status noise_ladder_run(const struct noise_ladder *ladder, int *out_exit) {
    uint32_t equal = 0, apart = 0;
    json_t *list = ladder->json ? json_array() : NULL;
    struct backend_seen device;
    char *line;
    enum status status = run_cases(ladder, list, &equal, &apart);
    if (status == STATUS_OK)
        status = backends_of_config(ladder->config, &ladder->cli->arena, &device);
    if (status == STATUS_OK) status = backends_line(&device, &ladder->cli->arena, &line);
    if (status != STATUS_OK) {
        json_decref(list);
        return status;
    }
    *out_exit = apart != 0 ? EXIT_DIFFERS : equal != 0 ? EXIT_AS_EXPECTED : EXIT_UNTESTABLE;
    if (ladder->json)
        return json_print(json_pack("{so so sI sI}", "device", noise_device_json(&device), "cases",
                                    list, "bit_equal", (json_int_t)equal, "apart",
                                    (json_int_t)apart));
    if (device.attribute_count > 0) printf("device %s\n", line);
    printf("batch: every row of a call of M rows against the same row alone, M = 2 to 96 and both "
           "sides of 128, 192, 256,\n384, 512, then bisection (attention: sequences of 33 tokens, "
           "M up to 24); dW and scatter: one call against two.\nthreads: 1 to %d. alignment: all "
           "buffers one element further on. ulp: largest, of the output's dtype.\n%u cells "
           "bit-equal, %u not\n",
           ladder->threads, equal, apart);
    return STATUS_OK;
}
