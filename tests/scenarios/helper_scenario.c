/* SPDX-License-Identifier: Apache-2.0
 * The small classes that helper_scenario.h describes; they keep these tests apart from the real
 * optimizers and schedules. */
#include "tests/scenarios/helper_scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct helper_sgd {
    double momentum;
    uint8_t nesterov;
};
struct helper_linear {
    double minimum;
};
struct helper_steps {
    uint64_t every;
    double minimum;
};

#define AT(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)

static const char *const variant_names[] = {"torch", "apex", NULL};
static const struct key_row adamw_keys[] = {
    {"beta1", KEY_REAL, "1", "0.9", CAUSE_OPTIMIZER, "Decay of the first moment",
     AT(helper_adamw, beta1), 0, 1, NULL, NULL},
    {"beta2", KEY_REAL, "1", "0.999", CAUSE_OPTIMIZER, "Decay of the second moment",
     AT(helper_adamw, beta2), 0, 1, NULL, NULL},
    {"amsgrad", KEY_BOOL, "", "false", CAUSE_OPTIMIZER, "Keeps the \"largest\" \\ | second moment",
     AT(helper_adamw, amsgrad), 0, 0, NULL, NULL},
    {"variant", KEY_ENUM, "", "torch", CAUSE_OPTIMIZER, "Whose arithmetic",
     AT(helper_adamw, variant), 0, 0, NULL, variant_names},
};
static const struct key_row sgd_keys[] = {
    {"momentum", KEY_REAL, "1", "0", CAUSE_OPTIMIZER, "Share of the old direction",
     AT(helper_sgd, momentum), 0, 1, NULL, NULL},
    {"nesterov", KEY_BOOL, "", "false", CAUSE_OPTIMIZER, "Looks ahead", AT(helper_sgd, nesterov), 0,
     0, NULL, NULL},
};
static const struct key_row linear_keys[] = {
    {"minimum", KEY_REAL, "1", "0", CAUSE_SCHEDULE, "Share of the peak at the end",
     AT(helper_linear, minimum), 0, 1, NULL, NULL},
};
static const struct key_row steps_keys[] = {
    {"every", KEY_UINT, "counter", "10", CAUSE_DATA_ORDER, "Distance of two steps",
     AT(helper_steps, every), 1, 1000, NULL, NULL},
    {"minimum", KEY_REAL, "1", "0", CAUSE_SCHEDULE, "Share of the peak at the end",
     AT(helper_steps, minimum), 0, 1, NULL, NULL},
};
static enum status validate_adamw(const struct config *config) {
    struct helper_adamw values;
    memcpy(&values, config->optimizer.which.values, sizeof values);
    if (values.amsgrad && values.variant != 0)
        FAIL(STATUS_INPUT, "optimizer.amsgrad: expected false with variant apex, got true");
    return STATUS_OK;
}

/* Reads a row that does not belong to the class, which a class may do. */
static enum status validate_constant(const struct config *config) {
    if (config->schedule.total == 99) FAIL(STATUS_INPUT, "schedule.total: 99 is refused");
    if (config->optimizer.lr == 99) FAIL(STATUS_INPUT, "optimizer.lr: 99 is refused");
    return STATUS_OK;
}

static const struct schema_class classes[] = {
    {"optimizer", "adamw", "An optimizer of this test", adamw_keys, COUNT_OF(adamw_keys),
     validate_adamw, NULL},
    {"optimizer", "sgd", "Another one", sgd_keys, COUNT_OF(sgd_keys), NULL, NULL},
    {"schedule", "linear", "A schedule of this test", linear_keys, COUNT_OF(linear_keys), NULL,
     NULL},
    {"schedule", "constant", "One without keys", NULL, 0, validate_constant, NULL},
    {"schedule", "steps", "One of another cause", steps_keys, COUNT_OF(steps_keys), NULL, NULL},
};
/* The contract's "linear" means the class steps here; "constant" means itself. */
static const char *find_schedule(const struct schema_contract *contract, const char *name) {
    (void)contract;
    if (strcmp(name, "linear") == 0) return "steps";
    return strcmp(name, "constant") == 0 ? "constant" : NULL;
}

/* Resolves ten counter units per update; writes the number of given values to `origin`. */
static enum status resolve_tens(const struct schema_contract *contract,
                                const struct schema_value *values, size_t value_count,
                                uint64_t steps, struct config *config) {
    (void)contract;
    (void)values;
    if (steps > config->schedule.total)
        FAIL(STATUS_INPUT, "schedule.total: expected at least %ju updates", (uintmax_t)steps);
    if (config->schedule.warmup_ratio != KEY_WORD_REAL)
        config->schedule.warmup = config->schedule.warmup_ratio * (double)config->schedule.total;
    config->schedule.warmup *= 10;
    config->schedule.total *= 10;
    config->schedule.increment = 10;
    config->schedule.origin = value_count;
    return STATUS_OK;
}

static const struct schema_contract contracts[] = {
    {.name = "tens",
     .alias = "decimal",
     .help = "A contract of this test",
     .standard = "linear",
     .schedules = "linear, constant",
     .family = "ten",
     .implied = {{"loop.update", "[count, clip, schedule, optimize, log, zero]", NULL},
                 {"schedule.start", "zero", NULL},
                 {"schedule.increment", "1", "10"},
                 {"schedule.warmup_rounding", "none", NULL}},
     .implied_count = 4,
     .find = find_schedule,
     .resolve = resolve_tens},
    {.name = "dreams",
     .help = "One that no loop obeys",
     .refusal = "it dreams",
     .standard = "linear",
     .schedules = "linear",
     .family = "ten",
     .find = find_schedule,
     .resolve = resolve_tens},
};
const struct schema helper_schema = {.classes = classes,
                                     .class_count = COUNT_OF(classes),
                                     .contracts = contracts,
                                     .contract_count = COUNT_OF(contracts)};

static size_t count_of(const char *const *overrides) {
    size_t count = 0;
    while (overrides != NULL && overrides[count] != NULL)
        count++;
    return count;
}

struct scenario *helper_parse(struct arena *arena, const char *text, const char *const *overrides) {
    struct scenario *scenario = NULL;
    enum status status = scenario_parse(arena, &helper_schema, "f.yaml", text, strlen(text),
                                        overrides, count_of(overrides), &scenario);
    if (status != STATUS_OK) fail_msg("%s\n%s", status_text(), text);
    return scenario;
}

struct scenario *helper_common(struct arena *arena, const char *common) {
    char *text = NULL;
    assert_int_equal(arena_format(arena, &text, "twinstep: 1\ncommon: {%s}\n", common), STATUS_OK);
    return helper_parse(arena, text, NULL);
}

void helper_refuse(const char *text, const char *const *overrides, enum status status,
                   const char *message) {
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario = NULL;
    enum status got = scenario_parse(&arena, &helper_schema, "f.yaml", text, strlen(text),
                                     overrides, count_of(overrides), &scenario);
    if (got == STATUS_OK) fail_msg("accepted, expected: %s\n%s", message, text);
    assert_string_equal(status_text(), message);
    assert_int_equal(got, status);
    arena_close(&arena);
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
uint64_t helper_draw(struct helper_random *random, uint64_t limit) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % limit;
}

/* Values of the keys that others constrain; every other key is drawn from its bounds. */
static const struct {
    const char *path;
    const char *values[6]; /* NULL-terminated; an empty list leaves the key alone */
} chosen[] = {
    {"data.pairs", {"builtin:quiz", "my pairs.jsonl", "a\"b", "/x/y:z", "1.jsonl", NULL}},
    {"data.text", {"builtin:devil", "'", "true.jsonl", "-", "c: d", NULL}},
    {"init.nudge", {"none", "model.norm.weight", NULL}},
    {"batch.size", {"8", "16", "24", NULL}},
    {"batch.micro", {"auto", "1", "4", "8", NULL}},
    {"model.hidden", {"64", "128", NULL}},
    {"model.heads", {"4", "8", NULL}},
    {"model.kv_heads", {"auto", "1", "2", "4", NULL}},
    {"model.head_dim", {"auto", "2", "10", "64", NULL}},
    {"numerics.param", {"f32", "bf16", "f16", "e4m3", NULL}},
    {"numerics.compute", {"f32", "bf16", "f64", "f16", NULL}},
    {"numerics.product", {"compute", NULL}},
    {"numerics.rounding", {"nearest", NULL}},
    {"numerics.softmax", {"compute", NULL}},
    {"numerics.accumulate", {"auto", "f64", NULL}},
    {"numerics.gradient", {"auto", "f32", "bf16", "f64", "e5m2", NULL}},
    {"numerics.optimizer", {"auto", "f32", "f64", "bf16", NULL}},
    {"numerics.master", {"none", "f64", NULL}},
    {"numerics.rope", {"f32", "f64", "bf16", NULL}},
    {"numerics.loss", {"auto", "f32", "f64", NULL}},
    {"dropout.ranks", {"1", "2", "8", NULL}},
    {"rng.vector", {"auto", "1", "4", NULL}},
    {"rng.kind", {"addressed", NULL}},
    {"rng.data", {"none", "advance 7 at 2", "seed 1 clock 3 at 1", NULL}},
    {"rng.dropout", {"none", "save a at 1,load a at 2", "seed 4 at 2, advance 1 at 1", NULL}},
    {"rng.rounding", {"none", "seed 4 at 2", NULL}},
    {"rng.order", {"none", "seed 4 at 2", "advance 2 at 1", NULL}},
    {"fault.update", {"0", "1", "2", NULL}},
    {"fault.op", {"none", "attention", NULL}},
    {"fault.tensor", {"output", "weight gradient", NULL}},
    {"resume.after", {"0", "1", "2", NULL}},
    {"resume.restores", {"[]", "[rng, data]", "[scaler, schedule]", NULL}},
    {"resume.wrong", {"[]", "[counter-doubled]", "[epoch-shifted, peak-overwritten]", NULL}},
    {"shaped.table", {"builtin:small-batch", "*: 2", "weight k>=8: 2; *: 1", NULL}},
    {"numerics.shards", {NULL}},
    {"numerics.cuts", {NULL}},
    {"parallel.tensor", {NULL}},
    {"parallel.ranks", {NULL}},
    {"dpo.reference_compute", {"auto", "f32", "bf16", NULL}},
    {"model.from", {NULL}},
    {"model.from_digest", {NULL}},
    {"model.rope_factor", {"1", "8", "2.5", NULL}},
    {"model.rope_low_freq_factor", {"1", "1.5", NULL}},
    {"model.rope_high_freq_factor", {"4", "3", NULL}},
    {"model.rope_beta_fast", {"32", "16", NULL}},
    {"model.rope_beta_slow", {"1", "0.5", NULL}},
    {"optimizer.name", {"adamw", "sgd", NULL}},
    {"optimizer.no_decay", {"norm", "bias norm", "embed_tokens", NULL}},
    {"optimizer.module", {NULL}},
    {"optimizer.module_sha256", {NULL}},
    {"schedule.module", {NULL}},
    {"schedule.module_sha256", {NULL}},
    {"schedule.name", {"linear", "constant", "steps", NULL}},
    {"schedule.contract", {NULL}},
    {"schedule.warmup_ratio", {"none", NULL}},
    {"schedule.origin", {"0", "1", "7", NULL}},
    {"schedule.increment", {"0", "1", "8", NULL}},
    {"schedule.shift", {"0", "-1", "1", NULL}},
    {"schedule.logged_shift", {"0", "-1", "1", NULL}},
    {"loop.micro", {"[fetch, forward, backward]", "[fetch, forward, zero, backward]", NULL}},
    {"loop.update",
     {"[clip, optimize, zero]", "[count, schedule, optimize, zero]", "[optimize, log, log]", NULL}},
    {"loop.epoch", {"[]", "[schedule]", NULL}},
    {"loop.eval", {"[]", "[log]", NULL}},
    {"loop.on_skip", {"[]", "[log]", "[zero, count, schedule]", NULL}},
    {"numerics.backend_module", {"auto", "./twinstep_cuda.so", NULL}},
    {"shuffle.kinds", {"[]", "[loss, forward]", "[norm]", NULL}},
    {"atomic.kinds", {"[]", "[norm, weight]", "[dq]", NULL}},
};

static int chosen_value(struct helper_random *random, const char *path, char *out) {
    for (size_t i = 0; i < COUNT_OF(chosen); i++) {
        size_t count = 0;
        if (strcmp(chosen[i].path, path) != 0) continue;
        while (chosen[i].values[count] != NULL)
            count++;
        if (count == 0) return 0;
        const char *value = chosen[i].values[helper_draw(random, count)];
        int is_text = strcmp(path, "data.pairs") == 0 || strcmp(path, "data.text") == 0 ||
                      strcmp(path, "shaped.table") == 0;
        size_t used = 0;
        if (is_text) out[used++] = '\'';
        for (; *value != '\0'; value++) {
            out[used++] = *value;
            if (is_text && *value == '\'') out[used++] = '\'';
        }
        if (is_text) out[used++] = '\'';
        out[used] = '\0';
        return 1;
    }
    return -1;
}

static void row_value(struct helper_random *random, const struct key_row *row, char *out) {
    uint64_t bits = helper_draw(random, UINT64_MAX);
    double share = (double)(bits >> 11) * 0x1p-53;
    size_t names = 0;
    while (row->names != NULL && row->names[names] != NULL)
        names++;
    if (row->word != NULL && bits % 3 == 0) {
        snprintf(out, HELPER_TEXT_SIZE, "%s", row->word);
    } else if (row->type == KEY_BOOL) {
        snprintf(out, HELPER_TEXT_SIZE, "%s", bits % 2 != 0 ? "true" : "false");
    } else if (row->type == KEY_UINT) {
        uint64_t low = (uint64_t)row->low;
        uint64_t range = row->high >= 0x1p63 ? UINT64_MAX : (uint64_t)row->high - low + 1;
        snprintf(out, HELPER_TEXT_SIZE, "%ju", (uintmax_t)(low + bits % range));
    } else if (row->type == KEY_REAL) {
        snprintf(out, HELPER_TEXT_SIZE, "%.17g", row->low + share * (row->high - row->low));
    } else if (row->type == KEY_ENUM) {
        snprintf(out, HELPER_TEXT_SIZE, "%s", row->names[bits % names]);
    } else {
        fail_msg("%s: no random value of this type", row->path);
    }
}

int helper_random_value(struct helper_random *random, const char *path,
                        char out[HELPER_TEXT_SIZE]) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    int by_choice = chosen_value(random, path, out);
    if (by_choice >= 0) return by_choice;
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].path, path) == 0) {
            row_value(random, &rows[i], out);
            return 1;
        }
    fail_msg("no row %s", path);
    return 0;
}

/* Draws "PLACE.key=value" for a third of the rows. */
static size_t draw_overrides(struct helper_random *random, struct arena *arena, const char *place,
                             const char **out, size_t room) {
    size_t rows = 0;
    size_t count = 0;
    const struct key_row *row = schema_rows(&rows);
    char value[HELPER_TEXT_SIZE];
    for (size_t i = 0; i < rows && count < room; i++) {
        char *text = NULL;
        if (helper_draw(random, 3) != 0 || !helper_random_value(random, row[i].path, value))
            continue;
        assert_int_equal(arena_format(arena, &text, "%s.%s=%s", place, row[i].path, value),
                         STATUS_OK);
        out[count++] = text;
    }
    return count;
}

/* Draws a key of each class that may be in use; those of the wrong class make the scenario
 * invalid. */
static size_t draw_class_overrides(struct helper_random *random, struct arena *arena,
                                   const char *place, const char **out) {
    static const char *const keys[] = {"optimizer.beta1=0.5",   "optimizer.amsgrad=true",
                                       "optimizer.momentum=1",  "schedule.every=77",
                                       "schedule.minimum=0.25", "optimizer.variant=apex"};
    char *text = NULL;
    const char *key = keys[helper_draw(random, COUNT_OF(keys))];
    assert_int_equal(arena_format(arena, &text, "%s.%s", place, key), STATUS_OK);
    out[0] = text;
    return 1;
}

struct scenario *helper_random_scenario(struct helper_random *random, struct arena *arena) {
    static const char text[] = "twinstep: 1\n";
    const char *overrides[300];
    struct scenario *scenario = NULL;
    size_t count = draw_overrides(random, arena, "arms.baseline", overrides, 100);
    count += draw_overrides(random, arena, "arms.test", overrides + count, 100);
    count += draw_class_overrides(random, arena, "arms.baseline", overrides + count);
    count += draw_class_overrides(random, arena, "arms.test", overrides + count);
    enum status status = scenario_parse(arena, &helper_schema, "random.yaml", text, strlen(text),
                                        overrides, count, &scenario);
    return status == STATUS_OK ? scenario : NULL;
}
