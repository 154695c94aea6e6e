/* SPDX-License-Identifier: Apache-2.0
 * The judgement of two dumps for people: the first line stands alone, the rest says why. */
#include "cli/ops_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/plain_text.h"

/* Births that are listed; --json has all. */
#define SHOWN 8
#define ARGS_SHOWN 150

const char *const ops_verdicts[] = {[DUMP_EQUAL] = "equal",
                                    [DUMP_DIFFERS] = "differs",
                                    [DUMP_ONLY_NOISE] = "only-noise",
                                    [DUMP_UNDECIDED] = "undecided"};

const char *ops_word(const struct dump_judgement *judgement, uint32_t word) {
    return judgement->words->list[word].text;
}

const char *ops_module(const struct dump_judgement *judgement, const struct dump_op *op) {
    return op->module == 0 ? "no module (loss, backward or optimizer)"
                           : ops_word(judgement, op->module);
}

static const struct dump_op *op_of(const struct dump_judgement *judgement,
                                   const struct dump_event *event) {
    return &judgement->dump[event->side]->ops[event->op];
}

/* Reads the first hash of a value, "f32[2, 3]|0.5|17". Returns 0 where it is no real number. */
static int first_hash(const char *value, double *out) {
    struct number_text text;
    const char *bar = strchr(value, '|');
    if (bar == NULL) return 0;
    const size_t length = strcspn(bar + 1, "|");
    if (length == 0 || length >= sizeof text.text) return 0;
    memcpy(text.text, bar + 1, length);
    text.text[length] = '\0';
    return number_parse_real(text.text, NUMBER_FINITE, out) == STATUS_OK;
}

double ops_relative(const struct dump_judgement *judgement, const struct dump_event *event) {
    double hash[2], most = -1;
    if (event->counterpart == UINT32_MAX || event->kind != DUMP_BIRTH) return -1;
    const struct dump *here = judgement->dump[event->side], *there = judgement->dump[!event->side];
    const struct dump_op *op = op_of(judgement, event), *like = &there->ops[event->counterpart];
    if (here->hashes == 0 || here->kind[0] != DUMP_HASH_REAL || op->outputs != like->outputs)
        return -1;
    for (uint32_t i = 0; i < op->outputs; i++) {
        const uint32_t a = here->values[op->first + op->inputs + i],
                       b = there->values[like->first + like->inputs + i];
        if (!first_hash(ops_word(judgement, a), &hash[0]) ||
            !first_hash(ops_word(judgement, b), &hash[1]))
            return -1;
        const double scale = fmax(fabs(hash[0]), fabs(hash[1]));
        const double relative = scale > 0 ? fabs(hash[0] - hash[1]) / scale : 0;
        if (relative > most) most = relative;
    }
    return most;
}

const char *ops_blind(const struct dump_judgement *judgement) {
    const struct dump *dump = judgement->dump[0];
    int real = 0, whole = 0;
    for (size_t i = 0; i < dump->hashes; i++) {
        if (dump->kind[i] == DUMP_HASH_TEXT) return NULL;
        real |= dump->kind[i] == DUMP_HASH_REAL;
        whole |= dump->kind[i] == DUMP_HASH_WHOLE;
    }
    if (real && whole)
        return "evidence, no proof: \"norm\" (L1) is blind to signs and order, \"hash_tensor\" "
               "(xor) to order and to pairs; both together miss a permutation";
    if (real)
        return "evidence, no proof: \"norm\" (L1) is blind to signs and order; "
               "hash_fn=[\"norm\", \"hash_tensor\"] sees more";
    return "evidence, no proof: \"hash_tensor\" (xor) is blind to order and to pairs; "
           "hash_fn=[\"norm\", \"hash_tensor\"] sees more";
}

/* ---- the first line ---- */

static const char *ending(uint64_t count) {
    return count == 1 ? "" : "s";
}

/* What the first line says where nothing is named. */
static enum status line_without_event(const struct dump_judgement *j, struct arena *arena,
                                      char **out) {
    const struct dump *a = j->dump[0], *b = j->dump[1];
    if (j->verdict == DUMP_ONLY_NOISE)
        return arena_format(
            arena, out, "ONLY NOISE: what differs also differs between %s and its floor", a->path);
    if (j->verdict == DUMP_UNDECIDED && j->differing == 0) {
        const struct dump *dump = j->dump[j->blank_side];
        const struct dump_op *op = &dump->ops[j->first_blank];
        return arena_format(
            arena, out,
            "UNDECIDED: no op made a value of its own, but %" PRIu64
            " values have no hash but NaN, which says nothing about them, first of %s in %s (entry "
            "%" PRIu32 " of %s)",
            j->blank, ops_word(j, op->op), ops_module(j, op), op->place, dump->path);
    }
    if (j->verdict == DUMP_UNDECIDED)
        return arena_format(
            arena, out,
            "UNDECIDED: no op made a value of its own, but %" PRIu64
            " aligned ops hold other values, first %s in %s (entry %" PRIu32 " of %s)",
            j->differing, ops_word(j, a->ops[j->first_differing].op),
            ops_module(j, &a->ops[j->first_differing]), a->ops[j->first_differing].place, a->path);
    return arena_format(arena, out,
                        "EQUAL: no op of %s (%zu) made a value that %s (%zu) has not, nor the "
                        "other way round",
                        a->path, a->count, b->path, b->count);
}

enum status ops_first_line(const struct dump_judgement *j, struct arena *arena, char **out) {
    const struct dump_event *event = j->first;
    if (event == NULL) return line_without_event(j, arena, out);
    const struct dump_op *op = op_of(j, event);
    if (event->kind == DUMP_OUTSIDE)
        return arena_format(arena, out,
                            "DIFFERS by a value from outside: input %" PRIu32
                            " of %s in %s was made by no op of the dump (a parameter, a buffer, "
                            "data), and %s has no such value",
                            event->input + 1, ops_word(j, op->op), ops_module(j, op),
                            j->dump[!event->side]->path);
    return arena_format(arena, out, "DIFFERS: the first birth is %s in %s", ops_word(j, op->op),
                        ops_module(j, op));
}

/* ---- the rest ---- */

/* Words of a dump stand in a line of ours, so their tabs are words, too. */
static void print_cut(const char *text) {
    char shown[ARGS_SHOWN + 1];
    if (strlen(text) <= ARGS_SHOWN) {
        plain_text_put(text, stdout);
        return;
    }
    memcpy(shown, text, ARGS_SHOWN);
    shown[ARGS_SHOWN] = '\0';
    plain_text_put(shown, stdout);
    fputs("...", stdout);
}

static void print_event(const struct dump_judgement *j, const struct dump_event *event) {
    const struct dump_op *op = op_of(j, event);
    printf("    %c %6" PRIu32 "  ", event->side == 0 ? 'A' : 'B', op->place);
    plain_text_put(ops_word(j, op->op), stdout);
    fputs("  ", stdout);
    if (event->kind == DUMP_OUTSIDE) printf("input %" PRIu32 " of ", event->input + 1);
    printf("(");
    print_cut(ops_word(j, op->args));
    fputs(")\n             in ", stdout);
    plain_text_put(ops_module(j, op), stdout);
    puts(event->site ? ", where both have births" : "");
}

/* Prints what stands before and behind the path of a dump, and the path on one line. */
static void print_path(const char *before, const struct dump *dump, const char *behind) {
    fputs(before, stdout);
    plain_text_put(dump->path, stdout);
    fputs(behind, stdout);
}

static void print_first(const struct dump_judgement *j) {
    const struct dump_event *event = j->first;
    if (event == NULL) return;
    const struct dump *here = j->dump[event->side], *there = j->dump[!event->side];
    const struct dump_op *op = op_of(j, event);
    printf("  where      entry %" PRIu32, op->place);
    print_path(" of ", here, "\n");
    if (op->location != 0) {
        fputs("  called at  ", stdout);
        plain_text_put(ops_word(j, op->location), stdout);
        putchar('\n');
    }
    if (op->args != 0) {
        printf("  arguments  ");
        print_cut(ops_word(j, op->args));
        printf("\n");
    }
    if (event->kind == DUMP_OUTSIDE) return;
    print_path("  birth      each of its inputs is a value of ", there,
               "; what it made of them is not\n");
    if (event->counterpart == UINT32_MAX) {
        print_path("  like it    no op of ", there, " stands at its place\n");
        return;
    }
    const struct dump_op *like = &there->ops[event->counterpart];
    const double relative = ops_relative(j, event);
    printf("  like it    entry %" PRIu32, like->place);
    print_path(" of ", there, "\n");
    if (like->literals != op->literals) {
        struct dump_change change;
        dump_changed(ops_word(j, op->literals), ops_word(j, like->literals), &change);
        printf("  literal    %.*s, there %.*s\n", (int)change.length[0], change.text[0],
               (int)change.length[1], change.text[1]);
    }
    const int64_t other = dump_other_input(j, event);
    if (other >= 0)
        printf("  inputs     number %" PRId64
               " is another value there, so this is not the same call\n",
               other + 1);
    else if (like->literals == op->literals)
        printf("  literal    all equal: the same call gave another value%s\n",
               ops_blind(j) == NULL ? "" : ", or its inputs hold theirs in another order (note)");
    if (relative >= 0) printf("  hash       apart by %.2g, relatively\n", relative);
}

static void print_list(const struct dump_judgement *j, const char *title, int kind, int noise) {
    size_t count = 0;
    for (size_t i = 0; i < j->event_count; i++) {
        const struct dump_event *event = &j->events[i];
        if (event->noise != noise || (!noise && (int)event->kind != kind)) continue;
        if (count == 0) printf("  %s\n", title);
        if (count++ < SHOWN) print_event(j, event);
    }
    if (count > SHOWN) printf("    ... and %zu more (--json)\n", count - SHOWN);
}

static void print_counts(const struct dump_judgement *j) {
    const struct dump *a = j->dump[0], *b = j->dump[1];
    print_path("  A          ", a, ": ");
    printf("%s, %zu ops with hashes, %" PRIu64 " birth%s\n", a->format, a->count, j->births[0],
           ending(j->births[0]));
    print_path("  B          ", b, ": ");
    printf("%s, %zu ops with hashes, %" PRIu64 " birth%s\n", b->format, b->count, j->births[1],
           ending(j->births[1]));
    if (!j->is_aligned)
        printf("  aligned    none: more than 4096 ops stand on one side only\n");
    else
        printf("  aligned    %" PRIu64 " ops; %" PRIu64 " hold other values, %" PRIu64
               " of them only inherited\n",
               j->aligned, j->differing, j->inherited);
    if (j->floors == 0)
        printf("  floor      none: --floor A2 (a second dump of A) would tell noise apart\n");
    else
        printf("  floor      %zu dump%s; %" PRIu64 " births or values are noise\n", j->floors,
               ending(j->floors), j->noise);
}

void ops_print(const struct dump_judgement *j, const char *first_line) {
    const char *blind = ops_blind(j);
    const uint64_t nan = j->dump[0]->nan + j->dump[1]->nan;
    plain_text_put(first_line, stdout);
    putchar('\n');
    print_first(j);
    print_counts(j);
    print_list(j, "births (dump, entry, op)", DUMP_BIRTH, 0);
    print_list(j, "values that no op made", DUMP_OUTSIDE, 0);
    print_list(j, "noise: between A and its floor, too", 0, 1);
    if (j->noise > 0)
        printf("  note       what is made of noise is not looked at: a difference behind it is not "
               "seen\n");
    if (j->dump[0]->shapeless)
        printf("  note       torchtitan writes no shapes of inputs and leaves views, copies and "
               "small tensors out\n");
    if (nan > 0)
        printf("  note       %" PRIu64 " hashes are NaN, which say nothing about a value\n", nan);
    if (blind != NULL) printf("  note       %s\n", blind);
}
