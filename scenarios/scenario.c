/* SPDX-License-Identifier: Apache-2.0
 * A scenario from its text. The file and every --set are documents of the same form, and later ones
 * win. Head and arms are read apart (scenario_head.c, scenario_arms.c); then what concerns both is
 * checked. */
#include "scenarios/scenario.h"

#include <string.h>

#include "base/number.h"
#include "determinism/statistics.h"
#include "scenarios/scenario_private.h"
#include "scenarios/stream_course.h"
#include "scenarios/textfile.h"

/* Whether repeats of the arms can differ. They cannot where both arms sum in the same order, or
 * where no order is drawn and nothing races; then alpha is not used. */
static int is_noisy(const struct config *a, const struct config *b) {
    if (config_races(a) || config_races(b)) return 1;
    if (a->numerics.mode != MODE_SHUFFLED && b->numerics.mode != MODE_SHUFFLED) return 0;
    return a->numerics.mode != b->numerics.mode || a->numerics.order_seed == KEY_WORD_UINT ||
           stream_orders_differ(a, b);
}

/* Checks that the floor's permutation tests can enumerate that many runs, and that there are enough
 * for alpha. The arms are resolved. */
static enum status check_floor(const struct parsing *parsing) {
    const struct scenario *scenario = parsing->scenario;
    const struct yaml_node *node = scenario_head_node(parsing, "floor", "replicates");
    int alone = scenario->floor.design == FLOOR_BASELINE;
    size_t most = alone ? FLOOR_REPEATS_MAX : STATISTICS_MAX_RUNS / 2;
    size_t needed = 0;
    if (scenario->floor.replicates != KEY_WORD_UINT) {
        if (scenario->floor.replicates <= most) return STATUS_OK;
        return yaml_fail(node,
                         "floor.replicates: expected at most %zu runs of each arm, got %ju; "
                         "floor.design: baseline takes up to %d",
                         most, (uintmax_t)scenario->floor.replicates, FLOOR_REPEATS_MAX);
    }
    if (!is_noisy(&scenario->arms[0].config, &scenario->arms[1].config)) return STATUS_OK;
    TRY(alone ? statistics_pair_needed(scenario->floor.alpha, &needed)
              : statistics_labels_needed(scenario->floor.alpha, &needed));
    if (needed <= most) return STATUS_OK;
    return yaml_fail(scenario_head_node(parsing, "floor", "alpha"),
                     "floor.alpha: %s needs %zu runs of %s, more than %zu; raise it",
                     number_text_f64(scenario->floor.alpha).text, needed,
                     alone ? "the baseline" : "each arm", most);
}

static enum status check_orders(const struct parsing *parsing) {
    const uint64_t orders = parsing->scenario->attribution.orders;
    if (orders == KEY_WORD_UINT || orders % 2 == 0) return STATUS_OK;
    return yaml_fail(scenario_head_node(parsing, "attribution", "orders"),
                     "attribution.orders: expected an even number, because each order is taken "
                     "with its reverse, got %ju",
                     (uintmax_t)orders);
}

/* Whether two arms read their samples from one source. */
static int share_source(const struct config *a, const struct config *b) {
    return a->task == b->task && (a->task == TASK_SFT ? strcmp(a->data.text, b->data.text) == 0
                                                      : strcmp(a->data.pairs, b->data.pairs) == 0);
}

/* The keys that say how many rows of eval are used say nothing where there are none. */
static enum status check_eval_unused(const struct parsing *parsing) {
    static const char *const keys[] = {"rows", "training_rows"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const struct yaml_node *node = scenario_head_node(parsing, "eval", keys[i]);
        if (node != NULL)
            return yaml_fail_key(node,
                                 "eval.%s: expected eval.from beside it, which names the rows that "
                                 "are held out: a file, or rest; got none",
                                 keys[i]);
    }
    return STATUS_OK;
}

/* Both arms are measured on the same rows. The arms are resolved. */
static enum status check_eval(const struct parsing *parsing) {
    const struct scenario *scenario = parsing->scenario;
    const struct config *a = &scenario->arms[0].config, *b = &scenario->arms[1].config;
    const char *const from = scenario->eval.from;
    const struct yaml_node *node = scenario_head_node(parsing, "eval", "from");
    if (strcmp(from, EVAL_NOTHING) == 0) return check_eval_unused(parsing);
    if (a->model.vocab != b->model.vocab)
        return yaml_fail(node,
                         "eval.from: expected arms of one vocabulary, got model.vocab %ju and %ju, "
                         "whose log-probs are not of the same tokens",
                         (uintmax_t)a->model.vocab, (uintmax_t)b->model.vocab);
    if (strcmp(from, EVAL_REST) != 0) return STATUS_OK;
    if (!share_source(a, b))
        return yaml_fail(node, "eval.from: rest expects arms that read the same data, got two "
                               "sources; name a file whose rows neither arm trains on");
    for (int arm = 0; arm < 2; arm++)
        if (scenario->arms[arm].config.data.samples == KEY_WORD_UINT)
            return yaml_fail(node,
                             "eval.from: rest is what data.samples leaves of the data; expected "
                             "data.samples below their number, got all in %s",
                             scenario->arms[arm].name);
    return STATUS_OK;
}

/* Wraps a value in a map whose only key is `key`. */
static enum status wrap(struct arena *arena, const char *source, const char *key, size_t length,
                        struct yaml_node *child, struct yaml_node **out_map) {
    char *text = NULL;
    TRY(arena_text(arena, key, length, &text));
    child->key = text;
    TRY(arena_take(arena, 1, sizeof **out_map, "an option", out_map));
    (*out_map)->kind = YAML_MAP;
    (*out_map)->source = source;
    (*out_map)->count = 1;
    (*out_map)->first = (*out_map)->last = child;
    return STATUS_OK;
}

/* Reads `--set PATH=VALUE` as a small document of its own: maps along the path, YAML at its end.
 * The path is split at its dots, whatever the keys are: which keys exist is the schema's business.
 * Errors begin with the whole option, since it has no line. */
static enum status parse_override(struct arena *arena, const char *option,
                                  struct yaml_node **out_root) {
    char *source = NULL;
    TRY(plaintext_check("--set", option, strlen(option)));
    TRY(arena_format(arena, &source, "--set %s", option));
    const char *equals = strchr(option, '=');
    if (equals == NULL || equals == option)
        FAIL(STATUS_INPUT, "%s: error: expected KEY=VALUE, such as common.optimizer.lr=1e-6",
             source);
    struct yaml_node *node = NULL;
    TRY(yaml_parse(arena, source, 0, equals + 1, strlen(equals + 1), &node));
    const char *end = equals;
    for (int depth = 0;; depth++) {
        const char *start = end;
        while (start > option && start[-1] != '.')
            start--;
        if (start == end || depth == 8)
            FAIL(STATUS_INPUT, "%s: error: expected keys joined by dots before the =", source);
        TRY(wrap(arena, source, start, (size_t)(end - start), node, &node));
        if (start == option) break;
        end = start - 1;
    }
    *out_root = node;
    return STATUS_OK;
}

enum status scenario_check_overrides(const char *const *overrides, size_t count) {
    struct arena arena = ARENA_EMPTY;
    struct yaml_node *root;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = parse_override(&arena, overrides[i], &root);
    arena_close(&arena);
    return status;
}

static enum status parse_documents(struct parsing *parsing, const char *text, size_t length,
                                   const char *const *overrides, size_t override_count) {
    parsing->document_count = override_count + 1;
    TRY(arena_take(parsing->arena, parsing->document_count, sizeof *parsing->documents,
                   "the options", &parsing->documents));
    TRY(yaml_parse(parsing->arena, parsing->label, 1, text, length, &parsing->documents[0]));
    for (size_t i = 0; i < override_count; i++)
        TRY(parse_override(parsing->arena, overrides[i], &parsing->documents[i + 1]));
    return STATUS_OK;
}

/* Keeps the overrides as they were given, one per line. */
static enum status keep_overrides(struct arena *arena, const char *const *overrides, size_t count,
                                  const char **out) {
    char *text;
    TRY(arena_format(arena, &text, "%s", ""));
    for (size_t i = 0; i < count; i++)
        TRY(arena_format(arena, &text, "%s%s\n", text, overrides[i]));
    *out = text;
    return STATUS_OK;
}

enum status scenario_parse(struct arena *arena, const struct schema *schema, const char *label,
                           const char *text, size_t length, const char *const *overrides,
                           size_t override_count, struct scenario **out) {
    struct parsing parsing = {.arena = arena, .schema = schema, .label = label};
    TRY(arena_take(arena, 1, sizeof *parsing.scenario, "a scenario", &parsing.scenario));
    TRY(arena_take(arena, 1, sizeof *parsing.head, "a scenario", &parsing.head));
    TRY(parse_documents(&parsing, text, length, overrides, override_count));
    TRY(scenario_read_head(&parsing));
    TRY(scenario_check_head(&parsing));
    TRY(scenario_keep_head(&parsing));
    TRY(scenario_name_arms(&parsing));
    TRY(scenario_check_set_arms(&parsing));
    TRY(scenario_read_arms(&parsing));
    TRY(scenario_check_expected(&parsing));
    TRY(check_floor(&parsing));
    TRY(check_orders(&parsing));
    TRY(check_eval(&parsing));
    char *copy = NULL;
    TRY(arena_text(arena, text, length, &copy));
    parsing.scenario->text = copy;
    parsing.scenario->text_length = length;
    parsing.scenario->path = "";
    TRY(keep_overrides(arena, overrides, override_count, &parsing.scenario->overrides));
    *out = parsing.scenario;
    return STATUS_OK;
}

enum status scenario_open(struct arena *arena, const struct schema *schema, const char *path,
                          const char *const *overrides, size_t override_count,
                          struct scenario **out) {
    char *text = NULL;
    char *kept = NULL;
    size_t length = 0;
    TRY(textfile_read(arena, path, YAML_BYTES_MAX, &text, &length));
    TRY(arena_format(arena, &kept, "%s", strcmp(path, "-") == 0 ? "<stdin>" : path));
    TRY(scenario_parse(arena, schema, kept, text, length, overrides, override_count, out));
    (*out)->path = kept;
    return STATUS_OK;
}
