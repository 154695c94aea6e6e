/* SPDX-License-Identifier: Apache-2.0
 * Tensors are matched by name. Those that the optimizer knows come first, in its own order; the
 * others follow by name. */
#include "readback/folders.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "readback/kept_settings.h"

/* ---- are they one update apart? ---- */

/* The largest count of updates over an optimizer's parameters; negative: it keeps none. */
static double counted(const struct training_folder *folder) {
    double most = -1.0;
    for (size_t i = 0; i < folder->parameter_count; i++)
        if (folder->parameters[i].has_step && folder->parameters[i].step > most)
            most = folder->parameters[i].step;
    return most;
}

/* Whether an optimizer is there that has made no step yet. */
static int is_unused(const struct training_folder *folder) {
    for (size_t i = 0; i < folder->parameter_count; i++)
        for (size_t m = 0; m < TRAINING_MOMENTS; m++)
            if (folder->parameters[i].moments[m] != NULL) return 0;
    return folder->group_count > 0 && counted(folder) < 0.0;
}

static enum status refuse_distance(const struct training_folder *before,
                                   const struct training_folder *after, double first, double last) {
    if (last == first)
        FAIL(STATUS_INPUT,
             "%s and %s: both are of update %.0f; expected the checkpoints before and "
             "after one update",
             before->path, after->path, first);
    if (last < first)
        FAIL(STATUS_INPUT, "%s is of update %.0f and %s of update %.0f: give the earlier one first",
             before->path, first, after->path, last);
    FAIL(STATUS_INPUT,
         "%s and %s are not consecutive (updates %.0f and %.0f): what one update applied can only "
         "be read from the checkpoints right before and after it. Save some: with Hugging Face's "
         "Trainer and TRL, resume from %s with save_strategy=\"steps\", save_steps=1, "
         "max_steps=%.0f and save_total_limit=None, and give two folders that follow each other",
         before->path, after->path, first, last, before->path, first + 3.0);
}

/* Whether the number beside the weights is not that of the update: loops count from 0, and some
 * count micro-batches. The optimizer's own count then numbers updates, unless a scheduler agrees
 * with the loop. What Trainer and Lightning write is the number. */
static int is_own_count(const struct training_folder *before, const struct training_folder *after) {
    const struct training_scheduler *const scheduler = &after->scheduler;
    const double first = counted(before), last = counted(after);
    if (after->kind != TRAINING_TORCH || !before->has_step || !after->has_step) return 0;
    if (first < 0.0 || last != first + 1.0 || last == (double)after->global_step) return 0;
    if (scheduler->has_last_epoch && scheduler->last_epoch == after->global_step) return 0;
    return after->global_step - before->global_step != 1 ||
           (last == (double)after->global_step + 1.0 && first == (double)before->global_step + 1.0);
}

/* Whether the scheduler fell as far as the optimizer's count did, or by one if there is no count.
 */
static int goes_back(const struct training_folder *before, const struct training_folder *after,
                     double fell) {
    const struct training_scheduler *const then = &before->scheduler, *const now =
                                                                          &after->scheduler;
    if (!then->has_last_epoch || !now->has_last_epoch || now->last_epoch >= then->last_epoch)
        return 0;
    return fell == 1.0 || (fell == 0.0 && now->last_epoch == then->last_epoch - 1);
}

/* By the trainer's own count where both have one, else by the optimizer's. An optimizer whose count
 * fell to 1 began anew, which is a finding and no error, unless the scheduler's count says that the
 * two stand in the wrong order. */
static enum status check_distance(const struct training_folder *before,
                                  const struct training_folder *after) {
    if (before->has_step && after->has_step && !is_own_count(before, after)) {
        const double first = (double)before->global_step, last = (double)after->global_step;
        return last - first == 1.0 ? STATUS_OK : refuse_distance(before, after, first, last);
    }
    const double last = counted(after);
    const double first = is_unused(before) && last > 1.0 ? 0.0 : counted(before);
    const int is_back = goes_back(before, after, first - last);
    if (is_back && (first < 0.0 || last < 0.0))
        return refuse_distance(before, after, (double)before->scheduler.last_epoch,
                               (double)after->scheduler.last_epoch);
    if (first < 0.0 || last < 0.0 || last - first == 1.0) return STATUS_OK;
    if (last < first && last <= 1.0 && !is_back) return STATUS_OK;
    return refuse_distance(before, after, first, last);
}

/* ---- tensors ---- */

static enum status stored_of(const struct safetensors_tensor *tensor, struct stored *out) {
    *out = (struct stored){DTYPE_F32, NULL};
    if (tensor == NULL) return STATUS_OK;
    if (!safetensors_dtype_number(tensor->dtype, &out->dtype) || dtype_width(out->dtype) < 2)
        FAIL(STATUS_INPUT, "%s: tensor %s: expected F32, F64, BF16 or F16, got %s", tensor->path,
             tensor->name, safetensors_dtype_name(tensor->dtype));
    out->bytes = tensor->data;
    return STATUS_OK;
}

static const struct safetensors_tensor *find_in(const struct safetensors_tensor *const *list,
                                                size_t count, const char *name) {
    const size_t at = safetensors_place(list, count, name);
    return at < count ? list[at] : NULL;
}

/* Both sides of a weight. Returns with `*out_is_there` 0 for one that is no number (a buffer of
 * indices) or is in one file only. */
static enum status fill_weights(const struct training_folder *before,
                                const struct safetensors_tensor *now, struct step_tensor *out,
                                int *out_is_there) {
    const struct safetensors_tensor *const old =
        find_in(before->weights, before->weight_count, now->name);
    enum dtype dtype;
    *out_is_there = 0;
    if (old == NULL || now->count == 0 || !safetensors_dtype_number(now->dtype, &dtype) ||
        dtype_width(dtype) < 2)
        return STATUS_OK;
    if (old->count != now->count || old->dtype != now->dtype) {
        char a[SAFETENSORS_SHAPE_TEXT], b[SAFETENSORS_SHAPE_TEXT];
        safetensors_shape_text(old, a);
        safetensors_shape_text(now, b);
        FAIL(STATUS_INPUT,
             "%s: tensor %s is %s, and in %s it is %s: expected two checkpoints of "
             "one training",
             old->path, now->name, a, now->path, b);
    }
    *out_is_there = 1;
    out->name = now->name;
    out->count = now->count;
    out->group = STEP_NO_GROUP;
    out->updates = out->updates_before = (double)NAN;
    out->is_vector = now->rank <= 1;
    TRY(stored_of(old, &out->old));
    return stored_of(now, &out->now);
}

/* Where both checkpoints hold the masters, the update was made on these, and is read from them. */
static enum status fill_masters(const struct training_folder *before,
                                const struct training_folder *after, struct step_tensor *out) {
    const struct safetensors_tensor *const old =
        find_in(before->masters, before->master_count, out->name);
    const struct safetensors_tensor *const now =
        find_in(after->masters, after->master_count, out->name);
    if (old == NULL || now == NULL || old->count != out->count || now->count != out->count ||
        old->dtype != now->dtype)
        return STATUS_OK;
    TRY(stored_of(old, &out->old));
    return stored_of(now, &out->now);
}

static const struct training_parameter *find_parameter(const struct training_folder *folder,
                                                       const struct training_parameter *like) {
    for (size_t i = 0; i < folder->parameter_count; i++)
        if (folder->parameters[i].index == like->index) return &folder->parameters[i];
    return NULL;
}

static enum status check_moment(const struct safetensors_tensor *moment, uint64_t count,
                                const char *name) {
    if (moment == NULL || moment->count == count) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: the optimizer's state for %s has %" PRIu64 " elements, and the weight has %" PRIu64
         ": the names do not belong to these parameters; give them in the order of the optimizer's "
         "groups with --names FILE",
         moment->path, name, moment->count, count);
}

static enum status fill_moments(const struct training_parameter *parameter, uint64_t count,
                                const char *name, struct stored out[3]) {
    const struct safetensors_tensor *const *const moments = parameter->moments;
    const struct safetensors_tensor *const first =
        moments[TRAINING_EXP_AVG] != NULL ? moments[TRAINING_EXP_AVG] : moments[TRAINING_MOMENTUM];
    const struct safetensors_tensor *const all[3] = {first, moments[TRAINING_EXP_AVG_SQ],
                                                     moments[TRAINING_MAX_EXP_AVG_SQ]};
    for (int i = 0; i < 3; i++) {
        TRY(check_moment(all[i], count, name));
        TRY(stored_of(all[i], &out[i]));
    }
    return STATUS_OK;
}

static int is_same(const struct stored *a, const struct stored *b, uint64_t count) {
    if (a->bytes == NULL || b->bytes == NULL) return a->bytes == b->bytes;
    return a->dtype == b->dtype &&
           memcmp(a->bytes, b->bytes, (size_t)count * dtype_width(a->dtype)) == 0;
}

static int is_left_out(const struct step_tensor *tensor) {
    const int is_counted = tensor->is_assumed || tensor->updates == tensor->updates_before;
    return is_counted && tensor->first_before.bytes != NULL &&
           is_same(&tensor->first, &tensor->first_before, tensor->count) &&
           is_same(&tensor->second, &tensor->second_before, tensor->count);
}

/* The state before the first update is empty, and so known. */
static enum status fill_state(const struct training_folder *before, double update,
                              const struct training_parameter *now, struct step_tensor *out) {
    const struct training_parameter *const then = find_parameter(before, now);
    struct stored moments[3];
    out->group = (uint32_t)now->group;
    TRY(fill_moments(now, out->count, out->name, moments));
    out->first = moments[0];
    out->second = moments[1];
    out->largest = moments[2];
    out->updates = now->has_step ? now->step : update;
    out->is_assumed = !now->has_step;
    if (then != NULL) {
        TRY(fill_moments(then, out->count, out->name, moments));
        out->first_before = moments[0];
        out->second_before = moments[1];
        if (then->has_step) out->updates_before = then->step;
    }
    out->has_before = out->first_before.bytes != NULL || out->updates == 1.0;
    out->is_left_out = is_left_out(out);
    return STATUS_OK;
}

/* Whether the tensor is one of the first ones, or tied to one: the same numbers before and after.
 */
static int is_known(const struct step_tensor *tensors, uint32_t count,
                    const struct step_tensor *tensor) {
    const size_t bytes = (size_t)tensor->count * dtype_width(tensor->now.dtype);
    for (uint32_t t = 0; t < count; t++) {
        if (strcmp(tensors[t].name, tensor->name) == 0) return 1;
        if (tensors[t].count == tensor->count && tensors[t].now.dtype == tensor->now.dtype &&
            memcmp(tensors[t].now.bytes, tensor->now.bytes, bytes) == 0 &&
            memcmp(tensors[t].old.bytes, tensor->old.bytes, bytes) == 0)
            return 1;
    }
    return 0;
}

/* Where an optimizer stores no count, that of the trainer stands for it. */
static enum status fill_tensors(const struct training_folder *before,
                                const struct training_folder *after, struct arena *arena,
                                struct step *out) {
    struct step_tensor *tensors;
    const size_t most = after->parameter_count + after->weight_count;
    int is_there;
    TRY(arena_take(arena, most, sizeof *tensors, "tensors", &tensors));
    out->tensors = tensors;
    for (size_t i = 0; i < after->parameter_count; i++) {
        const struct training_parameter *const parameter = &after->parameters[i];
        if (parameter->weight == NULL) continue;
        struct step_tensor *const tensor = &tensors[out->tensor_count];
        TRY(fill_weights(before, parameter->weight, tensor, &is_there));
        if (!is_there) continue;
        TRY(fill_masters(before, after, tensor));
        TRY(fill_state(before, out->update, parameter, tensor));
        out->tensor_count++;
    }
    const uint32_t known = out->tensor_count;
    for (size_t i = 0; i < after->weight_count; i++) {
        struct step_tensor *const tensor = &tensors[out->tensor_count];
        TRY(fill_weights(before, after->weights[i], tensor, &is_there));
        out->tensor_count += (uint32_t)(is_there && !is_known(tensors, known, tensor));
    }
    return STATUS_OK;
}

/* ---- groups ---- */

static double number_of(const struct training_group *group, const char *key) {
    double value;
    return training_group_number(group, key, &value) ? value : (double)NAN;
}

static int flag_of(const struct training_group *group, const char *key) {
    double value;
    return training_group_number(group, key, &value) && value != 0.0;
}

static int has_number(const struct training_group *group, const char *key) {
    double value;
    return training_group_number(group, key, &value);
}

/* torch's Adafactor calls it d, transformers' clip_threshold. */
static double largest_step(const struct training_group *group) {
    const char *const key = has_number(group, "d") ? "d" : "clip_threshold";
    return has_number(group, key) ? number_of(group, key) : 1.0;
}

static struct step_group group_of(const struct training_folder *after,
                                  const struct training_group *group) {
    static const enum step_rule rules[TRAINING_RULES] = {
        [TRAINING_ADAM] = STEP_RULE_ADAM,
        [TRAINING_AMSGRAD] = STEP_RULE_ADAM,
        [TRAINING_SGD] = STEP_RULE_SGD,
        [TRAINING_LION] = STEP_RULE_LION,
        [TRAINING_ADAFACTOR] = STEP_RULE_ADAFACTOR,
    };
    const enum step_rule rule = rules[after->rule];
    struct step_group out = {
        .rule = rule,
        .promised = (double)NAN,
        .next = number_of(group, "lr"),
        .initial = number_of(group, "initial_lr"),
        .decay = number_of(group, "weight_decay"),
        .beta1 = number_of(group, "betas[0]"),
        .beta2 = number_of(group, "betas[1]"),
        .eps = number_of(group, "eps"),
        .momentum = number_of(group, "momentum"),
        .dampening = number_of(group, "dampening"),
        .eps2 = number_of(group, "eps[1]"),
        .is_scaled = !(number_of(group, "scale_parameter") == 0.0),
        .nesterov = flag_of(group, "nesterov"),
        .amsgrad = after->rule == TRAINING_AMSGRAD && !(number_of(group, "amsgrad") == 0.0),
        .decoupled = rule == STEP_RULE_LION || (rule == STEP_RULE_ADAM && group->decoupled != 0),
        .is_unsaid = rule == STEP_RULE_ADAM && group->decoupled < 0,
        .is_other_class = (rule == STEP_RULE_ADAM && !has_number(group, "amsgrad")) ||
                          (rule == STEP_RULE_SGD && !has_number(group, "dampening")),
        .is_capturable = flag_of(group, "capturable"),
        .is_hand_set = !has_number(group, "initial_lr") && !after->scheduler.is_there,
        .largest_step = largest_step(group),
    };
    return out;
}

static enum status fill_groups(const struct training_folder *before,
                               const struct training_folder *after, struct arena *arena,
                               struct step *out) {
    struct step_group *groups, *earlier;
    TRY(arena_take(arena, after->group_count, sizeof *groups, "groups", &groups));
    TRY(arena_take(arena, after->group_count, sizeof *earlier, "groups", &earlier));
    for (size_t g = 0; g < after->group_count; g++) {
        groups[g] = group_of(after, &after->groups[g]);
        if (g < before->group_count) groups[g].promised = number_of(&before->groups[g], "lr");
        earlier[g] = groups[g];
        if (g >= before->group_count) continue;
        const struct step_group then = group_of(after, &before->groups[g]);
        earlier[g].decay = then.decay;
        earlier[g].beta1 = then.beta1;
        earlier[g].beta2 = then.beta2;
        earlier[g].eps = then.eps;
        earlier[g].momentum = then.momentum;
        earlier[g].dampening = then.dampening;
    }
    out->groups = groups;
    out->earlier = earlier;
    out->is_ambiguous = after->is_ambiguous;
    out->group_count = (uint32_t)after->group_count;
    return STATUS_OK;
}

/* ---- what was written ---- */

static const char *last_part(const char *path, struct arena *arena) {
    size_t end = strlen(path);
    char *copy;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return arena_text(arena, path + begin, end - begin, &copy) == STATUS_OK ? copy : path;
}

static enum status fill_log(const struct training_folder *after, struct arena *arena,
                            struct update_said *out) {
    struct update_logged *log;
    TRY(arena_take(arena, after->log_count, sizeof *log, "log", &log));
    for (size_t i = 0; i < after->log_count; i++) {
        const struct training_log_row *const row = &after->log[i];
        log[i] = (struct update_logged){(double)row->step, row->has_lr ? row->lr : (double)NAN,
                                        row->has_norm ? row->norm : (double)NAN};
    }
    out->log = log;
    out->log_count = after->log_count;
    return STATUS_OK;
}

/* Accelerate writes the generators of each process into a file of its own. */
static double processes(const struct training_folder *after) {
    unsigned most = 0, rank;
    for (size_t i = 0; i < after->generator_count && after->kind == TRAINING_ACCELERATE; i++)
        if (sscanf(after->generators[i].name, "rank %u:", &rank) == 1 && rank > most) most = rank;
    return (double)most + 1.0;
}

/* The number of the update. A scheduler that steps once an epoch counts nothing here. */
static void number_update(const struct training_folder *before, const struct training_folder *after,
                          struct step *out) {
    const struct training_scheduler *const then = &before->scheduler, *const now =
                                                                          &after->scheduler;
    const int has_scheduler = now->has_last_epoch && then->has_last_epoch && now->last_epoch >= 1 &&
                              now->last_epoch == then->last_epoch + 1;
    const double optimizer = counted(after);
    out->update = (double)NAN;
    if (is_own_count(before, after)) {
        out->update = optimizer;
        out->numbered_by = STEP_BY_OPTIMIZER;
    } else if (after->has_step) {
        out->update = (double)after->global_step;
        out->numbered_by = STEP_BY_TRAINER;
    } else if (has_scheduler && (optimizer < 1.0 || optimizer == (double)now->last_epoch)) {
        out->update = (double)now->last_epoch;
        out->numbered_by = STEP_BY_SCHEDULER;
    } else if (!has_scheduler && optimizer >= 1.0) {
        out->update = optimizer;
        out->numbered_by = STEP_BY_OPTIMIZER;
    }
}

/* ---- parameters without a name ---- */

/* Elements of a tensor that are looked at: a state and a weight that do not belong together differ
 * everywhere. */
#define MATCH_ELEMENTS ((uint64_t)1 << 16)
#define MATCH_LEAST 4 /* fewer would fit anything */

/* A wrong weight leaves this many ulp at least; the right one rate_residual_line at most. Two
 * layers' projections that were exchanged left 1.9e6 in f32 at LR 5e-4 and 4.8e4 at 5e-7; in bf16
 * they left 29 at 5e-4, but 0.7 at 5e-7, where so nothing is decided. */
#define MATCH_WRONG 5.0 /* times RATE_RESIDUAL_LINE, or its like of f64 */

static int is_zero(const struct stored *numbers, uint64_t count) {
    const size_t bytes = (size_t)count * dtype_width(numbers->dtype);
    for (size_t i = 0; numbers->bytes != NULL && i < bytes; i++)
        if (numbers->bytes[i] != 0) return 0;
    return 1;
}

/* Whether a wide weight stayed where it was although its state has a direction. An LR of 0 would
 * explain it, and so any weight that stayed would fit any state. */
static int is_stuck(const struct step_tensor *tensor) {
    return dtype_width(tensor->now.dtype) >= 4 &&
           is_same(&tensor->old, &tensor->now, tensor->count) &&
           !is_zero(&tensor->first, tensor->count);
}

/* What the parameter's state leaves of the weight's changes, as a multiple of what roundings alone
 * may leave (rate_residual_line): at most 1 where the two belong together. NaN where it cannot be
 * measured. */
static double residual_with(const struct training_folder *before, const struct step *step,
                            const struct training_parameter *parameter,
                            const struct safetensors_tensor *weight, struct rate_room *room) {
    struct step_tensor tensor = {.name = weight->name};
    const struct step alone = {.groups = step->groups,
                               .group_count = step->group_count,
                               .tensors = &tensor,
                               .tensor_count = 1,
                               .update = step->update,
                               .numbered_by = step->numbered_by};
    int is_there = 0;
    if (fill_weights(before, weight, &tensor, &is_there) != STATUS_OK || !is_there ||
        fill_state(before, step->update, parameter, &tensor) != STATUS_OK)
        return (double)NAN;
    if (tensor.count > MATCH_ELEMENTS) tensor.count = MATCH_ELEMENTS;
    const struct rate_scope all = {.group = tensor.group, .only = STEP_NO_GROUP};
    const double residual = rate_residual(&alone, all, room);
    if (!tensor.is_left_out && is_stuck(&tensor)) return (double)INFINITY;
    return residual / rate_residual_line(tensor.now.dtype);
}

static int has_shape(const struct training_parameter *parameter,
                     const struct safetensors_tensor *weight) {
    if (parameter->shape == NULL || parameter->rank != weight->rank) return 0;
    for (size_t i = 0; i < weight->rank; i++)
        if (parameter->shape[i] != weight->shape[i]) return 0;
    return weight->count >= MATCH_LEAST;
}

static int is_named(const struct training_folder *after, const struct safetensors_tensor *weight) {
    for (size_t i = 0; i < after->parameter_count; i++)
        if (after->parameters[i].weight == weight) return 1;
    return 0;
}

/* Whether two weights are tied: the same numbers under two names. */
static int is_tied(const struct safetensors_tensor *a, const struct safetensors_tensor *b) {
    return a->dtype == b->dtype && a->end - a->begin == b->end - b->begin &&
           memcmp(a->data, b->data, (size_t)(a->end - a->begin)) == 0;
}

/* The one weight of the parameter's shape that its state explains, where all others are far from
 * it; else NULL. */
static const struct safetensors_tensor *match(const struct training_folder *before,
                                              const struct training_folder *after,
                                              const struct step *step,
                                              const struct training_parameter *parameter,
                                              struct rate_room *room) {
    const struct safetensors_tensor *best = NULL;
    for (size_t i = 0; i < after->weight_count; i++) {
        const struct safetensors_tensor *const weight = after->weights[i];
        if (!has_shape(parameter, weight) || is_named(after, weight)) continue;
        const double residual = residual_with(before, step, parameter, weight, room);
        if (residual > MATCH_WRONG || (best != NULL && is_tied(best, weight))) continue;
        if (best != NULL || !(residual <= 1.0)) return NULL;
        best = weight;
    }
    return best;
}

static size_t claims(const struct safetensors_tensor *const *found, size_t count,
                     const struct safetensors_tensor *weight) {
    size_t out = 0;
    for (size_t i = 0; i < count; i++)
        out += found[i] == weight;
    return out;
}

/* Names what the reader of the folder could not name. Each parameter is held against all weights
 * that had no name before, so the order does not decide. */
static enum status match_all(const struct training_folder *before, struct training_folder *after,
                             const struct step *step, struct rate_room *room, struct arena *arena,
                             uint32_t *out_matched, uint32_t *out_unnamed) {
    const struct safetensors_tensor **found;
    *out_matched = *out_unnamed = 0;
    TRY(arena_take(arena, after->parameter_count, sizeof *found, "names", &found));
    for (size_t i = 0; i < after->parameter_count; i++)
        if (after->parameters[i].weight == NULL && after->parameters[i].has_state)
            found[i] = match(before, after, step, &after->parameters[i], room);
    for (size_t i = 0; i < after->parameter_count; i++) {
        if (after->parameters[i].weight != NULL || !after->parameters[i].has_state) continue;
        const int is_one = found[i] != NULL && claims(found, after->parameter_count, found[i]) == 1;
        *out_matched += (uint32_t)is_one;
        *out_unnamed += (uint32_t)!is_one;
    }
    for (size_t i = 0; i < after->parameter_count; i++)
        if (found[i] != NULL && claims(found, after->parameter_count, found[i]) == 1)
            after->parameters[i].weight = found[i];
    return STATUS_OK;
}

/* Gives parameters whose own weight their state cannot explain the weights that it does, as where a
 * layer was kept from the optimizer and the order of names leaves a choice. If one of them finds
 * none, something else is wrong than names, and all stay. */
static enum status rename_wrong(const struct training_folder *before, struct training_folder *after,
                                const struct step *step, struct rate_room *room,
                                struct arena *arena, uint32_t *out_matched) {
    const size_t count = after->parameter_count;
    const struct safetensors_tensor **kept, **found;
    size_t wrong = 0, right = 0;
    if (after->names_from == TRAINING_NAMES_GIVEN) return STATUS_OK;
    TRY(arena_take(arena, count, sizeof *kept, "names", &kept));
    TRY(arena_take(arena, count, sizeof *found, "names", &found));
    for (size_t i = 0; i < count; i++) {
        struct training_parameter *const parameter = &after->parameters[i];
        if (parameter->weight == NULL || !parameter->has_state ||
            !(residual_with(before, step, parameter, parameter->weight, room) > MATCH_WRONG))
            continue;
        kept[i] = parameter->weight;
        wrong++;
    }
    for (size_t i = 0; i < count; i++)
        if (kept[i] != NULL) after->parameters[i].weight = NULL;
    for (size_t i = 0; i < count; i++)
        if (kept[i] != NULL) found[i] = match(before, after, step, &after->parameters[i], room);
    for (size_t i = 0; i < count; i++)
        right += found[i] != NULL && claims(found, count, found[i]) == 1;
    for (size_t i = 0; i < count; i++)
        if (kept[i] != NULL) after->parameters[i].weight = right == wrong ? found[i] : kept[i];
    *out_matched += right == wrong ? (uint32_t)right : 0u;
    return STATUS_OK;
}

enum status folders_join(const struct training_folder *before, struct training_folder *after,
                         struct rate_room *room, struct arena *arena, struct step *out_step,
                         struct update_said *out_said) {
    const double nan = (double)NAN;
    TRY(check_distance(before, after));
    *out_step = (struct step){.group_count = 0};
    number_update(before, after, out_step);
    *out_said = (struct update_said){.before = last_part(before->path, arena),
                                     .after = last_part(after->path, arena),
                                     .scheduler_counted = nan,
                                     .scheduler_before = nan,
                                     .has_scaler = after->scaler.is_there,
                                     .processes = processes(after),
                                     .expected = {nan, nan, nan, nan, nan, nan}};
    TRY(fill_groups(before, after, arena, out_step));
    TRY(match_all(before, after, out_step, room, arena, &out_said->matched, &out_said->unnamed));
    TRY(rename_wrong(before, after, out_step, room, arena, &out_said->matched));
    TRY(fill_tensors(before, after, arena, out_step));
    if (after->scheduler.has_last_epoch)
        out_said->scheduler_counted = (double)after->scheduler.last_epoch;
    if (before->scheduler.has_last_epoch)
        out_said->scheduler_before = (double)before->scheduler.last_epoch;
    if (before->group_count == after->group_count) {
        struct kept_settings found;
        char *text;
        kept_settings_compare(before, after, &found);
        TRY(arena_format(arena, &text, "%s", found.text));
        out_said->moved = text;
    }
    return fill_log(after, arena, out_said);
}
