/* SPDX-License-Identifier: Apache-2.0
 * Lists runs and writes the plan's text. Its lines hold placeholders as the file has them; how many
 * slots there are, which devices and how long a run may take is not in it, because a continued
 * ablation may change that. */
#include "ablate/ablate_plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate/ablate_chance.h"
#include "ablate/ablate_pen.h"
#include "ablate/ablate_rights.h"
#include "base/number.h"
#include "determinism/shapley.h"
#include "determinism/stream.h"

#define TURNS_OP 509   /* of the draws' addresses; no kernel draws at it */
#define ORDERS_SEED 20 /* any number does: it makes plans of one file equal */
#define INPUT_BYTES_MAX ((off_t)256 << 20)
#define INPUT "input"
#define HOLE "\001" /* stands for what differs from run to run */

/* ---- runs ---- */

void ablate_mask_text(const struct ablate_plan *plan, uint32_t mask,
                      char out[ABLATE_FACTORS_MAX + 1]) {
    uint32_t i = 0;
    for (; i < plan->file->factor_count; i++)
        out[i] = mask >> i & 1u ? '1' : '0';
    out[i] = '\0';
}

static uint32_t full_of(const struct ablate_file *file) {
    return (1u << file->factor_count) - 1;
}

/* Lists the masks of each factor alone and of all but each, with none and all, in ascending order.
 */
static enum status single_masks(struct ablate_plan *plan, struct arena *arena) {
    const uint32_t factors = plan->file->factor_count, full = full_of(plan->file);
    TRY(arena_take(arena, 2 * (size_t)factors + 2, sizeof *plan->masks, "hybrids", &plan->masks));
    for (uint32_t mask = 0; mask <= full; mask++) {
        const uint32_t rest = full & ~mask;
        if ((mask & (mask - 1)) == 0 || (rest & (rest - 1)) == 0)
            plan->masks[plan->mask_count++] = mask;
    }
    return STATUS_OK;
}

static enum status find_masks(struct ablate_plan *plan, struct arena *arena) {
    const struct ablate_file *file = plan->file;
    if (file->single) return single_masks(plan, arena);
    if (file->factor_count > SHAPLEY_MAX) {
        TRY(orders_draw(ORDERS_SEED, file->factor_count, orders_auto(file->factor_count), arena,
                        &plan->orders));
        return orders_masks(&plan->orders, arena, &plan->masks, &plan->mask_count);
    }
    plan->mask_count = full_of(file) + 1;
    TRY(arena_take(arena, plan->mask_count, sizeof *plan->masks, "hybrids", &plan->masks));
    for (uint32_t mask = 0; mask < plan->mask_count; mask++)
        plan->masks[mask] = mask;
    return STATUS_OK;
}

static void add_arms(struct ablate_plan *plan, enum ablate_stage stage, uint64_t from,
                     uint64_t to) {
    /* the arms change places from one repeat to the next, so that with two slots each arm is run on
     * both devices */
    for (uint64_t i = from; i <= to; i++)
        for (int second = 0; second < 2; second++) {
            const int arm = second ^ (i % 2 == 0);
            struct ablate_run *run = &plan->runs[plan->run_count++];
            *run = (struct ablate_run){.stage = stage,
                                       .arm = arm,
                                       .mask = arm == 0 ? 0 : full_of(plan->file),
                                       .replicate = (uint32_t)i};
            snprintf(run->id, sizeof run->id, "%s-%llu", arm == 0 ? "baseline" : "test",
                     (unsigned long long)i);
        }
}

static void add_hybrid(struct ablate_plan *plan, enum ablate_stage stage, uint32_t mask,
                       uint64_t replicate) {
    struct ablate_run *run = &plan->runs[plan->run_count++];
    char bits[ABLATE_FACTORS_MAX + 1];
    *run = (struct ablate_run){
        .stage = stage, .arm = ABLATE_NO_ARM, .mask = mask, .replicate = (uint32_t)replicate};
    ablate_mask_text(plan, mask, bits);
    if (replicate == 1)
        snprintf(run->id, sizeof run->id, "hybrid-%s", bits);
    else
        snprintf(run->id, sizeof run->id, "hybrid-%s-%llu", bits, (unsigned long long)replicate);
}

/* Returns 0 for each factor alone, 1 for all but each, 2 for those between and 3 for all of them:
 * the cheapest answers come first, and what proves that nothing was forgotten comes last. */
static int turn_of(uint32_t mask, uint32_t full) {
    const uint32_t rest = full & ~mask;
    if (mask == full) return 3;
    if ((mask & (mask - 1)) == 0) return 0;
    return (rest & (rest - 1)) == 0 ? 1 : 2;
}

int ablate_is_between(const struct ablate_plan *plan, uint32_t mask) {
    return turn_of(mask, full_of(plan->file)) == 2;
}

uint32_t ablate_plan_if_equal(const struct ablate_plan *plan) {
    uint32_t count = 0;
    if (plan->file->factor_count < 2 || plan->file->stops_if_equal) return 0;
    for (uint32_t i = 1; i < plan->mask_count; i++)
        count += !ablate_is_between(plan, plan->masks[i]);
    return count;
}

static void add_hybrids(struct ablate_plan *plan, enum ablate_stage stage, uint64_t from,
                        uint64_t to) {
    for (uint64_t replicate = from; replicate <= to; replicate++)
        for (int turn = 0; turn <= 3; turn++)
            for (uint32_t i = 1; i < plan->mask_count; i++)
                if (turn_of(plan->masks[i], full_of(plan->file)) == turn)
                    add_hybrid(plan, stage, plan->masks[i], replicate);
}

/* Every hybrid has a second run: which of them are made is known when all have a first one. */
static void add_again(struct ablate_plan *plan) {
    const uint32_t before = plan->run_count;
    for (uint32_t m = 1; m < plan->mask_count; m++) {
        uint32_t i = 0;
        while (i < before && !(plan->runs[i].arm == ABLATE_NO_ARM && plan->runs[i].replicate == 2 &&
                               plan->runs[i].mask == plan->masks[m]))
            i++;
        if (i == before) add_hybrid(plan, ABLATE_HYBRIDS_AGAIN, plan->masks[m], 2);
    }
}

static uint32_t again_of(uint32_t hybrids) {
    return hybrids < ABLATE_AGAIN_MOST ? hybrids : ABLATE_AGAIN_MOST;
}

uint32_t ablate_plan_again(const struct ablate_plan *plan) {
    return again_of(plan->mask_count > 0 ? plan->mask_count - 1 : 0);
}

/* All factors and what is repeated beside them: the first factor alone, and all but it. */
uint32_t ablate_plan_confirm(const struct ablate_plan *plan) {
    const struct ablate_file *const file = plan->file;
    const uint32_t again = ablate_plan_again(plan), pairs = again < 3 ? again : 3;
    uint32_t runs = (uint32_t)file->floor_runs;
    if (pairs == 0) return 0;
    while (runs < file->noisy_runs && ablate_chance(runs, runs + 2, pairs - 1) > file->alpha)
        runs++;
    return 2 * (runs - (uint32_t)file->floor_runs);
}

uint32_t ablate_plan_again_if_equal(const struct ablate_plan *plan) {
    return again_of(ablate_plan_if_equal(plan));
}

/* What the order of repeats hangs on: the folder, the name and the seed, so that a plan that is
 * made again has the same one, and nothing that a run could have an influence on. */
static enum status turns_seed(const struct ablate_plan *plan, struct arena *arena, uint64_t *out) {
    struct digest digest;
    char *text;
    *out = 0;
    TRY(arena_format(arena, &text, "twinstep ablate turns 1\n%s\n%s\n%llu\n", plan->folder,
                     plan->file->name, (unsigned long long)plan->file->seed));
    digest_sha256(text, strlen(text), &digest);
    for (int i = 0; i < 8; i++)
        *out |= (uint64_t)digest.byte[i] << (8 * i);
    return STATUS_OK;
}

/* Lets the repeats of each arm keep the order of their numbers, from turn `from` on. */
static void number_arms(struct ablate_plan *plan, uint32_t from, uint32_t to) {
    uint32_t next[2] = {from, from};
    for (uint32_t i = from; i < to; i++) {
        const int arm = plan->runs[plan->turns[i]].arm;
        if (arm == ABLATE_NO_ARM) return;
        while (plan->runs[next[arm]].arm != arm)
            next[arm]++;
        plan->turns[i] = next[arm]++;
    }
}

/* A test by relabelings takes repeats to be alike whenever they are made. A machine's other work
 * comes and goes, so arms that take turns in a fixed order are not; where every order is equally
 * likely, labels are exchangeable whatever the machine does. Stages stay in their order, because
 * the first one decides whether there is a second one. Drawn within their stage are the repeats of
 * the arms and the further runs of hybrids over a noisy floor. The first runs of hybrids, and their
 * second ones over an exact floor, stay as they were listed: the cheapest answers come first. */
static enum status draw_turns(struct ablate_plan *plan, struct arena *arena) {
    const uint32_t count = plan->run_count;
    struct stream_address address = {
        .stream = STREAM_ORDER, .op = TURNS_OP, .last_element = 2 * (uint64_t)count};
    struct stream_card *cards;
    struct stream_site site;
    uint32_t *order;
    uint64_t seed;
    TRY(turns_seed(plan, arena, &seed));
    TRY(arena_take(arena, count, sizeof *plan->turns, "turns", &plan->turns));
    TRY(arena_take(arena, count, sizeof *order, "turns", &order));
    TRY(arena_take(arena, 2 * (size_t)count, sizeof *cards, "turns", &cards));
    for (uint32_t from = 0, to; from < count; from = to) {
        const enum ablate_stage stage = plan->runs[from].stage;
        for (to = from; to < count && plan->runs[to].stage == stage; to++)
            plan->turns[to] = to;
        if (stage == ABLATE_HYBRIDS || stage == ABLATE_HYBRIDS_AGAIN) continue;
        address.update = from;
        TRY(stream_pack(&address, &site));
        stream_permute(seed, site, 0, to - from, cards, order);
        for (uint32_t i = from; i < to; i++)
            plan->turns[i] = from + order[i - from];
        number_arms(plan, from, to);
    }
    return STATUS_OK;
}

static enum status list_runs(struct ablate_plan *plan, struct arena *arena) {
    const struct ablate_file *file = plan->file;
    const uint64_t most =
        3 * file->noisy_runs + (uint64_t)plan->mask_count * (file->noisy_hybrids + 1) + 1;
    TRY(arena_take(arena, most, sizeof *plan->runs, "runs", &plan->runs));
    add_arms(plan, ABLATE_ARMS, 1, file->floor_runs);
    add_arms(plan, ABLATE_ARMS_NOISE, file->floor_runs + 1, file->noisy_runs);
    add_hybrids(plan, ABLATE_HYBRIDS, 1, 1);
    /* Shares of noisy runs need every hybrid; closure compares as many runs of all factors as test
     * has. */
    if (!file->single && file->factor_count <= SHAPLEY_MAX) {
        add_hybrids(plan, ABLATE_HYBRIDS_NOISE, 2, file->noisy_hybrids);
        for (uint64_t i = file->noisy_hybrids + 1; i <= file->noisy_runs; i++)
            add_hybrid(plan, ABLATE_HYBRIDS_NOISE, full_of(file), i);
    }
    add_again(plan);
    for (uint32_t i = 0; i < plan->run_count; i++)
        plan->stage_runs[plan->runs[i].stage]++;
    return draw_turns(plan, arena);
}

/* ---- commands ---- */

static enum status expand_variables(const struct ablate_plan *plan,
                                    const struct ablate_command *from, int own,
                                    const struct ablate_values *values, struct arena *arena,
                                    struct ablate_command *out) {
    const struct ablate_file *file = plan->file;
    struct ablate_variable *list;
    size_t most = from->variable_count + 1;
    for (uint32_t i = 0; i < file->factor_count && !own; i++)
        most += file->factors[i].variable_count;
    TRY(arena_take(arena, most, sizeof *list, "environment", &list));
    for (size_t v = 0; v < from->variable_count; v++)
        list[out->variable_count++] = (struct ablate_variable){
            .name = from->variables[v].name, .value = {from->variables[v].value[0], NULL}};
    for (uint32_t i = 0; i < file->factor_count && !own; i++)
        for (size_t v = 0; v < file->factors[i].variable_count; v++) {
            const struct ablate_variable *variable = &file->factors[i].variables[v];
            list[out->variable_count++] = (struct ablate_variable){
                .name = variable->name, .value = {variable->value[values->mask >> i & 1u], NULL}};
        }
    for (size_t v = 0; v < out->variable_count; v++) {
        char *text;
        if (list[v].value[0] == NULL) continue;
        TRY(ablate_expand(file, list[v].value[0], values, arena, &text));
        list[v].value[0] = text;
    }
    out->variables = list;
    return STATUS_OK;
}

enum status ablate_command_of(const struct ablate_plan *plan, const struct ablate_run *run,
                              const struct ablate_values *values, struct arena *arena,
                              struct ablate_command *out) {
    const int own = run->arm == 1 && plan->file->has_test;
    const struct ablate_command *from = own ? &plan->file->test : &plan->file->command;
    memset(out, 0, sizeof *out);
    TRY(ablate_expand_words(plan->file, &from->words, values, arena, &out->words));
    return expand_variables(plan, from, own, values, arena, out);
}

/* ---- composed files ---- */

/* Gives every leaf that differs its factor. A leaf without one would make the test arm's file
 * something that no hybrid is. */
static enum status own_leaves(struct ablate_plan *plan, uint32_t index) {
    const struct ablate_file *file = plan->file;
    const struct leaves *leaves = &plan->leaves[index];
    const char *name = file->files[index].name;
    for (size_t l = 0; l < leaves->count; l++)
        plan->owner[index][l] = -1;
    for (uint32_t i = 0; i < file->factor_count; i++)
        for (size_t f = 0; f < file->factors[i].leaf_count; f++) {
            const struct ablate_leaf *leaf = &file->factors[i].leaves[f];
            size_t l = 0;
            if (leaf->file != index) continue;
            while (l < leaves->count && strcmp(leaves->differ[l], leaf->path) != 0)
                l++;
            if (l == leaves->count)
                FAIL(STATUS_INPUT, "%s: error: %s: leaf %s of %s does not differ between %s and %s",
                     file->path, file->factors[i].name, leaf->path, name, leaves->paths[0],
                     leaves->paths[1]);
            if (plan->owner[index][l] >= 0)
                FAIL(STATUS_INPUT, "%s: error: %s: leaf %s of %s is in factor %s, too", file->path,
                     file->factors[i].name, leaf->path, name,
                     file->factors[plan->owner[index][l]].name);
            plan->owner[index][l] = (int)i;
        }
    for (size_t l = 0; l < leaves->count; l++)
        if (plan->owner[index][l] < 0)
            FAIL(STATUS_INPUT,
                 "%s: error: files: %s: leaf %s differs between %s and %s and is in no factor",
                 file->path, name, leaves->differ[l], leaves->paths[0], leaves->paths[1]);
    return STATUS_OK;
}

/* Says of a file that is not there where it was looked for: not beside FILE, if that lies
 * elsewhere.
 */
static enum status check_there(const struct ablate_plan *plan, const char *name, const char *path) {
    struct stat found;
    if (stat(path, &found) == 0 || errno != ENOENT) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: error: files: %s: %s: not there, seen from %s, where twinstep is started; paths of a "
         "file and of its commands belong to that folder",
         plan->file->path, name, path, plan->folder);
}

static enum status open_files(struct ablate_plan *plan, struct arena *arena) {
    const struct ablate_file *file = plan->file;
    const uint32_t count = file->composed_count;
    TRY(arena_take(arena, count, sizeof *plan->leaves, "files", &plan->leaves));
    TRY(arena_take(arena, count, sizeof *plan->owner, "files", &plan->owner));
    for (uint32_t i = 0; i < count; i++) {
        struct leaves *leaves = &plan->leaves[i];
        for (int arm = 0; arm < 2; arm++)
            TRY(check_there(plan, file->files[i].name, file->files[i].paths[arm]));
        for (int arm = 0; arm < 2; arm++) /* they are settings of what is run */
            TRY(ablate_rights_check(file->files[i].paths[arm],
                                    "so others could change what is run as you"));
        TRY(leaves_read(file->files[i].paths[0], file->files[i].paths[1], arena, leaves));
        TRY(arena_take(arena, leaves->count, sizeof **plan->owner, "leaves", &plan->owner[i]));
        TRY(own_leaves(plan, i));
    }
    return STATUS_OK;
}

enum status ablate_compose(const struct ablate_plan *plan, uint32_t file, uint32_t mask,
                           struct arena *arena, const char **out_text, size_t *out_length) {
    const struct leaves *leaves = &plan->leaves[file];
    unsigned char *taken;
    TRY(arena_take(arena, leaves->count, 1, "leaves", &taken));
    for (size_t l = 0; l < leaves->count; l++)
        taken[l] = mask >> plan->owner[file][l] & 1u;
    return leaves_compose(leaves, taken, arena, out_text, out_length);
}

enum status ablate_file_names(const struct ablate_file *file, struct arena *arena,
                              const char *const **out) {
    const char **names;
    TRY(arena_take(arena, file->composed_count, sizeof *names, "files", &names));
    for (uint32_t i = 0; i < file->composed_count; i++) {
        char *name;
        TRY(arena_format(arena, &name, "{%s}", file->files[i].name));
        names[i] = name;
    }
    *out = names;
    return STATUS_OK;
}

/* ---- {dir} ---- */

/* Says whether {dir}, the folder that a run writes to, stands in its words or variables. */
static enum status names_folder(const struct ablate_plan *plan, const struct ablate_run *run,
                                struct arena *arena, int *out) {
    static const char place[] = "{dir}";
    const char *const *files;
    struct ablate_command command;
    TRY(ablate_file_names(plan->file, arena, &files));
    const struct ablate_values values = {run->mask, place, "", "", "", "", files};
    TRY(ablate_command_of(plan, run, &values, arena, &command));
    *out = 0;
    for (size_t i = 0; i < command.words.count; i++)
        *out |= strstr(command.words.words[i], place) != NULL;
    for (size_t i = 0; i < command.variable_count; i++)
        *out |= command.variables[i].value[0] != NULL &&
                strstr(command.variables[i].value[0], place) != NULL;
    return STATUS_OK;
}

enum status ablate_plan_note(const struct ablate_plan *plan, struct arena *arena,
                             const char **out) {
    const struct ablate_run *first = NULL;
    uint32_t count = 0;
    char *text;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        int named;
        TRY(names_folder(plan, &plan->runs[i], arena, &named));
        if (named) continue;
        if (count++ == 0) first = &plan->runs[i];
    }
    *out = "";
    if (first == NULL) return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "{dir} stands nowhere in the command of %s (%u of %u runs): it is the folder "
                     "that a run writes to, and what is read lies there",
                     first->id, count, plan->run_count));
    *out = text;
    return STATUS_OK;
}

enum status ablate_plan_check_folder(const struct ablate_plan *plan, struct arena *arena) {
    const char *note;
    TRY(ablate_plan_note(plan, arena, &note));
    if (note[0] != '\0')
        FAIL(STATUS_INPUT, "%s: error: %s; nothing has been run", plan->file->path, note);
    return STATUS_OK;
}

/* ---- the text ---- */

/* The text in the making, with the files that it names. */
struct planning {
    struct ablate_plan *plan;
    struct ablate_pen pen;
    size_t room; /* of plan->inputs */
};

static enum status add_line(struct planning *to, const char *head, const char *rest) {
    TRY(ablate_put_text(&to->pen, head));
    TRY(ablate_put(&to->pen, " ", 1));
    TRY(ablate_put_text(&to->pen, rest));
    return ablate_put(&to->pen, "\n", 1);
}

static enum status add_words(struct planning *to, const char *head,
                             const struct ablate_words *words) {
    char *quoted;
    TRY(ablate_quote(words, to->pen.arena, &quoted));
    return add_line(to, head, quoted);
}

static enum status add_variable(struct planning *to, const char *head,
                                const struct ablate_variable *variable, int level) {
    char *line;
    if (variable->value[level] == NULL)
        TRY(arena_format(to->pen.arena, &line, "%s (taken away)", variable->name));
    else
        TRY(arena_format(to->pen.arena, &line, "%s=%s", variable->name, variable->value[level]));
    return add_line(to, head, line);
}

static enum status add_command(struct planning *to, const char *head,
                               const struct ablate_command *command) {
    char *name;
    TRY(add_words(to, head, &command->words));
    TRY(arena_format(to->pen.arena, &name, "%s environment", head));
    for (size_t i = 0; i < command->variable_count; i++)
        TRY(add_variable(to, name, &command->variables[i], 0));
    return STATUS_OK;
}

static enum status add_factor(struct planning *to, const struct ablate_factor *factor) {
    char *name;
    for (int level = 0; level < 2; level++) {
        TRY(arena_format(to->pen.arena, &name, "factor %s %s", factor->name,
                         level == 0 ? "baseline" : "test"));
        if (factor->has_words) TRY(add_words(to, name, &factor->level[level]));
        for (size_t v = 0; v < factor->variable_count; v++)
            TRY(add_variable(to, name, &factor->variables[v], level));
    }
    for (size_t l = 0; l < factor->leaf_count; l++) {
        TRY(arena_format(to->pen.arena, &name, "factor %s leaf of file %u", factor->name,
                         factor->leaves[l].file));
        TRY(add_line(to, name, factor->leaves[l].path));
    }
    return STATUS_OK;
}

static int is_input(const struct ablate_plan *plan, const char *path) {
    for (size_t i = 0; i < plan->input_count; i++)
        if (strcmp(plan->inputs[i], path) == 0) return 1;
    return 0;
}

/* Adds a file that the text names, if there is one: alone, or behind the "=" of an option. One line
 * for each file, whatever number of words name it. */
static enum status add_input(struct planning *to, const char *text) {
    const char *equals = strchr(text, '=');
    const char *const paths[2] = {text, equals == NULL ? NULL : equals + 1};
    struct ablate_plan *const plan = to->plan;
    char hex[DIGEST_HEX], *line, *path;
    struct stat info;
    if (strstr(text, HOLE) != NULL || strchr(text, '\n') != NULL) return STATUS_OK;
    for (int i = 0; i < 2; i++) {
        if (paths[i] == NULL || paths[i][0] == '\0' || stat(paths[i], &info) != 0 ||
            !S_ISREG(info.st_mode) || is_input(plan, paths[i]))
            continue;
        if (info.st_size > INPUT_BYTES_MAX) {
            TRY(arena_format(to->pen.arena, &line, "%s %lld bytes of %lld", paths[i],
                             (long long)info.st_size, (long long)info.st_mtime));
        } else {
            TRY(digest_file(paths[i], hex));
            TRY(arena_format(to->pen.arena, &line, "%s %s", paths[i], hex));
        }
        TRY(add_line(to, INPUT, line));
        TRY(arena_format(to->pen.arena, &path, "%s", paths[i]));
        TRY(arena_grow(to->pen.arena, plan->input_count + 1, &to->room, sizeof *plan->inputs,
                       "inputs", &plan->inputs));
        plan->inputs[plan->input_count++] = path;
    }
    return STATUS_OK;
}

static enum status add_inputs(struct planning *to, const struct ablate_plan *plan, uint32_t mask,
                              int arm) {
    const struct ablate_run run = {.arm = arm, .mask = mask};
    static const char *const holes[ABLATE_FILES_MAX] = {HOLE, HOLE, HOLE, HOLE,
                                                        HOLE, HOLE, HOLE, HOLE};
    const struct ablate_values values = {mask, HOLE, HOLE, HOLE, HOLE, HOLE, holes};
    struct ablate_command command;
    TRY(ablate_command_of(plan, &run, &values, to->pen.arena, &command));
    for (size_t i = 0; i < command.words.count; i++)
        TRY(add_input(to, command.words.words[i]));
    for (size_t i = 0; i < command.variable_count; i++)
        if (command.variables[i].value[0] != NULL)
            TRY(add_input(to, command.variables[i].value[0]));
    return STATUS_OK;
}

static enum status add_rest(struct planning *to, const struct ablate_plan *plan) {
    const struct ablate_file *file = plan->file;
    char *line;
    for (int i = 0; i < READ_KINDS; i++) {
        if (file->read[i] == NULL) continue;
        TRY(arena_format(to->pen.arena, &line, "read %s", ablate_read_names[i]));
        TRY(add_line(to, line, file->read[i]));
    }
    TRY(arena_format(to->pen.arena, &line, "%llu runs, noisy %llu, hybrids %llu, alpha %s",
                     (unsigned long long)file->floor_runs, (unsigned long long)file->noisy_runs,
                     (unsigned long long)file->noisy_hybrids, number_text_f64(file->alpha).text));
    TRY(add_line(to, "floor", line));
    TRY(add_line(to, "hybrids", file->single ? "single" : "all"));
    if (file->shared) TRY(add_line(to, "shared", "true"));
    if (file->stops_if_equal) TRY(add_line(to, "if_equal", "stop"));
    TRY(arena_format(to->pen.arena, &line, "%llu", (unsigned long long)file->seed));
    return add_line(to, "seed", line);
}

/* The order in which one slot makes the runs of arms. */
static enum status add_turns(struct planning *to, const struct ablate_plan *plan) {
    TRY(ablate_put_text(&to->pen, "turns"));
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct ablate_run *run = &plan->runs[plan->turns[i]];
        if (run->arm == ABLATE_NO_ARM) continue;
        TRY(ablate_put_text(&to->pen, " "));
        TRY(ablate_put_text(&to->pen, run->id));
    }
    return ablate_put_text(&to->pen, "\n");
}

static enum status write_text(struct ablate_plan *plan, struct arena *arena) {
    const struct ablate_file *file = plan->file;
    struct planning to = {.plan = plan, .pen = {.arena = arena}};
    TRY(ablate_put_text(&to.pen, "twinstep ablate plan 1\n"));
    TRY(add_line(&to, "folder", plan->folder));
    TRY(add_command(&to, "command", &file->command));
    for (uint32_t i = 0; i < file->factor_count; i++)
        TRY(add_factor(&to, &file->factors[i]));
    for (uint32_t i = 0; i < file->composed_count; i++) {
        const struct ablate_words paths = {2, file->files[i].paths};
        char *head;
        TRY(arena_format(arena, &head, "file %s", file->files[i].name));
        TRY(add_words(&to, head, &paths));
        TRY(add_input(&to, file->files[i].paths[0]));
        TRY(add_input(&to, file->files[i].paths[1]));
    }
    if (file->has_test) TRY(add_command(&to, "test", &file->test));
    TRY(add_rest(&to, plan));
    TRY(add_turns(&to, plan));
    TRY(add_inputs(&to, plan, 0, 0));
    TRY(add_inputs(&to, plan, full_of(file), ABLATE_NO_ARM));
    if (file->has_test) TRY(add_inputs(&to, plan, full_of(file), 1));
    plan->text = to.pen.text;
    digest_sha256(plan->text, to.pen.used, &plan->digest);
    return STATUS_OK;
}

/* Says whether the line is that of an input with this path. Behind the path stands its digest, or
 * its size and time. */
static int is_line_of(const char *line, size_t length, const char *path) {
    const size_t head = strlen(INPUT " "), name = strlen(path);
    if (length < head + name + 1 || strncmp(line, INPUT " ", head) != 0 ||
        strncmp(line + head, path, name) != 0 || line[head + name] != ' ')
        return 0;
    const char *const rest = line + head + name + 1;
    const size_t left = length - head - name - 1;
    return strcspn(rest, " \n") == left ||
           strncmp(rest + strcspn(rest, " \n"), " bytes of ", 10) == 0;
}

static int has_input(const char *text, const char *path) {
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        if (is_line_of(line, length, path)) return 1;
        line += length + (line[length] == '\n');
    }
    return 0;
}

enum status ablate_plan_without_outputs(const struct ablate_plan *plan, const char *kept,
                                        struct arena *arena, const char **out) {
    struct ablate_pen pen = {.arena = arena};
    size_t input = 0;
    TRY(ablate_put_text(&pen, ""));
    for (const char *line = plan->text; *line != '\0';) {
        const size_t length = strcspn(line, "\n") + 1; /* every line has its end */
        const int is_it =
            input < plan->input_count && is_line_of(line, length - 1, plan->inputs[input]);
        if (!is_it || has_input(kept, plan->inputs[input])) TRY(ablate_put(&pen, line, length));
        input += is_it ? 1 : 0;
        line += length;
    }
    *out = pen.text;
    return STATUS_OK;
}

static enum status find_folder(struct ablate_plan *out, struct arena *arena) {
    char folder[4096], *copy;
    if (getcwd(folder, sizeof folder) == NULL)
        FAIL(STATUS_IO, "ablate: the working folder: %s", strerror(errno));
    TRY(arena_format(arena, &copy, "%s", folder));
    out->folder = copy;
    return STATUS_OK;
}

static enum status write_versions(struct ablate_plan *plan, struct arena *arena) {
    const struct ablate_file *file = plan->file;
    struct planning to = {.plan = plan, .pen = {.arena = arena}};
    TRY(ablate_put_text(&to.pen, "twinstep bisect plan 1\n"));
    TRY(add_line(&to, "folder", plan->folder));
    TRY(add_command(&to, "command", &file->command));
    for (size_t i = 0; i < file->version_count; i++)
        TRY(add_line(&to, "version", file->versions[i]));
    TRY(add_rest(&to, plan));
    for (size_t i = 0; i < file->version_count; i++)
        TRY(add_inputs(&to, plan, (uint32_t)i, ABLATE_NO_ARM));
    plan->text = to.pen.text;
    digest_sha256(plan->text, to.pen.used, &plan->digest);
    return STATUS_OK;
}

enum status bisect_plan_open(const struct ablate_file *file, struct arena *arena,
                             struct ablate_plan *out) {
    memset(out, 0, sizeof *out);
    out->file = file;
    TRY(find_folder(out, arena));
    TRY(arena_take(arena, file->version_count * file->noisy_runs, sizeof *out->runs, "runs",
                   &out->runs));
    for (size_t v = 0; v < file->version_count; v++)
        for (uint64_t r = 1; r <= file->noisy_runs; r++) {
            struct ablate_run *run = &out->runs[out->run_count++];
            *run = (struct ablate_run){.stage =
                                           r <= file->floor_runs ? ABLATE_ARMS : ABLATE_ARMS_NOISE,
                                       .arm = ABLATE_NO_ARM,
                                       .mask = (uint32_t)v,
                                       .replicate = (uint32_t)r};
            snprintf(run->id, sizeof run->id, "version-%04u-%u", (unsigned)v + 1, (unsigned)r);
            out->stage_runs[run->stage]++;
        }
    TRY(arena_take(arena, out->run_count, sizeof *out->turns, "turns", &out->turns));
    for (uint32_t i = 0; i < out->run_count; i++)
        out->turns[i] = i;
    return write_versions(out, arena);
}

enum status ablate_plan_open(const struct ablate_file *file, struct arena *arena,
                             struct ablate_plan *out) {
    memset(out, 0, sizeof *out);
    out->file = file;
    TRY(find_folder(out, arena));
    TRY(open_files(out, arena));
    TRY(find_masks(out, arena));
    TRY(list_runs(out, arena));
    return write_text(out, arena);
}
