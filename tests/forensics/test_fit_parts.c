/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The parts of a search one by one, over random input, where a search passes by most of what they
 * can say: what a log says beside its LRs, what a window of a column shows and which numbers are
 * tried for it, what an explanation costs, how many skipped updates the rows of a resumed log
 * admit, and decimals.
 *
 * What was skipped is admitted, a plain contract of known numbers costs less than any other of the
 * same, and a shortest decimal lies in its interval. tests/golden/forensics/fit_parts.txt holds one
 * number (FNV-1a) for each part and kind of input. With TWINSTEP_SHOW=PART all that a part says is
 * printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_lags.h"
#include "forensics/fit_samples.h"
#include "forensics/fit_search.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"
#include "tests/forensics/helper_lr.h"

enum { ROWS = 40, MODELS = 1024, KINDS = 8 };

/* What is said of the cases of one part, by kind. */
struct said {
    const char *part;
    uint64_t hash[KINDS];
    size_t count[KINDS];
    FILE *text;
    char *bytes;
    size_t size;
};

static void begin(struct said *said, const char *part) {
    *said = (struct said){.part = part};
    for (size_t k = 0; k < KINDS; k++)
        said->hash[k] = DRAWS_HASH;
}

static FILE *begin_case(struct said *said) {
    said->text = open_memstream(&said->bytes, &said->size);
    assert_non_null(said->text);
    return said->text;
}

static void end_case(struct said *said, uint32_t kind) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    assert_int_equal(fclose(said->text), 0);
    said->hash[kind] = draws_hash(said->hash[kind], said->bytes, said->size);
    said->count[kind]++;
    if (shown != NULL && strcmp(shown, said->part) == 0) print_message("%u: %s", kind, said->bytes);
    free(said->bytes);
}

static void end(const struct said *said) {
    FILE *const out = golden_begin("fit_parts.txt", "%s", said->part);
    for (size_t k = 0; k < KINDS && said->count[k] > 0; k++)
        fprintf(out, "kind %zu, %zu cases: %016" PRIx64 "\n", k, said->count[k], said->hash[k]);
    golden_end();
}

static void put_number(FILE *out, double x) {
    if (isnan(x))
        fputs(" -", out);
    else
        fprintf(out, " %.17g", x);
}

/* ---- what a log says ---- */

static struct log *draw_log(struct draws *draws, uint32_t kind, struct arena *arena) {
    static const enum log_name names[] = {LOG_GRAD_NORM, LOG_LOSS_SCALE,  LOG_SKIPPED,
                                          LOG_EPOCH,     LOG_EVAL_LOSS,   LOG_LOSS,
                                          LOG_SAMPLES,   LOG_TOTAL_STEPS, LOG_GLOBAL_BATCH};
    static const char *const formats[] = {"megatron", "hf-console", "deepspeed", "test",
                                          "lightning"};
    const size_t rows = 3 + draws_pick(draws, 20), at = 1 + draws_pick(draws, (uint32_t)rows);
    const uint64_t every = kind == 3 ? 5 : 1;
    struct log *const log = helper_log(arena, rows);
    log->format = formats[draws_pick(draws, COUNT_OF(formats))];
    log->bf16 = draws_pick(draws, 8) == 0;
    log->max_steps = draws_pick(draws, 3) == 0 ? every * rows : 0;
    log->step_guessed = kind == 4 && draws_pick(draws, 2) == 0;
    for (size_t row = 0; row < rows; row++) {
        log->step[row] = (int64_t)(every * (row + 1));
        log->part[row] = kind == 1 && row >= at;
        if (kind == 1 && row >= at) log->step[row] -= (int64_t)(at > 3 ? 3 : 0);
    }
    const uint32_t cumulative = draws_pick(draws, 2), lines = draws_pick(draws, 4);
    const uint32_t batches = draws_pick(draws, 3), epoch = 2 + draws_pick(draws, 6);
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        const uint32_t here = draws_pick(draws, 2), hole = draws_pick(draws, 6);
        double total = 0.0, samples = 0.0;
        for (size_t row = 0; here == 0 && row < rows; row++) {
            const double k = (double)log->step[row], batch = batches == 0 && row >= at ? 16.0 : 8.0;
            const uint32_t drawn = draws_pick(draws, 8);
            double value = 1.0 + 0.125 * (double)(drawn % 3);
            samples += batch * (double)every;
            if (hole == 0 && drawn == 7) continue;
            if (names[n] == LOG_GRAD_NORM && drawn == 6 && kind != 2) value = (double)INFINITY;
            if (names[n] == LOG_LOSS_SCALE)
                value = cumulative != 0 ? 1.0 : 1024.0 / (double)(1 + row / 5);
            if (names[n] == LOG_SKIPPED)
                value = total += drawn == 0 ? 1.0 + (double)(row % 2) : 0.0;
            if (names[n] == LOG_SKIPPED && cumulative == 0) value = drawn == 0 ? 1.0 : 0.0;
            if (names[n] == LOG_EPOCH)
                value = batches == 1 ? floor(k / (double)epoch) : k / (double)epoch;
            if (names[n] == LOG_SAMPLES) value = samples;
            if (names[n] == LOG_TOTAL_STEPS) value = (double)(every * (rows + 5));
            if (names[n] == LOG_GLOBAL_BATCH) value = batch;
            helper_put(arena, log, names[n], row, value, PRINT_EXACT);
        }
    }
    for (size_t c = 0; c < log->column_count; c++) {
        struct log_column *const column = &log->columns[c];
        column->cumulative = column->name == LOG_SAMPLES ||
                             (column->name == LOG_SKIPPED && cumulative != 0 && lines > 0);
        if (column->name == LOG_SKIPPED && lines == 0) column->source = LOG_SKIP_LINES;
    }
    return log;
}

static void put_rows(FILE *out, const char *name, const uint32_t *values, size_t rows) {
    fprintf(out, "%s", name);
    for (size_t row = 0; values != NULL && row < rows; row++)
        fprintf(out, " %u", values[row]);
    fputc('\n', out);
}

static void put_samples(FILE *out, const struct fit_samples *samples) {
    if (samples == NULL) return;
    fprintf(out, "samples %zu, assumed %d, choices %zu:", samples->count, samples->assumed,
            samples->choices);
    put_number(out, samples->batch);
    put_number(out, samples->total);
    put_number(out, samples->step);
    for (size_t i = 0; i < samples->count; i++) {
        fprintf(out, " %llu/%u", (unsigned long long)samples->update[i], samples->part[i]);
        put_number(out, samples->counter[i]);
    }
    for (size_t i = 0; i < samples->choices; i++)
        fprintf(out, " choice %zu %u", samples->choice_row[i], samples->choice_most[i]);
    for (uint64_t k = 1; k < 8 && samples->count > 0; k++)
        fprintf(out, " %llu", (unsigned long long)fit_samples_before(samples, 0, k));
    fputc('\n', out);
}

static void validate_what_logs_say(void **state) {
    (void)state;
    struct said said;
    begin(&said, "logs");
    for (uint32_t number = 0; number < 15000; number++) {
        struct draws draws = {.key = UINT64_C(0x106), .number = number};
        const uint32_t kind = number % 5;
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        size_t skipped;
        struct log *const log = draw_log(&draws, kind, &arena);
        FILE *const out = begin_case(&said);
        fit_known_init(&known);
        if (draws_pick(&draws, 2) == 0) known.request.contract = contract_find("megatron");
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        const struct fit_evidence *const skips = &known.skips;
        fprintf(out, "shown %llu quiet %d total %llu growing %d guessed %d evals %d metric %zu;",
                (unsigned long long)skips->shown, skips->quiet, (unsigned long long)known.run_steps,
                known.growing, known.steps_guessed, known.evals_within_epoch,
                known.request.metric_count);
        put_number(out, known.epoch_updates);
        put_number(out, known.epoch_least);
        put_rows(out, " least", skips->least, log->rows);
        put_rows(out, "most", skips->most, log->rows);
        put_rows(out, "fell", skips->fell, log->rows);
        put_rows(out, "room", skips->room, log->rows);
        put_rows(out, "part", skips->part, log->rows);
        for (size_t i = 0; i < known.request.metric_count; i++) {
            fprintf(out, " %llu", (unsigned long long)known.request.metric_update[i]);
            put_number(out, known.request.metric_value[i]);
        }
        for (size_t i = 0; known.possible != NULL && known.possible[i] != NULL; i++)
            fprintf(out, " %s", known.possible[i]);
        put_samples(out, known.samples);
        put_samples(out, known.steady);
        assert_int_equal(fit_skipped_from_log(&known, log, &arena, &skipped), STATUS_OK);
        for (size_t i = 0; i < known.request.skipped_count; i++)
            fprintf(out, " skipped %llu", (unsigned long long)known.request.skipped[i]);
        for (size_t row = 0; skips->least != NULL && row < log->rows; row++)
            if (skips->least[row] > skips->most[row])
                fail_msg("log %u: at least %u and at most %u", number, skips->least[row],
                         skips->most[row]);
        end_case(&said, kind);
        arena_close(&arena);
    }
    end(&said);
}

/* ---- models, and columns that they print ---- */

static struct fit_model models[MODELS];
static size_t model_count;

static void take_models(struct arena *arena, struct fit_known *known) {
    static const struct fit_decays decays = {.text = {"12"}, .count = 1};
    struct fit_model *list;
    size_t count;
    fit_known_init(known);
    assert_int_equal(fit_models(&known->request, known, &decays, arena, &list, &count), STATUS_OK);
    model_count = 0;
    for (size_t m = 0; m < count && model_count < MODELS; m++)
        if (!list[m].plan.schedule->feedback) models[model_count++] = list[m];
}

static struct fit_numbers draw_numbers(struct draws *draws, const struct fit_model *model) {
    static const double peaks[] = {2e-5, 5e-7, 2.137e-5, 3e-4, 1.5e-4};
    static const double warmups[] = {0.0, 3.0, 4.0, 5.0, 7.0, 2.5, 10.0};
    static const double floors[] = {0.0, 0.1, 0.05, 0.25, 1.0, 0.1237};
    struct fit_numbers numbers = {.lr = peaks[draws_pick(draws, COUNT_OF(peaks))], .stride = 1.0};
    const uint32_t absolute = draws_pick(draws, 2), stride = draws_pick(draws, 8);
    const double warmup = warmups[draws_pick(draws, COUNT_OF(warmups))];
    if (model->needs_warmup) numbers.warmup = warmup;
    numbers.total = 24.0 + (double)draws_pick(draws, 24);
    if (model->floor != NULL) numbers.floor = floors[draws_pick(draws, COUNT_OF(floors))];
    if (model->floor_kind == FIT_FLOOR_ABSOLUTE) numbers.absolute = (int)absolute;
    if (numbers.absolute) numbers.floor *= numbers.lr;
    if (stride == 0) numbers.stride = 2.0;
    if (stride == 1) numbers.stride = 0.5;
    if (model->contract->unit == CONTRACT_UNIT_EPOCH) numbers.epoch = 4;
    return numbers;
}

static size_t print_column(struct draws *draws, struct fit_model *model,
                           struct series_point *points) {
    static const int prints[] = {LR_EXACT, LR_EXACT, LR_E2, LR_E5, LR_F32};
    const int print = prints[draws_pick(draws, COUNT_OF(prints))];
    const uint64_t later = draws_pick(draws, 8), wider = draws_pick(draws, 3);
    const uint64_t first = draws_pick(draws, 2) == 0 ? 1 : 1 + later;
    const uint64_t every = draws_pick(draws, 2) == 0 ? 1 : 1 + wider;
    const size_t count = 3 + draws_pick(draws, ROWS - 3);
    for (size_t i = 0; i < count; i++) {
        points[i] = (struct series_point){.update = first + every * i, .row = i};
        lr_print_point(&points[i], fit_model_logged(model, points[i].update, 0), print);
    }
    return count;
}

static void put_window(FILE *out, const struct fit_window *window) {
    fprintf(out, "probes");
    for (size_t i = 0; i < window->probe_count; i++)
        fprintf(out, " %zu", window->probes[i]);
    fprintf(out, "; top %zu %zu, descent %zu %zu, epoch %llu, apart %d, constant %d, ends",
            window->top, window->top_last, window->descent[0], window->descent[1],
            (unsigned long long)window->epoch, window->first_apart, window->constant);
    for (size_t i = 0; i < window->known_totals; i++)
        fprintf(out, " %llu", (unsigned long long)window->known_total[i]);
    put_number(out, window->scale);
    put_number(out, window->tail);
    put_number(out, window->least);
    fputc('\n', out);
}

/* What a column shows before any number is tried, and which numbers are. */
static void validate_windows(void **state) {
    (void)state;
    static struct fit_warmups warmups;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct said said;
    take_models(&arena, &known);
    begin(&said, "windows");
    for (uint32_t number = 0; number < 10000; number++) {
        struct draws draws = {.key = UINT64_C(0x71d0), .number = number};
        struct fit_model *const model = &models[draws_pick(&draws, (uint32_t)model_count)];
        struct fit_floor_trial floors[FIT_FLOORS];
        struct series_point points[ROWS];
        struct fit_decays decays;
        struct fit_vertex vertex = {.update = 0.0};
        struct fit_window window;
        double max_error = 0.0, rms_error = 0.0;
        size_t budget = 100000, suspect = 0;
        uint64_t walk = 20000;
        const struct fit_numbers numbers = draw_numbers(&draws, model);
        memset(&window, 0, sizeof window);
        fit_model_set(model, &numbers);
        const size_t count = print_column(&draws, model, points);
        window.known_lr = draws_pick(&draws, 3) == 0 ? numbers.lr : real_nan_f64();
        window.known_warmup = draws_pick(&draws, 4) == 0 ? numbers.warmup : real_nan_f64();
        window.known_ratio = draws_pick(&draws, 5) == 0 ? 0.1 : real_nan_f64();
        window.known_floor = window.only_floor = real_nan_f64();
        window.budget = &budget;
        window.walk = &walk;
        window.suspect = &suspect;
        window.deep = (int)draws_pick(&draws, 2);
        window.typed_floors = draws_pick(&draws, 4) == 0;
        window.whole = (int)draws_pick(&draws, 2);
        window.known_total[0] = (uint64_t)numbers.total;
        window.known_totals = window.said_totals = draws_pick(&draws, 2);
        FILE *const out = begin_case(&said);
        fit_window_open(&window, points, count);
        put_window(out, &window);
        if (window.scale > 0.0 && !window.constant) {
            const size_t listed = fit_list_floors(model, &window, floors);
            for (size_t i = 0; i < listed; i++) {
                put_number(out, floors[i].value);
                fprintf(out, "/%d/%d", floors[i].absolute, floors[i].at_end);
            }
            memset(&warmups, 0, sizeof warmups);
            fit_list_warmups(model, &window, numbers.stride, &warmups);
            fprintf(out, "; %zu warm-ups, likely %zu", warmups.count, warmups.likely);
            for (size_t i = 0; i < warmups.count; i++)
                put_number(out, warmups.at[i]);
            fprintf(out, "; vertex %d", fit_find_vertex(&window, &vertex));
            put_number(out, vertex.update);
            put_number(out, vertex.floor);
        }
        fit_model_set(model, &numbers);
        int finite = 1; /* llm.c's ends where its schedule does */
        for (size_t i = 0; i < count; i++)
            finite &= isfinite(points[i].value) != 0;
        if (finite && !fit_verify(model, &window, &max_error, &rms_error))
            fail_msg("column %u of %s %s is not that of its own numbers", number,
                     model->contract->name, model->schedule_name);
        put_number(out, max_error);
        put_number(out, rms_error);
        fprintf(out, "; alike %zu", fit_alike(points, count, window.scale));
        const struct series series = {points, count};
        memset(&decays, 0, sizeof decays);
        known.request.contract = draws_pick(&draws, 2) == 0 ? model->contract : NULL;
        if (draws_pick(&draws, 3) == 0) known.request.contract = contract_find("hf-x-processes");
        known.request.processes = 1 + draws_pick(&draws, 3);
        known.request.steps = draws_pick(&draws, 3) == 0 ? (uint64_t)numbers.total : 0;
        known.run_steps = draws_pick(&draws, 2) == 0 ? (uint64_t)numbers.total : 0;
        fit_find_decays(&series, &known, window.scale, points[count - 1].update, &decays);
        for (size_t i = 0; i < decays.count; i++)
            fprintf(out, " %s", decays.text[i]);
        fprintf(out, "; stands %d\n", fit_end_stands(&series));
        end_case(&said, number % 4);
    }
    arena_close(&arena);
    end(&said);
}

/* ---- costs ---- */

static void validate_costs(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct said said;
    take_models(&arena, &known);
    begin(&said, "costs");
    for (uint32_t number = 0; number < 40000; number++) {
        static const int32_t events[] = {FIT_SKIP, FIT_JUMP, FIT_RESET, FIT_TOTAL, FIT_RESCALED};
        static const char *const possible[] = {"hf", NULL};
        struct draws draws = {.key = UINT64_C(0xc057), .number = number};
        const size_t m = draws_pick(&draws, (uint32_t)model_count);
        struct fit_segment segments[3] = {{.scale = 1.0}};
        struct fit_part parts[2] = {{.begins = FIT_PART_GOES_ON}};
        struct fit_skip skips[1] = {{.first = 3, .last = 4, .count = 1 + draws_pick(&draws, 3)}};
        struct fit_found found = {.solution = {.model = m}};
        const struct series no_rows = {.count = 0}; /* no cycle shows a fall, nor hides one */
        struct fit_search search = {
            .known = &known, .series = &no_rows, .models = models, .model_count = model_count};
        fit_known_init(&known);
        found.solution.numbers = draw_numbers(&draws, &models[m]);
        const struct fit_numbers *const numbers = &found.solution.numbers;
        search.last = (uint64_t)numbers->total - 2 + draws_pick(&draws, 5);
        if (draws_pick(&draws, 3) == 0) known.run_steps = 24 + draws_pick(&draws, 24);
        if (draws_pick(&draws, 3) == 0)
            known.request.steps = (uint64_t)numbers->total + draws_pick(&draws, 2);
        if (draws_pick(&draws, 3) == 0) known.request.lr = 2e-5;
        if (draws_pick(&draws, 3) == 0) known.request.warmup = 3.0 + (double)draws_pick(&draws, 3);
        if (draws_pick(&draws, 4) == 0) known.request.warmup_ratio = 0.125;
        if (draws_pick(&draws, 4) == 0) known.request.min_lr_ratio = 0.1;
        if (draws_pick(&draws, 4) == 0) known.request.processes = 2;
        if (draws_pick(&draws, 4) == 0) known.request.accumulate = 2;
        if (draws_pick(&draws, 4) == 0) known.request.global_batch = 2;
        if (draws_pick(&draws, 3) == 0) known.possible = possible;
        if (draws_pick(&draws, 3) == 0) known.skips.shown = 1;
        found.first_differs = draws_pick(&draws, 6) == 0;
        if (draws_pick(&draws, 3) == 0) {
            found.segments = segments;
            found.segment_count = 1 + draws_pick(&draws, 3);
            for (size_t s = draws_pick(&draws, 2); s < found.segment_count; s++) {
                segments[s].event = events[draws_pick(&draws, COUNT_OF(events))];
                segments[s].shift = (int64_t)draws_pick(&draws, 3) - 1;
                segments[s].steps = draws_pick(&draws, 2) == 0 ? known.run_steps : 0;
            }
        }
        if (draws_pick(&draws, 4) == 0) {
            found.skips = skips;
            found.skip_count = 1;
        }
        if (draws_pick(&draws, 6) == 0) {
            parts[1].begins = (int32_t)draws_pick(&draws, 3);
            parts[1].lag = draws_pick(&draws, 4);
            found.parts = parts;
            found.part_count = 2;
        }
        FILE *const out = begin_case(&said);
        const double cost = fit_cost(&search, &found);
        put_number(out, cost);
        put_number(out, fit_cost_beside_skips(&search, &found));
        fprintf(out, " %d %d\n", fit_agrees(&search, &found), fit_is_usual(&models[m]));
        end_case(&said, number % 4);
        if (fit_agrees(&search, &found) && (found.segment_count > 1 || found.first_differs))
            fail_msg("case %u departs and agrees", number);
        found.first_differs = 0;
        found.segments = NULL;
        found.segment_count = found.skip_count = found.part_count = 0;
        if (fit_cost(&search, &found) > cost + 1e-9 && segments[2].steps == 0 &&
            segments[1].steps == 0 && segments[0].steps == 0)
            fail_msg("case %u is dearer without what departs", number);
    }
    arena_close(&arena);
    end(&said);
}

/* ---- lags ---- */

static const struct {
    const char *contract, *schedule;
} holding[] = {{"hf", "linear"},
               {"hf", "cosine"},
               {"deepspeed-warmup", NULL},
               {"megatron", "linear"},
               {"accelerate", "linear"}};

static void validate_lags(void **state) {
    (void)state;
    struct arena models_arena = ARENA_EMPTY;
    struct fit_known known;
    struct said said;
    size_t found_out = 0;
    take_models(&models_arena, &known);
    begin(&said, "lags");
    for (uint32_t number = 0; number < 20000; number++) {
        struct draws draws = {.key = UINT64_C(0x1a6), .number = number};
        const uint32_t which = draws_pick(&draws, COUNT_OF(holding)), kind = number % 6;
        struct arena arena = ARENA_EMPTY;
        struct series_point points[ROWS];
        struct fit_window window;
        struct fit_search search;
        struct fit_lags lags;
        struct fit_found found = {.cost = 0.0};
        uint32_t least[ROWS] = {0}, most[ROWS], fell[ROWS] = {0}, room[ROWS], part[ROWS] = {0};
        uint64_t walk = 100000, skipped[8], update = 0;
        size_t budget = 100000, suspect = 0, m = 0, skips = 0;
        while (m < model_count &&
               (strcmp(models[m].contract->name, holding[which].contract) != 0 ||
                models[m].parameters[0] != '\0' ||
                (holding[which].schedule != NULL &&
                 strcmp(sched_bare_name(models[m].plan.schedule), holding[which].schedule) != 0)))
            m++;
        assert_true(m < model_count);
        struct fit_model *const model = &models[m];
        const struct fit_numbers numbers = {
            .lr = 2e-4, .warmup = model->needs_warmup ? 6.0 : 0.0, .total = 48.0, .stride = 1.0};
        fit_model_set(model, &numbers);
        const size_t count = 4 + draws_pick(&draws, ROWS - 4), at = count / 2;
        const uint64_t every = kind == 1 ? 3 : 1, back = kind >= 4 ? draws_pick(&draws, 4) : 0;
        const uint32_t many = draws_pick(&draws, 4);
        for (uint32_t s = 0; s < many; s++) {
            const uint64_t next = (skips > 0 ? skipped[skips - 1] : 0) + 1 + draws_pick(&draws, 12);
            skipped[skips++] = next;
        }
        model->plan.skipped = skipped;
        model->plan.skipped_count = skips;
        const uint32_t evidence = draws_pick(&draws, 5);
        for (size_t i = 0; i < count; i++) {
            const uint64_t before = update;
            update += every;
            if (i == at && kind >= 4) update -= every * back < update ? every * back : 0;
            part[i] = i >= at && kind >= 4;
            most[i] = room[i] = UINT32_MAX;
            for (size_t s = 0; s < skips; s++)
                least[i] += skipped[s] > before && skipped[s] <= update;
            if (evidence == 1) most[i] = least[i];
            if (evidence == 3) room[i] = (uint32_t)every;
            fell[i] = least[i] > 0 && draws_pick(&draws, 2) == 0;
            points[i] = (struct series_point){.update = update, .row = i, .part = part[i]};
            const uint64_t k = kind == 5 && i >= at && update > 2 ? update - 2 : update;
            lr_print_point(&points[i], contract_logged(&model->plan, k),
                           kind == 2 ? LR_E2 : LR_EXACT);
        }
        model->plan.skipped = NULL;
        model->plan.skipped_count = 0;
        const struct series series = {points, count};
        fit_known_init(&known);
        if (evidence == 1 || evidence == 2) {
            known.skips.least = least;
            known.skips.most = most;
        }
        if (evidence == 3) known.skips.room = room;
        if (evidence == 4) known.skips.fell = fell;
        if (evidence > 0) known.skips.part = part;
        memset(&window, 0, sizeof window);
        window.budget = &budget;
        window.walk = &walk;
        window.suspect = &suspect;
        fit_window_open(&window, points, count);
        memset(&search, 0, sizeof search);
        search.series = &series;
        search.known = &known;
        search.arena = &arena;
        search.models = models;
        search.model_count = model_count;
        search.budget = 100000;
        search.walk = 100000;
        assert_int_equal(fit_lags_open(&search, &window, &arena, &lags), STATUS_OK);
        lags.model = model;
        lags.most = 1 + draws_pick(&draws, 8);
        lags.blur = draws_pick(&draws, 6) == 0 ? 0.01 : 0.0;
        FILE *const out = begin_case(&said);
        fprintf(out, "%s, %zu parts, first %d;", holding[which].contract, lags.part_count,
                fit_lags_admit_first(&lags));
        const int follows = fit_lags_follow(&lags);
        fprintf(out, " follows %d", follows);
        if (follows) {
            fprintf(out, ", none %d", fit_lags_none(&lags));
            for (size_t i = 0; i < count; i++)
                fprintf(out, " %u-%u", lags.seen[i].low, lags.seen[i].high);
            assert_int_equal(fit_lags_list(&lags, &found), STATUS_OK);
            for (size_t s = 0; s < found.skip_count; s++)
                fprintf(out, " [%llu %llu %llu %zu]", (unsigned long long)found.skips[s].first,
                        (unsigned long long)found.skips[s].last,
                        (unsigned long long)found.skips[s].count, found.skips[s].part);
            for (size_t p = 0; p < found.part_count; p++) {
                fprintf(out, " part %zu %d %u:", found.parts[p].point, found.parts[p].begins,
                        found.parts[p].lag);
                for (size_t k = 0; k < found.parts[p].skipped_count; k++)
                    fprintf(out, " %llu", (unsigned long long)found.parts[p].skipped[k]);
            }
            for (size_t k = 0; k < found.skipped_count; k++)
                fprintf(out, " %llu", (unsigned long long)found.skipped[k]);
            fprintf(out, " verified %d", fit_lags_verify(model, &window, &found));
            put_number(out, found.solution.max_error);
            put_number(out, found.solution.rms_error);
        }
        fprintf(out, " budget %zu\n", search.budget);
        /* All that was skipped is admitted where the log shows nothing else and no part begins. */
        if (kind < 2 && evidence < 2 && lags.most >= skips && !follows && lags.blur == 0.0)
            fail_msg("case %u: %zu skipped updates are not found", number, skips);
        found_out += follows != 0;
        end_case(&said, kind);
        arena_close(&arena);
    }
    assert_true(found_out > 5000);
    arena_close(&models_arena);
    end(&said);
}

/* ---- decimals ---- */

static void validate_decimals(void **state) {
    (void)state;
    struct said said;
    begin(&said, "decimals");
    for (uint32_t number = 0; number < 20000; number++) {
        struct draws draws = {.key = UINT64_C(0xdec), .number = number};
        const uint32_t kind = number % 4, digits = 1 + draws_pick(&draws, 4);
        const double whole = (double)draws_pick(&draws, 100000),
                     scale = (double)draws_pick(&draws, 12);
        const double x = whole * pow(10.0, kind == 0 ? 0.0 : -scale);
        const double width = x * pow(2.0, -(double)(1 + draws_pick(&draws, 50)));
        const double low = x - width * (double)draws_pick(&draws, 3), high = x + width;
        const double shortest = fit_shortest(low, high);
        FILE *const out = begin_case(&said);
        put_number(out, shortest);
        put_number(out, fit_shortest_of(low, high, (int)digits));
        put_number(out, fit_floor(x));
        put_number(out, fit_ceil(x));
        put_number(out, fit_round(x));
        fprintf(out, " %d %d %d\n", fit_digits(x), fit_digits(low), fit_near(x, x + width));
        end_case(&said, kind);
        if (low < high && !(shortest >= low && shortest <= high))
            fail_msg("%.17g is not between %.17g and %.17g", shortest, low, high);
        if (fit_floor(x) != floor(x) || fit_ceil(x) != ceil(x))
            fail_msg("%.17g lies between %.17g and %.17g", x, fit_floor(x), fit_ceil(x));
    }
    end(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_logs_say), cmocka_unit_test(validate_windows),
        cmocka_unit_test(validate_costs),         cmocka_unit_test(validate_lags),
        cmocka_unit_test(validate_decimals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
