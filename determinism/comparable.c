/* SPDX-License-Identifier: Apache-2.0
 * Compares what two foreign runs say of their digests: kind, tensors, processes; and finds the
 * first root that differs where one of them did not take every digest. */
#include "determinism/comparable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "determinism/digest.h"
#include "determinism/root.h"
#include "determinism/trace.h"

int runs_unlike(const struct trace_run *a, const struct trace_run *b,
                char out_text[COMPARABLE_WHY]) {
    const struct trace_run_plan *const x = &a->plan, *const y = &b->plan;
    const uint32_t counts[2] = {x->shape.tensors, y->shape.tensors};
    out_text[0] = '\0';
    if (x->foreign == NULL || y->foreign == NULL || x->foreign->digest[0] == '\0' ||
        y->foreign->digest[0] == '\0')
        return 0;
    for (uint32_t i = 0; i < counts[0] && i < counts[1]; i++) {
        if (strcmp(x->tensors[i], y->tensors[i]) != 0) {
            snprintf(out_text, COMPARABLE_WHY, "tensor %u is \"%s\" in A and \"%s\" in B", i,
                     x->tensors[i], y->tensors[i]);
            return 1;
        }
        if (strcmp(x->foreign->dtypes[i], y->foreign->dtypes[i]) != 0 ||
            strcmp(x->foreign->shapes[i], y->foreign->shapes[i]) != 0) {
            snprintf(out_text, COMPARABLE_WHY, "tensor \"%s\" is %s [%s] in A and %s [%s] in B",
                     x->tensors[i], x->foreign->dtypes[i], x->foreign->shapes[i],
                     y->foreign->dtypes[i], y->foreign->shapes[i]);
            return 1;
        }
    }
    if (counts[0] == counts[1]) return 0;
    const struct trace_run_plan *more = counts[0] > counts[1] ? x : y;
    snprintf(out_text, COMPARABLE_WHY, "A has %u tensors and B %u: \"%s\" is in %s alone",
             counts[0], counts[1], more->tensors[counts[0] < counts[1] ? counts[0] : counts[1]],
             more == x ? "A" : "B");
    return 1;
}

static enum status compare_processes(const struct trace_foreign *a, const struct trace_foreign *b) {
    if (strcmp(a->digest, b->digest) != 0)
        FAIL(STATUS_INPUT,
             "A has digests of kind \"%s\" and B of kind \"%s\": digests of unlike kinds cannot be "
             "compared",
             a->digest, b->digest);
    if (a->world != b->world && strcmp(a->digest, "keyed 1") != 0)
        FAIL(
            STATUS_INPUT,
            "A is of %lld processes and B of %lld: digests \"%s\" of shards do not add up, \"keyed "
            "1\" do",
            (long long)a->world, (long long)b->world, a->digest);
    if (a->world == b->world && a->rank != b->rank)
        FAIL(STATUS_INPUT, "A is of process %lld and B of process %lld: expected the same one",
             (long long)a->rank, (long long)b->rank);
    return STATUS_OK;
}

static int has_root(const struct record *record) {
    return record_has_digest(record->digests[DIGEST_ROOT]);
}

enum status runs_comparable(const struct trace_run *a, const struct trace_run *b, uint64_t *out) {
    const struct trace_foreign *x = a->plan.foreign, *y = b->plan.foreign;
    *out = 0;
    if ((x == NULL) != (y == NULL)) return STATUS_OK;
    if (x != NULL && x->digest[0] != '\0' && y->digest[0] != '\0') {
        TRY(compare_processes(x, y));
        char why[COMPARABLE_WHY];
        if (runs_unlike(a, b, why))
            FAIL(STATUS_INPUT, "%s: digests of unlike tensors cannot be compared", why);
    }
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *one = trace_row(a, i), *other = trace_row(b, j);
        *out += one->step == other->step && has_root(one) && has_root(other);
        i += one->step <= other->step;
        j += other->step <= one->step;
    }
    return STATUS_OK;
}

/* ---- roots of which one lacks a batch ---- */

static int lacks_batch(const struct record *record) {
    return !record_has_digest(record->digests[DIGEST_BATCH]);
}

/* The next update that both have, from *i and *j on; 0: there is none. */
static int next_pair(const struct trace_run *const *runs, uint64_t *i, uint64_t *j) {
    while (*i < runs[0]->updates && *j < runs[1]->updates) {
        const uint64_t here = trace_row(runs[0], *i)->step, there = trace_row(runs[1], *j)->step;
        if (here == there) return 1;
        *i += here < there;
        *j += there < here;
    }
    return 0;
}

static struct batch_gap find_gap(const struct trace_run *const *runs) {
    struct batch_gap gap = {0, 0, 0};
    if (runs[0]->plan.foreign == NULL || runs[1]->plan.foreign == NULL) return gap;
    for (uint64_t i = 0, j = 0; next_pair(runs, &i, &j); i++, j++) {
        const int a = lacks_batch(trace_row(runs[0], i)), b = lacks_batch(trace_row(runs[1], j));
        if (a == b) continue;
        if (gap.updates++ > 0) continue;
        gap.first = trace_row(runs[0], i)->step;
        gap.side = b;
    }
    return gap;
}

/* Makes the root of a row of which no batch counts, where `blank` is 1. */
static void add_row(const struct record *record, int blank, struct digest *root) {
    struct record row = *record;
    if (blank) memset(row.digests[DIGEST_BATCH], 0, RECORD_DIGEST_BYTES);
    root_next(root, &row, root);
}

/* The first update whose roots differ where those of the gap count no batch. Up to the gap these
 * are the recorded roots. A run of which one row has no root has none behind it. */
static uint64_t first_without(const struct trace_run *const *runs) {
    struct digest roots[2] = {{{0}}, {{0}}};
    uint64_t i = 0, j = 0, past[2] = {0, 0};
    for (; next_pair(runs, &i, &j); i++, j++) {
        const struct record *const x = trace_row(runs[0], i), *const y = trace_row(runs[1], j);
        for (; past[0] < i; past[0]++) /* rows of one alone */
            add_row(trace_row(runs[0], past[0]), 0, &roots[0]);
        for (; past[1] < j; past[1]++)
            add_row(trace_row(runs[1], past[1]), 0, &roots[1]);
        if (!has_root(x) || !has_root(y)) return 0;
        const int blank = lacks_batch(x) != lacks_batch(y);
        add_row(x, blank, &roots[0]);
        add_row(y, blank, &roots[1]);
        past[0] = i + 1;
        past[1] = j + 1;
        if (digest_compare(&roots[0], &roots[1]) != 0) return x->step;
    }
    return 0;
}

uint64_t runs_first_apart(const struct trace_run *a, const struct trace_run *b,
                          struct batch_gap *gap) {
    const struct trace_run *const runs[2] = {a, b};
    *gap = find_gap(runs);
    if (gap->updates > 0) return first_without(runs);
    for (uint64_t i = 0, j = 0; next_pair(runs, &i, &j); i++, j++)
        if (!record_equal_roots(trace_row(a, i), trace_row(b, j))) return trace_row(a, i)->step;
    return 0;
}

void batch_gap_words(const struct batch_gap *gap, char out_text[COMPARABLE_WHY]) {
    out_text[0] = '\0';
    if (gap->updates == 0) return;
    if (gap->updates == 1)
        snprintf(out_text, COMPARABLE_WHY, "update %" PRIu64 ": %c recorded none", gap->first,
                 "AB"[gap->side]);
    else
        snprintf(out_text, COMPARABLE_WHY,
                 "%" PRIu64 " updates, the first of them update %" PRIu64
                 ", where %c recorded none",
                 gap->updates, gap->first, "AB"[gap->side]);
}
