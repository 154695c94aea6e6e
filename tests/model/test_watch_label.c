/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The names of what a watch shows: every label must have a text of its own, the words that reports
 * and JSON print must stay what they are, and names without a label must be compared by their
 * text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/macro.h"
#include "model/watch_label.h"

static void verify_texts(void **state) {
    (void)state;
    for (int a = LABEL_OWN + 1; a <= LABEL_GRADIENTS_LEFT; a++) {
        const struct watch_name name = watch_named((enum watch_label)a);
        assert_int_equal(name.label, a);
        assert_true(strlen(name.text) > 0);
        for (int b = LABEL_OWN + 1; b < a; b++)
            assert_string_not_equal(name.text, watch_named((enum watch_label)b).text);
    }
}

static void validate_words(void **state) {
    (void)state;
    static const struct {
        enum watch_label label;
        const char *text;
    } rows[] = {{LABEL_EMBED_TOKENS, "embed_tokens"},
                {LABEL_POST_MLP_NORM, "post_feedforward_layernorm"},
                {LABEL_AFTER_MLP, "after MLP"},
                {LABEL_LOGP, "log-prob of the target"},
                {LABEL_GRADIENT_TAKEN, "gradient taken"},
                {LABEL_GRADIENTS_LEFT, "gradients left"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(watch_named(rows[i].label).text, rows[i].text);
}

static void verify_equality(void **state) {
    (void)state;
    char copy[] = "master";
    assert_true(watch_name_equal(watch_own("master"), watch_own(copy)));
    assert_false(watch_name_equal(watch_own("master"), watch_own("exp_avg")));
    assert_true(watch_name_equal(watch_named(LABEL_MASTER), watch_named(LABEL_MASTER)));
    assert_false(watch_name_equal(watch_named(LABEL_MASTER), watch_named(LABEL_PARAMETER)));
    /* a slot that a module calls "master" is not the master */
    assert_false(watch_name_equal(watch_named(LABEL_MASTER), watch_own(copy)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_texts),
        cmocka_unit_test(validate_words),
        cmocka_unit_test(verify_equality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
