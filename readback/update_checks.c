/* SPDX-License-Identifier: Apache-2.0
 * What an update says beside its LR: Adam's count, betas, the norm that came in, the scheduler's
 * count, and tensors that stayed. The decay is in update_decay.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "readback/update_private.h"

/* ---- the optimizer's count ---- */

/* A slip leaves a count one ahead, or two; more is a state that was taken over. */
#define MOST_AHEAD 2.0

/* The largest count of the group's tensors before the update; NaN: none is stored. */
static double counted_before(const struct step *step, uint32_t g) {
    double before = (double)NAN;
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (step->tensors[i].group == g && step->tensors[i].updates_before >= 0.0)
            before = fmax(before, step->tensors[i].updates_before);
    return before;
}

/* Returns how many steps the optimizer counted between two checkpoints between which the scheduler
 * counted one; 0: not so, or it counted one. */
static double steps_between(const struct judging *in, uint32_t g) {
    const double steps = in->out->groups[g].most - counted_before(in->step, g);
    return steps >= 2.0 && in->said->scheduler_counted - in->said->scheduler_before == 1.0 ? steps
                                                                                           : 0.0;
}

static enum status find_steps(struct judging *in, uint32_t g, double steps) {
    return update_find(in, UPDATE_COUNT, 0, g,
                       "the optimizer's count went from %.0f in %s to %.0f in %s, and the "
                       "scheduler's by one: the optimizer stepped %.0f times in this update",
                       in->out->groups[g].most - steps, in->said->before, in->out->groups[g].most,
                       in->said->after, steps);
}

static enum status find_ahead(struct judging *in, uint32_t g, double ahead) {
    const struct step_group *const settings = &in->step->groups[g];
    const double update = in->out->update;
    const double ratio =
        direction_size(settings, update + ahead) / direction_size(settings, update);
    return update_find(
        in, UPDATE_COUNT, 0, g,
        "Adam's count is %.0f after update %.0f, %.0f ahead: it sizes this update by "
        "%.3f of what the right count does. (torch's get_optimizer_state_dict, called "
        "before the first update, leaves it so)",
        in->out->groups[g].most, update, ahead, ratio);
}

/* Optimizer and scheduler count unlike, and nobody else counts. */
static enum status find_unlike(struct judging *in, uint32_t g) {
    const double most = in->out->groups[g].most, scheduler = in->said->scheduler_counted;
    const double ahead = most - scheduler;
    if (ahead == 1.0 && in->step->groups[g].rule == STEP_RULE_ADAM)
        return update_find(in, UPDATE_COUNT, 0, g,
                           "the optimizer's count is %.0f and the scheduler's (last_epoch) %.0f: "
                           "either Adam's count is one ahead, which sizes this update by %.3f, or "
                           "the scheduler is one update behind; the gradient norms of a log would "
                           "tell (--log, and --expect max_grad_norm=N where they were clipped)",
                           most, scheduler,
                           direction_size(&in->step->groups[g], most) /
                               direction_size(&in->step->groups[g], scheduler));
    return update_find(
        in, UPDATE_COUNT, 1, g,
        "the optimizer's count is %.0f and the scheduler's (last_epoch) %.0f: the scheduler counts "
        "epochs, or one of them was not restored",
        most, scheduler);
}

/* What the moments add to a count that began anew. */
static const char *moments_of(const struct input_betas *betas) {
    if (betas->state == INPUT_BETAS_ANEW)
        return "its state began anew in between, and the moments were lost";
    if (betas->state == INPUT_BETAS_NONE)
        return "its state is another one, and the moments follow neither from those before nor "
               "from none";
    return "its state began anew in between; the moments, which would show whether they were lost, "
           "are too few or too narrow";
}

/* The count began anew. Whether the moments did as well is another question, which their own
 * relation answers (input_betas_read). */
static enum status find_anew(struct judging *in, uint32_t g, double before) {
    const struct update_group *const group = &in->out->groups[g];
    const struct step_group *const settings = &in->step->groups[g];
    if (group->betas.state == INPUT_BETAS_AGREE && before >= 1.0)
        return update_find(in, UPDATE_COUNT, 0, g,
                           "the optimizer's count was %.0f in %s and is %.0f in %s, although the "
                           "moments went on: it sizes this update by %.3f of what the right count "
                           "does",
                           before, in->said->before, group->most, in->said->after,
                           direction_size(settings, group->most) /
                               direction_size(settings, before + 1.0));
    if (before >= 1.0)
        return update_find(
            in, UPDATE_RESTART, 0, g, "the optimizer's count was %.0f in %s and is %.0f in %s: %s",
            before, in->said->before, group->most, in->said->after, moments_of(&group->betas));
    return update_find(in, UPDATE_RESTART, 0, g,
                       "the optimizer's count is %.0f after update %.0f: its state began anew, and "
                       "the moments were lost",
                       group->most, in->out->update);
}

/* Whether the update left out all tensors of a group. */
static int is_left_out(const struct step *step, uint32_t g) {
    uint32_t tensors = 0, out = 0;
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        tensors += step->tensors[i].group == g;
        out += step->tensors[i].group == g && step->tensors[i].is_left_out;
    }
    return tensors > 0 && out == tensors;
}

/* Whether the count says that the state is not that of the checkpoint before. */
static int is_counted_anew(const struct judging *in, uint32_t g) {
    const double most = in->out->groups[g].most;
    return most < counted_before(in->step, g) || (most == 1.0 && in->out->update > 1.0);
}

/* A count below the trainer's is common: a loss scaler's skipped updates are counted by the trainer
 * alone. One that fell is not. */
enum status update_judge_count(struct judging *in, uint32_t g) {
    const struct update_group *const group = &in->out->groups[g];
    const double update = in->out->update, most = group->most;
    const double before = counted_before(in->step, g);
    if (is_left_out(in->step, g)) return STATUS_OK;
    if (most == 1.0 && update > 1.0 && !(before >= 0.0) && in->step->groups[g].promised >= 0.0)
        return update_find(in, UPDATE_COUNT, 1, g,
                           "its state begins with update %.0f: a group that was frozen or added, "
                           "or updates that a loss scaler skipped",
                           update);
    if (is_counted_anew(in, g)) return find_anew(in, g, before);
    if (steps_between(in, g) > 0.0) return find_steps(in, g, steps_between(in, g));
    if (in->out->numbered_by == STEP_BY_NOBODY && most >= 1.0 &&
        in->said->scheduler_counted >= 1.0 &&
        in->said->scheduler_counted - in->said->scheduler_before == 1.0)
        return find_unlike(in, g);
    if (in->step->groups[g].rule == STEP_RULE_ADAM && most > update) {
        if (most - update > MOST_AHEAD && most == before + 1.0)
            return update_find(in, UPDATE_COUNT, 1, g,
                               "the optimizer has counted %.0f updates and the trainer %.0f: its "
                               "state is that of an earlier training",
                               most, update);
        TRY(find_ahead(in, g, most - update));
    }
    if (most < update)
        return update_find(in, UPDATE_COUNT, 1, g,
                           "the optimizer has counted %.0f updates and the trainer %.0f: a loss "
                           "scaler skipped some, or the optimizer's state is younger",
                           most, update);
    if (group->fewest < most)
        return update_find(in, UPDATE_COUNT, 1, g,
                           "the optimizer's counts lie between %.0f and %.0f: some tensors had no "
                           "gradient in some updates",
                           group->fewest, most);
    return STATUS_OK;
}

/* ---- betas ---- */

/* Whether more than one update may lie between the two, as far as anything counts: the scheduler
 * went on by several, and no optimizer or trainer says otherwise. */
static int may_lie_apart(const struct judging *in) {
    const double went = in->said->scheduler_counted - in->said->scheduler_before;
    for (uint32_t i = 0; i < in->step->tensor_count; i++)
        if (in->step->tensors[i].updates >= 0.0) return 0;
    return in->out->numbered_by == STEP_BY_NOBODY && went >= 2.0 && went != in->said->processes;
}

static int has_other_state(const struct judging *in) { /* once all groups are judged */
    for (uint32_t g = 0; g < in->step->group_count; g++)
        if (in->out->groups[g].betas.state == INPUT_BETAS_NONE) return 1;
    return 0;
}

/* Yogi and ADOPT keep the moments of Adam's names and make them in another way. */
enum status update_judge_betas(struct judging *in, uint32_t g) {
    const struct input_betas *const betas = &in->out->groups[g].betas;
    const struct step_group *const settings = &in->step->groups[g];
    if (betas->state == INPUT_BETAS_OTHER)
        return update_find(
            in, UPDATE_BETAS, settings->is_other_class, g,
            "the moments were made with betas (%s, %s), and the file says (%s, %s)",
            number_text_f64(betas->beta1).text, update_number(betas->beta2, 1e-4).text,
            number_text_f64(settings->beta1).text, number_text_f64(settings->beta2).text);
    /* Where the count began anew it has been said, with what the moments show (find_anew). */
    if (is_counted_anew(in, g) && counted_before(in->step, g) >= 1.0) return STATUS_OK;
    if (steps_between(in, g) > 0.0)
        return STATUS_OK; /* moments of several steps follow from none */
    if (betas->state == INPUT_BETAS_ANEW)
        return update_find(in, UPDATE_RESTART, 0, g,
                           "the moments of %s are those of one gradient alone, although the "
                           "optimizer's count went on: those of %s were lost",
                           in->said->after, in->said->before);
    if (betas->state == INPUT_BETAS_NONE && may_lie_apart(in))
        return update_find(in, UPDATE_RESTART, 1, g,
                           "the moments of %s do not follow from those of %s, whatever the betas, "
                           "and no file counts updates: as the scheduler does, others may lie "
                           "between them (docs/READBACK.md says how consecutive ones are saved)",
                           in->said->after, in->said->before);
    if (betas->state == INPUT_BETAS_NONE)
        return update_find(in, UPDATE_RESTART, settings->is_other_class, g,
                           "the moments of %s do not follow from those of %s, whatever the betas: "
                           "the update began from another state",
                           in->said->after, in->said->before);
    return STATUS_OK;
}

/* ---- what the user configured ---- */

static enum status expect(struct judging *in, uint32_t g, const char *name, double there,
                          double expected) {
    if (!(fabs(expected) >= 0.0) || there == expected || !(fabs(there) >= 0.0)) return STATUS_OK;
    return update_find(in, UPDATE_SETTINGS, 0, g,
                       "the optimizer's file has %s %s, and %s was to be expected", name,
                       number_text_f64(there).text, number_text_f64(expected).text);
}

/* torch's Adam and AdamW are one class but for this flag, so an Adam where AdamW was meant is known
 * only to who meant it. */
static enum status expect_coupling(struct judging *in, uint32_t g) {
    const struct step_group *const group = &in->step->groups[g];
    const double expected = in->said->expected.decoupled;
    if (!(expected >= 0.0) || !(group->decay > 0.0) || group->is_unsaid ||
        (expected != 0.0) == (group->decoupled != 0))
        return STATUS_OK;
    return update_find(in, UPDATE_COUPLED, 0, g,
                       group->decoupled
                           ? "the decay of %s acts on the weights, as AdamW's does, and "
                             "decoupled_weight_decay=0 was to be expected"
                           : "the decay of %s goes through the gradient and Adam's moments, as "
                             "torch.optim.Adam's does, and decoupled_weight_decay=1 was to be "
                             "expected",
                       number_text_f64(group->decay).text);
}

/* A group whose decay is 0 holds biases and norms as a rule. */
enum status update_judge_settings(struct judging *in, uint32_t g) {
    const struct step_group *const group = &in->step->groups[g];
    const struct update_expected *const expected = &in->said->expected;
    if (group->decay != 0.0) TRY(expect(in, g, "weight_decay", group->decay, expected->decay));
    if (group->rule != STEP_RULE_ADAM && group->rule != STEP_RULE_LION) return STATUS_OK;
    if (group->rule == STEP_RULE_ADAM) TRY(expect_coupling(in, g));
    TRY(expect(in, g, "betas[0]", group->beta1, expected->beta1));
    TRY(expect(in, g, "betas[1]", group->beta2, expected->beta2));
    return expect(in, g, "eps", group->eps, expected->eps);
}

/* A setting may be moved on purpose, and no file says whether it was. The reading is by those of
 * the file behind the update, which can be moved after its step, too. */
enum status update_judge_moved(struct judging *in) {
    const char *const moved = in->said->moved;
    if (moved == NULL || moved[0] == '\0') return STATUS_OK;
    return update_find(in, UPDATE_SETTINGS, 1, STEP_NO_GROUP,
                       "settings of the optimizer were moved between %s and %s: %s",
                       in->said->before, in->said->after, moved);
}

/* ---- tensors that stay ---- */

static int has_moved(const struct step_tensor *tensor) {
    const size_t width = dtype_width(tensor->now.dtype);
    return memcmp(tensor->old.bytes, tensor->now.bytes, (size_t)tensor->count * width) != 0;
}

/* Some names of a list, with how many there are. */
struct names {
    uint32_t count;
    size_t length;
    char text[400];
};

static void add_name(struct names *names, const char *name) {
    names->count++;
    const size_t room = sizeof names->text - names->length;
    if (names->count > 3) return;
    const int printed =
        snprintf(names->text + names->length, room, "%s%s", names->count > 1 ? ", " : "", name);
    names->length += printed > 0 && (size_t)printed < room ? (size_t)printed : 0;
}

static const char *more(const struct names *names) {
    return names->count > 3 ? ", ..." : "";
}

static int is_frozen(const struct step_tensor *tensor) {
    const int has_state = tensor->group != STEP_NO_GROUP && tensor->first.bytes != NULL;
    return !has_state && !has_moved(tensor);
}

/* ---- the norm ---- */

/* Norm and coefficient are computed in the gradients' dtype. Where these are bf16, as beside
 * masters in f32, each has a rounding of 2^-8. */
#define UPDATE_NORM_SHARE 0x1p-7

/* Fewer gradients reached the optimizer than were clipped. Where tensors have no state in it,
 * theirs are what is missing; a tensor that was frozen on purpose has none, and would not be
 * missed. */
static enum status find_less(struct judging *in, double expected, double slack) {
    const double received = in->out->norm.norm, logged = in->out->logged_norm;
    const double most = in->said->expected.max_norm;
    struct names forgotten = {.count = 0};
    for (uint32_t i = 0; i < in->step->tensor_count; i++)
        if (is_frozen(&in->step->tensors[i])) add_name(&forgotten, in->step->tensors[i].name);
    if (forgotten.count == 0 || received > expected)
        return update_find(in, UPDATE_CLIP, 0, STEP_NO_GROUP,
                           "the optimizer took in a gradient of norm %s; the log has %s, clipped "
                           "to %s that is %s",
                           update_number(received, slack).text, number_text_f64(logged).text,
                           number_text_f64(most).text, number_text_f64(expected).text);
    const double missing = real_sqrt_f64(expected * expected - received * received);
    return update_find(
        in, UPDATE_FROZEN, 0, STEP_NO_GROUP,
        "%" PRIu32 " %s no state in the optimizer and did not move although %s "
        "gradients (%s%s): the log's norm of %s, clipped to %s, holds %s that the "
        "optimizer did not take in. It was never given them, or the log has an average",
        forgotten.count, forgotten.count == 1 ? "tensor has" : "tensors have",
        forgotten.count == 1 ? "it had" : "they had", forgotten.text, more(&forgotten),
        number_text_f64(logged).text, number_text_f64(most).text,
        update_number(missing, slack * expected / missing).text);
}

enum status update_judge_norm(struct judging *in) {
    const struct input_norm *const norm = &in->out->norm;
    const double logged = in->out->logged_norm, most = in->said->expected.max_norm;
    if (!norm->is_known || !(norm->norm >= 0.0)) return STATUS_OK;
    for (uint32_t g = 0; g < in->step->group_count; g++) /* the decay may be inside the gradient */
        if (in->step->groups[g].is_unsaid && in->step->groups[g].decay > 0.0) return STATUS_OK;
    const double slack = norm->error + UPDATE_NORM_SHARE * norm->norm;
    const double printed = update_log_slack(in->said, 1);
    if (most > 0.0 && norm->norm - slack > most)
        return update_find(
            in, UPDATE_CLIP, 0, STEP_NO_GROUP,
            "the optimizer took in a gradient of norm %s, which was to be clipped to "
            "%s: clipping ran after the step, or not at all",
            update_number(norm->norm, slack).text, number_text_f64(most).text);
    if (!(logged >= 0.0)) return STATUS_OK;
    const double expected = most > 0.0 && logged > most ? most : logged;
    if (most > 0.0 && fabs(norm->norm - expected) > slack + printed)
        return find_less(in, expected, slack);
    if (norm->norm - slack > logged + printed)
        return update_find(
            in, UPDATE_CLIP, 1, STEP_NO_GROUP,
            "the optimizer took in a gradient of norm %s, more than the %s of the log: it has an "
            "average, or the norm after clipping",
            update_number(norm->norm, slack).text, number_text_f64(logged).text);
    return STATUS_OK;
}

/* ---- the scheduler ---- */

/* Two counters that agree accuse a third. Skipped updates hold optimizer and scheduler back alike.
 */
static enum status find_shifted(struct judging *in) {
    const double counted = in->said->scheduler_counted, update = in->out->update;
    const int is_independent =
        in->out->numbered_by == STEP_BY_TRAINER || in->out->numbered_by == STEP_BY_LOG;
    if (!is_independent || in->step->group_count == 0 || in->out->groups[0].most != update ||
        counted == update)
        return STATUS_OK;
    return update_find(
        in, UPDATE_SCHEDULER, counted < update - 1.0, STEP_NO_GROUP,
        "after update %.0f the scheduler's count (last_epoch) is %.0f, %.0f %s: %severy "
        "LR is that of another update",
        update, counted, fabs(counted - update), counted < update ? "behind" : "ahead",
        counted < update - 1.0 ? "it counts epochs, or " : "");
}

enum status update_judge_scheduler(struct judging *in) {
    const double counted = in->said->scheduler_counted - in->said->scheduler_before;
    if (counted == 1.0) return find_shifted(in);
    if (!(counted >= 2.0)) return STATUS_OK;
    if (may_lie_apart(in) && has_other_state(in))
        return update_find(in, UPDATE_SCHEDULER, 1, STEP_NO_GROUP,
                           "the scheduler counted from %.0f to %.0f: the two checkpoints are %.0f "
                           "updates apart, or it was stepped more than once in one",
                           in->said->scheduler_before, in->said->scheduler_counted, counted);
    if (counted == in->said->processes)
        return update_find(in, UPDATE_SCHEDULER, 1, STEP_NO_GROUP,
                           "the scheduler counted from %.0f to %.0f in one update: once for each "
                           "of the %.0f processes, as Accelerate does",
                           in->said->scheduler_before, in->said->scheduler_counted, counted);
    return update_find(
        in, UPDATE_SCHEDULER, 0, STEP_NO_GROUP,
        "the scheduler counted from %.0f to %.0f in one update: it was stepped %.0f "
        "times (a second scheduler.step(), or Accelerate's, which steps once for each "
        "process)",
        in->said->scheduler_before, in->said->scheduler_counted, counted);
}

static int is_forgetting_found(const struct judging *in) {
    for (size_t i = 0; i < in->out->finding_count; i++)
        if (in->out->findings[i].kind == UPDATE_FROZEN && !in->out->findings[i].is_remark) return 1;
    return 0;
}

/* Without any optimizer nothing says what moved a tensor, or should have. */
static enum status say_unowned(struct judging *in, const struct names *moved,
                               const struct names *stayed) {
    if (moved->count > 0)
        TRY(update_find(in, UPDATE_OUTSIDE, 1, STEP_NO_GROUP,
                        "%" PRIu32 " %s moved; the optimizer's file is missing, so what moved %s "
                        "cannot be told (%s%s)",
                        moved->count, moved->count == 1 ? "tensor" : "tensors",
                        moved->count == 1 ? "it" : "them", moved->text, more(moved)));
    if (stayed->count == 0) return STATUS_OK;
    return update_find(in, UPDATE_FROZEN, 1, STEP_NO_GROUP,
                       "%" PRIu32 " %s did not move; the optimizer's file is missing, so whether "
                       "%s trained cannot be told (%s%s)",
                       stayed->count, stayed->count == 1 ? "tensor" : "tensors",
                       stayed->count == 1 ? "it is" : "they are", stayed->text, more(stayed));
}

enum status update_judge_tensors(struct judging *in) {
    struct names frozen = {.count = 0}, stuck = {.count = 0}, outside = {.count = 0};
    struct names left_out = {.count = 0};
    for (uint32_t i = 0; i < in->step->tensor_count; i++) {
        const struct step_tensor *const tensor = &in->step->tensors[i];
        const int moved = has_moved(tensor);
        const int has_state = tensor->group != STEP_NO_GROUP && tensor->first.bytes != NULL;
        if (moved && (tensor->group == STEP_NO_GROUP || tensor->is_left_out))
            add_name(&outside, tensor->name);
        if (is_frozen(tensor)) add_name(&frozen, tensor->name);
        in->out->stateless += (uint32_t)is_frozen(tensor);
        if (tensor->is_left_out) add_name(&left_out, tensor->name);
        if (!moved && has_state && !tensor->is_left_out) add_name(&stuck, tensor->name);
        if (!moved && tensor->group != STEP_NO_GROUP) in->out->groups[tensor->group].frozen++;
    }
    if (in->step->group_count == 0) return say_unowned(in, &outside, &frozen);
    if (in->said->unnamed > 0)
        TRY(update_find(in, UPDATE_UNNAMED, 1, STEP_NO_GROUP,
                        "%" PRIu32 " of the optimizer's parameters fit no weight, or several: "
                        "nothing was read of them; give their names with --names FILE",
                        in->said->unnamed));
    if (frozen.count > 0 && !is_forgetting_found(in))
        TRY(update_find(in, UPDATE_FROZEN, 1, STEP_NO_GROUP,
                        "%" PRIu32 " %s did not move and %s no state in the optimizer: frozen, or "
                        "never given to it (%s%s)",
                        frozen.count, frozen.count == 1 ? "tensor" : "tensors",
                        frozen.count == 1 ? "has" : "have", frozen.text, more(&frozen)));
    if (stuck.count > 0)
        TRY(update_find(
            in, UPDATE_FROZEN, 1, STEP_NO_GROUP,
            "%" PRIu32 " %s in the optimizer's hands did not move: an LR of 0, or steps "
            "that rounding swallowed (%s%s)",
            stuck.count, stuck.count == 1 ? "tensor" : "tensors", stuck.text, more(&stuck)));
    if (left_out.count > 0)
        TRY(update_find(in, UPDATE_FROZEN, 1, STEP_NO_GROUP,
                        "%" PRIu32 " %s out by this update, their count and moments as before: no "
                        "gradient reached them, or a loss scaler skipped it (%s%s)",
                        left_out.count,
                        left_out.count == 1 ? "tensor was left" : "tensors were left",
                        left_out.text, more(&left_out)));
    if (outside.count > 0)
        TRY(update_find(in, UPDATE_OUTSIDE, 1, STEP_NO_GROUP,
                        "%" PRIu32 " %s moved without the optimizer: a buffer, another "
                        "optimizer's, or another's by a wrong name (%s%s)",
                        outside.count, outside.count == 1 ? "tensor" : "tensors", outside.text,
                        more(&outside)));
    return STATUS_OK;
}
