/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The page of a trace: it must be whole, strict, self-contained, equal for equal traces, honest
 * about what is missing, and of bounded size. fake_page checks the markup of every page made
 * here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/judge.h"
#include "report/html.h"
#include "tests/report/helper_markup.h"
#include "tests/report/helper_page.h"

static const struct fake_plan plain = {
    .updates = {5, 5}, .tensors = 9, .sites = 3, .groups = 1, .factors = 2};

static void require_text(const char *page, const char *text) {
    if (strstr(page, text) == NULL) fail_msg("the page does not say: %s", text);
}

static void refuse_text(const char *page, const char *text) {
    if (strstr(page, text) != NULL) fail_msg("the page says: %s", text);
}

static size_t count_of(const char *page, const char *text) {
    size_t count = 0;
    for (const char *at = page; *at != '\0'; at++) /* strstr walks to the end with ASan */
        count += *at == *text && strncmp(at, text, strlen(text)) == 0 ? 1u : 0u;
    return count;
}

static char *page_of(const struct fake_plan *plan, size_t *out_length) {
    struct fake fake;
    fake_open(&fake, plan);
    char *page = fake_page(&fake, out_length);
    fake_close(&fake);
    return page;
}

static void verify_reader_is_strict(void **state) {
    static const char *const wrong[] = {"<p>a<b>c</p></b>",
                                        "<p>a & b</p>",
                                        "<p>&nbsp;</p>",
                                        "<p id=\"a\" id=\"b\"/>",
                                        "<p id=a></p>",
                                        "<p>a > b</p>",
                                        "<p>open",
                                        "<script>x</script>",
                                        "<img src=\"x\"/>",
                                        "<a href=\"http://x\">x</a>",
                                        "<a href=\"#no\">x</a>",
                                        "<p onclick=\"x\"/>",
                                        "<b id=\"x\"/><b id=\"x\"/>",
                                        "<p>\x01</p>",
                                        "<p>\xff</p>",
                                        "<style>a{background:url(x)}</style>",
                                        "<p title=\"<\"/>",
                                        "</p>"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char page[128];
        snprintf(page, sizeof page, "<!DOCTYPE html>\n%s", wrong[i]);
        if (markup_fault(page, strlen(page)) == NULL) fail_msg("accepted: %s", wrong[i]);
    }
    static const char right[] =
        "<!DOCTYPE html>\n<p id=\"x\">a &amp; <br/><a href=\"#x\">y</a></p>";
    assert_null(markup_fault(right, strlen(right)));
}

static void validate_sections(void **state) {
    static const char *const ids[] = {"verdict", "curves",        "differences", "shares",
                                      "floor",   "configuration", "updates",     "runs",
                                      "machine", "reproduce"};
    (void)state;
    char *page = page_of(&plain, NULL);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        char text[64];
        snprintf(text, sizeof text, "<section id=\"%s\"", ids[i]);
        assert_int_equal(count_of(page, text), 1);
        snprintf(text, sizeof text, "<a href=\"#%s\">", ids[i]);
        assert_int_equal(count_of(page, text), 1);
    }
    refuse_text(page, "://");
    assert_int_equal(count_of(page, "<svg class=\"plot\""), 6);
    assert_int_equal(count_of(page, "role=\"img\""), count_of(page, "<desc"));
    assert_int_equal(count_of(page, "<desc"), 6);
    require_text(page, "name=\"viewport\"");
    require_text(page, "prefers-color-scheme:dark");
    require_text(page, "@media print");
    free(page);
}

/* The words of the verdict must be those that `run` prints, to the byte. */
static void validate_verdict_text(void **state) {
    (void)state;
    struct fake fake;
    struct judgement judgement;
    fake_open(&fake, &plain);
    assert_int_equal(judge(&fake.image, &fake.arena, &judgement), STATUS_OK);
    char *printed = NULL;
    size_t length;
    FILE *out = open_memstream(&printed, &length);
    judgement_print(&judgement, out);
    fclose(out);
    char *page = fake_page(&fake, NULL);
    char *shown = markup_text(page, "as the terminal shows it", "pre");
    assert_string_equal(shown, printed);
    char *lead = markup_text(page, "class=\"lead\"", "p");
    char *first = markup_text(page, "<h2 id=\"h-verdict\">", "p");
    assert_non_null(lead);
    assert_true(strncmp(printed, first, strlen(first)) == 0);
    free(lead);
    free(first);
    free(shown);
    free(page);
    free(printed);
    fake_close(&fake);
}

static void validate_differences(void **state) {
    (void)state;
    char *page = page_of(&plain, NULL);
    /* tensor 0 differs from update 4 on, tensor 4 always; fetch has no digest */
    require_text(page,
                 "<th scope=\"row\" class=\"w\">model.<wbr/>layers.<wbr/>0.<wbr/>part_<wbr/>0."
                 "<wbr/>weight</th><td class=\"f\">4</td><td class=\"f\">2</td>");
    require_text(page,
                 "part_<wbr/>4.<wbr/>weight</th><td class=\"f\">1</td><td class=\"f\">5</td>");
    require_text(page, ">fetch</th><td class=\"f\">no digest</td><td class=\"f\"></td>");
    /* forward differs from update 2 on */
    require_text(page, ">forward</th><td class=\"f\">2</td><td class=\"f\">4</td>");
    require_text(page, "M0.06 0h.88v1h-.88z");
    free(page);
}

static void validate_shares(void **state) {
    (void)state;
    char *page = page_of(&plain, NULL); /* v = 0, 3, 6, 9 e-5: additive, 1/3 and 2/3 */
    require_text(page, ">dtype</th><td class=\"r\">66.67 %</td>");
    require_text(page, ">schedule</th><td class=\"r\">33.33 %</td>");
    require_text(page, "<td class=\"n\">exact</td>");
    require_text(page, "dtype &#215; schedule");
    free(page);
    static const struct {
        struct fake_plan plan;
        const char *text;
    } cases[] = {
        {{.updates = {5, 5}, .groups = 1, .factors = 2, .equal = 1}, "the arms are equal"},
        {{.updates = {3, 3}, .steps = 5, .groups = 1, .factors = 2, .incomplete = 1}, "Untestable"},
        {{.updates = {5, 5}, .groups = 1}, "the configurations are equal"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        page = page_of(&cases[i].plan, NULL);
        const char *section = strstr(page, "<section id=\"shares\"");
        require_text(section, cases[i].text);
        free(page);
    }
}

static void validate_configuration(void **state) {
    (void)state;
    char *page = page_of(&plain, NULL);
    require_text(page, "loop.<wbr/>update</th><td class=\"w\">[clip,<wbr/> optimize]</td><td "
                       "class=\"w\">[optimize,<wbr/> clip]</td><td>schedule</td>");
    require_text(page, "numerics.<wbr/>compute</th><td class=\"w\">f32</td><td "
                       "class=\"w\">bf16</td><td>dtype</td>");
    require_text(page, "only.<wbr/>here</th><td class=\"w\">x</td><td class=\"w\"><em>has no such "
                       "key</em></td>");
    require_text(page, "only.<wbr/>test</th><td class=\"w\"><em>has no such key</em></td><td "
                       "class=\"w\">y</td>");
    assert_int_equal(count_of(page, ">seed</th>"), 1); /* among all keys alone */
    require_text(page, "left out (<code>--reproducible</code>)");
    require_text(page,
                 "twinstep run made-up.yaml --set &#39;steps=3&#39; --set "
                 "&#39;common.data.pairs=it&#39;\\&#39;&#39;s here.jsonl&#39; -o made-up.h5\n");
    free(page);
}

/* Of eight shards three ranks have 2, 3 and 3, and with eight samples a shard has one. */
static void validate_ranks(void **state) {
    static const struct fake_plan several = {
        .updates = {5, 5}, .tensors = 9, .sites = 3, .groups = 1, .factors = 2, .ranks = 3};
    static const char *const rows[] = {
        "data-parallel ranks</th><td>1</td><td>3</td>",
        "dealt by</th><td>cyclic</td><td>cyclic</td>",
        "joined by</th><td>nothing is joined</td><td>a tree over 8 shards</td>",
        "(ZeRO)</th><td>every rank has all</td><td>stage 2: gradient, masters and slots</td>",
        "replicas</th><td>none</td><td>part at update 4, rank 1, ",
        "\">0</th><td>all</td><td></td><td>0 to 1</td><td></td></tr>",
        "\">1</th><td>all</td><td></td><td>2 to 4</td><td>update 4, ",
        "\">2</th><td>all</td><td></td><td>5 to 7</td><td>never</td></tr>",
    };
    (void)state;
    char *page = page_of(&several, NULL);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        require_text(page, rows[i]);
    assert_int_equal(count_of(page, "<a href=\"#ranks\">"), 1);
    free(page);
    struct fake_plan other = several;
    other.rank_keys = "parallel.feeds: same\nparallel.sync: first\n";
    page = page_of(&other, NULL);
    require_text(page, "a tree over 8 shards, of each rank&#39;s first micro-batch alone</td>");
    require_text(page, "\">1</th><td>all</td><td></td><td>0 to 2</td><td>update 4, ");
    require_text(page, "\">2</th><td>all</td><td></td><td>0 to 2</td><td>never</td></tr>");
    free(page);
    other.rank_keys = "parallel.feeds: own-on-tensor\nparallel.tensor: 2\n";
    page = page_of(&other, NULL);
    require_text(page, "\">1</th><td>all</td><td></td><td>8 of its own</td><td>update 4, ");
    free(page);
    other.rank_keys = "parallel.keeps: last\n";
    page = page_of(&other, NULL);
    require_text(page, "a tree over 8 shards, of each rank&#39;s last micro-batch alone</td>");
    free(page);
    page = page_of(&plain, NULL);
    refuse_text(page, "\"ranks\"");
    refuse_text(page, "#ranks");
    free(page);
}

static void verify_escapes(void **state) {
    static const char hostile[] = "</pre></style><script>alert(1)</script>\"'&amp;\xff\xe2\x80\xae"
                                  "\x01 onload=\"x\"\xc3\xa9";
    (void)state;
    struct fake_plan plan = plain;
    plan.hostile = hostile;
    char *page = page_of(&plan, NULL);
    refuse_text(page, "<script");
    require_text(page,
                 "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;amp;\xef\xbf\xbd[U+202E]"
                 "\xef\xbf\xbd onload=&quot;x&quot;\xc3\xa9");
    free(page);
    struct fake log;
    fake_open_log(&log, 20, 2, hostile);
    page = fake_page(&log, NULL);
    refuse_text(page, "<script");
    fake_close(&log);
    free(page);
}

static void verify_equal_traces_give_equal_bytes(void **state) {
    (void)state;
    size_t lengths[2];
    char *a = page_of(&plain, &lengths[0]), *b = page_of(&plain, &lengths[1]);
    assert_int_equal(lengths[0], lengths[1]);
    assert_memory_equal(a, b, lengths[0]);
    free(a);
    free(b);
}

static void validate_gaps(void **state) {
    (void)state;
    struct fake fake;
    struct fake_plan plan = plain;
    plan.updates[0] = plan.updates[1] = 12;
    fake_open(&fake, &plan);
    for (uint64_t i = 3; i < 7; i++)
        fake.image.runs[1].records[i].reals[REAL_LOSS] = i == 5 ? (double)INFINITY : (double)NAN;
    fake.image.runs[1].records[9].reals[REAL_LOSS] = (double)-INFINITY;
    char *page = fake_page(&fake, NULL);
    require_text(page, "Gaps: test has no finite value at update 4 to 7, 10 (5 of 12)");
    require_text(page, "Gaps: |A-B| of the loss has no finite value at update 4 to 7, 10");
    require_text(page, "<td class=\"r\">nan</td>");
    require_text(page, "<td class=\"r\">-inf</td>");
    for (uint64_t i = 0; i < 12; i++)
        for (int run = 0; run < 2; run++)
            fake.image.runs[run].records[i].reals[REAL_LOSS] = (double)NAN;
    free(page);
    page = fake_page(&fake, NULL);
    assert_int_equal(count_of(page, "Nothing to draw: no finite value was recorded."), 2);
    free(page);
    fake_close(&fake);
}

static void validate_incomplete(void **state) {
    (void)state;
    struct fake_plan plan = plain;
    plan.incomplete = 1;
    plan.steps = 9;
    plan.updates[1] = 4;
    char *page = page_of(&plan, NULL);
    require_text(page, "Incomplete trace.");
    require_text(page, "Of 9 updates, baseline finished 5, test finished 4.");
    require_text(page, "only 4 of 9 updates were finished by both arms");
    require_text(page, "repeat in the same process, or a copy of it</dt><dd>not run");
    free(page);
    plan.updates[0] = plan.updates[1] = 0;
    page = page_of(&plan, NULL);
    require_text(page, "No update was finished by both arms");
    require_text(page, "Nothing to draw");
    free(page);
}

static void validate_floor(void **state) {
    (void)state;
    char *page = page_of(&plain, NULL);
    require_text(page, "floor: exact. Repeats are bit-equal; only 0 lies inside it");
    require_text(page, "repeat in a second process</dt><dd>equal, bit for bit");
    free(page);
    struct fake_plan plan = plain;
    plan.repeats = 7;
    page = page_of(&plan, NULL);
    require_text(page, "floor: runs of one arm from each other, measured at their ends");
    require_text(page, "floor: runs of one arm from each other, at each update");
    require_text(page, "baseline, 8 runs: least to largest");
    require_text(page, "<dt>runs</dt><dd>8 + 8</dd>");
    /* one run of each hybrid: the interval of a share is what repeats differ by */
    require_text(page, "<td class=\"n\">66.6 % to 66.73 %</td>");
    free(page);
}

/* Traces of one update, without a tensor, with no group that differs from the first, and with many
 * groups. */
static void verify_small_and_odd_traces(void **state) {
    static const struct fake_plan plans[] = {
        {.updates = {1, 1}, .groups = 1},
        {.updates = {3, 3}, .groups = 6, .tensors = 1, .factors = 1},
        {.updates = {3, 1}, .groups = 1, .incomplete = 1, .steps = 3},
        {.updates = {0, 2}, .groups = 1, .incomplete = 1, .steps = 3},
        {.updates = {61, 61}, .groups = 1, .equal = 1, .sites = 2},
        {.updates = {130, 130}, .groups = 1, .tensors = 3, .repeats = 2},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        char *page = page_of(&plans[i], NULL);
        assert_int_equal(count_of(page, "Every finite value is 0"), plans[i].equal ? 2 : 0);
        assert_int_equal(count_of(page, "<td>equal</td>"),
                         plans[i].equal ? plans[i].updates[0] : 0);
        free(page);
    }
}

static size_t drawing_bytes(const char *page) {
    size_t total = 0;
    for (const char *at = page; (at = strstr(at, "<svg class=\"plot\"")) != NULL;) {
        const char *end = strstr(at, "</svg>");
        total += (size_t)(end - at);
        at = end;
    }
    return total;
}

static void verify_size_is_bounded(void **state) {
    (void)state;
    struct fake_plan plan = {.updates = {2000, 2000}, .groups = 1, .factors = 1};
    size_t length;
    char *page = page_of(&plan, &length);
    const size_t drawn = drawing_bytes(page);
    require_text(page, "Thinned: each of 390 columns");
    free(page);
    plan.updates[0] = plan.updates[1] = 10000;
    page = page_of(&plan, &length);
    assert_true(drawing_bytes(page) < drawn + drawn / 5);
    assert_int_equal(count_of(page, "<td>differ</td>"), 10000); /* every row is there */
    assert_true(length < 6000000);
    free(page);
    plan.updates[0] = plan.updates[1] = 20002;
    page = page_of(&plan, &length);
    assert_int_equal(count_of(page, "<td>differ</td>"), 10002); /* 1, 3, ..., 20001; 20002 */
    require_text(page, "Thinned: one row in 2, and the last one.");
    require_text(page, ">20002</th>");
    free(page);
}

/* A value far from the others must survive thinning. */
static void verify_thinning_keeps_extremes(void **state) {
    (void)state;
    struct fake fake;
    const struct fake_plan plan = {.updates = {10000, 10000}, .groups = 1};
    fake_open(&fake, &plan);
    fake.image.runs[0].records[7777].reals[REAL_LOSS] = 100.0;
    char *page = fake_page(&fake, NULL);
    const char *line = strstr(page, "<path class=\"line a thin\" d=\"");
    assert_non_null(line);
    const char *end = strstr(line + 30, "\"/>");
    char *text = strndup(line, (size_t)(end - line));
    require_text(text, "V16V"); /* the top of the drawing */
    free(text);
    free(page);
    fake_close(&fake);
}

static void verify_many_tensors_are_capped(void **state) {
    (void)state;
    struct fake_plan plan = {.updates = {3, 3}, .groups = 1, .tensors = 5000, .sites = 2};
    char *page = page_of(&plan, NULL);
    require_text(page, "5000 names, joined by layer");
    require_text(page, "Capped: 80 of 715 rows");
    assert_true(count_of(page, "class=\"strip\"") < 200);
    free(page);
}

static void validate_log(void **state) {
    (void)state;
    struct fake fake;
    fake_open_log(&fake, 30, 40, NULL);
    char *page = fake_page(&fake, NULL);
    require_text(page, "<h1>log.<wbr/>jsonl</h1>");
    require_text(page, "No verdict: nothing is compared");
    require_text(page, "(numbered by us: the log prints no step)");
    require_text(page, "a note");
    require_text(page, "Capped: 24 of 42 columns are drawn.");
    require_text(page, "Capped: the first 14 of 42 columns.");
    refuse_text(page, "id=\"floor\"");
    refuse_text(page, "IDENTICAL");
    assert_int_equal(count_of(page, "<h3>loss</h3>"), 1);
    assert_true(strstr(page, "<h3>loss</h3>") < strstr(page, "<h3>lr_logged</h3>"));
    free(page);
    fake_close(&fake);
    fake_open_log(&fake, 0, 0, NULL);
    free(fake_page(&fake, NULL));
    fake_close(&fake);
}

static void verify_refusals(void **state) {
    (void)state;
    struct fake fake;
    const struct report_options options = {.version = "1.2.3"};
    fake_open(&fake, &plain);
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        assert_int_equal(report_write(&fake.image, &options, &fake.arena, full), STATUS_IO);
        require_text(status_text(), "cannot write");
        fclose(full);
    }
    FILE *none = tmpfile();
    fake.image.runs[1].plan.shape.groups = 0;
    assert_int_equal(report_write(&fake.image, &options, &fake.arena, none), STATUS_INPUT);
    require_text(status_text(), "no parameter group");
    fake.image.run_count = 1;
    assert_int_equal(report_write(&fake.image, &options, &fake.arena, none), STATUS_INPUT);
    fclose(none);
    fake_close(&fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_reader_is_strict),
        cmocka_unit_test(validate_sections),
        cmocka_unit_test(validate_verdict_text),
        cmocka_unit_test(validate_differences),
        cmocka_unit_test(validate_shares),
        cmocka_unit_test(validate_configuration),
        cmocka_unit_test(validate_ranks),
        cmocka_unit_test(verify_escapes),
        cmocka_unit_test(verify_equal_traces_give_equal_bytes),
        cmocka_unit_test(validate_gaps),
        cmocka_unit_test(validate_incomplete),
        cmocka_unit_test(validate_floor),
        cmocka_unit_test(verify_small_and_odd_traces),
        cmocka_unit_test(verify_size_is_bounded),
        cmocka_unit_test(verify_thinning_keeps_extremes),
        cmocka_unit_test(verify_many_tensors_are_capped),
        cmocka_unit_test(validate_log),
        cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
