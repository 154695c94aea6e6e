/* SPDX-License-Identifier: Apache-2.0
 * The row that says which bit flips in an arm, and what the columns that people watch show of it.
 *
 * The flip is read from the configuration that the trace holds. What columns show is told only
 * where nothing else differs and repeats are equal, because otherwise they may show that. */
#include "evidence/judge_rows.h"

#include <string.h>

#include "base/number.h"
#include "scenarios/scenario.h"

/* A key of section `fault` as the configuration prints it, without the quotes of YAML. */
struct word {
    int length;
    const char *text;
};

static struct word word_of(const struct trace_run *run, const char *key) {
    size_t length;
    const char *text = config_text_value(run->plan.configuration, key, &length);
    if (text != NULL && length >= 2 && (text[0] == '"' || text[0] == '\'')) {
        text++;
        length -= 2;
    }
    return (struct word){text == NULL ? 0 : (int)length, text == NULL ? "" : text};
}

/* The update in which a bit flips; 0: none does. */
static uint64_t update_of(const struct trace_run *run) {
    char digits[32];
    uint64_t update = 0;
    if (run->plan.configuration == NULL) return 0;
    const struct word word = word_of(run, "fault.update");
    if (word.length == 0 || (size_t)word.length >= sizeof digits) return 0;
    memcpy(digits, word.text, (size_t)word.length);
    digits[word.length] = '\0';
    return number_parse_uint(digits, &update) == STATUS_OK ? update : 0;
}

static int same_flip(const struct trace_run *a, const struct trace_run *b) {
    static const char *const keys[] = {"fault.update",  "fault.phase", "fault.micro",
                                       "fault.layer",   "fault.op",    "fault.tensor",
                                       "fault.element", "fault.bit"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const struct word x = word_of(a, keys[i]), y = word_of(b, keys[i]);
        if (x.length != y.length || memcmp(x.text, y.text, (size_t)x.length) != 0) return 0;
    }
    return 1;
}

static void put_flip(const struct trace_run *run, const char *arm, struct row_pen *pen) {
    const struct word update = word_of(run, "fault.update"), phase = word_of(run, "fault.phase");
    const struct word micro = word_of(run, "fault.micro"), layer = word_of(run, "fault.layer");
    const struct word op = word_of(run, "fault.op"), tensor = word_of(run, "fault.tensor");
    const struct word element = word_of(run, "fault.element"), bit = word_of(run, "fault.bit");
    row_add(pen, ROW_WHY,
            "in %s one bit flips, as of a defective core or memory: update %.*s, %.*s, micro-batch "
            "%.*s",
            arm, update.length, update.text, phase.length, phase.text, micro.length, micro.text);
    if (strncmp(layer.text, "none", 4) != 0) row_put(pen, ", layer %.*s", layer.length, layer.text);
    row_put(pen, ",\n%.*s %.*s, element %.*s, bit %.*s (docs/CORRUPTION.md).", op.length, op.text,
            tensor.length, tensor.text, element.length, element.text, bit.length, bit.text);
}

static int same_column(const struct record *a, const struct record *b, int real) {
    return memcmp(&a->reals[real], &b->reals[real], sizeof a->reals[real]) == 0;
}

static void put_column(const struct judgement *judgement, const struct record *a,
                       const struct record *b, int real, const char *name, struct row_pen *pen) {
    const double x = a->reals[real], y = b->reals[real];
    if (same_column(a, b, real))
        row_put(pen, "%s is that of %s", name, judgement->arms[0]);
    else
        row_put(pen, "%s is %.6g in %s, %.6g in %s", name, x, judgement->arms[0], y,
                judgement->arms[1]);
}

/* The first activation of an update whose digests differ; NULL: none does, or none was recorded. */
static const char *activation_of(const struct trace_run *a, const struct trace_run *b,
                                 uint64_t update) {
    const struct record *x = trace_row(a, update - 1), *y = trace_row(b, update - 1);
    const uint32_t sites = a->plan.shape.sites;
    for (uint32_t i = 0; i < sites && sites == b->plan.shape.sites; i++)
        if (memcmp(x->sites[i], y->sites[i], RECORD_DIGEST_BYTES) != 0) return a->plan.sites[i];
    return NULL;
}

/* Of arms that trained alike. */
static void put_inert(const struct trace_run *a, const struct trace_run *b, uint64_t update,
                      struct row_pen *pen) {
    const char *const activation = activation_of(a, b, update);
    if (activation == NULL)
        row_put(pen, "\nNo loss and no weight of any update shows it:");
    else
        row_put(pen,
                "\nOnly the digest of activation %s in that update shows it, no loss and no weight "
                "of any:",
                activation);
    row_put(pen, "\nnothing read the number again, or a rounding took it back.");
}

/* What the log of the update in which the bit flips shows of it. */
static void put_seen(const struct judgement *judgement, uint64_t update, struct row_pen *pen) {
    const struct trace_run *a = trace_run_of(judgement->image, judgement->arms[0]);
    const struct trace_run *b = trace_run_of(judgement->image, judgement->arms[1]);
    if (update > judgement->updates || judgement->cause_count > 1 ||
        judgement->floor != FLOOR_EXACT)
        return;
    if (judgement->verdict == VERDICT_IDENTICAL) {
        put_inert(a, b, update, pen);
        return;
    }
    const struct record *x = trace_row(a, update - 1), *y = trace_row(b, update - 1);
    row_put(pen, "\nIn the log of that update ");
    if (same_column(x, y, REAL_LOSS) && same_column(x, y, REAL_GRAD_NORM)) {
        row_put(pen, "loss and gradient norm are those of %s.", judgement->arms[0]);
        return;
    }
    put_column(judgement, x, y, REAL_LOSS, "the loss", pen);
    row_put(pen, ", and ");
    put_column(judgement, x, y, REAL_GRAD_NORM, "the gradient norm", pen);
    row_put(pen, ".");
}

void judge_row_corruption(const struct judgement *judgement, struct row_pen *pen) {
    const struct trace_run *runs[2];
    for (int arm = 0; arm < 2; arm++)
        runs[arm] = trace_run_of(judgement->image, judgement->arms[arm]);
    if (same_flip(runs[0], runs[1])) return;
    for (int arm = 0; arm < 2; arm++) {
        const uint64_t update = update_of(runs[arm]);
        if (update == 0) continue;
        put_flip(runs[arm], judgement->arms[arm], pen);
        put_seen(judgement, update, pen);
    }
}
