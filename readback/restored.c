/* SPDX-License-Identifier: Apache-2.0
 * The update after a restart is read like any other; what it was made from follows. */
#include "readback/restored.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "readback/generators.h"
#include "readback/kept_settings.h"

const char *const restart_part_names[RESTART_PARTS] = {
    "weights", "moments", "count", "scheduler", "settings", "scaler", "generators", "position"};
const char *const restart_state_names[4] = {"restored", "lost", "untold", "absent"};

struct restarting {
    const struct training_folder *before, *after;
    const struct step *step;
    const struct update_reading *reading;
    const struct restart_more *more;
    struct arena *arena;
};

static enum status say(const struct restarting *in, struct restart_item *out,
                       enum restart_state state, const char *format, ...) TWINSTEP_PRINTF(4, 5);
static enum status say(const struct restarting *in, struct restart_item *out,
                       enum restart_state state, const char *format, ...) {
    char text[800], *kept;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    TRY(arena_format(in->arena, &kept, "%s", text));
    *out = (struct restart_item){.state = state, .text = kept};
    return STATUS_OK;
}

static const struct update_finding *find(const struct restarting *in,
                                         enum update_finding_kind kind) {
    for (size_t i = 0; i < in->reading->finding_count; i++) {
        const struct update_finding *const finding = &in->reading->findings[i];
        if (finding->kind == kind && !finding->is_remark) return finding;
    }
    return NULL;
}

/* ---- weights, moments, count ---- */

/* Weights that the update began from are those of the checkpoint if one LR explains how each group
 * moved away from them: to a fraction of an ulp, or by the intervals of nearly all elements. */
static enum status judge_weights(const struct restarting *in, struct restart_item *out) {
    const struct update_finding *const masters = find(in, UPDATE_MASTERS);
    uint32_t explained = 0, other = 0;
    if (masters != NULL) return say(in, out, RESTART_LOST, "%s", masters->text);
    for (uint32_t g = 0; g < in->step->group_count; g++) {
        const enum rate_state state = in->reading->groups[g].reading.lr.state;
        explained += state == RATE_READ;
        other += state == RATE_UNEXPLAINED;
    }
    if (other > 0)
        return say(in, out, RESTART_UNTOLD,
                   "no LR explains how the weights moved from those of the checkpoint: the update "
                   "began from other weights, or the optimizer is not what its file says");
    if (explained == 0)
        return say(in, out, RESTART_UNTOLD,
                   "the update cannot be read back, so neither can its "
                   "start");
    return say(in, out, RESTART_RESTORED,
               "the update began from the weights of the checkpoint: its own direction explains "
               "how they moved");
}

/* The checkpoint that holds no optimizer, or NULL. */
static const struct training_folder *without_optimizer(const struct restarting *in) {
    if (in->before->optimizer_path == NULL) return in->before;
    return in->after->optimizer_path == NULL ? in->after : NULL;
}

static enum status judge_moments(const struct restarting *in, struct restart_item *out) {
    const struct update_finding *const anew = find(in, UPDATE_RESTART);
    const struct training_folder *const bare = without_optimizer(in);
    uint32_t agree = 0;
    if (anew != NULL) return say(in, out, RESTART_LOST, "%s", anew->text);
    for (uint32_t g = 0; g < in->step->group_count; g++)
        agree += in->reading->groups[g].betas.state == INPUT_BETAS_AGREE;
    if (agree > 0)
        return say(in, out, RESTART_RESTORED,
                   "first and second moments after the update follow from those of the checkpoint "
                   "with one gradient");
    if (bare != NULL) return say(in, out, RESTART_UNTOLD, "%s: %s", bare->path, bare->rule_reason);
    return say(in, out, RESTART_UNTOLD,
               "the moments are of a rule, or too narrow, for their step to be checked");
}

static int is_left_out(const struct step *step) {
    for (uint32_t i = 0; i < step->tensor_count; i++)
        if (step->tensors[i].group != STEP_NO_GROUP && !step->tensors[i].is_left_out) return 0;
    return step->tensor_count > 0;
}

/* The optimizer's largest counts before and after the update; NaN: none is stored. */
static void counts_of(const struct step *step, double *out_before, double *out_after) {
    *out_before = *out_after = (double)NAN;
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        *out_after = fmax(*out_after, step->tensors[i].updates);
        *out_before = fmax(*out_before, step->tensors[i].updates_before);
    }
}

static enum status judge_count(const struct restarting *in, struct restart_item *out) {
    double most, before;
    counts_of(in->step, &before, &most);
    if (!(most >= 0.0) || !(before >= 0.0))
        return say(in, out, RESTART_ABSENT,
                   without_optimizer(in) != NULL ? "no optimizer is stored in both checkpoints"
                                                 : "the optimizer stores no count");
    if (most == before && is_left_out(in->step))
        return say(in, out, RESTART_UNTOLD,
                   "the optimizer's count stayed at %.0f, and its moments as they were: it made no "
                   "update, as after an overflow of the loss scaler; the next checkpoint tells",
                   most);
    if (most == before + 1.0)
        return say(in, out, RESTART_RESTORED, "the optimizer's count went from %.0f to %.0f",
                   before, most);
    return say(in, out, RESTART_LOST, "the optimizer's count was %.0f and is %.0f after one update",
               before, most);
}

/* ---- scheduler and scaler ---- */

static int has_other_peak(const struct training_scheduler *a, const struct training_scheduler *b) {
    if (a->base_count != b->base_count) return 1;
    for (size_t i = 0; i < a->base_count; i++)
        if (a->base_lrs[i] != b->base_lrs[i]) return 1;
    return 0;
}

/* What of a scheduler is not what it was: peak, count; else nothing. */
static void other_scheduler(const struct training_scheduler *then,
                            const struct training_scheduler *now, char out[160]) {
    if (has_other_peak(then, now))
        snprintf(out, 160, "its peak (base_lrs) was %s and is %s; ",
                 update_number(then->base_count > 0 ? then->base_lrs[0] : 0.0, 0.0).text,
                 update_number(now->base_count > 0 ? now->base_lrs[0] : 0.0, 0.0).text);
    else if (then->has_last_epoch && now->has_last_epoch && now->last_epoch < then->last_epoch)
        snprintf(out, 160, "its count (last_epoch) was %" PRId64 " and is %" PRId64 "; ",
                 then->last_epoch, now->last_epoch);
}

/* What is known of the LR that the first update applied, by the worst known group. */
enum first_lr { FIRST_LR_APPLIED = 0, FIRST_LR_OPEN, FIRST_LR_UNREAD, FIRST_LR_OTHER };

/* The LR that was promised to a group: by the optimizer's file, else by the scheduler's. */
static double promised_to(const struct restarting *in, uint32_t g) {
    const struct training_scheduler *const then = &in->before->scheduler;
    const double promised = in->step->groups[g].promised;
    if (promised == promised || g >= then->last_count) return promised;
    return then->last_lrs[g];
}

static enum first_lr first_lr_of(const struct restarting *in, uint32_t g) {
    const struct update_group *const group = &in->reading->groups[g];
    const struct rate *const lr = &group->reading.lr;
    const double promised = promised_to(in, g);
    const int is_read = lr->state == RATE_READ || lr->state == RATE_AT_MOST;
    if (group->verdict == UPDATE_KEPT) return FIRST_LR_APPLIED;
    if (!is_read || !(promised >= 0.0)) return FIRST_LR_UNREAD;
    return promised >= lr->low && promised <= lr->high ? FIRST_LR_OPEN : FIRST_LR_OTHER;
}

static const char *last_part(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static enum first_lr say_first_lr(const struct restarting *in, char out[256]) {
    static const char *const words[] = {
        [FIRST_LR_APPLIED] = "the LR that was promised was applied",
        [FIRST_LR_OPEN] = "the numbers do not exclude the LR that was promised",
        [FIRST_LR_UNREAD] = "which LR the first update applied cannot be read",
    };
    enum first_lr worst = in->step->group_count == 0 ? FIRST_LR_UNREAD : FIRST_LR_APPLIED;
    for (uint32_t g = 0; g < in->step->group_count; g++) {
        const enum first_lr found = first_lr_of(in, g);
        const struct rate *const lr = &in->reading->groups[g].reading.lr;
        if (found <= worst) continue;
        worst = found;
        if (found == FIRST_LR_OTHER)
            snprintf(out, 256, "%s promised %s, and %s%s was applied", last_part(in->before->path),
                     number_text_f64(promised_to(in, g)).text,
                     lr->state == RATE_AT_MOST ? "at most " : "",
                     lr->state == RATE_AT_MOST
                         ? update_bar(fmax(fabs(lr->low), fabs(lr->high))).text
                         : update_number(lr->value, (lr->high - lr->low) / 2.0).text);
    }
    if (worst != FIRST_LR_OTHER) snprintf(out, 256, "%s", words[worst]);
    return worst;
}

/* A scheduler counts once for each update, or in Accelerate once for each process. One whose count
 * moved by another number was restored as something else, unless it does so at every update. */
static enum status judge_moved(const struct restarting *in, double moved, const char *first,
                               enum first_lr known, struct restart_item *out) {
    const int64_t then = in->before->scheduler.last_epoch, now = in->after->scheduler.last_epoch;
    double before, after;
    counts_of(in->step, &before, &after);
    if (moved == 0.0)
        return say(in, out, known == FIRST_LR_APPLIED ? RESTART_RESTORED : RESTART_UNTOLD,
                   "its count (last_epoch) stayed at %" PRId64
                   ", as of one that counts epochs or did not step; %s",
                   now, first);
    if (after - before == moved)
        return say(in, out, RESTART_UNTOLD,
                   "its count (last_epoch) went from %" PRId64 " to %" PRId64
                   ", as the optimizer's did: %.0f updates lie between, or both began from "
                   "elsewhere; %s",
                   then, now, moved, first);
    if (find(in, UPDATE_SCHEDULER) == NULL) /* a remark says what else explains it */
        return say(in, out, known == FIRST_LR_APPLIED ? RESTART_RESTORED : RESTART_UNTOLD,
                   "its count (last_epoch) went from %" PRId64 " to %" PRId64
                   ", as where each process counts, or where several updates lie between; %s",
                   then, now, first);
    return say(in, out, RESTART_LOST,
               "its count (last_epoch) went from %" PRId64 " to %" PRId64
               " in one update: it was not restored as it was, or steps %.0f times in every "
               "update; %s",
               then, now, moved, first);
}

/* The first update had another LR than was promised. Where the optimizer began anew and the
 * scheduler's count went on, the LR is that optimizer's own: load_state_dict of a scheduler of
 * torch sets none before it steps. */
static enum status judge_other_lr(const struct restarting *in, const char *other, const char *first,
                                  enum first_lr known, struct restart_item *out) {
    const struct training_scheduler *const then = &in->before->scheduler;
    const struct training_scheduler *const now = &in->after->scheduler;
    const char *const lr = find(in, UPDATE_LR)->text;
    const int counts = then->is_there && now->is_there && then->has_last_epoch &&
                       now->has_last_epoch && other[0] == '\0';
    const int64_t moved = counts ? now->last_epoch - then->last_epoch : 0;
    if (moved == 1 && known == FIRST_LR_OTHER && find(in, UPDATE_RESTART) != NULL)
        return say(in, out, RESTART_RESTORED,
                   "its count (last_epoch) went from %" PRId64 " to %" PRId64
                   "; %s: the LR of an optimizer that began anew, which keeps its own until the "
                   "scheduler sets the next",
                   then->last_epoch, now->last_epoch, first);
    if (moved > 1)
        return say(in, out, RESTART_LOST,
                   "its count (last_epoch) was %" PRId64 " and is %" PRId64 " after one update; %s",
                   then->last_epoch, now->last_epoch, lr);
    return say(in, out, RESTART_LOST, "%s%s", other, lr);
}

/* LRs of the next update, as optimizers' files hold them. */
static double next_lr(const struct training_folder *of, size_t group) {
    double lr;
    return group < of->group_count && training_group_number(&of->groups[group], "lr", &lr)
               ? lr
               : (double)NAN;
}

/* The first group whose LR for the next update is another one in `b` than in `a`; SIZE_MAX: none
 * is. `*out_held`: how many have one in both. A schedule that is computed by recursion may leave
 * other last bits. */
static size_t other_next(const struct training_folder *a, const struct training_folder *b,
                         size_t *out_held) {
    *out_held = 0;
    for (size_t g = 0; g < a->group_count; g++) {
        const double x = next_lr(a, g), y = next_lr(b, g);
        if (!(fabs(x - y) >= 0.0)) continue;
        (*out_held)++;
        if (fabs(x - y) > 1e-9 * fmax(fabs(x), fabs(y))) return g;
    }
    return SIZE_MAX;
}

/* Without a scheduler's file the LRs that the optimizer's files hold for the next update tell
 * whether there is a schedule. */
static enum status judge_unstored(const struct restarting *in, struct restart_item *out) {
    const int is_one = in->before->scheduler.is_there || in->after->scheduler.is_there;
    const char *const where = is_one ? "a scheduler is stored in one of the two checkpoints only"
                                     : "no scheduler is stored in either checkpoint";
    const struct training_folder *const whole = in->more->of_whole;
    size_t held, of_whole;
    const size_t group = other_next(in->before, in->after, &held);
    if (group == SIZE_MAX)
        return say(in, out, is_one ? RESTART_UNTOLD : RESTART_ABSENT, "%s", where);
    if (whole != NULL && other_next(in->after, whole, &of_whole) == SIZE_MAX && of_whole == held)
        return say(in, out, RESTART_RESTORED,
                   "%s; the optimizer's LR after the update is that of the run that was not "
                   "interrupted",
                   where);
    return say(in, out, RESTART_UNTOLD, "%s, and the LR moved from %s to %s%s", where,
               number_text_f64(next_lr(in->before, group)).text,
               number_text_f64(next_lr(in->after, group)).text,
               whole != NULL ? ""
                             : ": a schedule that began anew shows in the next update; the "
                               "checkpoint of a run that was not interrupted (--uninterrupted) "
                               "would tell");
}

/* Whatever the files of schedulers say, the run that was not interrupted has the right LR. */
static enum status compare_next(const struct restarting *in, struct restart_item *out) {
    const struct training_folder *const whole = in->more->of_whole;
    size_t held;
    if (whole == NULL || out->state == RESTART_LOST) return STATUS_OK;
    const size_t group = other_next(in->after, whole, &held);
    if (group == SIZE_MAX) return STATUS_OK;
    return say(in, out, RESTART_LOST,
               "the optimizer of %s holds LR %s after the update, and that of the run that was not "
               "interrupted %s; %s",
               last_part(in->after->path), number_text_f64(next_lr(in->after, group)).text,
               number_text_f64(next_lr(whole, group)).text, out->text);
}

static enum status judge_scheduler(const struct restarting *in, struct restart_item *out) {
    const struct training_scheduler *const then = &in->before->scheduler;
    const struct training_scheduler *const now = &in->after->scheduler;
    char other[160] = "", first[256];
    const enum first_lr known = say_first_lr(in, first);
    if (then->is_there && now->is_there) other_scheduler(then, now, other);
    if (find(in, UPDATE_LR) != NULL) return judge_other_lr(in, other, first, known, out);
    if (!then->is_there || !now->is_there) return judge_unstored(in, out);
    if (other[0] != '\0') return say(in, out, RESTART_LOST, "%s%s", other, first);
    if (!then->has_last_epoch || !now->has_last_epoch)
        return say(in, out, RESTART_UNTOLD, "it stores no count (last_epoch)");
    const double moved = (double)now->last_epoch - (double)then->last_epoch;
    if (moved != 1.0) return judge_moved(in, moved, first, known, out);
    return say(in, out, known == FIRST_LR_OTHER ? RESTART_LOST : RESTART_RESTORED,
               "its count (last_epoch) went from %" PRId64 " to %" PRId64 ", and %s",
               then->last_epoch, now->last_epoch, first);
}

/* ---- the optimizer's settings ---- */

/* Optimizer.load_state_dict of torch takes every setting from the checkpoint. So one that is
 * another after the restart was set anew, or its file was not loaded. */
static enum status judge_settings(const struct restarting *in, struct restart_item *out) {
    const struct training_folder *const then = in->before, *const now = in->after;
    struct kept_settings found;
    if (without_optimizer(in) != NULL || then->group_count == 0 || now->group_count == 0)
        return say(in, out, RESTART_ABSENT, "no optimizer is stored in both checkpoints");
    if (then->group_count != now->group_count)
        return say(in, out, RESTART_UNTOLD, "the optimizer had %zu parameter groups and has %zu",
                   then->group_count, now->group_count);
    kept_settings_compare(then, now, &found);
    if (found.held == 0)
        return say(in, out, RESTART_UNTOLD, "the groups hold no setting that is known");
    if (found.other > found.scheduled) return say(in, out, RESTART_LOST, "%s", found.text);
    if (found.other > 0)
        return say(in, out, RESTART_UNTOLD,
                   "%s: another setting, or a schedule of the decay itself", found.text);
    return say(in, out, RESTART_RESTORED,
               "the optimizer's groups hold the settings that they held");
}

/* A scale stays with its tracker one up, doubles with a tracker of 0, or falls after an overflow.
 */
static enum status judge_scaler(const struct restarting *in, struct restart_item *out) {
    const struct training_scaler *const then = &in->before->scaler, *const now = &in->after->scaler;
    if (!then->is_there && !now->is_there) return say(in, out, RESTART_ABSENT, "none is stored");
    if (!then->is_there || !now->is_there)
        return say(in, out, RESTART_LOST, "it is stored in one of the two checkpoints only");
    const int went_on =
        now->scale == then->scale && now->growth_tracker == then->growth_tracker + 1;
    const int grew =
        now->scale > then->scale && now->growth_tracker == 0 &&
        (then->growth_interval == 0 || then->growth_tracker + 1 == then->growth_interval);
    const int fell = now->scale < then->scale && now->growth_tracker == 0;
    return say(in, out,
               went_on || grew ? RESTART_RESTORED
               : fell          ? RESTART_UNTOLD
                               : RESTART_LOST,
               "scale %s and growth tracker %" PRId64 " became %s and %" PRId64 "%s",
               number_text_f64(then->scale).text, then->growth_tracker,
               number_text_f64(now->scale).text, now->growth_tracker,
               fell ? ": an overflow, or a scaler that began anew" : "");
}

/* ---- generators ---- */

static const struct training_generator *find_generator(const struct training_folder *folder,
                                                       const char *name) {
    for (size_t i = 0; i < folder->generator_count; i++)
        if (strcmp(folder->generators[i].name, name) == 0) return &folder->generators[i];
    return NULL;
}

/* Trainer and Accelerate have words of their own for what everybody knows by another name. */
static void print_name(const char *stored, char out[96]) {
    static const char *const names[][2] = {{"cpu", "torch cpu"},
                                           {"cuda", "torch cuda"},
                                           {"torch_manual_seed", "torch cpu"},
                                           {"torch_cuda_manual_seed", "torch cuda"},
                                           {"random_state", "python"},
                                           {"numpy_random_seed", "numpy"}};
    const char *const colon = strncmp(stored, "rank ", 5) == 0 ? strchr(stored, ':') : NULL;
    const char *name = colon != NULL && colon[1] == ' ' ? colon + 2 : stored;
    const int prefix = (int)(name - stored);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i][0]) == 0) name = names[i][1];
    if (prefix > 2)
        snprintf(out, 96, "%.60s of %.*s", name, prefix - 2, stored);
    else
        snprintf(out, 96, "%.60s", name);
}

struct generator_text {
    char text[600];
    size_t length, restored, lost, unknown;
};

static void add_text(struct generator_text *to, const char *format, ...) TWINSTEP_PRINTF(2, 3);
static void add_text(struct generator_text *to, const char *format, ...) {
    va_list arguments;
    if (to->length >= sizeof to->text) return;
    va_start(arguments, format);
    const int printed =
        vsnprintf(to->text + to->length, sizeof to->text - to->length, format, arguments);
    va_end(arguments);
    to->length += printed > 0 ? (size_t)printed : 0;
}

static void add_generator(struct generator_text *to, const char *name, struct generator_step step) {
    add_text(to, "%s%s: ", to->length > 0 ? "; " : "", name);
    if (step.state == GENERATOR_CONTINUED)
        add_text(to, "went on (%" PRIu64 " drawn)", step.drawn);
    else if (step.state == GENERATOR_ANEW)
        add_text(to, "began anew from seed %" PRIu64 " (%" PRIu64 " drawn)", step.seed, step.drawn);
    else if (step.state == GENERATOR_OTHER)
        add_text(to, "does not go on from the checkpoint's state");
    else
        add_text(to, "another state, of a kind that is not known here");
}

/* Accelerate keeps its count of steps beside the generators. */
static int is_number(const struct training_generator *generator) {
    const enum torch_kind kind = generator->value.kind;
    return kind == TORCH_INT || kind == TORCH_BOOL || kind == TORCH_REAL;
}

/* Adds those that drew nothing, in one list, or the others, each with what it did. */
static void add_generators(const struct restarting *in, int drew, struct generator_text *to) {
    size_t listed = 0;
    for (size_t i = 0; i < in->after->generator_count; i++) {
        const struct training_generator *const now = &in->after->generators[i];
        const struct training_generator *const then = find_generator(in->before, now->name);
        char name[96];
        if (then == NULL || is_number(now)) continue;
        const struct generator_step step = generator_compare(then, now);
        if ((step.state != GENERATOR_EQUAL) != drew) continue;
        to->restored += step.state == GENERATOR_EQUAL || step.state == GENERATOR_CONTINUED;
        to->lost += step.state == GENERATOR_ANEW || step.state == GENERATOR_OTHER;
        to->unknown += step.state == GENERATOR_UNKNOWN;
        print_name(now->name, name);
        if (drew)
            add_generator(to, name, step);
        else
            add_text(to, "%s%s", listed++ > 0 ? ", " : "", name);
    }
    if (listed > 0) add_text(to, ": nothing drawn");
}

/* One that drew nothing was restored if one beside it did draw; alone it says nothing against a
 * restart that left it as it came. */
static enum status judge_generators(const struct restarting *in, struct restart_item *out) {
    struct generator_text told = {.length = 0};
    add_generators(in, 0, &told);
    add_generators(in, 1, &told);
    if (told.length == 0)
        return say(in, out, RESTART_UNTOLD, "no generator's state is stored in both checkpoints");
    return say(in, out,
               told.lost > 0      ? RESTART_LOST
               : told.unknown > 0 ? RESTART_UNTOLD
                                  : RESTART_RESTORED,
               "%s", told.text);
}

/* ---- the position in the data ---- */

/* Numbers that a sampler or a loader stores say where the data stand. One that fell began anew. */
static enum status judge_sampler(const struct restarting *in, struct restart_item *out,
                                 int *out_told) {
    const struct training_number *moved = NULL;
    double from = 0.0;
    for (size_t i = 0; i < in->after->sampler_count; i++) {
        for (size_t k = 0; k < in->before->sampler_count; k++) {
            const struct training_number *const now = &in->after->sampler[i];
            const struct training_number *const then = &in->before->sampler[k];
            if (strcmp(now->key, then->key) != 0 || now->value == then->value) continue;
            if (moved != NULL && now->value > then->value) continue;
            moved = now;
            from = then->value;
        }
    }
    *out_told = moved != NULL;
    if (moved == NULL) return STATUS_OK;
    if (moved->value < from)
        return say(in, out, RESTART_LOST, "%s was %s and is %s", moved->key,
                   number_text_f64(from).text, number_text_f64(moved->value).text);
    return say(in, out, RESTART_RESTORED, "%s went from %s to %s", moved->key,
               number_text_f64(from).text, number_text_f64(moved->value).text);
}

/* Shares of the gradient's norm. Sums in another order, as on a device, move a gradient in bf16 by
 * some roundings of 2^-9; in tests/golden/foreign/runs other dropout moves it by 0.15 and more, and
 * another batch by 1.1 and more. Between the two lines nothing is said. */
#define RESTART_ORDER 0.02
#define RESTART_BATCH 0.2
/* The same of two losses, which are averages over many tokens. */
#define RESTART_LOSS 1e-3

static enum status side_of(const struct step *step, const struct update_reading *reading,
                           struct arena *arena, struct step *room, struct input_side *out) {
    struct input_betas *betas;
    TRY(arena_take(arena, step->group_count, sizeof *betas, "betas", &betas));
    for (uint32_t g = 0; g < step->group_count; g++)
        betas[g] = reading->groups[g].betas;
    *room = *step;
    room->groups = reading->settings;
    *out = (struct input_side){room, betas};
    return STATUS_OK;
}

enum status restart_compare(const struct step *step, const struct update_reading *reading,
                            const struct step *whole, const struct update_reading *whole_reading,
                            struct rate_room *room, struct arena *arena, struct input_apart *out) {
    struct step steps[2];
    struct input_side a, b;
    TRY(side_of(step, reading, arena, &steps[0], &a));
    TRY(side_of(whole, whole_reading, arena, &steps[1], &b));
    input_apart_read(&a, &b, room, out);
    return STATUS_OK;
}

/* Says what else than another batch may have made another gradient; NULL: nothing. */
static const char *other_cause(const struct restart_item *items) {
    if (items[RESTART_WEIGHTS].state != RESTART_RESTORED) return "other weights at its start";
    if (items[RESTART_GENERATORS].state == RESTART_LOST)
        return "other dropout, because generators were not restored";
    if (items[RESTART_GENERATORS].state == RESTART_UNTOLD)
        return "other dropout, because whether generators were restored cannot be told";
    if (items[RESTART_MOMENTS].state == RESTART_UNTOLD)
        return "other moments before it, from which the gradient is read";
    return NULL;
}

static enum status say_apart(const struct restarting *in, const struct restart_item *items,
                             double share, struct restart_item *out) {
    const char *const cause = other_cause(items);
    if (cause != NULL)
        TRY(say(in, out, RESTART_UNTOLD,
                "the gradient differs from that of the run that was not interrupted by %s of its "
                "norm: another batch, or %s",
                update_bar(share).text, cause));
    else if (share < RESTART_BATCH)
        TRY(say(in, out, RESTART_UNTOLD,
                "the gradient differs from that of the run that was not interrupted by %s of its "
                "norm: more than sums in another order do, and less than another batch as a rule",
                update_bar(share).text));
    else
        TRY(say(in, out, RESTART_LOST,
                "the gradient differs from that of the run that was not interrupted by %s of its "
                "norm: another batch",
                update_bar(share).text));
    out->is_apart = out->state == RESTART_UNTOLD;
    return STATUS_OK;
}

/* Whether the update saw the batch that the run without interruption saw. A norm would not do: two
 * gradients that were clipped have one. */
static enum status judge_gradient(const struct restarting *in, const struct restart_item *items,
                                  struct restart_item *out) {
    const struct input_apart *const whole = &in->more->whole;
    const double share = whole->apart / whole->norm, bar = whole->error / whole->norm;
    if (!(bar <= RESTART_BATCH))
        return say(in, out, RESTART_UNTOLD,
                   "the gradient can be held against that of the run that was not interrupted to "
                   "%s of its norm only",
                   update_bar(bar).text);
    if (share <= bar)
        return say(in, out, RESTART_RESTORED,
                   "the gradient is that of the run that was not interrupted, to %s of its norm",
                   update_bar(bar).text);
    if (share <= RESTART_ORDER)
        return say(in, out, RESTART_RESTORED,
                   "the gradient differs from that of the run that was not interrupted by %s of "
                   "its norm, as sums in another order do",
                   update_bar(share).text);
    return say_apart(in, items, share, out);
}

/* The loss of an update depends on weights, batch and dropout. Where it was logged before the
 * restart and after it, equal losses say that all three were restored. */
static enum status judge_position(const struct restarting *in, const struct restart_item *items,
                                  struct restart_item *out) {
    const struct restart_more *const more = in->more;
    const int rest = items[RESTART_WEIGHTS].state == RESTART_RESTORED;
    const int is_told = rest && items[RESTART_GENERATORS].state != RESTART_LOST &&
                        items[RESTART_GENERATORS].state != RESTART_UNTOLD;
    if (more->whole.is_known && more->whole.norm > 0.0) return judge_gradient(in, items, out);
    if (more->loss_before == more->loss_after)
        return say(in, out, RESTART_RESTORED,
                   "the log has the loss %s for this update twice, before the restart and after it",
                   number_text_f64(more->loss_before).text);
    if (fabs(more->loss_before - more->loss_after) <= RESTART_LOSS * fabs(more->loss_before))
        return say(in, out, RESTART_UNTOLD,
                   "the log has the loss %s for this update before the restart and %s after it: "
                   "sums in another order may do that, and another batch, too",
                   number_text_f64(more->loss_before).text, number_text_f64(more->loss_after).text);
    if (fabs(more->loss_before - more->loss_after) >= 0.0) {
        TRY(say(in, out, is_told ? RESTART_LOST : RESTART_UNTOLD,
                "the log has the loss %s for this update before the restart and %s after it%s",
                number_text_f64(more->loss_before).text, number_text_f64(more->loss_after).text,
                rest ? ": another batch, or other dropout" : ""));
        out->is_apart = !is_told;
        return STATUS_OK;
    }
    int is_sampled;
    TRY(judge_sampler(in, out, &is_sampled));
    if (is_sampled) return STATUS_OK;
    if (more->of_whole != NULL && more->whole.why != NULL)
        return say(in, out, RESTART_UNTOLD,
                   "the gradient cannot be held against that of the run that was not interrupted, "
                   "because %s cannot be read: %s; a log that holds this update twice would tell",
                   more->whole.is_of_second ? "that one" : "that of this update", more->whole.why);
    return say(
        in, out, RESTART_UNTOLD,
        "no checkpoint says which samples an update saw; a log that holds this update twice%s",
        more->of_whole != NULL ? " would tell"
                               : ", or the checkpoint after it of a run that was not interrupted "
                                 "(--uninterrupted), would tell");
}

enum status restart_read(const struct training_folder *before, const struct training_folder *after,
                         const struct step *step, const struct update_reading *reading,
                         const struct restart_more *more, struct arena *arena,
                         struct restart_item out[RESTART_PARTS]) {
    const struct restarting in = {before, after, step, reading, more, arena};
    TRY(judge_weights(&in, &out[RESTART_WEIGHTS]));
    TRY(judge_moments(&in, &out[RESTART_MOMENTS]));
    TRY(judge_count(&in, &out[RESTART_COUNT]));
    TRY(judge_scheduler(&in, &out[RESTART_SCHEDULER]));
    TRY(compare_next(&in, &out[RESTART_SCHEDULER]));
    TRY(judge_settings(&in, &out[RESTART_SETTINGS]));
    TRY(judge_scaler(&in, &out[RESTART_SCALER]));
    TRY(judge_generators(&in, &out[RESTART_GENERATORS]));
    return judge_position(&in, out, &out[RESTART_POSITION]);
}
