/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A judgement as JSON, written a second time by hand for random judgements and compared whole, in
 * order: which numbers are null, which lists are empty, and which objects are left out. What stands
 * in files of its own (random draws, fixed rows) is replaced. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#define rng_json given_rng
#define judge_eval_json given_eval
#include "evidence/judge_json.c" /* with draws and rows of this test */
#include "tests/base/helper_draws.h"

enum { MOST = 4, MARKS = 3, LINES = 6, CASES = 2000 };

static struct draws draws;
static struct judgement j;
static struct judged_row rows[LINES];
static struct trace_text replay;
static struct trace_image image;

json_t *given_rng(const struct ledger_difference *rng, const char *text) {
    assert_ptr_equal(rng, &j.rng);
    return json_string(text);
}

json_t *given_eval(const struct judgement *judgement) {
    return json_integer(judgement->eval.set_count);
}

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

/* ---- random judgements ---- */

static double draw_real(void) {
    static const double values[] = {0.0, 0.25, -0.5, 1.0, 3.0, 1e-9, 0.1};
    if (!seldom(5)) return values[draws_pick(&draws, COUNT_OF(values))];
    return seldom(2) ? (double)NAN : seldom(2) ? (double)INFINITY : -(double)INFINITY;
}

static struct attributed draw_figure(void) {
    struct attributed of;
    of.value = draw_real();
    of.low = draw_real();
    of.high = draw_real();
    return of;
}

static void draw_growth(struct judged_growth *of) {
    of->known = seldom(2);
    of->from = draws_pick(&draws, 9);
    of->to = draws_pick(&draws, 9);
    of->fit.law = (enum growth_law)draws_pick(&draws, 4);
    of->fit.power.value = draw_real();
    of->fit.power.low = draw_real();
    of->fit.power.high = draw_real();
    of->fit.rate.value = draw_real();
    of->fit.rate.low = draw_real();
    of->fit.rate.high = draw_real();
    of->end = draw_real();
    of->end_share = draw_real();
}

static void draw_causes(void) {
    static const char *const names[MOST] = {"schedule", "dtype", "rng", "resume"};
    j.cause_count = draws_pick(&draws, MOST + 1);
    for (uint32_t i = 0; i < MOST; i++) {
        struct judged_cause *const cause = &j.causes[i];
        snprintf(cause->name, sizeof cause->name, "%s", names[i]);
        cause->share = draw_figure();
        if (seldom(3)) cause->share.high = cause->share.low = 0.5;
        cause->left = draw_figure();
        cause->alone = draw_figure();
        cause->moves = draw_real();
        cause->place[0] = 1 + draws_pick(&draws, 3);
        cause->place[1] = 1 + draws_pick(&draws, 3);
        cause->acted = (int64_t)draws_pick(&draws, 4) - 1;
        for (int of = 0; of < 2; of++) {
            struct judged_mixture *const mixture =
                of == 0 ? &j.mixtures.alone[i] : &j.mixtures.without[i];
            *mixture = (struct judged_mixture){.is_beyond = seldom(2)};
            mixture->p = draw_real();
            mixture->size = draw_figure();
        }
        for (uint32_t m = 0; m < MARKS; m++) {
            j.marks[m].share[i] = draw_real();
            j.measures[m].value[i] = draw_real();
            j.measures[m].alone[i] = draw_real();
            j.measures[m].without[i] = draw_real();
        }
    }
}

static void draw_rest(void) {
    static const char *const kinds[] = {"loss_gap", "margin_gap", "probe_kl"};
    static const char *const texts[] = {"", "one", "one\ntwo", "one\n\nthree\n", "\n"};
    static const enum judged_row_kind of_rows[] = {ROW_WHY,    ROW_INERT,  ROW_DROPPED,
                                                   ROW_HAZARD, ROW_REPLAY, ROW_NOTE};
    for (uint32_t m = 0; m < MARKS; m++) {
        j.marks[m].update = 3 + m;
        j.marks[m].whole = draw_real();
        j.marks[m].response = draw_real();
        j.measures[m].name = kinds[m];
        j.measures[m].whole = draw_real();
        j.measures[m].ranks_otherwise = seldom(2);
    }
    for (size_t i = 0; i < COUNT_OF(j.dividends); i++)
        j.dividends[i] = draw_real();
    j.measure_count = draws_pick(&draws, MARKS + 1);
    j.mark_count = draws_pick(&draws, MARKS + 1);
    j.ranked = (int32_t)draws_pick(&draws, MARKS + 1) - 1;
    for (size_t i = 0; i < LINES; i++)
        rows[i] = (struct judged_row){of_rows[draws_pick(&draws, COUNT_OF(of_rows))], "",
                                      texts[draws_pick(&draws, COUNT_OF(texts))]};
    j.rows = rows;
    j.row_count = draws_pick(&draws, LINES + 1);
    j.mixtures.runs = seldom(2) ? 3 : 0;
    j.mixtures.unasked = seldom(2) ? "" : "too many";
    j.mixtures.count = 14;
    j.mixtures.beyond = draws_pick(&draws, 3);
    j.mixtures.level = draw_real();
    j.mixtures.bound = draw_real();
    j.closure = (enum closure)draws_pick(&draws, 4);
    j.closure_noise.alpha = seldom(2) ? 0.0 : draw_real();
    j.closure_noise.runs = draws_pick(&draws, 5);
    j.closure_noise.mean = draw_real();
    j.closure_noise.farthest = draw_real();
    draw_growth(&j.growth);
    draw_growth(&j.perturbed);
    j.has_perturbed = seldom(2);
    j.saturated = seldom(2);
    j.response = draw_real();
    for (int arm = 0; arm < 2; arm++) {
        j.diverged[arm] = draws_pick(&draws, 3);
        j.unbounded[arm] = draws_pick(&draws, 3);
        j.floor_equal[arm] = (int)draws_pick(&draws, 3) - 1;
        j.floor_runs[arm] = draws_pick(&draws, 9);
        j.products[arm] = seldom(3) ? "all" : "";
        j.parting[arm] = (struct judged_parting){
            .update = draws_pick(&draws, 3), .tensor = "wte", .ranks = seldom(3) ? 2 : 0};
        j.parting[arm].rank = draws_pick(&draws, 3);
        j.parting[arm].parted = draws_pick(&draws, 3);
        j.reported.values[arm] = draw_real();
    }
    j.reported.update = draws_pick(&draws, 3);
    j.reported.column = "loss";
}

static void draw_judgement(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0x1505), .number = number};
    memset(&j, 0, sizeof j);
    draw_causes();
    draw_rest();
    j.name = "scene";
    j.verdict = (enum verdict)(1 + draws_pick(&draws, VERDICT_COUNT - 1));
    if (seldom(3)) j.verdict = VERDICT_OUTSIDE_FLOOR;
    j.reason = "for a reason";
    j.missed = "a line";
    j.seal = "sealed";
    j.rng_words = "draws";
    j.updates = draws_pick(&draws, 9);
    j.alike = draws_pick(&draws, 9);
    j.served = draws_pick(&draws, 9);
    j.first_step = (int64_t)draws_pick(&draws, 4) - 1;
    j.first_phase = "update";
    j.first_tensor = "wte";
    j.place = (struct first_place){.structure = seldom(2) ? "" : "only A clips",
                                   .undecided = "undecided"};
    j.place.update = draws_pick(&draws, 2);
    j.place.micro = draws_pick(&draws, 3);
    j.place.layer = (int64_t)draws_pick(&draws, 3) - 1;
    j.attributed = seldom(2);
    j.word = (enum attribution_word)draws_pick(&draws, WORD_COUNT);
    j.total = draw_real();
    j.travel = draw_real();
    j.masters = seldom(2);
    j.by_distance = seldom(2);
    j.sample.orders = seldom(2) ? draws_pick(&draws, 3) : 0;
    j.sample.hybrids = 40;
    j.sample.shared = 3;
    j.sample.alpha = 0.05;
    j.projection.runs = seldom(3) ? 4 : 0;
    j.floor = (enum floor_kind)draws_pick(&draws, 5);
    j.floor_pairs = draws_pick(&draws, 100);
    j.floor_distance = draw_real();
    j.floor_largest = draw_real();
    j.p = draw_real();
    j.smallest_p = draw_real();
    j.alpha = draw_real();
    j.power = draw_real();
    j.loss_p = draw_real();
    j.expectation = (enum expectation)draws_pick(&draws, 3);
    j.eval.set_count = draws_pick(&draws, 3);
    image = (struct trace_image){.texts = &replay, .text_count = draws_pick(&draws, 2)};
    replay = (struct trace_text){.path = "verdict/replay_check", .text = ""};
    j.image = &image;
}

/* ---- the same as text ---- */

static char want[32768];
static size_t want_length;

static void add(const char *format, ...) TWINSTEP_PRINTF(1, 2);
static void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(want + want_length, sizeof want - want_length, format, arguments);
    va_end(arguments);
    assert_true(length >= 0);
    want_length += (size_t)length;
    assert_true(want_length < sizeof want);
}

/* Begins a member or an element: behind another one comes a comma. */
static void key(const char *name) {
    const char last = want[want_length - 1];
    if (last != '{' && last != '[') add(",");
    if (name != NULL) add("\"%s\":", name);
}

static void real(const char *name, double value) {
    key(name);
    if (value - value != 0.0)
        add("null");
    else
        add("%.17e", value);
}

static void whole(const char *name, int64_t value) {
    key(name);
    add("%lld", (long long)value);
}

static void whole_or_null(const char *name, int is_null, int64_t value) {
    if (!is_null) {
        whole(name, value);
        return;
    }
    key(name);
    add("null");
}

static void text(const char *name, const char *value) {
    key(name);
    add("\"%s\"", value);
}

static void text_or_null(const char *name, const char *value) {
    if (value != NULL) {
        text(name, value);
        return;
    }
    key(name);
    add("null");
}

static void truth(const char *name, int value) {
    key(name);
    add(value ? "true" : "false");
}

static void open_with(const char *name, const char *bracket) {
    key(name);
    add("%s", bracket);
}

static void figure(const char *prefix, const char *name, const struct attributed *of) {
    char low[32], high[32];
    snprintf(low, sizeof low, "%slow", prefix);
    snprintf(high, sizeof high, "%shigh", prefix);
    real(name, of->value);
    real(low, of->low);
    real(high, of->high);
}

static int differs(void) {
    return j.verdict == VERDICT_OUTSIDE_FLOOR || j.verdict == VERDICT_SAME_TRAINING ||
           j.verdict == VERDICT_SAME_WEIGHTS;
}

static void add_first(void) {
    if (j.first_step < 0) {
        text_or_null("first", NULL);
        return;
    }
    const int seen = j.place.update != 0;
    open_with("first", "{");
    whole("step", j.first_step);
    text("phase", "update");
    text("tensor", "wte");
    whole_or_null("micro_batch", !seen || j.place.micro == 0, j.place.micro);
    whole_or_null("layer", !seen || j.place.layer == -1, j.place.layer);
    text_or_null("structure", seen && strlen(j.place.structure) > 0 ? "only A clips" : NULL);
    text("by", seen ? "watch" : "digests");
    text("undecided", "undecided");
    add("}");
}

static void add_names(const char *name) {
    open_with(name, "[");
    for (uint32_t i = 0; i < j.cause_count; i++)
        text(NULL, j.causes[i].name);
    add("]");
}

static void add_causes(void) {
    open_with("causes", "[");
    for (uint32_t i = 0; i < j.cause_count && (differs() || j.word == WORD_CANCEL); i++) {
        const struct judged_cause *const of = &j.causes[i];
        open_with(NULL, "{");
        text("cause", of->name);
        figure("", "share", &of->share);
        figure("left_", "left", &of->left);
        figure("alone_", "alone", &of->alone);
        real("moves", of->moves);
        if (j.sample.orders != 0 || j.projection.runs != 0) {
            open_with("places", "[");
            whole(NULL, of->place[0]);
            whole(NULL, of->place[1]);
            add("]");
        }
        whole_or_null("acted_from", of->acted == -1, of->acted);
        add("}");
    }
    add("]");
    open_with("interactions", "[");
    const int exact = j.verdict == VERDICT_OUTSIDE_FLOOR && j.attributed && j.sample.orders == 0 &&
                      j.projection.runs == 0;
    for (uint32_t set = 0; set < 1u << j.cause_count && exact; set++) {
        uint32_t members = 0;
        for (uint32_t i = 0; i < j.cause_count; i++)
            members += set / (1u << i) % 2;
        if (members < 2) continue;
        open_with(NULL, "{");
        open_with("causes", "[");
        for (uint32_t i = 0; i < j.cause_count; i++)
            if (set / (1u << i) % 2 == 1) text(NULL, j.causes[i].name);
        add("]");
        real("value", j.dividends[set]);
        add("}");
    }
    add("]");
}

static void add_floor(void) {
    static const char *const kinds[] = {"none", "exact", "permutation", "rank", "file"};
    static const char *const reruns[] = {"rerun_in_process", "rerun_second_process"};
    open_with("floor", "{");
    text("kind", kinds[j.floor]);
    for (int i = 0; i < 2; i++) {
        if (j.floor_equal[i] < 0)
            text_or_null(reruns[i], NULL);
        else
            truth(reruns[i], j.floor_equal[i]);
    }
    whole("runs_baseline", j.floor_runs[0]);
    whole("runs_test", j.floor_runs[1]);
    whole("pairs_of_file", (int64_t)j.floor_pairs);
    real("distance", j.floor_distance);
    real("largest_inside_an_arm", j.floor_largest);
    real("p", j.p);
    real("smallest_p", j.smallest_p);
    real("alpha", j.alpha);
    real("power_at_3_sigma", j.power);
    real("loss_p", j.loss_p);
    add("}");
}

static void add_by_cause(const char *name, const double *values) {
    open_with(name, "{");
    for (uint32_t i = 0; i < j.cause_count; i++)
        real(j.causes[i].name, values[i]);
    add("}");
}

static void add_measures(void) {
    const int told = differs() || j.word == WORD_CANCEL;
    open_with("measures", "[");
    for (uint32_t m = 0; m < j.measure_count && told; m++) {
        open_with(NULL, "{");
        text("measure", j.measures[m].name);
        real("whole", j.measures[m].whole);
        add_by_cause("values", j.measures[m].value);
        add_by_cause("alone", j.measures[m].alone);
        add_by_cause("without", j.measures[m].without);
        truth("ranks_otherwise", j.measures[m].ranks_otherwise);
        add("}");
    }
    add("]");
    open_with("marks", "[");
    for (uint32_t m = 0; m < j.mark_count && told; m++) {
        open_with(NULL, "{");
        whole("update", 3 + m);
        real("distance", j.marks[m].whole);
        real("response", j.marks[m].response);
        add_by_cause("shares", j.marks[m].share);
        add("}");
    }
    add("]");
}

static void add_mixture(const char *name, const struct judged_mixture *of) {
    open_with(name, "{");
    figure("", "size", &of->size);
    real("p", of->p);
    truth("beyond", of->is_beyond);
    add("}");
}

static void add_mixtures(void) {
    const int ran = j.mixtures.runs == 3;
    if (!ran && strlen(j.mixtures.unasked) == 0) {
        text_or_null("mixtures", NULL);
        return;
    }
    open_with("mixtures", "{");
    text("unasked", j.mixtures.unasked);
    whole("runs", ran ? 3 : 0);
    whole("count", 14);
    whole("beyond", j.mixtures.beyond);
    real("level", j.mixtures.level);
    real("arms_at_most", ran ? j.mixtures.bound : (double)NAN);
    open_with("causes", "[");
    for (uint32_t i = 0; i < j.cause_count && ran; i++) {
        open_with(NULL, "{");
        text("cause", j.causes[i].name);
        add_mixture("alone", &j.mixtures.alone[i]);
        add_mixture("without", &j.mixtures.without[i]);
        add("}");
    }
    add("]}");
}

static void add_slope(const char *name, const struct growth_slope *of) {
    open_with(name, "{");
    real("value", of->value);
    real("low", of->low);
    real("high", of->high);
    add("}");
}

static void add_curve(const char *name, const struct judged_growth *of) {
    static const char *const laws[] = {"undecided", "constant", "power", "exponential"};
    open_with(name, "{");
    real("end", of->end);
    real("end_share", of->end_share);
    if (of->known) {
        text("law", laws[of->fit.law]);
        add_slope("power", &of->fit.power);
        add_slope("rate", &of->fit.rate);
        open_with("updates", "[");
        whole(NULL, (int64_t)of->from);
        whole(NULL, (int64_t)of->to);
        add("]");
    }
    add("}");
}

static void add_lines(const char *name, enum judged_row_kind kind) {
    open_with(name, "[");
    for (uint32_t i = 0; i < j.row_count; i++) {
        size_t begun = 0;
        const char *const of = rows[i].text;
        for (size_t at = 0; at <= strlen(of) && rows[i].kind == kind; at++) {
            if (of[at] != '\n' && of[at] != '\0') continue;
            if (of[at] == '\n' || at > begun) { /* nothing behind the last newline is no line */
                key(NULL);
                add("\"%.*s\"", (int)(at - begun), of + begun);
            }
            begun = at + 1;
        }
    }
    add("]");
}

static void add_end(void) {
    open_with("growth", "{");
    add_curve("arms", &j.growth);
    if (j.has_perturbed)
        add_curve("twin", &j.perturbed);
    else
        text_or_null("twin", NULL);
    real("response", j.response);
    truth("saturated", j.saturated);
    add("}");
    add_lines("why", ROW_WHY);
    if (j.reported.update > 0) {
        open_with("reported", "{");
        whole("update", (int64_t)j.reported.update);
        text("column", "loss");
        open_with("values", "[");
        real(NULL, j.reported.values[0]);
        real(NULL, j.reported.values[1]);
        add("]}");
    } else {
        text_or_null("reported", NULL);
    }
    add_lines("inert", ROW_INERT);
    add_lines("dropped", ROW_DROPPED);
    add_lines("hazards", ROW_HAZARD);
    if (strlen(j.products[0]) + strlen(j.products[1]) > 0) {
        open_with("library", "[");
        text(NULL, j.products[0]);
        text(NULL, j.products[1]);
        add("]");
    }
    if (j.parting[0].ranks > 0 || j.parting[1].ranks > 0) {
        open_with("replicas", "[");
        for (int arm = 0; arm < 2; arm++) {
            if (j.parting[arm].update == 0) {
                text_or_null(NULL, NULL);
                continue;
            }
            open_with(NULL, "{");
            whole("update", (int64_t)j.parting[arm].update);
            whole("rank", j.parting[arm].rank);
            text("tensor", "wte");
            whole("ranks", j.parting[arm].ranks);
            whole("parted", j.parting[arm].parted);
            add("}");
        }
        add("]");
    }
    if (image.text_count == 1) add_lines("replay_check", ROW_REPLAY);
    if (j.eval.set_count != 0) whole("eval", j.eval.set_count);
    if (j.sample.orders == 0) return;
    open_with("sample", "{");
    whole("orders", j.sample.orders);
    whole("pairs", j.sample.orders / 2);
    whole("hybrids", 40);
    whole("shared", 3);
    real("alpha", 0.05);
    text("error", "sampling of orders only");
    open_with("no_spread", "[");
    for (uint32_t i = 0; i < j.cause_count; i++)
        if (j.causes[i].share.high - j.causes[i].share.low <= 1e-9) text(NULL, j.causes[i].name);
    add("]}");
}

static void write_want(void) {
    static const char *const verdicts[] = {"none",          "identical",  "inside-floor",
                                           "outside-floor", "untestable", "same-training",
                                           "same-weights"};
    static const char *const closures[] = {NULL, "open", "exact", "within-floor"};
    static const char *const expectations[] = {"none", "met", "missed"};
    const int has_game = j.attributed && j.total > 0.0 && differs();
    want_length = 0;
    add("{");
    text("name", "scene");
    text("verdict", verdicts[j.verdict]);
    text("reason", "for a reason");
    whole("updates", (int64_t)j.updates);
    add_first();
    text("rng", "draws");
    add_names("differs");
    text("word", attribution_words[j.word]);
    text_or_null("game", !has_game ? NULL : j.by_distance ? "distance" : "way");
    whole_or_null("ranked_at", j.word != WORD_ROUNDING || j.ranked == -1, 3 + j.ranked);
    add_causes();
    truth("coupled", j.word == WORD_NEARLY || j.word == WORD_OPPOSE || j.word == WORD_TOGETHER ||
                         j.word == WORD_EACH);
    open_with("diverged", "[");
    for (int arm = 0; arm < 2; arm++)
        whole_or_null(NULL, j.diverged[arm] == 0, (int64_t)j.diverged[arm]);
    add("]");
    open_with("unbounded", "[");
    for (int arm = 0; arm < 2; arm++)
        whole_or_null(NULL, j.unbounded[arm] == 0, (int64_t)j.unbounded[arm]);
    add("]");
    text("weights", j.masters ? "masters" : "parameters");
    real("distance", j.total);
    real("travel", j.travel);
    text_or_null("closure", closures[j.closure]);
    add_floor();
    text("expectation", expectations[j.expectation]);
    text("missed", "a line");
    text("seal", "sealed");
    whole("alike_updates", (int64_t)j.alike);
    whole("shared_updates", (int64_t)j.served);
    if (j.closure_noise.alpha == 0.0) {
        text_or_null("closure_noise", NULL);
    } else {
        open_with("closure_noise", "{");
        whole("runs", j.closure_noise.runs);
        real("mean", j.closure_noise.mean);
        real("farthest", j.closure_noise.farthest);
        real("alpha", j.closure_noise.alpha);
        add("}");
    }
    add_measures();
    add_mixtures();
    add_end();
    add("}");
}

static void corroborate_json(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        json_error_t error;
        draw_judgement(number);
        write_want();
        json_t *const read = json_loads(want, 0, &error), *const told = judgement_json(&j);
        if (read == NULL) fail_msg("case %u: %s: %s", number, error.text, want);
        char *const one = json_dumps(told, JSON_COMPACT | JSON_PRESERVE_ORDER),
                    *const other = json_dumps(read, JSON_COMPACT | JSON_PRESERVE_ORDER);
        assert_non_null(one);
        if (strcmp(one, other) != 0) fail_msg("case %u:\n%s\nexpected\n%s", number, one, other);
        free(one);
        free(other);
        json_decref(read);
        json_decref(told);
    }
}

/* The same, with a line for each value and a last one that ends. */
static void validate_print(void **state) {
    (void)state;
    char printed[32768];
    FILE *const file = tmpfile();
    assert_non_null(file);
    draw_judgement(1);
    assert_int_equal(judgement_print_json(&j, file), STATUS_OK);
    rewind(file);
    const size_t length = fread(printed, 1, sizeof printed - 1, file);
    printed[length] = '\0';
    fclose(file);
    json_t *const told = judgement_json(&j);
    char *const lines = json_dumps(told, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    assert_true(strncmp(lines, "{\n  \"name\": \"scene\",\n", 21) == 0);
    assert_int_equal(length, strlen(lines) + 1);
    assert_int_equal(printed[length - 1], '\n');
    assert_memory_equal(printed, lines, length - 1);
    free(lines);
    json_decref(told);
    j.name = "\xff"; /* no text that JSON can hold */
    assert_int_equal(judgement_print_json(&j, stderr), STATUS_MEMORY);
    assert_string_equal(status_text(), "verdict as JSON: no memory, or a text that is not UTF-8");
    FILE *const full = fopen("/dev/full", "w");
    if (full == NULL) return;
    setvbuf(full, NULL, _IONBF, 0);
    j.name = "scene";
    assert_int_equal(judgement_print_json(&j, full), STATUS_OK); /* the stream's owner tells that */
    assert_true(ferror(full));
    fclose(full);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_json),
        cmocka_unit_test(validate_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
