/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The checks of the doctor: each with a log that must trigger it, and with that log's innocent
 * neighbour, which must not. All logs start from one healthy training (helper_dpo). What is said
 * of each must be the text of tests/golden/doctor.txt, which `test_doctor --print` writes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "tests/forensics/helper_scene.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/doctor.txt"

static const struct scene *const tables[] = {scenes_of_values, scenes_of_lr, scenes_of_runs};

static void examine(struct patient *p, struct doctor_report *report) {
    struct series series;
    struct fit_known known;
    struct fit_set fits;
    fit_known_init(&known);
    if (p->fits) {
        assert_int_equal(
            series_of(p->log, log_column_of(p->log, LOG_LR_LOGGED), &p->arena, &series), STATUS_OK);
        known.run_steps = p->log->max_steps > 0 ? p->log->max_steps : p->log->rows;
        known.request.processes = p->options.processes;
        known.request.accumulate = p->options.accumulate;
        assert_int_equal(fit_series(&series, &known, &p->arena, &fits), STATUS_OK);
    }
    assert_int_equal(doctor_examine(p->log, &p->options, p->fits ? &fits : NULL, &p->arena, report),
                     STATUS_OK);
}

static struct doctor_report look(struct patient *p, const struct scene *scene) {
    struct doctor_report report;
    memset(p, 0, sizeof *p);
    doctor_options_init(&p->options);
    p->log = helper_dpo(&p->arena);
    scene->make(p);
    examine(p, &report);
    return report;
}

/* Every scene, looked at once for all tests that only read what was said of it. */
static struct seen {
    const struct scene *scene;
    struct patient patient;
    struct doctor_report report;
} * seen;
static size_t seen_count;
static struct arena seen_arena = ARENA_EMPTY;

static int look_at_all(void **state) {
    size_t room = 0;
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (const struct scene *scene = tables[t]; scene->name != NULL; scene++) {
            if (arena_grow(&seen_arena, seen_count + 1, &room, sizeof *seen, "scenes", &seen) !=
                STATUS_OK)
                return 1;
            struct seen *const one = &seen[seen_count++];
            one->scene = scene;
            one->report = look(&one->patient, scene);
        }
    return 0;
}

static int forget_all(void **state) {
    (void)state;
    for (size_t i = 0; i < seen_count; i++)
        arena_close(&seen[i].patient.arena);
    arena_close(&seen_arena);
    return 0;
}

static const struct scene *scene_named(const char *name) {
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (const struct scene *scene = tables[t]; scene->name != NULL; scene++)
            if (strcmp(scene->name, name) == 0) return scene;
    fail_msg("no scene %s", name);
    return NULL;
}

static int has_remark(const struct doctor_report *report, const char *id) {
    for (size_t i = report->finding_count; i < report->finding_count + report->remark_count; i++)
        if (strcmp(report->findings[i].id, id) == 0) return 1;
    return 0;
}

static const struct doctor_line *line_of(const struct doctor_report *report, const char *id) {
    for (size_t i = 0; i < report->line_count; i++)
        if (strcmp(report->lines[i].id, id) == 0) return &report->lines[i];
    fail_msg("no check %s", id);
    return NULL;
}

static void check_scene(const struct scene *scene, const struct doctor_report *report) {
    const size_t wanted = (scene->finding != NULL ? 1u : 0u) + (scene->second != NULL ? 1u : 0u);
    for (size_t i = 0; i < report->finding_count; i++)
        if (i >= wanted ||
            strcmp(report->findings[i].id, i == 0 ? scene->finding : scene->second) != 0)
            fail_msg("%s: finding %s: %s", scene->name, report->findings[i].id,
                     report->findings[i].words);
    if (report->finding_count != wanted)
        fail_msg("%s: %zu findings, not %zu", scene->name, report->finding_count, wanted);
    if (wanted > 0 && report->findings[0].confidence != scene->confidence)
        fail_msg("%s: %s", scene->name,
                 doctor_confidence_name((enum doctor_confidence)report->findings[0].confidence));
    if (scene->remark != NULL && !has_remark(report, scene->remark))
        fail_msg("%s: no remark %s", scene->name, scene->remark);
    if (scene->check == NULL) return;
    const struct doctor_line *line = line_of(report, scene->check);
    if (line->result != scene->result)
        fail_msg("%s: %s is %d (%s)", scene->name, scene->check, line->result,
                 line->why != NULL ? line->why : "");
}

static void validate_scenes(void **state) {
    (void)state;
    for (size_t i = 0; i < seen_count; i++)
        check_scene(seen[i].scene, &seen[i].report);
}

/* Every finding and remark of every scene must have words, evidence and, where there is one, a
 * reason. */
static void verify_evidence(void **state) {
    (void)state;
    size_t held = 0;
    for (size_t i = 0; i < seen_count; i++) {
        const struct doctor_report *report = &seen[i].report;
        for (size_t f = 0; f < report->finding_count + report->remark_count; f++) {
            const struct doctor_finding *finding = &report->findings[f];
            assert_true(strlen(finding->words) > 10);
            assert_true(finding->remark || strlen(finding->reason) > 5);
            assert_true(finding->remark || strlen(finding->next) > 5);
            /* Nobody saw a scaler where the words leave it open. */
            if (strstr(finding->words, "or at which the scheduler was not stepped") != NULL) {
                assert_int_equal(finding->confidence, DOCTOR_POSSIBLE);
                assert_true(strlen(finding->reason) > 5);
                held++;
            }
            if (finding->evidence_count == 0) fail_msg("%s without evidence", finding->id);
            for (size_t e = 0; e < finding->evidence_count; e++)
                assert_true(strlen(finding->evidence[e]) > 3);
        }
        for (size_t l = 0; l < report->line_count; l++)
            assert_int_equal(report->lines[l].why != NULL,
                             report->lines[l].result == DOCTOR_UNTESTABLE ||
                                 report->lines[l].result == DOCTOR_NOT_ASKED);
    }
    assert_true(held > 0);
}

static void print_scene(const struct scene *scene, const struct doctor_report *report, FILE *out) {
    fprintf(out, "== %s\n", scene->name);
    for (size_t f = 0; f < report->finding_count + report->remark_count; f++) {
        const struct doctor_finding *finding = &report->findings[f];
        fprintf(out, "%s %s, update %llu, line %lu: %s\n",
                finding->remark
                    ? "remark"
                    : doctor_confidence_name((enum doctor_confidence)finding->confidence),
                finding->id, (unsigned long long)finding->update, (unsigned long)finding->line,
                finding->words);
        for (size_t e = 0; e < finding->evidence_count; e++)
            fprintf(out, "  %s\n", finding->evidence[e]);
        if (!finding->remark) fprintf(out, "  why: %s\n", finding->reason);
    }
    for (size_t l = 0; l < report->line_count; l++)
        if (report->lines[l].result == DOCTOR_UNTESTABLE)
            fprintf(out, "untestable %s: %s\n", report->lines[l].id, report->lines[l].why);
}

/* Writes a line, with at most six digits behind a point: libm may differ in the last ones. */
static void put_line(const char *line, size_t length, FILE *out) {
    size_t digits = 0;
    for (size_t i = 0; i < length; i++) {
        const int is_digit = line[i] >= '0' && line[i] <= '9';
        digits = line[i] == '.' ? 1 : is_digit && digits > 0 ? digits + 1 : 0;
        if (digits <= 7) fputc(line[i], out);
    }
    fputc('\n', out);
}

/* Writes what is said of the scenes; of those that are ill, what is not said of the healthy one. */
static void print_scenes(FILE *out) {
    char *healthy = NULL;
    for (size_t i = 0; i < seen_count; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);
        assert_non_null(stream);
        print_scene(seen[i].scene, &seen[i].report, stream);
        assert_int_equal(fclose(stream), 0);
        for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
            const size_t length = strcspn(line, "\n") + 1;
            const char after = line[length];
            line[length] = '\0';
            if (healthy == NULL || strstr(healthy, line) == NULL) put_line(line, length - 1, out);
            line[length] = after;
        }
        if (healthy == NULL) /* the first scene */
            healthy = text;
        else
            free(text);
    }
    free(healthy);
}

/* Every number and place that a finding names, and why a check could not look. The expected text
 * was read against the scenes, which say in code what is wrong from which row on. */
static void validate_texts(void **state) {
    (void)state;
    FILE *golden = fopen(GOLDEN, "r"), *came = tmpfile();
    assert_true(golden != NULL && came != NULL);
    print_scenes(came);
    rewind(came);
    static char expected[4096], got[4096];
    char scene[128] = "";
    for (;;) {
        const char *const a = fgets(expected, sizeof expected, golden);
        const char *const b = fgets(got, sizeof got, came);
        if (b != NULL && strncmp(b, "== ", 3) == 0) snprintf(scene, sizeof scene, "%.100s", b);
        if (a == NULL && b == NULL) break;
        if (a == NULL || b == NULL || strcmp(a, b) != 0)
            fail_msg("%sexpected: %sgot:      %s", scene, a == NULL ? "the end\n" : a,
                     b == NULL ? "the end\n" : b);
    }
    fclose(golden);
    fclose(came);
}

static void validate_places(void **state) {
    (void)state;
    struct patient p;
    struct doctor_report report = look(&p, scene_named("loss_nan"));
    assert_int_equal(report.findings[0].update, 21);
    assert_int_equal(report.findings[0].line, 31);
    assert_string_equal(report.findings[0].evidence[0], "update 21 (line 31): loss is nan");
    arena_close(&p.arena);
    report = look(&p, scene_named("start_twice"));
    assert_string_equal(report.findings[0].evidence[0],
                        "update 1 (line 11): loss is 1.3863 (printed to 0.0001)");
    arena_close(&p.arena);
    report = look(&p, scene_named("bf16"));
    assert_non_null(strstr(report.findings[0].words, "magnitude 0.0002441 or more"));
    arena_close(&p.arena);
    report = look(&p, scene_named("decay"));
    assert_non_null(strstr(report.findings[0].evidence[1], "applied 5.96e-08"));
    arena_close(&p.arena);
}

/* The magnitude above which no weight of a dtype can change at an LR: a step below half the spacing
 * is rounded away. The table was worked out from the formats' spacings. */
static void validate_frozen_table(void **state) {
    (void)state;
    static const struct {
        enum dtype dtype;
        double lr;
        const char *limit;
    } table[] = {{DTYPE_BF16, 5e-7, "magnitude 0.0002441 "},
                 {DTYPE_BF16, 1e-6, "magnitude 0.0004883 "},
                 {DTYPE_BF16, 5e-6, "magnitude 0.001953 "},
                 {DTYPE_BF16, 1e-5, "magnitude 0.003906 "},
                 {DTYPE_BF16, 1e-4, "magnitude 0.03125 "},
                 {DTYPE_BF16, 1e-3, "magnitude 0.5 "},
                 {DTYPE_F16, 1e-7, "magnitude 0.0002441 "},
                 {DTYPE_E4M3, 5e-4, "every weight, of any magnitude"},
                 {DTYPE_E4M3, 1e-3, "magnitude 0.03125 "},
                 {DTYPE_E5M2, 5e-6, "every weight, of any magnitude"},
                 {DTYPE_E5M2, 5e-5, "magnitude 0.0004883 "}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct patient p;
        struct doctor_report report = look(&p, scene_named("bf16"));
        p.options.dtype = (int32_t)table[i].dtype;
        for (size_t row = 0; row < 60; row++)
            scene_put(&p, LOG_LR_LOGGED, row, table[i].lr * (60.0 - (double)row) / 60.0);
        examine(&p, &report);
        assert_int_equal(report.finding_count, 1);
        assert_non_null(strstr(report.findings[0].words, table[i].limit));
        arena_close(&p.arena);
    }
}

/* The schedule's behaviour over skipped updates must be said, whichever it is. */
static void validate_held(void **state) {
    (void)state;
    struct patient p;
    const struct doctor_report report = look(&p, scene_named("skip_many_held"));
    int held = 0;
    for (size_t i = 0; i < report.remark_count; i++)
        held |= strstr(report.findings[i].words, "the schedule held there") != NULL;
    assert_true(held);
    arena_close(&p.arena);
}

static const struct doctor_finding *finding_of(const struct doctor_report *report, const char *id) {
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++)
        if (strcmp(report->findings[i].id, id) == 0) return &report->findings[i];
    return NULL;
}

/* Where it held at some and went on at others, neither may be said of all. */
static void validate_held_and_not(void **state) {
    (void)state;
    struct patient p;
    struct doctor_report report = look(&p, scene_named("skip_many_held"));
    const double count = helper_value(p.log, LOG_SKIPPED, 59);
    for (size_t row = 57; row < 60; row++) /* the LR moves here, as in the rows around */
        scene_put(&p, LOG_SKIPPED, row, count + 1.0);
    p.log->columns[p.log->column_count - 1].cumulative = 1;
    examine(&p, &report);
    const struct doctor_finding *const found = finding_of(&report, "skipped_updates");
    assert_non_null(found);
    assert_non_null(strstr(found->words, "; the schedule held in "));
    assert_non_null(strstr(found->words, " and went on in 1."));
    arena_close(&p.arena);
}

/* A norm that is no number beside a loss of 0 is what transformers' filter prints; beside any other
 * loss, also one below 0, it is not, and where the loss is 0 beside finite norms, too, as GRPO's
 * is, it only may be. */
static void validate_a_filtered_loss(void **state) {
    (void)state;
    static const struct {
        double loss;
        int zero_elsewhere, confidence; /* -1: nothing is found */
    } cases[] = {{0.0, 0, DOCTOR_LIKELY}, {0.0, 1, DOCTOR_POSSIBLE}, {-0.7, 0, -1}, {0.7, 0, -1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct patient p;
        struct doctor_report report = look(&p, scene_named("healthy"));
        scene_put(&p, LOG_GRAD_NORM, 20, (double)NAN);
        scene_put(&p, LOG_LOSS, 20, cases[i].loss);
        if (cases[i].zero_elsewhere) scene_put(&p, LOG_LOSS, 30, 0.0);
        examine(&p, &report);
        const struct doctor_finding *const found = finding_of(&report, "nan_loss_filtered");
        const int confidence = found != NULL ? (int)found->confidence : -1;
        if (confidence != cases[i].confidence) fail_msg("case %zu: %d", i, confidence);
        arena_close(&p.arena);
    }
}

/* A bug must be reported where nothing sound explains the column, and not where something sound
 * does. */
static void validate_bug_or_not(void **state) {
    (void)state;
    /* 2: a stride whose end is not in sight; 3: a schedule without a scale of its own */
    for (size_t sound = 0; sound < 4; sound++) {
        struct patient p;
        struct series series;
        struct doctor_report report = look(&p, scene_named("healthy"));
        const struct fit_segment segment = {.scale = 1.0};
        struct fit fits[2] = {{.contract = contract_find("hf"),
                               .lr = 5e-7,
                               .stride = 1.0,
                               .segments = &segment,
                               .segment_count = 1,
                               .text = "a fit",
                               .bug = "xP_scheduler"},
                              {.contract = contract_find("hf"),
                               .lr = 5e-7,
                               .stride = 1.0,
                               .segments = &segment,
                               .segment_count = 1,
                               .text = "another"}};
        struct contract_request request;
        contract_request_init(&request);
        request.contract = fits[0].contract;
        request.schedule = sound == 3 ? "inverse_sqrt" : "linear";
        request.lr = 5e-7;
        request.steps = 60;
        assert_int_equal(contract_resolve(&request, &p.arena, &fits[0].plan), STATUS_OK);
        fits[1].plan = fits[0].plan;
        fits[0].schedule = fits[1].schedule = fits[0].plan.schedule;
        if (sound == 2) fits[0].stride = 2.0;
        assert_int_equal(series_of(p.log, log_column_of(p.log, LOG_LR_LOGGED), &p.arena, &series),
                         STATUS_OK);
        const struct fit_set set = {.series = &series, .fits = fits, .count = sound == 1 ? 2 : 1};
        assert_int_equal(doctor_examine(p.log, &p.options, &set, &p.arena, &report), STATUS_OK);
        assert_int_equal(report.finding_count, sound == 0);
        if (sound == 0) assert_string_equal(report.findings[0].id, "xP_scheduler");
        arena_close(&p.arena);
    }
}

/* What another total than the log's explains is named where the rows show that total: not where the
 * stairs leave open what a step counts, and not in place of a counter that begins anew behind a
 * schedule at whose end no row stands (the last one in front is update 300, the end 299). A
 * scheduler is held as often as there are updates between two rows; beyond that its counter ran
 * back, to its beginning or to another place. */
static void validate_events_of_fits(void **state) {
    (void)state;
    static const struct {
        const char *bug, *finding;
        double floor;
        uint8_t stairs_open, event;
        int64_t moved;
        size_t point; /* of the event, in rows of every update, or of every tenth (30) */
    } rows[] = {{"max_steps_ignored", "max_steps_ignored", 0.4467, 0, FIT_PLAIN, 0, 30},
                {"max_steps_ignored", NULL, 0.4467, 1, FIT_PLAIN, 0, 30},
                {"schedule_too_short", "scheduler_not_restored", 0.4467, 0, FIT_RESET, -306, 30},
                {"schedule_too_short", "schedule_too_short", 0.5, 0, FIT_RESET, -306, 30},
                {NULL, NULL, 0.0, 0, FIT_SKIP, -10, 30},
                {NULL, "lr_jump", 0.0, 0, FIT_BACK, -11, 30},
                {"scheduler_not_restored", "scheduler_not_restored", 0.0, 0, FIT_BACK, -19, 20}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct patient p;
        struct series series;
        struct doctor_report report = look(&p, scene_named("healthy"));
        const int64_t every = rows[i].point == 30 ? 10 : 1;
        const struct fit_segment segments[2] = {{.scale = 1.0},
                                                {.point = rows[i].point,
                                                 .update = (rows[i].point + 1) * (uint64_t)every,
                                                 .shift = rows[i].moved,
                                                 .moved = rows[i].moved,
                                                 .scale = 1.0,
                                                 .event = rows[i].event}};
        struct fit fit = {.contract = contract_find("hf"),
                          .lr = 5e-7,
                          .stride = 1.0,
                          .steps = rows[i].event == FIT_RESET ? 299 : 600,
                          .floor_ratio = rows[i].floor,
                          .segments = segments,
                          .segment_count = rows[i].event == FIT_PLAIN ? 1 : 2,
                          .epoch_updates = rows[i].stairs_open ? 2 : 0,
                          .stairs_open = rows[i].stairs_open,
                          .text = "a fit",
                          .parameters = "",
                          .bug = rows[i].bug};
        struct contract_request request;
        for (size_t row = 0; row < p.log->rows; row++)
            p.log->step[row] *= every;
        contract_request_init(&request);
        request.contract = fit.contract;
        request.schedule = "linear";
        request.lr = 5e-7;
        request.steps = fit.steps;
        assert_int_equal(contract_resolve(&request, &p.arena, &fit.plan), STATUS_OK);
        fit.schedule = fit.plan.schedule;
        assert_int_equal(series_of(p.log, log_column_of(p.log, LOG_LR_LOGGED), &p.arena, &series),
                         STATUS_OK);
        const struct fit_set set = {.series = &series, .fits = &fit, .count = 1};
        assert_int_equal(doctor_examine(p.log, &p.options, &set, &p.arena, &report), STATUS_OK);
        if (report.finding_count != (rows[i].finding != NULL))
            fail_msg("row %zu: %u findings", i, (unsigned)report.finding_count);
        if (rows[i].finding != NULL) assert_string_equal(report.findings[0].id, rows[i].finding);
        arena_close(&p.arena);
    }
}

static void validate_chance(void **state) {
    (void)state;
    struct patient p;
    const struct doctor_report report = look(&p, scene_named("accuracies_of_means"));
    /* the probability is (1/9 + 4/9)^60 */
    assert_non_null(strstr(report.findings[0].evidence[0], "by chance with probability 4.8"));
    assert_non_null(strstr(report.findings[0].evidence[0], "e-16"));
    arena_close(&p.arena);
}

static void validate_empty_log(void **state) {
    (void)state;
    struct patient p;
    struct doctor_report report;
    memset(&p, 0, sizeof p);
    doctor_options_init(&p.options);
    p.log = helper_log(&p.arena, 0);
    examine(&p, &report);
    assert_int_equal(report.checked, 0);
    assert_int_equal(report.finding_count + report.remark_count, 0);
    for (size_t i = 0; i < report.line_count; i++)
        assert_int_equal(report.lines[i].result, DOCTOR_UNTESTABLE);
    arena_close(&p.arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_texts),        cmocka_unit_test(validate_scenes),
        cmocka_unit_test(verify_evidence),       cmocka_unit_test(validate_places),
        cmocka_unit_test(validate_frozen_table), cmocka_unit_test(validate_chance),
        cmocka_unit_test(validate_empty_log),    cmocka_unit_test(validate_held),
        cmocka_unit_test(validate_held_and_not), cmocka_unit_test(validate_a_filtered_loss),
        cmocka_unit_test(validate_bug_or_not),   cmocka_unit_test(validate_events_of_fits),
    };
    if (argc > 1 && strcmp(argv[1], "--print") == 0)
        return look_at_all(NULL) || (print_scenes(stdout), forget_all(NULL));
    return cmocka_run_group_tests(tests, look_at_all, forget_all);
}
