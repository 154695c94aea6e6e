/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * What is concluded from explanations of a column: their words, the names of their bugs, whether
 * one is an answer or raises a doubt about another, and what tells two of them apart. The sets are
 * random: contracts and schedules of some frameworks with breaks, skipped updates, strides, stairs,
 * floors and warm-ups that no row shows, in logs with and without a resume, a total and a format.
 * None is searched for, so a rule is asked at each of its edges and not where a search goes.
 *
 * A set of one plain explanation raises no doubt, and no explanation one about itself.
 * tests/golden/forensics/fit_doubts.txt holds how many sets have which answer, and one number made
 * of all answers and words (FNV-1a). With TWINSTEP_SHOW=SET its words are printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_search.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_answers.h"

enum { SETS = 6000, ROWS = 24, FITS = 4, SEGMENTS = 4 };

static const struct {
    const char *contract, *schedule, *parameters;
} kinds[] = {
    {"hf", "linear", ""},
    {"hf", "cosine", ""},
    {"hf", "polynomial", "power=2"},
    {"hf", "constant_with_warmup", ""},
    {"hf", "cosine_with_min_lr", ""},
    {"hf", "warmup_stable_decay", "decay=10"},
    {"hf", "warmup_stable_decay", "decay=10, decay_type=linear"},
    {"hf", "torch.one_cycle", ""},
    {"hf-4.50", "linear", ""},
    {"hf-4.51", "linear", ""},
    {"hf-x-processes", "linear", ""},
    {"olmo-core", "linear", ""},
    {"megatron", "cosine", ""},
    {"megatron", "linear", ""},
    {"deepspeed-warmup", NULL, ""},
    {"lightning-epoch", "linear", ""},
};
static const char *const native[] = {"hf", "hf-4.50", "hf-4.51", NULL};

struct set {
    struct arena arena;
    struct draws draws;
    struct series_point points[ROWS];
    struct series series;
    struct fit_known known;
    struct fit fits[FITS];
    struct fit_segment segments[FITS][SEGMENTS];
    struct fit_skip skips[FITS][2];
    struct fit_set of;
    uint64_t skipped[1];
    size_t count;
    uint32_t kind; /* of the first fit */
};

static uint32_t pick(struct set *set, uint32_t most) {
    return draws_pick(&set->draws, most);
}

static void draw_segments(struct set *set, size_t f) {
    static const double scales[] = {1.0, 0.5, 1.5};
    struct fit *const fit = &set->fits[f];
    size_t point = 0;
    fit->segments = set->segments[f];
    fit->segment_count = 1;
    set->segments[f][0] = (struct fit_segment){.update = set->points[0].update, .scale = 1.0};
    if (pick(set, 3) > 0) return;
    for (uint32_t more = 1 + pick(set, SEGMENTS - 1); more > 0; more--) {
        const struct fit_segment *const before = &set->segments[f][fit->segment_count - 1];
        struct fit_segment *const segment = &set->segments[f][fit->segment_count];
        point += 1 + pick(set, 8);
        if (point >= ROWS) return;
        *segment = *before;
        segment->point = point;
        segment->update = set->points[point].update;
        segment->event = (int32_t)(FIT_SKIP + (int32_t)pick(set, FIT_BACK));
        segment->moved = (segment->event == FIT_JUMP ? 1 : -1) * (int64_t)(1 + pick(set, 6));
        if (segment->event == FIT_RESET || segment->event == FIT_RESTARTED)
            segment->moved = -(int64_t)segment->update - segment->shift + 1;
        if (segment->event == FIT_DOUBLED) segment->moved = (int64_t)segment->update - 1;
        if (segment->event == FIT_RESCALED || segment->event == FIT_TOTAL) segment->moved = 0;
        segment->shift += segment->moved;
        if (segment->event == FIT_RESCALED || segment->event == FIT_RESTARTED)
            segment->scale = scales[pick(set, COUNT_OF(scales))];
        if (segment->event == FIT_TOTAL) {
            segment->steps = fit->steps + 10 * (1 + pick(set, 3));
            segment->warmup = fit->warmup;
            segment->call_total = (double)segment->steps * fit->plan.increment;
            segment->call_warmup = fit->warmup * fit->plan.increment;
        }
        fit->segment_count++;
    }
}

static void draw_fit(struct set *set, size_t f) {
    static const double peaks[] = {2e-5, 2e-5, 3e-5, 2.137e-5, 1e-5};
    static const double floors[] = {0.1, 0.5, 0.05, 0.1234567, 0.25};
    static const double strides[] = {1.0, 1.0, 1.0, 2.0, 8.0, 0.5};
    struct fit *const fit = &set->fits[f];
    struct contract_request request;
    const uint32_t kind = f > 0 && pick(set, 2) == 0 ? set->kind : pick(set, COUNT_OF(kinds));
    if (f == 0) set->kind = kind;
    contract_request_init(&request);
    request.contract = contract_find(kinds[kind].contract);
    assert_non_null(request.contract);
    request.schedule = kinds[kind].schedule;
    request.lr = peaks[pick(set, COUNT_OF(peaks))];
    request.warmup = (double)pick(set, 8);
    request.steps = 20 + pick(set, 12);
    request.processes = 8;
    request.global_batch = 8;
    request.updates_per_epoch = 4;
    if (strncmp(kinds[kind].parameters, "decay=10", 8) == 0) {
        request.values[0].key = "decay";
        request.values[0].text = "10";
        request.value_count = 1;
    }
    memset(fit, 0, sizeof *fit);
    assert_int_equal(contract_resolve(&request, &set->arena, &fit->plan), STATUS_OK);
    fit->contract = request.contract;
    fit->schedule = fit->plan.schedule;
    fit->schedule_name = kinds[kind].schedule != NULL ? kinds[kind].schedule : "default";
    fit->parameters = kinds[kind].parameters;
    if (request.value_count > 0 && pick(set, 3) == 0) fit->parameters = "decay=12";
    fit->lr = request.lr;
    fit->warmup = request.warmup;
    fit->takes_warmup = 1;
    fit->steps = request.steps;
    fit->stride = strides[pick(set, COUNT_OF(strides))];
    fit->floor_ratio = pick(set, 3) > 0 ? real_nan_f64() : floors[pick(set, COUNT_OF(floors))];
    fit->epoch_updates = request.contract->unit == CONTRACT_UNIT_EPOCH ? 4 : 0;
    if (pick(set, 8) == 0) fit->epoch_updates = 2 + pick(set, 24);
    fit->warmup_hidden = pick(set, 6) == 0;
    fit->total_hidden = pick(set, 6) == 0;
    fit->in_samples = pick(set, 10) == 0;
    fit->first_differs = pick(set, 8) == 0;
    if (fit->first_differs) fit->first_value = pick(set, 2) == 0 ? 0.0 : fit->lr;
    if (pick(set, 3) == 0) {
        fit->unseen_from = 1.0;
        fit->unseen_warmup = 8.0;
        fit->unseen_least = 0.9 * fit->lr;
        fit->unseen_most = pick(set, 2) == 0 ? fit->unseen_least : 1.1 * fit->lr;
    }
    if (pick(set, 8) == 0) fit->reached = 0.5 * fit->lr;
    fit->simplicity = (f == 0 ? 0.0 : set->fits[f - 1].simplicity) + 0.125 * (double)pick(set, 4);
    fit->same_logged = pick(set, 2);
    fit->same_applied = pick(set, 3);
    draw_segments(set, f);
    fit->skips = set->skips[f];
    fit->skip_count = pick(set, 4) > 0 ? 0 : 1 + pick(set, 2);
    for (size_t s = 0; s < fit->skip_count; s++) {
        const uint64_t first = 2 + 8 * s + pick(set, 4);
        set->skips[f][s] = (struct fit_skip){.first = first, .last = first + pick(set, 3)};
        set->skips[f][s].count = 1 + pick(set, 2);
    }
}

static void draw_known(struct set *set) {
    struct fit_known *const known = &set->known;
    const uint32_t totals = pick(set, 4), skips = pick(set, 6);
    fit_known_init(known);
    known->run_steps = totals == 0 ? 0 : totals == 1 ? set->fits[0].steps : 20 + pick(set, 40);
    if (pick(set, 3) == 0) known->request.steps = 20 + 10 * pick(set, 4);
    if (pick(set, 2) == 0) known->possible = native;
    if (pick(set, 3) == 0) known->expected = contract_find(kinds[pick(set, 16)].contract);
    if (pick(set, 4) == 0) known->request.processes = 8;
    if (pick(set, 6) == 0) known->request.accumulate = 2;
    if (pick(set, 6) == 0) known->request.updates_per_epoch = 4;
    if (pick(set, 6) == 0) known->epoch_updates = 4.0;
    if (pick(set, 5) == 0) {
        set->skipped[0] = 5;
        known->request.skipped = set->skipped;
        known->request.skipped_count = 1;
    }
    if (skips == 0) known->skips.shown = 1;
    if (skips == 1) known->skips.quiet = 1;
}

static void draw_set(uint32_t number, struct set *set) {
    memset(set, 0, sizeof *set);
    set->draws = (struct draws){.key = UINT64_C(0xd0b7), .number = number};
    const uint64_t every = pick(set, 4) == 0 ? 3 : 1, resumed = pick(set, 3) == 0;
    const uint32_t at = 1 + pick(set, ROWS - 1);
    for (uint32_t i = 0; i < ROWS; i++) {
        set->points[i].update = every * (i + 1);
        set->points[i].row = i;
        set->points[i].part = resumed && i >= at;
    }
    set->series = (struct series){set->points, ROWS};
    set->count = 1 + pick(set, FITS);
    for (size_t f = 0; f < set->count; f++)
        draw_fit(set, f);
    for (size_t i = 0; i < ROWS; i++)
        set->points[i].value = fit_logged(&set->fits[0], i, set->points[i].update);
    if (set->fits[0].first_differs) set->points[0].value = set->fits[0].first_value;
    draw_known(set);
    set->of = (struct fit_set){.series = &set->series,
                               .fits = set->fits,
                               .count = set->count,
                               .last = set->points[ROWS - 1].update};
}

static void count_answer(struct answers *answers, const char *what, const char *text) {
    char line[96];
    snprintf(line, sizeof line, "%s: %s", what, text != NULL ? text : "-");
    answers->hash = draws_hash(answers->hash, line, strlen(line));
    answers_count(answers, line);
}

static void hash_text(struct answers *answers, const char *text) {
    if (text != NULL) answers->hash = draws_hash(answers->hash, text, strlen(text));
}

static void conclude_one(struct set *set, size_t f, struct answers *answers) {
    const struct fit *const fit = &set->fits[f];
    const uint64_t told[] = {
        (uint64_t)fit_skipped(fit),
        (uint64_t)fit_skips_any(fit),
        (uint64_t)fit_skips_unshown(fit, &set->known),
        (uint64_t)fit_skips_to_a_floor(fit, &set->known, &set->series),
        (uint64_t)fit_total_is_said(fit, &set->known),
        (uint64_t)fit_goes_back(fit),
        (uint64_t)fit_contradicts_skipped(fit, &set->known),
        (uint64_t)fit_stairs_are_epochs(fit, &set->known),
        (uint64_t)fit_ends_on_its_way(fit, set->of.last),
        (uint64_t)fit_ends_on_its_way(fit, fit->steps + 1),
        (uint64_t)fit_is_half_speed(fit),
        (uint64_t)fit_stands_at_top(fit, &set->series),
        (uint64_t)fit_peak_is_odd(fit),
        (uint64_t)fit_hides_plateau(fit),
        fit->unsound,
        fit->stairs_open,
        fit_applied_apart(&set->fits[0], fit, &set->of),
        (uint64_t)fit_logs_shifted(&set->fits[0], fit, 1, &set->series),
        (uint64_t)fit_logs_shifted(&set->fits[0], fit, -1, &set->series),
    };
    answers->hash = draws_hash(answers->hash, told, sizeof told);
    for (size_t i = 1; i < fit->segment_count; i++) {
        const int about[] = {fit_is_next_stage(fit, i, &set->series),
                             fit_break_is_hidden(&fit->segments[i], &set->of)};
        answers->hash = draws_hash(answers->hash, about, sizeof about);
    }
    for (size_t i = 0; i < ROWS; i += 5) {
        double rates[] = {fit_logged(fit, i, set->points[i].update),
                          fit_applied(fit, i, set->points[i].update)};
        for (size_t r = 0; r < COUNT_OF(rates); r++)
            if (rates[r] != rates[r]) rates[r] = -1.0; /* a NaN has several patterns of bits */
        answers->hash = draws_hash(answers->hash, rates, sizeof rates);
    }
    hash_text(answers, fit->text);
    count_answer(answers, "bug", fit->bug);
    if (f == 0) return;
    const char *apart;
    assert_int_equal(fit_tell_apart(&set->fits[0], fit, &set->of, &set->arena, &apart), STATUS_OK);
    hash_text(answers, apart);
    count_answer(answers, "doubt", fit_doubt(&set->known, &set->of, fit));
}

static void conclude(uint32_t number, struct set *set, struct answers *answers) {
    const char *const shown = getenv("TWINSTEP_SHOW"), *early;
    const struct fit_search search = {
        .series = &set->series, .known = &set->known, .arena = &set->arena, .last = set->of.last};
    size_t which;
    for (size_t f = 0; f < set->count; f++)
        assert_int_equal(fit_words(&search, &set->fits[f]), STATUS_OK);
    for (size_t f = 0; f < set->count; f++) {
        conclude_one(set, f, answers);
        if (shown != NULL && number == (uint32_t)strtoul(shown, NULL, 10))
            print_message("%s; %s\n", set->fits[f].text,
                          set->fits[f].bug != NULL ? set->fits[f].bug : "-");
    }
    const char *const broken = fit_break_doubt(&set->known, &set->of, &which);
    count_answer(answers, "break", broken);
    answers->hash = draws_hash(answers->hash, &which, sizeof which);
    count_answer(answers, "break of one framework", fit_break_doubt(NULL, &set->of, &which));
    if (set->count == 1 && set->fits[0].segment_count == 1) assert_null(broken);
    assert_int_equal(fit_applied_apart(&set->fits[0], &set->fits[0], &set->of), 0);
    assert_int_equal(fit_early_skip(&set->of, &set->known, &set->arena, &early), STATUS_OK);
    hash_text(answers, early);
    fit_keep_native(&set->known, &set->of);
    answers->hash = draws_hash(answers->hash, &set->of.foreign, sizeof set->of.foreign);
}

static void answer(uint32_t number, struct answers *answers) {
    static struct set set;
    draw_set(number, &set);
    conclude(number, &set, answers);
    arena_close(&set.arena);
}

static void validate_random_sets(void **state) {
    (void)state;
    char name[32];
    const char *const names[] = {name};
    snprintf(name, sizeof name, "%d sets", SETS);
    answers_ask("fit_doubts.txt", names, 1, SETS, answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
