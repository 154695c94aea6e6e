/* SPDX-License-Identifier: Apache-2.0
 * Writes down what a trace says of its experiment in attributes: scenario, floor, factors, loops,
 * expectation, environment, devices. Numbers become text that reads back to the same bits. The
 * names and texts stay in the arena; nothing is written to a file here. */
#include "experiment/experiment_trace.h"

#include <string.h>

#include "base/number.h"
#include "experiment/backend_record.h"
#include "trainer/rank_gradients.h"

static void add_text(struct experiment_attributes *to, const char *path, const char *name,
                     const char *text) {
    to->list[to->count++] = (struct trace_attribute){path, name, text};
}

static enum status add_number(struct experiment_attributes *to, struct arena *arena,
                              const char *path, const char *name, double value) {
    char *text;
    TRY(arena_format(arena, &text, "%s", number_text_f64(value).text));
    add_text(to, path, name, text);
    return STATUS_OK;
}

static enum status add_expectation(struct experiment_attributes *to,
                                   const struct scenario *scenario, struct arena *arena) {
    add_text(to, "verdict", "expect_verdict",
             scenario->expect.verdict == VERDICT_NONE
                 ? ""
                 : verdict_name((enum verdict)scenario->expect.verdict));
    add_text(to, "verdict", "expect_cause",
             scenario->expect.cause < 0 ? "" : cause_name((enum cause)scenario->expect.cause));
    add_text(to, "verdict", "expect_shares",
             scenario->expect.shares == NULL ? "" : scenario->expect.shares);
    add_text(to, "verdict", "expect_order",
             scenario->expect.order == NULL ? "" : scenario->expect.order);
    add_text(to, "verdict", "expect_word",
             scenario->expect.word == NULL ? "" : scenario->expect.word);
    add_text(to, "verdict", "expect_first_phase",
             scenario->expect.first_phase == NULL ? "" : scenario->expect.first_phase);
    add_text(to, "verdict", "expect_first_tensor",
             scenario->expect.first_tensor == NULL ? "" : scenario->expect.first_tensor);
    if (scenario->expect.replicas_part != 0)
        TRY(add_number(to, arena, "verdict", "expect_replicas_part",
                       (double)scenario->expect.replicas_part));
    return add_number(to, arena, "verdict", "expect_first_step",
                      (double)scenario->expect.first_step);
}

static enum status add_factors(struct experiment_attributes *to, const struct experiment_plan *plan,
                               struct arena *arena) {
    TRY(add_number(to, arena, "attribution", "factors", plan->factor_count));
    TRY(add_number(to, arena, "attribution", "attributable", plan->attributable));
    TRY(add_number(to, arena, "attribution", "replicates", plan->projection_runs));
    add_text(to, "attribution", "notes", plan->merged);
    for (uint32_t i = 0; i < plan->factor_count; i++) {
        char *name;
        TRY(arena_format(arena, &name, "factor_%u", i));
        add_text(to, "attribution", name, plan->factors[i].name);
        TRY(arena_format(arena, &name, "factor_%u_keys", i));
        add_text(to, "attribution", name, plan->factors[i].keys);
    }
    return STATUS_OK;
}

static enum status add_alike(struct experiment_attributes *to, const struct experiment_plan *plan,
                             struct arena *arena) {
    if (plan->alike == 0) return STATUS_OK;
    TRY(add_number(to, arena, "", ALIKE_UPDATES_NAME, (double)plan->alike));
    return add_number(to, arena, "", SHARED_UPDATES_NAME, (double)plan->served);
}

/* Where the bug of a race finds one bucket alone: no key makes it inert, so its line is made here.
 */
static enum status race_lines(const struct scenario *scenario, struct arena *arena,
                              const char **lines) {
    for (int arm = 0; arm < 2; arm++) {
        char *longer;
        int alone;
        TRY(rank_gradients_races_alone(&scenario->arms[arm].config, scenario->steps, arena,
                                       &alone));
        if (!alone) continue;
        TRY(arena_format(arena, &longer,
                         "%s%s%s: parallel.race has no effect here: all gradients are in one "
                         "bucket, which no other one overwrites (parallel.bucket)",
                         *lines, **lines == '\0' ? "" : "\n", scenario->arms[arm].name));
        *lines = longer;
    }
    return STATUS_OK;
}

/* Adds the keys that were written but that nothing reads: they cannot be why the arms differ. */
static enum status add_inert(struct experiment_attributes *to, const struct scenario *scenario,
                             struct arena *arena) {
    const char *lines = "";
    for (uint32_t i = 0; i < scenario->inert_count; i++) {
        char *longer;
        TRY(arena_format(arena, &longer, "%s%s%s", lines, i == 0 ? "" : "\n",
                         scenario->inert[i].line));
        lines = longer;
    }
    TRY(race_lines(scenario, arena, &lines));
    if (*lines != '\0') add_text(to, "", "inert", lines);
    return STATUS_OK;
}

/* Adds which rows every run read: its configuration names files alone. */
static void add_data(struct experiment_attributes *to, const struct experiment_plan *plan) {
    for (uint32_t i = 0; i < plan->run_count; i++)
        add_text(to, "data", plan->runs[i].id, plan->runs[i].data);
}

static enum status add_loops(struct experiment_attributes *to, const struct experiment_plan *plan,
                             struct arena *arena) {
    static const char *const names[2][2] = {{"baseline_applied", "baseline_logged"},
                                            {"test_applied", "test_logged"}};
    for (uint32_t arm = 0; arm < 2; arm++) {
        struct loop_words words;
        char *text;
        loop_words_of(&plan->runs[arm].config, &words);
        TRY(arena_format(arena, &text, "%s", words.applied));
        add_text(to, "verdict", names[arm][0], text);
        TRY(arena_format(arena, &text, "%s", words.logged));
        add_text(to, "verdict", names[arm][1], text);
    }
    return STATUS_OK;
}

/* Adds what is measured on held-out rows, and what is odd about them. */
static enum status add_eval(struct experiment_attributes *to, const struct experiment_plan *plan,
                            struct arena *arena) {
    if (plan->eval.held_out == 0) return STATUS_OK;
    add_text(to, "eval", "rows", plan->eval.rows);
    TRY(add_number(to, arena, "eval", "held_out", plan->eval.held_out));
    TRY(add_number(to, arena, "eval", "training", plan->eval.trained));
    if (plan->eval.seen != NULL) add_text(to, "eval", "seen", plan->eval.seen);
    if (plan->eval.as_baseline != NULL) add_text(to, "eval", "as_baseline", plan->eval.as_baseline);
    return STATUS_OK;
}

/* Joins "ARM: warning: SENTENCE" to the lines. */
static enum status add_hazard(const char **lines, const char *arm, const struct loop_hazard *hazard,
                              struct arena *arena) {
    char *longer;
    TRY(arena_format(arena, &longer, "%s%s%s: %s: %s", *lines, **lines == '\0' ? "" : "\n", arm,
                     hazard->severity == LOOP_WARNING ? "warning" : "note", hazard->text));
    *lines = longer;
    return STATUS_OK;
}

static int has_hazard(const struct loop_hazard *list, size_t count,
                      const struct loop_hazard *hazard) {
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == hazard->kind && strcmp(list[i].text, hazard->text) == 0) return 1;
    return 0;
}

/* Adds what is risky about the loops, one line each. A verdict of two arms that agree says nothing
 * of what both do wrong, so warnings of both stand here; a note that both share, and PyTorch's
 * habit of reading an LR of the update before, are printed by `check` alone. */
static enum status add_hazards(struct experiment_attributes *to, const struct experiment_plan *plan,
                               struct arena *arena) {
    struct loop_hazard found[2][LOOP_HAZARD_KINDS];
    size_t count[2];
    const char *lines = "";
    for (int arm = 0; arm < 2; arm++)
        count[arm] = loop_hazards(&plan->runs[arm].config, found[arm]);
    for (int arm = 0; arm < 2; arm++)
        for (size_t i = 0; i < count[arm]; i++) {
            const struct loop_hazard *hazard = &found[arm][i];
            const int shared = has_hazard(found[!arm], count[!arm], hazard);
            if (hazard->kind == LOOP_LR_OLDER) continue;
            if (shared && (arm == 1 || hazard->severity == LOOP_NOTE)) continue;
            TRY(add_hazard(&lines, shared ? "both arms" : plan->runs[arm].id, hazard, arena));
        }
    if (lines[0] != '\0') add_text(to, "verdict", "hazards", lines);
    return STATUS_OK;
}

/* Adds one digest over everything that was resolved: the configurations of both arms. */
static enum status add_configuration(struct experiment_attributes *to,
                                     const struct experiment_plan *plan, struct arena *arena) {
    struct digest both;
    char *hex;
    experiment_digest_arms(plan, "configuration", &both);
    TRY(arena_take(arena, DIGEST_HEX, 1, "attribute", &hex));
    digest_hex(&both, hex);
    add_text(to, "", "configuration_digest", hex);
    return STATUS_OK;
}

/* Asks what the runs' operations run on; the record is empty where all of them are the CPU's. */
static enum status find_backends(const struct experiment_plan *plan, struct arena *arena,
                                 struct backend_record *out) {
    const struct config **configs;
    TRY(arena_take(arena, plan->run_count, sizeof *configs, "backends", &configs));
    for (uint32_t i = 0; i < plan->run_count; i++)
        configs[i] = &plan->runs[i].config;
    return backends_record(configs, plan->run_count, arena, out);
}

static void add_backends(struct experiment_attributes *to, const struct experiment_plan *plan,
                         const struct backend_record *record, int reproducible) {
    if (record->attribute_count == 0) return;
    for (uint32_t i = 0; i < plan->run_count; i++)
        add_text(to, "backend", plan->runs[i].id, record->group[i]);
    for (uint32_t i = 0; i < record->attribute_count; i++)
        if (!reproducible || !backends_is_volatile(&record->attributes[i]))
            to->list[to->count++] = record->attributes[i];
}

/* Says how the device of a floor file differs from the baseline's, where it does. */
static enum status add_elsewhere(struct experiment_attributes *to,
                                 const struct experiment_plan *plan,
                                 const struct backend_record *record, struct arena *arena) {
    char *text;
    if (plan->floor != FLOOR_FILE) return STATUS_OK;
    const struct backend_seen seen[2] = {
        backends_of_floor(plan->scenario->floor.file),
        {record->attributes, record->attribute_count, record->group[0]}};
    TRY(backends_difference(seen, backends_here, arena, &text));
    if (text[0] != '\0') add_text(to, "floor", "elsewhere", text);
    return STATUS_OK;
}

enum status experiment_describe(const struct experiment_plan *plan,
                                const struct experiment_options *options, struct arena *arena,
                                struct experiment_attributes *out) {
    const struct scenario *scenario = plan->scenario;
    struct backend_record backends;
    TRY(find_backends(plan, arena, &backends));
    size_t most = 48 + 2 * (size_t)plan->factor_count + options->environment_count +
                  2 * (size_t)plan->run_count + backends.attribute_count;
    TRY(arena_take(arena, most, sizeof *out->list, "attributes", &out->list));
    add_text(out, "", "name", scenario->name);
    add_text(out, "", "about", scenario->about);
    add_text(out, "", "source", scenario->source);
    add_text(out, "", "scenario", scenario->text);
    add_text(out, "", "overrides", scenario->overrides);
    TRY(add_configuration(out, plan, arena));
    add_text(out, "", "baseline", plan->runs[0].id);
    add_text(out, "", "test", plan->runs[1].id);
    TRY(add_number(out, arena, "", "steps", (double)scenario->steps));
    add_text(out, "", "readback",
             readback_share_name((enum readback_share)scenario->record.readback));
    add_text(out, "floor", "kind", floor_kind_name(plan->floor));
    TRY(add_number(out, arena, "floor", "alpha", scenario->floor.alpha));
    TRY(add_number(out, arena, "floor", "runs_baseline", plan->floor_runs[0]));
    TRY(add_number(out, arena, "floor", "runs_test", plan->floor_runs[1]));
    TRY(add_alike(out, plan, arena));
    TRY(add_factors(out, plan, arena));
    TRY(add_inert(out, plan->scenario, arena));
    add_data(out, plan);
    if (plan->dropped != NULL) add_text(out, "", "dropped", plan->dropped);
    TRY(add_eval(out, plan, arena));
    TRY(add_loops(out, plan, arena));
    TRY(add_hazards(out, plan, arena));
    TRY(add_expectation(out, scenario, arena));
    for (uint32_t i = 0; i < options->environment_count; i++)
        if (!options->reproducible || strcmp(options->environment[i].path, "env/volatile") != 0)
            out->list[out->count++] = options->environment[i];
    add_backends(out, plan, &backends, options->reproducible);
    return add_elsewhere(out, plan, &backends, arena);
}
