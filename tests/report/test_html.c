/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Text and numbers must become markup that shows them and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/html.h"

static void validate_text(void **state) {
    static const char *const cases[][2] = {
        {"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* > 10FFFF */
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* cut */
        {"a\tb\nc\x7f\x02", "a\tb\nc\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xef\xbf\xbf\xc2\x85", "\xef\xbf\xbd\xef\xbf\xbd"}, /* noncharacter, C1 */
        {"\xe2\x81\xa6x", "[U+2066]x"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = NULL;
        size_t length;
        struct html html = {open_memstream(&text, &length)};
        html_text(&html, cases[i][0]);
        fclose(html.file);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

/* Every directive of html_format: texts and names must be escaped, and so must constants. */
static void validate_format(void **state) {
    char *text = NULL;
    size_t length;
    struct html html = {open_memstream(&text, &length)};
    (void)state;
    html_format(&html, "<p>%s|%.*s|%-s|%-.*s</p>", "a<b", 2, "&cd", "a.b<", 2, "x/y");
    html_format(&html, "[%.6g %.*g %g %.2g %.2g %.2g]", 1.0 / 3.0, 2, 1.0 / 3.0, 1.0 / 3.0,
                (double)NAN, (double)INFINITY, (double)-INFINITY);
    html_format(&html, "[%f %f %f %f %f]", 1.04, 1.06, -1.05, 2.0, 0.0);
    html_format(&html, "[%d %u %ju %.0f %%]", -1, 4294967295u, (uintmax_t)UINT64_MAX, 2.5);
    fclose(html.file);
    assert_string_equal(text, "<p>a&lt;b|&amp;c|a.<wbr/>b&lt;|x/</p>"
                              "[0.333333 0.33 0.333333 nan inf -inf][1 1.1 -1.1 2 0]"
                              "[-1 4294967295 18446744073709551615 2 %]");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_text),
        cmocka_unit_test(validate_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
