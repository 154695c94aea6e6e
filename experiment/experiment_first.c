/* SPDX-License-Identifier: Apache-2.0
 * Names the first difference of the arms as `twinstep bisect` does: both states before each update
 * are kept until the roots part, and once the arms are trained that one update is repeated under a
 * watch. Where there is no answer the trace says why. It costs each arm one more update, and a pair
 * that is not equal and has not parted two copies of a state per update; of an equal one the fork
 * is both. */
#include "experiment/experiment_private.h"

#include "evidence/first_place.h"
#include "experiment/locate/locate_words.h"

enum status experiment_first_keep(struct experiment *e, const struct run *a, const struct run *b,
                                  int equal) {
    struct parting *parting = &e->parting;
    const struct run *const runs[2] = {a, b};
    if (parting->update != 0) return STATUS_OK;
    for (int arm = 0; arm < 2; arm++) {
        struct run_kept *const room = &parting->room[arm];
        parting->before[arm] = equal ? &e->fork : room; /* which has just been kept */
        if (equal) continue;
        if (room->memory == NULL) TRY(run_kept_open(runs[arm], room));
        TRY(run_keep(runs[arm], room));
    }
    return STATUS_OK;
}

void experiment_first_note(struct experiment *e, const struct record *a, const struct record *b) {
    if (e->parting.update == 0 && !record_equal_roots(a, b)) e->parting.update = a->step;
}

/* What was located, in the words of the trace; they live in `arena`. */
static enum status describe(const struct locate_request *request,
                            const struct locate_result *result, struct arena *arena,
                            struct first_place *out) {
    char *text;
    *out = (struct first_place){.update = result->update,
                                .layer = -1,
                                .phase = "",
                                .op = "",
                                .tensor = "",
                                .words = "",
                                .structure = "",
                                .undecided = result->undecided == NULL ? "" : result->undecided};
    if (result->undecided != NULL) return STATUS_OK;
    const struct locate_first *first = &result->first;
    const struct locate_key *key = first->key != NULL ? first->key : first->only;
    out->phase = stage_name((uint32_t)key->stage);
    out->micro = first->key != NULL ? result->micro : 0;
    if (key->layer != PASS_NO_LAYER) out->layer = key->layer;
    out->op = key->op.text;
    out->tensor = key->tensor.text;
    if (first->key != NULL) {
        TRY(arena_format(arena, &text, "%s", locate_place(key, out->micro).text));
        out->words = text;
    }
    if (!locate_structure_first(first)) return STATUS_OK;
    TRY(arena_format(arena, &text, "%s", locate_structure_words(request, result).text));
    out->structure = text;
    return STATUS_OK;
}

static enum status locate_and_put(struct experiment *e, const struct locate_update *at,
                                  struct arena *arena) {
    struct locate_request request = {.steps = at->update, .interrupted = e->options->interrupted};
    struct locate_result result;
    struct first_place place;
    char *text;
    for (int arm = 0; arm < 2; arm++)
        request.sides[arm] =
            (struct locate_side){.name = e->plan.runs[arm].id, .config = &e->plan.runs[arm].config};
    const enum status status = locate_in_update(&request, at, arena, &result);
    if (status == STATUS_INTERRUPTED)
        TRY(experiment_check_interrupt_while(e, "the first difference was looked for"));
    TRY(status);
    TRY(describe(&request, &result, arena, &place));
    TRY(first_place_write(&place, e->arena, &text));
    return experiment_trace_text(&e->output, FIRST_PLACE_PATH, text);
}

enum status experiment_first_place(struct experiment *e, struct run *a, struct run *b) {
    const struct parting *parting = &e->parting;
    const uint64_t update = parting->update;
    struct arena arena = ARENA_EMPTY;
    if (update == 0) return STATUS_OK;
    struct locate_update at = {.runs = {a, b}, .update = update};
    for (int arm = 0; arm < 2; arm++) {
        at.states[arm] = parting->before[arm];
        at.roots[arm] = trace_row(&e->output.image.runs[arm], update - 1)->digests[DIGEST_ROOT];
    }
    const enum status status = locate_and_put(e, &at, &arena);
    arena_close(&arena);
    return status;
}

enum status experiment_first_copy(struct experiment *e) {
    const struct trace_text *const recorded = trace_text_of(e->resume.image, FIRST_PLACE_PATH);
    const uint64_t last = e->plan.scenario->steps;
    char *text;
    if (recorded == NULL || recorded->length == 0) {
        /* roots are chains: arms whose last ones are equal have never parted */
        const struct record *rows[2];
        for (uint32_t arm = 0; arm < 2; arm++)
            TRY(resume_copy(&e->resume, arm, last, &rows[arm]));
        return record_equal_roots(rows[0], rows[1]) ? STATUS_OK
                                                    : experiment_lacks(e, FIRST_PLACE_PATH);
    }
    TRY(arena_format(e->arena, &text, "%.*s", (int)recorded->length, recorded->text));
    return experiment_trace_text(&e->output, FIRST_PLACE_PATH, text);
}
