/* SPDX-License-Identifier: Apache-2.0
 * twinstep parity weights: compares two checkpoints tensor by tensor. It trains nothing. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/verb.h"
#include "cli/parity_weights_print.h"

struct line {
    int shown;
    struct timespec last;
};

/* Shows the progress five times a second. Nothing is shown in the first fifth, so that short
 * comparisons stay quiet. */
static void tell(void *context, uint64_t done, uint64_t total) {
    struct line *line = (struct line *)context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double since = (double)(now.tv_sec - line->last.tv_sec) +
                         1e-9 * (double)(now.tv_nsec - line->last.tv_nsec);
    if (since < 0.2) return;
    fprintf(stderr, "\r\033[K%.1f of %.1f GB  %.0f %%", (double)done * 1e-9, (double)total * 1e-9,
            100.0 * (double)done / (double)total);
    line->last = now;
    line->shown = 1;
}

static enum status compare(struct cli *cli, const struct options *options,
                           const struct checkpoint *a, const struct checkpoint *b, int *out_exit) {
    struct weights_report report;
    struct line line = {0, {0, 0}};
    const struct weights_progress progress = {tell, &line};
    const int wanted = !options->quiet && isatty(STDERR_FILENO);
    clock_gettime(CLOCK_MONOTONIC, &line.last);
    const enum status status =
        weights_compare(a, b, wanted ? &progress : NULL, &cli->arena, &report);
    if (line.shown) fputs("\r\033[K", stderr);
    TRY(status);
    *out_exit = weights_equal(&report) ? EXIT_AS_EXPECTED : EXIT_DIFFERS;
    if (options->json) return weights_print_json(a, b, &report);
    weights_print_text(a, b, &report);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct checkpoint a, b;
    TRY(checkpoint_open(options->arguments[0], &cli->arena, &a));
    enum status status = checkpoint_open(options->arguments[1], &cli->arena, &b);
    if (status == STATUS_OK) {
        status = compare(cli, options, &a, &b, out_exit);
        checkpoint_close(&b);
    }
    checkpoint_close(&a);
    return status;
}

static const struct argp_option option_rows[] = {OPTION_JSON, OPTION_QUIET, OPTIONS_END};

const struct verb verb_parity_weights = {
    .name = "parity weights",
    .brief = "two checkpoints, tensor by tensor: equal to the byte, or how far apart",
    .arguments = "A B",
    .text =
        "A and B are checkpoint folders (model.safetensors, or shards with their index) or single "
        ".safetensors files. Says which tensors differ in bytes, dtype or shape, and which are in "
        "one only; of values the largest absolute difference and the largest distance in units in "
        "the last place of the coarser dtype. An lm_head that is in one only is compared with the "
        "other's embedding, to which it is tied. In JSON a number that is not finite is null, as "
        "everywhere in twinstep; "
        "\"infinite\" is true where max_abs is infinity.\v"
        "Exit status: 0 equal, 1 differs, 2 error.\n"
        "Example: twinstep parity weights base-model/ checkpoint-100/",
    .options = option_rows,
    .least = 2,
    .most = 2,
    .run = run,
};
