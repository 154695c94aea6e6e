/* SPDX-License-Identifier: Apache-2.0
 * Asks for every update whether its columns agree with each other and with the root. */
#include "determinism/certify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "determinism/foreign.h"
#include "determinism/ledger.h"
#include "determinism/root.h"
#include "determinism/trace.h"

/* What the columns of one update say of each other: 1 they agree, 0 they do not, -1 not recorded
 * twice. */
struct evidence {
    int batch, rng, lr, optimize, forward, backward;
};

struct check {
    const struct trace_run *run;
    const struct record *record;
    struct digest previous, root; /* as recorded */
};

static int same(const struct digest *digest, const uint8_t *recorded) {
    return memcmp(digest->byte, recorded, DIGEST_BYTES) == 0;
}

/* The recorded digest of a phase, or NULL if there is none. */
static const uint8_t *phase_of(const struct check *check, const char *name) {
    const struct trace_run_plan *plan = &check->run->plan;
    for (uint32_t i = 0; i < plan->shape.phases; i++)
        if (strcmp(plan->phases[i], name) == 0)
            return record_has_digest(check->record->phases[i]) ? check->record->phases[i] : NULL;
    return NULL;
}

/* What digest_rng must be. Returns 0 without a ledger. */
static int expected_rng(const struct check *check, struct digest *out) {
    struct stream_ledger ledger;
    if (!ledger_of(&check->run->plan, check->record, &ledger)) return 0;
    digest_ledger(&ledger, out);
    return 1;
}

/* What digest_lr must be. Returns 0 if the trace does not say to which group each tensor
 * belongs. */
static int expected_lr(const struct check *check, struct digest *out) {
    const struct trace_run_plan *plan = &check->run->plan;
    if (plan->foreign != NULL) {
        if (plan->foreign->groups == NULL || plan->shape.tensors == 0) return 0;
        root_lr_groups(check->record, plan->foreign->groups, plan->shape.tensors, out);
        return 1;
    }
    if (plan->groups == NULL || plan->groups[0] == '\0') return 0;
    for (const char *group = plan->groups; *group != '\0'; group++)
        if (*group < '0' || *group >= '0' + (int)plan->shape.groups) return 0;
    root_lr(check->record, plan->groups, out);
    return 1;
}

/* Whether a phase's digest is what a list of other digests makes it; -1 if one of the two is
 * missing. */
static int check_phase(const struct check *check, const char *phase, const uint8_t *digests,
                       uint32_t count, size_t stride) {
    const uint8_t *recorded = phase_of(check, phase);
    struct digest digest;
    if (recorded == NULL || count == 0) return -1;
    digest_root_apart(phase, digests, stride, count, &digest);
    return same(&digest, recorded);
}

/* The phase that makes the gradient of the update: `reduce` where it leaves a digest, because then
 * `backward` has made a gradient for each rank. */
static const char *gradient_phase(const struct check *check) {
    return phase_of(check, "reduce") == NULL ? "backward" : "reduce";
}

static void gather(const struct check *check, struct evidence *out) {
    const struct record *record = check->record;
    const struct record_shape *shape = &check->run->plan.shape;
    const uint8_t *fetch = phase_of(check, "fetch"), *optimize = phase_of(check, "optimize");
    struct digest digest;
    *out = (struct evidence){-1, -1, -1, -1, -1, -1};
    if (fetch != NULL) out->batch = memcmp(fetch, record->digests[DIGEST_BATCH], DIGEST_BYTES) == 0;
    if (expected_rng(check, &digest)) out->rng = same(&digest, record->digests[DIGEST_RNG]);
    if (expected_lr(check, &digest)) out->lr = same(&digest, record->digests[DIGEST_LR]);
    root_optimize(record, &digest);
    if (optimize != NULL) out->optimize = same(&digest, optimize);
    if (shape->sites > 0)
        out->forward = check_phase(check, "forward", record->sites[0], shape->sites, DIGEST_BYTES);
    if (shape->tensors > 0)
        out->backward = check_phase(check, gradient_phase(check),
                                    record->tensor_digests[0][TENSOR_DIGEST_GRADIENT],
                                    shape->tensors, sizeof *record->tensor_digests);
}

/* Whether the root fits once column `which` is replaced by what its other source says. */
static int repairs(const struct check *check, enum record_digest which, const uint8_t *other) {
    struct record repaired = *check->record;
    struct digest root;
    memcpy(repaired.digests[which], other, DIGEST_BYTES);
    root_next(&check->previous, &repaired, &root);
    return same(&root, check->root.byte);
}

/* Whether the next root follows from what this one should be. */
static int next_follows(const struct check *check, const struct record *next) {
    struct digest root, after;
    if (next == NULL || next->step != check->record->step + 1) return 0;
    root_next(&check->previous, check->record, &root);
    root_next(&root, next, &after);
    return same(&after, next->digests[DIGEST_ROOT]);
}

static void found(struct certificate *out, const char *column, const char *why) {
    out->column = column;
    snprintf(out->why, sizeof out->why, "%s", why);
}

/* Names the changed column when the root does not fit. Proofs come first, then exclusion. */
static void blame_chain(const struct check *check, const struct evidence *seen,
                        const struct record *next, struct certificate *out) {
    const uint8_t *fetch = phase_of(check, "fetch");
    struct digest digest;
    if (next_follows(check, next))
        found(out, "digest_root", "the root of the next update follows from the recomputed one");
    else if (seen->batch == 0 && repairs(check, DIGEST_BATCH, fetch))
        found(out, "digest_batch", "with the digest of phase fetch in its place the root fits");
    else if (seen->rng == 0 && expected_rng(check, &digest) &&
             repairs(check, DIGEST_RNG, digest.byte))
        found(out, "digest_rng", "with the digest of ledger/words in its place the root fits");
    else if (seen->lr == 0 && expected_lr(check, &digest) && repairs(check, DIGEST_LR, digest.byte))
        found(out, "digest_lr", "with the digest of lr_applied in its place the root fits");
    else if (seen->optimize == 0 && seen->lr == 1)
        found(out, "digest_weights",
              "phase optimize does not follow from it, and digest_lr is right");
    else if (seen->batch == 1 && seen->rng == 1 && seen->lr == 1 && seen->optimize == 1 &&
             next == NULL)
        found(out, "loss or digest_root", "all other columns of the root agree with each other");
    else if (seen->batch == 1 && seen->rng == 1 && seen->lr == 1 && seen->optimize == 1)
        found(out, "loss", "all other columns of the root agree with each other");
    else
        found(out, "digest_batch, digest_rng, digest_weights, digest_lr, loss or digest_root",
              "nothing else in the trace tells these apart");
}

/* Names the changed column when the root fits: what it hashes is right, so something that repeats
 * it is not. */
static void blame_others(const struct evidence *seen, struct certificate *out) {
    if (seen->rng == 0)
        found(out, "ledger/words", "digest_rng does not follow from it, and the root fits");
    else if (seen->lr == 0)
        found(out, "lr_applied", "digest_lr does not follow from it, and the root fits");
    else if (seen->batch == 0)
        found(out, "phases/digest", "that of fetch is not digest_batch, and the root fits");
    else if (seen->optimize == 0)
        found(out, "phases/digest", "that of optimize does not follow, and the root fits");
    else if (seen->forward == 0)
        found(out, "sites/digest or phases/digest", "phase forward does not follow from the sites");
    else
        found(out, "tensors/digest_gradient or phases/digest",
              "phase backward does not follow from the gradients");
}

static int evidence_holds(const struct evidence *seen) {
    return seen->batch != 0 && seen->rng != 0 && seen->lr != 0 && seen->optimize != 0 &&
           seen->forward != 0 && seen->backward != 0;
}

/* The root of an update of a run; 0: it is not recorded. */
static int root_after(const struct trace_run *run, uint64_t update, struct digest *out) {
    if (run == NULL || run->updates == 0 || trace_row(run, 0)->step > update) return 0;
    const uint64_t i = update - trace_row(run, 0)->step;
    if (i >= run->updates || trace_row(run, i)->step != update) return 0;
    memcpy(out->byte, trace_row(run, i)->digests[DIGEST_ROOT], DIGEST_BYTES);
    return 1;
}

static int begins_behind(const struct trace_run *run, const struct digest *before) {
    struct digest root;
    root_next(before, trace_row(run, 0), &root);
    return same(&root, trace_row(run, 0)->digests[DIGEST_ROOT]);
}

/* The root before the first recorded update: zero, or that of the run from which this one forked.
 * That is its arm, or for a hybrid another hybrid, which no attribute names: it is the one whose
 * root fits. Where none does, the arm's is given, from which the chain is broken then. */
static int start_root(const struct trace_image *image, const struct trace_run *run,
                      struct digest *out) {
    const uint64_t first = trace_row(run, 0)->step;
    struct digest other;
    memset(out, 0, sizeof *out);
    if (first == 1 || run->plan.foreign != NULL) return 1;
    const int known = root_after(trace_run_of(image, run->plan.arm), first - 1, out);
    if (known && begins_behind(run, out)) return 1;
    for (uint32_t i = 0; i < image->run_count; i++) {
        const struct trace_run *const from = &image->runs[i];
        if (from == run || from->plan.mask == 0 || !root_after(from, first - 1, &other) ||
            !begins_behind(run, &other))
            continue;
        *out = other;
        return 1;
    }
    return known;
}

static void check_update(const struct check *check, const struct record *next, int chained,
                         struct certificate *out) {
    struct evidence seen;
    struct digest root;
    gather(check, &seen);
    root_next(&check->previous, check->record, &root);
    const int fits = !chained || digest_compare(&root, &check->root) == 0;
    out->checked += chained != 0;
    if (fits && evidence_holds(&seen)) return;
    out->state = CERTIFY_BROKEN;
    out->broken = check->record->step;
    if (fits)
        blame_others(&seen, out);
    else
        blame_chain(check, &seen, next, out);
}

/* Reports a row that does not match its own check although every column that is held twice
 * agrees. */
static void note_damage(const struct trace_run *run, struct certificate *out) {
    if (run->damaged == 0 || (out->broken != 0 && out->broken <= run->damaged)) return;
    out->state = CERTIFY_BROKEN;
    out->broken = run->damaged;
    found(out, "", "the row does not match its check, and no column that is held twice tells more");
}

void certify_lack(const struct trace_run *run, char out_text[CERTIFY_WHY]) {
    out_text[0] = '\0';
    for (uint64_t i = 0; i < run->updates && out_text[0] == '\0'; i++) {
        const struct record *record = trace_row(run, i);
        uint32_t index;
        if (record_has_digest(record->digests[DIGEST_ROOT])) continue;
        const char *column = foreign_missing(&run->plan, record, &index);
        if (column == NULL) continue;
        if (strcmp(column, "lr_applied") == 0)
            snprintf(out_text, CERTIFY_WHY,
                     "update %" PRIu64 " has no lr_applied[%" PRIu32 "], and its row does not say "
                     "that it was skipped: there is no root of it",
                     record->step, index);
        else if (strcmp(column, "tensors/group") == 0 || run->plan.shape.tensors == 0)
            snprintf(out_text, CERTIFY_WHY, "the run has no %s, so its updates have no roots",
                     column);
        else
            snprintf(out_text, CERTIFY_WHY,
                     "update %" PRIu64 " has no %s of \"%.160s\": there is no root of it",
                     record->step, column, run->plan.tensors[index]);
    }
    for (uint64_t i = 0; i < run->updates && out_text[0] == '\0'; i++)
        if (!record_has_digest(trace_row(run, i)->digests[DIGEST_ROOT]))
            snprintf(out_text, CERTIFY_WHY,
                     "update %" PRIu64 " has no root, and another one has one that its writer "
                     "stored",
                     trace_row(run, i)->step);
}

/* Whether an earlier twinstep wrote the trace, which recorded no parts of roots. */
static int has_no_parts(const struct trace_run *run) {
    const struct record *first = trace_row(run, 0);
    return !record_has_digest(first->digests[DIGEST_WEIGHTS]) &&
           !record_has_digest(first->digests[DIGEST_LR]);
}

void certify_run(const struct trace_image *image, const struct trace_run *run,
                 struct certificate *out) {
    *out = (struct certificate){.state = CERTIFY_UNTESTABLE, .column = "", .why = ""};
    out->updates = run->updates;
    if (run->updates == 0) {
        snprintf(out->why, sizeof out->why, "no update is recorded");
        return;
    }
    out->first = trace_row(run, 0)->step;
    memcpy(out->root.byte, trace_row(run, run->updates - 1)->digests[DIGEST_ROOT], DIGEST_BYTES);
    if (run->plan.foreign != NULL)
        certify_lack(run, out->why);
    else if (has_no_parts(run))
        snprintf(out->why, sizeof out->why,
                 "the trace holds no digest_weights and digest_lr: an earlier twinstep wrote it");
    if (out->why[0] != '\0') return;
    out->state = CERTIFY_SOUND;
    struct check check = {.run = run};
    out->start_known = start_root(image, run, &check.previous);
    for (uint64_t i = 0; i < run->updates && out->broken == 0; i++) {
        const struct record *next = i + 1 < run->updates ? trace_row(run, i + 1) : NULL;
        check.record = trace_row(run, i);
        if (check.record->step != out->first + i) {
            out->state = CERTIFY_BROKEN;
            out->broken = out->first + i;
            found(out, "step", "the updates are not numbered one by one");
            return;
        }
        memcpy(check.root.byte, check.record->digests[DIGEST_ROOT], DIGEST_BYTES);
        check_update(&check, next, i > 0 || out->start_known, out);
        check.previous = check.root;
    }
    note_damage(run, out);
}
