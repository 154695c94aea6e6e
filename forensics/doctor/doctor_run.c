/* SPDX-License-Identifier: Apache-2.0
 * Checks of the log as a whole: whether one run wrote it, whether the training loss is the mean
 * that the evaluation has, whether every row had a token to learn from. docs/FORENSICS.md lists
 * them.
 *
 * Invariant: a resume, which goes back once and then goes on, is not two writers. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

/* ---- two runs in one file ---- */

/* How often the update must fall back before two writers are meant: more often than a run that is
 * restarted after crashes. Chosen. */
#define SWITCHES 6

/* One of the two runs that rows are dealt to. */
struct writer {
    int64_t last, gap; /* its last update, and how far that lay behind the one before; 0: none */
    size_t rows;
};

struct writers {
    struct writer writer[2];
    size_t falls;    /* how often an update lies before that of the row before */
    size_t returns;  /* how often a run goes on after rows of the other one */
    size_t seamless; /* and does so at its own distance */
    size_t first;    /* the row of the first fall */
};

/* Returns which writer goes on with this update: the one that is closest before it; 2: neither. */
static size_t goes_on(const struct writers *writers, int64_t step) {
    const int64_t a = writers->writer[0].last, b = writers->writer[1].last;
    if (a < step && b < step) return a >= b ? 0 : 1;
    return a < step ? 0 : b < step ? 1 : 2;
}

/* Deals the rows to two runs. Returns 0 where two ascending ones cannot be made of them. */
static int deal(const struct log *log, struct writers *out) {
    size_t before = 0;
    *out = (struct writers){.falls = 0};
    for (size_t row = 0; row < log->rows; row++) {
        const int64_t step = log->step[row];
        if (step < 1) continue;
        const size_t w = goes_on(out, step);
        if (w == 2) return 0;
        struct writer *writer = &out->writer[w];
        if (row > 0 && step < log->step[row - 1] && out->falls++ == 0) out->first = row;
        if (writer->rows > 0 && w != before) {
            out->returns++;
            out->seamless += writer->gap == 0 || step - writer->last == writer->gap;
        }
        if (writer->rows > 0) writer->gap = step - writer->last;
        writer->last = step;
        writer->rows++;
        before = w;
    }
    return 1;
}

static enum status one_writer(struct doctor *doctor) {
    const struct log *log = doctor->log;
    struct writers writers;
    if (log->step_guessed) return doctor_untestable(doctor, "the log prints no update numbers");
    if (log->rows < 3) return doctor_untestable(doctor, "fewer than 3 rows");
    if (!deal(log, &writers) || writers.falls < SWITCHES ||
        10 * writers.seamless < 8 * writers.returns)
        return STATUS_OK;
    TRY(doctor_found(doctor, "interleaved_writers", DOCTOR_LIKELY, writers.first,
                     "Rows of two runs alternate: the update falls back %zu times, and each time "
                     "one of two ascending counts goes on where it was.",
                     writers.falls));
    TRY(doctor_evidence(doctor, "one run has %zu rows up to update %lld, the other %zu up to %lld",
                        writers.writer[0].rows, (long long)writers.writer[0].last,
                        writers.writer[1].rows, (long long)writers.writer[1].last));
    return doctor_explain(doctor,
                          "a resume falls back once and does not return to the count before",
                          "Give each run an output directory or a logger of its own; what else "
                          "this log says is of a mixture.");
}

/* ---- the training loss is not a mean ---- */

/* Evaluations that must agree, and by how much their ratios may differ from the whole number: the
 * training loss is that of other rows. Chosen from public reports (16.9, 16.8, 16.5 for 16
 * micro-batches; 4.08, 4.05, 4.03 for 4). */
#define EVALUATIONS 3
#define SPREAD 0.08

/* Returns the last training loss up to the row of an evaluation, or NULL. */
static const struct series_point *loss_before(const struct series *loss, size_t row) {
    size_t i = series_row(loss, row);
    if (i < loss->count && loss->points[i].row == row) return &loss->points[i];
    return i > 0 ? &loss->points[i - 1] : NULL;
}

/* What the ratios of all evaluations have in common. */
struct ratios {
    double low, high;
    size_t count;
    const struct series_point *eval; /* the first one */
};

/* Tells whether every ratio is near n. */
static int near_all(const struct ratios *ratios, double n) {
    return ratios->low >= (1.0 - SPREAD) * n && ratios->high <= (1.0 + SPREAD) * n;
}

static enum status report_multiple(struct doctor *doctor, const struct ratios *ratios) {
    const double processes = (double)doctor->options->processes;
    const double accumulate = (double)doctor->options->accumulate;
    const int known = (processes > 1.0 && near_all(ratios, processes)) ||
                      (accumulate > 1.0 && near_all(ratios, accumulate));
    /* Twice can be the difficulty of other rows. */
    TRY(doctor_found(doctor, "loss_not_divided",
                     known || ratios->low > 2.5 ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                     ratios->eval->row,
                     "The training loss is %s to %s times the evaluation loss at all %zu "
                     "evaluations: it is a sum over micro-batches or processes and no mean.",
                     word_about(ratios->low).text, word_about(ratios->high).text, ratios->count));
    TRY(doctor_evidence_column(doctor, LOG_LOSS,
                               loss_before(&doctor->series[LOG_LOSS], ratios->eval->row)));
    TRY(doctor_evidence_column(doctor, LOG_EVAL_LOSS, ratios->eval));
    return doctor_explain(doctor,
                          known ? "the factor is the number that was given"
                                : "both losses of one model on like rows are about equal; only a "
                                  "sum stands a steady factor above the mean",
                          "Compare the gradient norm with that of a run without accumulation: if "
                          "it has the factor too, so has the step. --processes and --accumulate "
                          "say which factors to expect.");
}

static enum status loss_is_mean(struct doctor *doctor) {
    const struct series *eval = &doctor->series[LOG_EVAL_LOSS], *loss = &doctor->series[LOG_LOSS];
    struct ratios ratios = {.count = 0};
    for (size_t i = 0; i < eval->count; i++) {
        const struct series_point *train = loss_before(loss, eval->points[i].row);
        if (train == NULL || !(eval->points[i].value > 0.0) || !(train->value > 0.0)) continue;
        const double ratio = train->value / eval->points[i].value;
        if (!(ratio < 4096.0)) return STATUS_OK;
        if (ratios.count++ == 0) {
            ratios.low = ratios.high = ratio;
            ratios.eval = &eval->points[i];
        }
        ratios.low = ratio < ratios.low ? ratio : ratios.low;
        ratios.high = ratio > ratios.high ? ratio : ratios.high;
    }
    if (ratios.count < EVALUATIONS)
        return doctor_untestable(doctor, "fewer than %d evaluations beside a training loss",
                                 EVALUATIONS);
    const double n = (double)(uint64_t)(0.5 * (ratios.low + ratios.high) + 0.5);
    return n >= 2.0 && near_all(&ratios, n) ? report_multiple(doctor, &ratios) : STATUS_OK;
}

/* ---- rows without a label ---- */

/* A log-probability is a sum over labelled tokens. It is 0 to the last digit only over none of
 * them. Three decimals must say so: with two, an answer of probability 0.995 prints as 0, too. */
static enum status labelled_tokens(struct doctor *doctor) {
    static const enum log_name names[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        const struct series *logp = &doctor->series[names[n]];
        const struct series_point *first = NULL;
        size_t zeros = 0;
        for (size_t i = 0; i < logp->count; i++) {
            const struct series_point *point = &logp->points[i];
            if (point->value != 0.0) continue; /* NaN is another finding */
            if (series_coarser(point->quantum, 1e-3)) continue;
            if (zeros++ == 0) first = point;
        }
        if (zeros == 0) continue;
        TRY(doctor_found(doctor, "no_labelled_token", DOCTOR_LIKELY, first->row,
                         "The log-probability of the %s answers is 0 in %zu of %zu rows: "
                         "no token of them was labelled.",
                         n == 0 ? "chosen" : "rejected", zeros, logp->count));
        TRY(doctor_evidence_column(doctor, names[n], first));
        TRY(doctor_explain(doctor,
                           "a sum over labelled tokens is 0 only where there are none, or where "
                           "each has probability 1",
                           "Print the labels of this batch: a prompt longer than max_length, or a "
                           "template that masks the answer, leaves -100 everywhere."));
    }
    return STATUS_OK;
}

const struct doctor_check doctor_run_checks[] = {
    {"interleaved_writers", "one run wrote the log", {LOG_OTHER}, one_writer},
    {"loss_not_divided",
     "training loss is no multiple of the evaluation loss",
     {LOG_LOSS, LOG_EVAL_LOSS},
     loss_is_mean},
    {"no_labelled_token",
     "log-probabilities are below 0",
     {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED},
     labelled_tokens},
    {NULL, NULL, {LOG_OTHER}, NULL}};
