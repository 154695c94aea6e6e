/* SPDX-License-Identifier: Apache-2.0
 * Whether the test arm got worse: the last weights of both arms on fixed rows, and each gap held
 * against what runs show that are meant to be the same. A gap counts only where the arms' weights
 * differ beyond their floor, where it is larger than that of every A/A pair, and where a noisy
 * design's test says so, too; an exact design has the perturbed run in that place
 * (docs/decisions/eval.md). Reads what was recorded and trains nothing. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

#include "determinism/statistics.h"

const struct eval_paths eval_paths[EVAL_SETS] = {
    [EVAL_HELD_OUT] = {"eval/held_out", "eval/held_out_start", "eval/held_out_line"},
    [EVAL_TRAINED] = {"eval/training", "eval/training_start", "eval/training_line"}};

const char *eval_word_name(enum eval_word word) {
    static const char *const names[] = {"untestable",  "equal",  "within-floor", "ties",
                                        "as-rounding", "beyond", "not-finite"};
    return names[word];
}

int eval_side(const struct judged_eval_measure *of) {
    return of->gap > 0.0 ? of->good : of->gap < 0.0 ? -of->good : 0;
}

const char *eval_verdict(const struct judged_eval_measure *of) {
    static const char *const names[] = {"untestable",  "none", "within the floor", "ties",
                                        "as rounding", "",     "not finite"};
    const int side = eval_side(of);
    if (of->word != EVAL_BEYOND) return names[of->word];
    if (side != 0) return side > 0 ? "better" : "worse";
    return of->gap > 0.0 ? "higher" : "lower";
}

static const struct {
    const char *name, *words;
    int good; /* 1: more is better; -1: less is better; 0: neither is */
} columns[EVAL_COLUMNS] = {[EVAL_LOSS] = {"loss", "loss", -1},
                           [EVAL_MARGIN] = {"reward_margin", "reward margin", 1},
                           [EVAL_ACCURACY] = {"reward_accuracy", "reward accuracy", 1},
                           [EVAL_LOGP_CHOSEN] = {"logp_chosen", "log-prob of chosen", 0},
                           [EVAL_LOGP_REJECTED] = {"logp_rejected", "log-prob of rejected", 0}};

/* The runs whose values are compared, as rows of the arrays. */
struct repeats {
    uint32_t *row;     /* (count) those of the baseline, then those of the test arm */
    uint32_t count[2]; /* of each arm, the arm itself first */
    int64_t perturbed; /* -1: there is none */
};

static int is_repeat(const struct trace_run_plan *plan, const char *arm) {
    return strncmp(plan->id, "floor-", 6) == 0 && strcmp(plan->arm, arm) == 0;
}

static enum status find_repeats(const struct judging *judging, struct repeats *out) {
    const struct trace_image *image = judging->image;
    uint32_t all = 0;
    TRY(arena_take(judging->arena, image->run_count, sizeof *out->row, "evaluation", &out->row));
    out->perturbed = -1;
    for (int arm = 0; arm < 2; arm++) {
        out->row[all++] = (uint32_t)(judging->run[arm] - image->runs);
        out->count[arm] = 1;
        for (uint32_t i = 0; i < image->run_count; i++) {
            if (&image->runs[i] == judging->run[0] || &image->runs[i] == judging->run[1]) continue;
            if (arm == 0 && strcmp(image->runs[i].plan.id, "twin") == 0) out->perturbed = i;
            if (!is_repeat(&image->runs[i].plan, judging->out->arms[arm])) continue;
            out->row[all++] = i;
            out->count[arm]++;
        }
    }
    return STATUS_OK;
}

static double value_of(const struct trace_array *end, uint32_t row, int column) {
    const size_t columns_of_trace = (size_t)end->plan.shape[1];
    if ((size_t)column >= columns_of_trace) return (double)NAN;
    return end->values[(size_t)row * columns_of_trace + (size_t)column];
}

/* Packs the gaps of all pairs as determinism/statistics.h wants them, and notes the largest one
 * between two runs of one arm; there is none where a run has no value, or one that is not finite.
 */
static enum status pack_gaps(const struct judging *judging, const struct trace_array *end,
                             const struct repeats *repeats, int column,
                             struct judged_eval_measure *out, double **packed) {
    const size_t first = repeats->count[0], m = first + repeats->count[1];
    TRY(arena_take(judging->arena, statistics_pair_count(m), sizeof **packed, "evaluation",
                   packed));
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++) {
            const double gap = fabs(value_of(end, repeats->row[i], column) -
                                    value_of(end, repeats->row[j], column));
            (*packed)[statistics_pair(m, i, j)] = gap;
            if ((i < first) != (j < first)) continue;
            if (out->pairs++ == 0) out->floor = 0.0;
            if (!isnan(out->floor) && !(gap <= out->floor)) out->floor = gap; /* NaN stays */
        }
    if (!isfinite(out->floor)) out->pairs = 0;
    return STATUS_OK;
}

/* Tests the gaps as judge_floor.c tests distances. */
static enum status test_gaps(const struct judging *judging, const struct repeats *repeats,
                             const double *packed, struct judged_eval_measure *out) {
    const size_t first = repeats->count[0], m = first + repeats->count[1];
    struct statistics_p p;
    enum status status = STATUS_UNTESTABLE;
    if (judging->out->floor == FLOOR_RANK) status = statistics_test_pair(packed, m, 0, first, &p);
    if (judging->out->floor == FLOOR_PERMUTATION)
        status = statistics_test_labels(packed, m, first, &p);
    if (status == STATUS_OK) out->p = p.p;
    return status == STATUS_UNTESTABLE ? STATUS_OK : status;
}

/* Whether the perturbed run explains the distance of the weights. Then it explains what they do,
 * too, though its answer in a single figure may happen to be small. */
static int is_rounding(const struct judgement *judgement) {
    return judgement->total > 0.0 && rounding_explains(judgement->response, judgement->total);
}

/* Whether the arm with the lower accuracy would be no lower, were its pairs with equal rewards
 * counted as right. Which arm that is does not depend on which one is the baseline, as what one ulp
 * makes of ties in the baseline does. */
static int is_tied(const struct judged_eval_measure *of, uint32_t rows) {
    const double ties = of->ties[of->gap > 0.0 ? 0 : 1];
    return ties > 0.0 && fabs(of->gap) * (double)rows < ties + 0.5; /* counts, but for rounding */
}

static enum eval_word word_of(const struct judgement *judgement,
                              const struct judged_eval_measure *of, uint32_t rows) {
    const double gap = fabs(of->gap);
    if (!isfinite(of->end[0]) || !isfinite(of->end[1])) return EVAL_BROKEN;
    if (gap == 0.0) return EVAL_EQUAL;
    if (judgement->verdict == VERDICT_UNTESTABLE || of->pairs == 0) return EVAL_UNTESTABLE;
    if (judgement->verdict == VERDICT_INSIDE_FLOOR || gap <= of->floor) return EVAL_WITHIN;
    if (is_tied(of, rows)) return EVAL_TIED;
    if (is_rounding(judgement) || rounding_explains(of->response, gap)) return EVAL_ROUNDING;
    if (judgement->floor == FLOOR_EXACT) return EVAL_BEYOND;
    if (isnan(of->p)) return EVAL_UNTESTABLE;
    return of->p <= judgement->alpha ? EVAL_BEYOND : EVAL_WITHIN;
}

static enum status judge_column(const struct judging *judging, const struct trace_array *arrays[2],
                                const struct repeats *repeats, int column, uint32_t rows,
                                struct judged_eval_measure *out) {
    const struct trace_array *start = arrays[0], *end = arrays[1];
    double *packed;
    *out = (struct judged_eval_measure){.name = columns[column].name,
                                        .words = columns[column].words,
                                        .good = columns[column].good,
                                        .floor = (double)NAN,
                                        .response = (double)NAN,
                                        .p = (double)NAN,
                                        .ties = {(double)NAN, (double)NAN}};
    for (uint32_t arm = 0; arm < 2; arm++) {
        out->start[arm] = value_of(start, arm, column);
        out->end[arm] = value_of(end, repeats->row[arm == 0 ? 0 : repeats->count[0]], column);
    }
    out->gap = out->end[1] - out->end[0];
    for (uint32_t arm = 0; arm < 2 && column == EVAL_ACCURACY; arm++)
        out->ties[arm] = value_of(end, repeats->row[arm == 0 ? 0 : repeats->count[0]], EVAL_TIES);
    if (repeats->perturbed >= 0)
        out->response = fabs(value_of(end, (uint32_t)repeats->perturbed, column) - out->end[0]);
    TRY(pack_gaps(judging, end, repeats, column, out, &packed));
    TRY(test_gaps(judging, repeats, packed, out));
    out->word = word_of(judging->out, out, rows);
    return STATUS_OK;
}

/* Reads the arrays of a set; *out_start is NULL where the trace has none. */
static enum status read_set(const struct judging *judging, int set,
                            const struct trace_array *arrays[2], struct judged_eval_set *out) {
    const struct eval_paths *paths = &eval_paths[set];
    const struct trace_array *lines = trace_array_of(judging->image, paths->line);
    const struct trace_array *const end = trace_array_of(judging->image, paths->end);
    const int is_older = end != NULL && end->plan.shape[1] == EVAL_COLUMNS;
    const uint64_t values = is_older ? EVAL_COLUMNS : EVAL_VALUES;
    TRY(judging_array(judging, paths->start, 2, values, &arrays[0]));
    TRY(judging_array(judging, paths->end, judging->image->run_count, values, &arrays[1]));
    if (arrays[0] == NULL || arrays[1] == NULL || lines == NULL) {
        arrays[0] = NULL;
        return STATUS_OK;
    }
    for (uint64_t i = 0; i < lines->plan.shape[0]; i++)
        out->rows += isfinite(lines->values[i]) ? 1 : 0;
    return STATUS_OK;
}

static enum status judge_set(const struct judging *judging, const struct repeats *repeats, int set,
                             struct judged_eval *eval) {
    static const char *const names[] = {"held_out", "training"};
    struct judged_eval_set *out = &eval->sets[eval->set_count];
    const struct trace_array *arrays[2];
    *out = (struct judged_eval_set){.name = names[set], .is_held_out = set == EVAL_HELD_OUT};
    TRY(read_set(judging, set, arrays, out));
    if (arrays[0] == NULL) return STATUS_OK;
    eval->set_count++;
    const int is_sft = config_text_says(judging->run[0]->plan.configuration, "task", "sft");
    for (int column = 0; column < (is_sft ? 1 : EVAL_COLUMNS) && out->rows > 0; column++)
        TRY(judge_column(judging, arrays, repeats, column, out->rows,
                         &out->measures[out->count++]));
    return STATUS_OK;
}

enum status judge_eval(struct judging *judging) {
    struct judged_eval *out = &judging->out->eval;
    struct repeats repeats;
    out->rows = judging_text(judging, "eval", "rows");
    out->seen = judging_text(judging, "eval", "seen");
    out->as_baseline = judging_text(judging, "eval", "as_baseline");
    /* The arrays are written when the floor's runs have ended. */
    if (out->rows[0] == '\0' || !judging->image->complete) return STATUS_OK;
    TRY(find_repeats(judging, &repeats));
    for (int set = 0; set < EVAL_SETS; set++)
        TRY(judge_set(judging, &repeats, set, out));
    return STATUS_OK;
}
