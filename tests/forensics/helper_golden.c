/* SPDX-License-Identifier: Apache-2.0
 * Writes results as lines, each thing once, and compares them line by line. */
#include "tests/forensics/helper_golden.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER TWINSTEP_SOURCE_DIR "/tests/golden/forensics/"

static struct {
    FILE *stream;
    char *text;
    size_t size;
    char file[64], name[160];
} block;

FILE *golden_begin(const char *file, const char *name, ...) {
    va_list arguments;
    assert_null(block.stream);
    snprintf(block.file, sizeof block.file, "%s", file);
    va_start(arguments, name);
    vsnprintf(block.name, sizeof block.name, name, arguments);
    va_end(arguments);
    block.stream = open_memstream(&block.text, &block.size);
    assert_non_null(block.stream);
    return block.stream;
}

/* Returns the committed blocks of a file, which is read once. */
static const char *committed(const char *file) {
    static char *text, read_file[64];
    static size_t size;
    char path[512];
    if (text != NULL && strcmp(read_file, file) == 0) return text;
    free(text);
    text = NULL;
    snprintf(read_file, sizeof read_file, "%s", file);
    snprintf(path, sizeof path, "%s%s", FOLDER, file);
    FILE *in = fopen(path, "r"), *copy = open_memstream(&text, &size);
    if (in == NULL) fail_msg("cannot open %s", path);
    assert_non_null(copy);
    fputc('\n', copy);
    for (int c = fgetc(in); c != EOF; c = fgetc(in))
        fputc(c, copy);
    fclose(in);
    assert_int_equal(fclose(copy), 0);
    return text;
}

static void compare_block(void) {
    char head[192];
    const int length = snprintf(head, sizeof head, "\n== %s\n", block.name);
    const char *expected = strstr(committed(block.file), head);
    if (expected == NULL && getenv("TWINSTEP_WHOLE") != NULL) return;
    if (expected == NULL) fail_msg("%s has no block %s", block.file, block.name);
    expected += length;
    for (const char *got = block.text; *got != '\0' || (*expected != '\0' && *expected != '=');) {
        const size_t a = strcspn(expected, "\n"), b = strcspn(got, "\n");
        if (a != b || memcmp(expected, got, a) != 0)
            fail_msg("%s, %s\nexpected: %.*s\ngot:      %.*s", block.file, block.name, (int)a,
                     expected, (int)b, got);
        expected += a + (expected[a] == '\n');
        got += b + (got[b] == '\n');
    }
}

void golden_end(void) {
    const char *const write = getenv("TWINSTEP_WRITE_GOLDEN");
    assert_int_equal(fclose(block.stream), 0);
    block.stream = NULL;
    if (write != NULL) {
        FILE *out = fopen(write, "a");
        assert_non_null(out);
        fprintf(out, "== %s\n%s", block.name, block.text);
        assert_int_equal(fclose(out), 0);
    } else {
        compare_block();
    }
    free(block.text);
}

static const char *or_none(const char *text) {
    return text != NULL && text[0] != '\0' ? text : "-";
}

static const char *fit_name(const struct fit *fit) {
    return fit != NULL ? or_none(fit->text) : "-";
}

/* ---- fits ---- */

static void print_segments(FILE *out, const struct fit *fit) {
    for (size_t i = 0; i < fit->segment_count; i++) {
        const struct fit_segment *s = &fit->segments[i];
        if (fit->segment_count > 1 || s->shift != 0)
            fprintf(out,
                    "    from point %zu, update %llu: event %d, shift %lld, scale %.6g, moved "
                    "%lld\n",
                    s->point, (unsigned long long)s->update, s->event, (long long)s->shift,
                    s->scale, (long long)s->moved);
    }
    for (size_t i = 0; i < fit->skip_count; i++)
        fprintf(out, "    skipped %llu of %llu to %llu\n", (unsigned long long)fit->skips[i].count,
                (unsigned long long)fit->skips[i].first, (unsigned long long)fit->skips[i].last);
}

static void print_fit(FILE *out, const struct fit *fit) {
    fprintf(out, "  %.4f [%u %u] %s; L %.6g W %.6g T %llu floor %.6g stride %.6g", fit->simplicity,
            fit->same_logged, fit->same_applied, fit->text, fit->lr, fit->warmup,
            (unsigned long long)fit->steps, fit->floor_ratio, fit->stride);
    if (fit->epoch_updates > 0) fprintf(out, " epoch %llu", (unsigned long long)fit->epoch_updates);
    if (fit->warmup_hidden) fprintf(out, " warm-up hidden");
    if (fit->total_hidden) fprintf(out, " total hidden");
    if (fit->reached > 0.0) fprintf(out, " reached %.6g", fit->reached);
    if (fit->first_differs) fprintf(out, " first %.6g", fit->first_value);
    fprintf(out, ", error %.1g; %s\n", fit->max_error, or_none(fit->bug));
    print_segments(out, fit);
}

void golden_fits(FILE *out, const struct fit_set *set, size_t most) {
    fprintf(out, "%zu fits, %zu left out, %zu foreign, %u groups, why %u, last %llu\n", set->count,
            set->left_out, set->foreign, set->groups, set->why, (unsigned long long)set->last);
    if (set->partial != NULL) fprintf(out, "  %zu points: %s\n", set->first_bad, set->partial);
    for (size_t i = 0; i < set->count && i < most; i++)
        print_fit(out, &set->fits[i]);
}

/* What a fit applies between its rows and what no row shows. */
static void print_hidden(FILE *out, const struct fit *fit, const struct fit_set *set) {
    const struct series *series = set->series;
    fprintf(out, "    %u throughout, rms %.3g, takes warm-up %d, unsound %d, applies",
            fit->same_throughout, fit->rms_error, fit->takes_warmup, fit->unsound);
    for (size_t i = 0; i < series->count; i += 1 + series->count / 4)
        fprintf(out, " %.9g", fit_applied(fit, i, series->points[i].update));
    if (fit->unseen_warmup > 0.0)
        fprintf(out, "; unseen %.6g to %.6g with %.9g to %.9g", fit->unseen_from,
                fit->unseen_warmup, fit->unseen_least, fit->unseen_most);
    fputc('\n', out);
    for (size_t i = 0; i < fit->part_count; i++) {
        fprintf(out, "    part from point %zu: begins %d, lag %u, skipped", fit->parts[i].point,
                fit->parts[i].begins, fit->parts[i].lag);
        for (size_t n = 0; n < fit->parts[i].skipped_count; n++)
            fprintf(out, " %llu", (unsigned long long)fit->parts[i].skipped[n]);
        fputc('\n', out);
    }
    for (size_t i = 0; i < fit->segment_count; i++)
        if (fit->segments[i].steps > 0)
            fprintf(out, "    segment %zu: total %llu, warm-up %.6g, next stage %d\n", i,
                    (unsigned long long)fit->segments[i].steps, fit->segments[i].warmup,
                    fit_is_next_stage(fit, i, series));
}

void golden_fits_whole(FILE *out, const struct fit_set *set, const struct fit_known *known) {
    golden_fits(out, set, 0);
    for (size_t i = 0; i < set->count; i++) {
        print_fit(out, &set->fits[i]);
        print_hidden(out, &set->fits[i], set);
        if (i > 0)
            fprintf(out, "    doubt %d, contradicts %d\n",
                    fit_raises_doubt(known, set, &set->fits[i]),
                    fit_contradicts_skipped(&set->fits[i], known));
    }
    if (set->count > 0)
        fprintf(out, "  first: contradicts %d, doubtful break %d, half speed %d, total said %d\n",
                fit_contradicts_skipped(&set->fits[0], known), fit_break_is_doubtful(known, set),
                fit_is_half_speed(&set->fits[0]), fit_total_is_said(&set->fits[0], known));
}

void golden_check(FILE *out, const struct fit_check *check, size_t most) {
    static const char *const verdicts[] = {"pass", "fail", "undecided"};
    fprintf(out, "%s, why %u, fitted %u, from the log %u: %s\n", verdicts[check->verdict],
            check->why, check->fitted, check->from_log, or_none(check->words));
    if (check->verdict != FIT_PASS)
        fprintf(out, "  expected %s; bug %s; rival %s; needs %s\n", fit_name(check->expected),
                or_none(check->bug), or_none(check->rival), or_none(check->needs));
    if (check->bad_points > 0)
        fprintf(out, "  %zu bad points from point %zu on, %.6g there\n", check->bad_points,
                check->first, check->first_expected);
    if (most > 0) golden_fits(out, &check->found, most);
}

/* ---- doctor ---- */

void golden_findings(FILE *out, const struct doctor_report *report) {
    fprintf(out, "%zu checks looked\n", report->checked);
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++) {
        const struct doctor_finding *finding = &report->findings[i];
        fprintf(out, "  %s %s, update %llu, line %u: %s\n",
                finding->remark
                    ? "remark"
                    : doctor_confidence_name((enum doctor_confidence)finding->confidence),
                finding->id, (unsigned long long)finding->update, finding->line, finding->words);
        for (size_t e = 0; e < finding->evidence_count; e++)
            fprintf(out, "    %s\n", finding->evidence[e]);
    }
    fprintf(out, "  untestable:");
    for (size_t i = 0; i < report->line_count; i++)
        if (report->lines[i].result == DOCTOR_UNTESTABLE) fprintf(out, " %s", report->lines[i].id);
    fputc('\n', out);
}

/* ---- comparisons ---- */

static void print_column(FILE *out, const struct compare_column *column) {
    fprintf(out, "  %s %s", log_names[column->name].name,
            compare_class_name((enum compare_class)column->class_of));
    if (column->pairs == 0)
        fprintf(out, ": %zu and %zu rows, %s", column->side[0].count, column->side[1].count,
                or_none(column->why));
    else
        fprintf(out, ": %zu pairs %llu-%llu", column->pairs, (unsigned long long)column->from,
                (unsigned long long)column->to);
    if (column->within > 0) fprintf(out, ", %zu within", column->within);
    if (column->unlike > 0) fprintf(out, ", %zu unlike", column->unlike);
    if (column->side[0].repeated + column->side[1].repeated > 0)
        fprintf(out, ", %zu and %zu repeated", column->side[0].repeated, column->side[1].repeated);
    if (column->different > 0)
        fprintf(out, ", %zu different, first %llu: %.4g %.4g, largest %.3g at %llu",
                column->different, (unsigned long long)column->first_update, column->first[0].value,
                column->first[1].value, column->largest,
                (unsigned long long)column->largest_update);
    fputc('\n', out);
}

static void print_lr(FILE *out, const struct compare_lr *lr) {
    fprintf(out,
            "LR: state %d, logged %d, fits %zu %zu, agree %zu, differ %zu, shift %lld, first "
            "%llu %.4g %.4g, stated %d: %s\n",
            lr->state, lr->logged, lr->fits[0], lr->fits[1], lr->agree, lr->differ,
            (long long)lr->shift, (unsigned long long)lr->first_update, lr->first[0], lr->first[1],
            lr->stated, or_none(lr->words));
    if (lr->fit[0] != NULL)
        fprintf(out, "  A %s\n  B %s\n", fit_name(lr->fit[0]), fit_name(lr->fit[1]));
}

void golden_comparison(FILE *out, const struct compare_report *report) {
    fprintf(out, "%s: %s; %llu-%llu, start %lld, repeated %zu %zu\n",
            compare_verdict_name((enum compare_verdict)report->verdict), or_none(report->why),
            (unsigned long long)report->from, (unsigned long long)report->to,
            (long long)report->start, report->repeated[0], report->repeated[1]);
    for (size_t i = 0; i < report->column_count; i++)
        print_column(out, &report->columns[i]);
    if (report->order_count > 0) fprintf(out, "order:");
    for (size_t i = 0; i < report->order_count; i++)
        fprintf(out, " %s", log_names[report->columns[report->order[i]].name].name);
    if (report->order_count > 0) fputc('\n', out);
    for (size_t i = 0; i < report->ratio_count; i++) {
        const struct compare_ratio *ratio = &report->ratios[i];
        fprintf(out, "ratio %s: kind %d, n %llu, %.5g, %zu of %zu: %s; %s\n",
                log_names[ratio->name].name, ratio->kind, (unsigned long long)ratio->n,
                ratio->factor, ratio->held, ratio->pairs, ratio->meaning, or_none(ratio->bug));
        if (ratio->kind >= COMPARE_FACTOR_OFFSET)
            fprintf(out, "  offset %.5g, scatter %.5g\n", ratio->offset, ratio->scatter);
    }
    print_lr(out, &report->lr);
    if (report->meaning != NULL)
        fprintf(out, "meaning: cause %d: %s\n  next: %s\n", report->cause, report->meaning,
                or_none(report->next));
}
