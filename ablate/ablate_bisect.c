/* SPDX-License-Identifier: Apache-2.0
 * Repeats the search from its beginning each time, from what the folder holds: so it goes on where
 * it stopped, and several workers search alike. */
#include "ablate/ablate_bisect.h"

#include <string.h>

#include "ablate/ablate_chance.h"
#include "ablate/ablate_private.h"

struct searching {
    const struct ablate_plan *plan;
    const struct ablate_result *results;
    struct arena *arena;
    unsigned char *wanted;
    struct bisect_verdict *out;
    unsigned char *closed; /* (versions) cannot be judged */
    int waits;             /* a probe needs runs that were not tried */
};

/* Marks the runs of a version that a verdict needs. Returns 1 if one of them is neither done nor
 * failed. */
static int want_version(struct searching *s, size_t version, const struct ablate_verdict *verdict) {
    int missing = 0;
    for (uint32_t i = 0; i < s->plan->run_count; i++) {
        const struct ablate_run *run = &s->plan->runs[i];
        if (run->mask != version || !verdict->wants[run->stage]) continue;
        s->wanted[i] = 1;
        missing |= s->results[i].state == ABLATE_ABSENT;
    }
    return missing;
}

/* Judges a version against the first one: a plan of two arms over the same results. */
static enum status probe(struct searching *s, size_t version, enum ablate_verdict_kind *out) {
    struct ablate_plan view = *s->plan;
    struct bisect_probe *here = &s->out->probes[s->out->probe_count];
    TRY(arena_take(s->arena, view.run_count, sizeof *view.runs, "runs", &view.runs));
    memcpy(view.runs, s->plan->runs, view.run_count * sizeof *view.runs);
    for (uint32_t i = 0; i < view.run_count; i++)
        view.runs[i].arm = view.runs[i].mask == 0         ? 0
                           : view.runs[i].mask == version ? 1
                                                          : ABLATE_NO_ARM;
    here->version = version;
    TRY(ablate_judge(&view, s->results, s->arena, &here->verdict));
    const int a = want_version(s, 0, &here->verdict), b = want_version(s, version, &here->verdict);
    s->waits = a || b;
    *out = here->verdict.kind;
    if (!s->waits) s->out->probe_count++;
    return STATUS_OK;
}

/* Returns the version nearest to the middle of (low, high) that can be judged; `high` if there is
 * none. */
static size_t choose(const struct searching *s, size_t low, size_t high) {
    const size_t middle = low + (high - low) / 2;
    for (size_t off = 0; off < high - low; off++) {
        if (middle + off < high && !s->closed[middle + off]) return middle + off;
        if (middle > low + off && !s->closed[middle - off]) return middle - off;
    }
    return high;
}

static uint32_t runs_of(const struct searching *s, size_t version) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->plan->run_count; i++)
        count += s->plan->runs[i].mask == version && s->results[i].state == ABLATE_DONE;
    return count;
}

/* Marks the runs of a version up to a number. Returns 1 if one of them is still to be made. */
static int want_runs(struct searching *s, size_t version, uint32_t runs) {
    int missing = 0;
    for (uint32_t i = 0; i < s->plan->run_count; i++) {
        const struct ablate_run *run = &s->plan->runs[i];
        if (run->mask != version || run->replicate > runs) continue;
        s->wanted[i] = 1;
        missing |= s->results[i].state == ABLATE_ABSENT;
    }
    return missing;
}

/* Everything that was run is equal to its repeats. Of versions that make no difference the first
 * and the last that is inside left the one result by chance, and the first outside the other; each
 * other version that was run had two equal runs. Returns 1 if runs are missing that make it rarer.
 */
static int confirm(struct searching *s, size_t low, size_t high) {
    struct bisect_verdict *out = s->out;
    const struct ablate_file *file = s->plan->file;
    uint32_t pairs = 0;
    for (size_t i = 0; i < out->probe_count; i++) {
        const struct bisect_probe *const probe = &out->probes[i];
        if (probe->verdict.floor == ABLATE_FLOOR_NOISY) return 0;
        pairs += probe->verdict.floor == ABLATE_FLOOR_EXACT && probe->version != low &&
                 probe->version != high;
    }
    const uint32_t first = low == 0 ? 0 : runs_of(s, 0);
    uint32_t runs = runs_of(s, low) < runs_of(s, high) ? runs_of(s, low) : runs_of(s, high);
    out->chance = ablate_chance(first + runs, runs, pairs);
    while (runs < file->noisy_runs && ablate_chance(first + runs, runs, pairs) > file->alpha)
        runs++;
    const int a = want_runs(s, low, runs), b = want_runs(s, high, runs);
    return a || b;
}

static enum status search(struct searching *s) {
    struct bisect_verdict *out = s->out;
    enum ablate_verdict_kind kind;
    size_t low = 0, high = s->plan->file->version_count - 1;
    TRY(probe(s, high, &kind));
    if (s->waits) return STATUS_OK;
    out->kind = kind;
    out->inside = kind == ABLATE_INSIDE ? high : low;
    out->outside = high;
    if (kind == ABLATE_UNTESTABLE) out->reason = out->probes[0].verdict.reason;
    while (kind != ABLATE_UNTESTABLE && out->kind == ABLATE_OUTSIDE && high - low > 1) {
        const size_t middle = choose(s, low, high);
        if (middle == high) break;
        TRY(probe(s, middle, &kind));
        if (s->waits) return STATUS_OK;
        if (kind == ABLATE_UNTESTABLE) {
            s->closed[middle] = 1;
            kind = ABLATE_OUTSIDE; /* the search goes on beside it */
        } else if (kind == ABLATE_INSIDE) {
            low = middle;
            kind = ABLATE_OUTSIDE;
        } else {
            high = middle;
        }
    }
    if (out->kind == ABLATE_OUTSIDE) {
        out->inside = low;
        out->outside = high;
        out->open = high - low - 1;
        s->waits = confirm(s, low, high);
        if (s->waits) return STATUS_OK;
    }
    out->ready = 1;
    return STATUS_OK;
}

enum status bisect_judge(const struct ablate_plan *plan, const struct ablate_result *results,
                         struct arena *arena, unsigned char *wanted, struct bisect_verdict *out) {
    struct searching searching = {
        .plan = plan, .results = results, .arena = arena, .wanted = wanted, .out = out};
    const size_t versions = plan->file->version_count;
    *out =
        (struct bisect_verdict){.kind = ABLATE_UNTESTABLE, .reason = "", .chance = ABLATE_UNKNOWN};
    TRY(arena_take(arena, versions, 1, "versions", &searching.closed));
    TRY(arena_take(arena, versions, sizeof *out->probes, "probes", &out->probes));
    return search(&searching);
}
