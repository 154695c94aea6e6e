/* SPDX-License-Identifier: Apache-2.0
 * Which weight is parameter 17 of the optimizer? Its file has numbers, the weights have names.
 *
 * The names in the order of named_parameters() are dealt to the groups by a rule, and the shapes
 * of the moments must fit each of them. The rules are those that trainers use; the first that fits
 * is taken, and where another one fits with other names, or one leaves a choice, the folder says
 * that it is ambiguous. Nothing here looks at values: who has two folders can try the update. */
#include "checkpoints/training_private.h"

#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"

#include <string.h>

enum deal {
    DEAL_TRAINER = 0, /* names that decay, then the others: transformers' Trainer */
    DEAL_RANKS,       /* matrices, then vectors */
    DEAL_ROWS,        /* one group after the other */
    DEAL_MERGE,       /* each name goes to the only group whose next shape it has */
    DEAL_SHAPES,      /* one shape, one name */
    DEALS
};

struct naming {
    struct training_opening *opening;
    struct training_folder *folder;
    const struct safetensors_tensor **names; /* in the order of named_parameters() */
    size_t count;
    int is_guess; /* that order is not known: they stand sorted by name */
    /* [parameter_count]: what the rule that is tried gives */
    const struct safetensors_tensor **given;
    int has_choice; /* the rule could give other names */
};

static int same_shape(const struct training_parameter *parameter,
                      const struct safetensors_tensor *weight) {
    return parameter->shape == NULL ||
           (parameter->rank == weight->rank &&
            (weight->rank == 0 ||
             memcmp(parameter->shape, weight->shape, weight->rank * sizeof *weight->shape) == 0));
}

/* Buffers stand in a state dict beside parameters: what is no number, and what modules of torch
 * and transformers register under these names. */
static int is_buffer(const struct safetensors_tensor *weight) {
    static const char *const tails[] = {"running_mean", "running_var", "num_batches_tracked",
                                        "inv_freq", "attn.masked_bias"};
    const size_t length = strlen(weight->name);
    enum dtype dtype;
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        const size_t tail = strlen(tails[i]);
        if (length >= tail && strcmp(weight->name + length - tail, tails[i]) == 0) return 1;
    }
    return !safetensors_dtype_number(weight->dtype, &dtype);
}

static int compare_data(const void *a, const void *b) {
    const struct safetensors_tensor *left = *(const struct safetensors_tensor *const *)a;
    const struct safetensors_tensor *right = *(const struct safetensors_tensor *const *)b;
    if (left->data != right->data) return left->data < right->data ? -1 : 1;
    return left->count < right->count ? -1 : left->count > right->count;
}

static void drop_buffers(struct naming *naming) {
    size_t count = 0;
    for (size_t i = 0; i < naming->count; i++)
        if (!is_buffer(naming->names[i])) naming->names[count++] = naming->names[i];
    naming->count = count;
}

/* Drops each name but the first of one tensor: parameters() gives it once. Whether two names are
 * one tensor is seen by the place of their bytes. */
static enum status drop_ties(struct naming *naming) {
    const void **sorted;
    size_t count = 0;
    struct arena *arena = naming->opening->arena;
    const struct safetensors_tensor **all = naming->names;
    TRY(arena_take(arena, naming->count, sizeof *sorted, "names", &sorted));
    for (size_t i = 0; i < naming->count; i++)
        sorted[i] = &all[i];
    TRY(order_pointers(sorted, naming->count, compare_data, arena));
    unsigned char *dropped;
    TRY(arena_take(arena, naming->count, 1, "names", &dropped));
    for (size_t i = 0; i < naming->count; i++) {
        const size_t at = (size_t)((const struct safetensors_tensor *const *)sorted[i] -
                                   (const struct safetensors_tensor *const *)all);
        dropped[at] = i > 0 && all[at]->count > 0 && compare_data(sorted[i - 1], sorted[i]) == 0;
    }
    const struct safetensors_tensor **kept;
    TRY(arena_take(arena, naming->count, sizeof *kept, "names", &kept));
    for (size_t i = 0; i < naming->count; i++)
        if (!dropped[i]) kept[count++] = all[i];
    naming->names = kept;
    naming->count = count;
    return STATUS_OK;
}

/* Lays names[count] to the parameters of a group in order; names may be left over, which are
 * frozen. Every fit lies between the first one and the last one, so they are equal if and only if
 * there is one. Returns 0 if none fits. */
static int lay(struct naming *naming, const struct training_group *group,
               const struct safetensors_tensor *const *names, size_t count) {
    const struct training_parameter *parameters = naming->folder->parameters + group->first;
    const struct safetensors_tensor **given = naming->given + group->first;
    size_t at = 0;
    for (size_t i = 0; i < group->count; i++, at++) {
        while (at < count && !same_shape(&parameters[i], names[at]))
            at++;
        if (at == count) return 0;
        given[i] = names[at];
    }
    at = count;
    for (size_t i = group->count; i-- > 0;) {
        while (at > 0 && !same_shape(&parameters[i], names[at - 1]))
            at--;
        if (at == 0) return 0;
        at--;
        if (names[at] != given[i]) naming->has_choice = 1;
    }
    return 1;
}

/* Deals by a property of the name: those that have it not to one group, the others to the other. */
static enum status deal_two(struct naming *naming, enum deal deal, int *out_fits) {
    const struct training_folder *folder = naming->folder;
    const struct safetensors_tensor **side;
    *out_fits = 0;
    if (folder->group_count != 2) return STATUS_OK;
    TRY(arena_take(naming->opening->arena, naming->count, sizeof *side, "names", &side));
    for (size_t swapped = 0; swapped < 2 && !*out_fits; swapped++) {
        *out_fits = 1;
        naming->has_choice = 0;
        for (size_t group = 0; group < 2 && *out_fits; group++) {
            size_t count = 0;
            for (size_t i = 0; i < naming->count; i++) {
                const int has = deal == DEAL_TRAINER ? training_is_undecayed(naming->names[i]->name)
                                                     : naming->names[i]->rank < 2;
                if ((size_t)has == (group ^ swapped)) side[count++] = naming->names[i];
            }
            *out_fits = lay(naming, &folder->groups[group], side, count);
        }
    }
    return STATUS_OK;
}

static int deal_rows(struct naming *naming) {
    const struct training_group whole = {.count = naming->folder->parameter_count};
    return lay(naming, &whole, naming->names, naming->count);
}

/* Walks the names once; a name goes to the group whose next parameter has its shape. */
static enum status deal_merge(struct naming *naming, int *out_fits) {
    const struct training_folder *folder = naming->folder;
    size_t *next, dealt = 0;
    TRY(arena_take(naming->opening->arena, folder->group_count, sizeof *next, "groups", &next));
    for (size_t i = 0; i < naming->count; i++) {
        size_t found = folder->group_count;
        for (size_t g = 0; g < folder->group_count; g++) {
            const struct training_group *group = &folder->groups[g];
            const size_t at = group->first + next[g];
            if (next[g] == group->count || !same_shape(&folder->parameters[at], naming->names[i]))
                continue;
            if (found < folder->group_count)
                naming->has_choice = 1;
            else
                found = g;
        }
        if (found == folder->group_count) continue;
        naming->given[folder->groups[found].first + next[found]++] = naming->names[i];
        dealt++;
    }
    *out_fits = dealt == folder->parameter_count;
    return STATUS_OK;
}

/* Names the parameters whose shape one name and one parameter have. The others stay unnamed. */
static int deal_shapes(struct naming *naming) {
    const struct training_folder *folder = naming->folder;
    for (size_t i = 0; i < folder->parameter_count; i++) {
        const struct training_parameter *parameter = &folder->parameters[i];
        size_t names = 0, parameters = 0;
        naming->given[i] = NULL;
        if (parameter->shape == NULL || folder->parameter_count > 4096) {
            naming->has_choice = 1;
            continue;
        }
        for (size_t k = 0; k < naming->count; k++)
            if (same_shape(parameter, naming->names[k]) && names++ == 0)
                naming->given[i] = naming->names[k];
        for (size_t k = 0; k < folder->parameter_count && naming->given[i] != NULL; k++)
            parameters += (size_t)same_shape(&folder->parameters[k], naming->given[i]);
        if (names == 1 && parameters == 1) continue;
        naming->given[i] = NULL;
        naming->has_choice = 1;
    }
    return 1;
}

static enum status try_deal(struct naming *naming, enum deal deal, int *out_fits) {
    memset(naming->given, 0, naming->folder->parameter_count * sizeof *naming->given);
    naming->has_choice = 0;
    switch (deal) {
    case DEAL_TRAINER:
    case DEAL_RANKS:
        return deal_two(naming, deal, out_fits);
    case DEAL_ROWS:
        *out_fits = deal_rows(naming);
        return STATUS_OK;
    case DEAL_MERGE:
        return deal_merge(naming, out_fits);
    default:
        *out_fits = deal_shapes(naming);
        return STATUS_OK;
    }
}

static void take(struct naming *naming) {
    for (size_t i = 0; i < naming->folder->parameter_count; i++)
        naming->folder->parameters[i].weight = naming->given[i];
    naming->folder->is_ambiguous |= naming->has_choice;
}

static int differs(const struct naming *naming) {
    for (size_t i = 0; i < naming->folder->parameter_count; i++)
        if (naming->folder->parameters[i].weight != naming->given[i]) return 1;
    return 0;
}

/* Whether two of the named weights have one shape, so that they could be exchanged. */
static int has_equal_shapes(const struct training_folder *folder) {
    for (size_t i = 0; i < folder->parameter_count && i < 4096; i++)
        for (size_t k = 0; k < i; k++)
            if (folder->parameters[i].weight != NULL &&
                same_shape(&folder->parameters[k], folder->parameters[i].weight))
                return 1;
    return folder->parameter_count > 4096;
}

/* Tries the rules in the order of trust; those behind the first that fits only show whether it is
 * the only one. */
static enum status deal_all(struct naming *naming, enum deal *out) {
    static const enum deal trainer[] = {DEAL_TRAINER, DEAL_RANKS, DEAL_ROWS, DEAL_MERGE};
    static const enum deal loops[] = {DEAL_RANKS, DEAL_TRAINER, DEAL_ROWS, DEAL_MERGE};
    const enum deal *deals = naming->folder->kind == TRAINING_HF ? trainer : loops;
    int fits;
    *out = DEALS;
    for (size_t i = 0; i < COUNT_OF(loops); i++) {
        TRY(try_deal(naming, deals[i], &fits));
        if (!fits) continue;
        if (*out == DEALS) {
            *out = deals[i];
            take(naming);
        } else if (!naming->has_choice && differs(naming)) {
            naming->folder->is_ambiguous = 1;
        }
    }
    if (*out != DEALS) {
        if (naming->is_guess && has_equal_shapes(naming->folder)) naming->folder->is_ambiguous = 1;
        return STATUS_OK;
    }
    TRY(try_deal(naming, DEAL_SHAPES, &fits));
    *out = DEAL_SHAPES;
    take(naming);
    return STATUS_OK;
}

/* Finds the order of the names: that of the file, or that of the model's class. A model of no known
 * class has its names sorted, which is the order of a plain nn.Sequential. */
static enum status find_order(struct naming *naming) {
    struct training_opening *opening = naming->opening;
    const struct training_folder *folder = naming->folder;
    const int is_stored = opening->order != NULL;
    int is_known = 0;
    naming->count = is_stored ? opening->order_count : folder->weight_count;
    TRY(arena_take(opening->arena, naming->count, sizeof *naming->names, "names", &naming->names));
    TRY(arena_take(opening->arena, folder->parameter_count, sizeof *naming->given, "names",
                   &naming->given));
    for (size_t i = 0; i < naming->count; i++)
        naming->names[i] = is_stored ? opening->order[i] : folder->weights[i];
    drop_buffers(naming);
    if (is_stored) return drop_ties(naming);
    TRY(training_module_order(naming->names, naming->count, opening->arena, &is_known));
    naming->is_guess = !is_known;
    return drop_ties(naming);
}

/* Says whence the names are. */
static const char *sentence(const struct naming *naming, enum deal deal) {
    static const char *const by_file[DEAL_SHAPES] = {
        "from the order of the state dict, dealt as transformers' Trainer does",
        "from the order of the state dict, matrices and vectors apart",
        "from the order of the state dict, one group after the other",
        "from the order of the state dict, by the groups' shapes"};
    static const char *const by_class[DEAL_SHAPES] = {
        "from the order of the model's modules, dealt as transformers' Trainer does",
        "from the order of the model's modules, matrices and vectors apart",
        "from the order of the model's modules, one group after the other",
        "from the order of the model's modules, by the groups' shapes"};
    if (deal == DEAL_SHAPES)
        return "no order of the weights fits the shapes of the optimizer's state; shapes that "
               "occur once are named: give all by --names FILE";
    if (naming->is_guess)
        return "guessed from shapes and the sorted names, since the model is of no class that is "
               "known here: give them by --names FILE";
    return naming->opening->order != NULL ? by_file[deal] : by_class[deal];
}

/* Finds a weight by name, which must be there once and have the parameter's shape. */
static enum status assign(const struct training_folder *folder,
                          struct training_parameter *parameter, const char *path, const char *name,
                          unsigned char *used) {
    const size_t at = safetensors_place(folder->weights, folder->weight_count, name);
    if (at == folder->weight_count)
        FAIL(STATUS_INPUT, "%s: expected the name of a weight in %s, got %s", path,
             folder->weights_path, strict_quote(name).text);
    if (used[at]++ != 0)
        FAIL(STATUS_INPUT, "%s: expected each name once, got %s twice", path,
             strict_quote(name).text);
    if (!same_shape(parameter, folder->weights[at])) {
        char weight[SAFETENSORS_SHAPE_TEXT], moment[SAFETENSORS_SHAPE_TEXT];
        const struct safetensors_tensor as = {.dtype = folder->weights[at]->dtype,
                                              .rank = parameter->rank,
                                              .shape = parameter->shape};
        safetensors_shape_text(folder->weights[at], weight);
        safetensors_shape_text(&as, moment);
        FAIL(STATUS_INPUT,
             "%s: %s: expected a weight of the shape that the optimizer's state has (%s), got %s: "
             "names stand in the order of the groups",
             path, strict_quote(name).text, moment, weight);
    }
    parameter->weight = folder->weights[at];
    return STATUS_OK;
}

static enum status assign_all(const struct naming *naming, const char *path,
                              const char *const *names) {
    struct training_folder *folder = naming->folder;
    unsigned char *used;
    TRY(arena_take(naming->opening->arena, folder->weight_count, 1, "names", &used));
    for (size_t i = 0; i < folder->parameter_count; i++)
        TRY(assign(folder, &folder->parameters[i], path, names[i], used));
    return STATUS_OK;
}

static int has_stored_names(const struct training_opening *opening) {
    for (size_t i = 0; i < opening->folder->parameter_count; i++)
        if (opening->stored_names[i] == NULL) return 0;
    return opening->folder->parameter_count > 0;
}

static void join_masters(struct training_folder *folder) {
    for (size_t i = 0; i < folder->parameter_count; i++) {
        struct training_parameter *parameter = &folder->parameters[i];
        if (parameter->weight == NULL) continue;
        const size_t at =
            safetensors_place(folder->masters, folder->master_count, parameter->weight->name);
        if (at < folder->master_count && same_shape(parameter, folder->masters[at]))
            parameter->master = folder->masters[at];
    }
}

static enum status find_names(struct naming *naming, const struct training_given_names *given) {
    struct training_folder *folder = naming->folder;
    enum deal deal = DEALS;
    if (given != NULL) {
        if (given->count != folder->parameter_count)
            FAIL(STATUS_INPUT,
                 "%s: expected a name for each of the optimizer's %zu parameters, "
                 "got %zu",
                 given->path, folder->parameter_count, given->count);
        folder->names_from = TRAINING_NAMES_GIVEN;
        folder->names_text = "from the file of names";
        return assign_all(naming, given->path, given->names);
    }
    if (has_stored_names(naming->opening)) {
        folder->names_from = TRAINING_NAMES_STORED;
        folder->names_text = "from the optimizer's own file";
        return assign_all(naming, folder->optimizer_path, naming->opening->stored_names);
    }
    TRY(find_order(naming));
    TRY(deal_all(naming, &deal));
    folder->names_text = sentence(naming, deal);
    folder->names_from = deal == DEAL_SHAPES || naming->is_guess ? TRAINING_NAMES_SHAPES
                         : naming->opening->order != NULL        ? TRAINING_NAMES_STATE
                                                                 : TRAINING_NAMES_MODULES;
    return STATUS_OK;
}

enum status training_name(struct training_opening *opening,
                          const struct training_given_names *given) {
    struct naming naming = {.opening = opening, .folder = opening->folder};
    if (opening->folder->parameter_count == 0) return STATUS_OK;
    TRY(find_names(&naming, given));
    for (size_t i = 0; i < opening->folder->parameter_count; i++) {
        struct training_parameter *parameter = &opening->folder->parameters[i];
        if (parameter->shape != NULL || parameter->weight == NULL) continue;
        parameter->shape = parameter->weight->shape;
        parameter->rank = parameter->weight->rank;
    }
    join_masters(opening->folder);
    return STATUS_OK;
}
