/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a class of schedules from a user's module must be, claim by claim and each end from both
 * sides. A list that this test makes takes the place of a module's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#define module_entry given_entry
#include "sched/sched_module.c" /* with entries of this test */

enum { VALUES_MOST = 64, LISTED = MODULE_CLASSES_MAX + 2 };

static const struct module module = {.path = "user.so"};
static const struct sched_class *scheds[LISTED];
static int is_empty;

enum status given_entry(const struct module *from, const char *kind,
                        const struct module_sizes *sizes, const struct module_stamp **out) {
    static struct sched_module sched;
    assert_ptr_equal(from, &module);
    assert_non_null(sizes);
    sched.classes = is_empty ? NULL : scheds;
    assert_string_equal(kind, "sched");
    *out = &sched.stamp;
    return STATUS_OK;
}

static double value(const struct sched_call *call, double counter) {
    (void)call;
    return counter;
}

static double minimum(const struct sched_call *call) {
    (void)call;
    return 0.0;
}

static struct sched_class sound_sched(void) {
    return (struct sched_class){.size = sizeof(struct sched_class),
                                .name = "mine",
                                .help = "h",
                                .value = value,
                                .minimum = minimum};
}

/* Reads a list of one class; `text`: what is said of it, or NULL where it is taken. */
static void read_sched(const struct sched_class *class_, const char *text) {
    const struct sched_class *const *read = NULL;
    memset(scheds, 0, sizeof scheds);
    scheds[0] = class_;
    const enum status status = sched_module_read(&module, VALUES_MOST, &read);
    assert_int_equal(status, text == NULL ? STATUS_OK : STATUS_INPUT);
    if (text == NULL)
        assert_ptr_equal(read, scheds);
    else if (strstr(status_text(), text) == NULL)
        fail_msg("%s, expected %s", status_text(), text);
}

static void validate_texts_and_sizes(void **state) {
    (void)state;
    for (int more = -1; more < 2; more++) {
        struct sched_class sched = sound_sched();
        sched.size += (size_t)more;
        read_sched(&sched, more == 0 ? NULL : "user.so: a schedule: expected size ");
        sched = sound_sched();
        sched.values_size = (size_t)(VALUES_MOST + more);
        read_sched(&sched, more < 1 ? NULL : "expected values_size of at most 64 bytes, got 65");
        sched = sound_sched();
        sched.state_size = (size_t)(SCHED_MODULE_STATE_MAX + more);
        read_sched(&sched, more < 1 ? NULL : "expected state_size of at most ");
    }
    static const char *const helps[] = {NULL, "", "x"};
    for (size_t i = 0; i < COUNT_OF(helps); i++) {
        struct sched_class sched = sound_sched();
        sched.help = helps[i];
        read_sched(&sched, i == 2 ? NULL : "schedule mine: expected a help text, got none");
    }
    struct sched_class sched = sound_sched();
    sched.name = "linear";
    read_sched(&sched, "got that of a built-in");
    sched.name = "";
    read_sched(&sched, "");
    sched = sound_sched();
    sched.value = NULL;
    read_sched(&sched, "got no value");
    sched = sound_sched();
    sched.minimum = NULL;
    read_sched(&sched, "got no minimum");
    sched = sound_sched();
    sched.feedback = 1;
    read_sched(&sched, "follows a metric");
}

static void validate_lists(void **state) {
    (void)state;
    static struct sched_class many_scheds[LISTED];
    static char names[LISTED][8];
    const struct sched_class *const *sched;
    for (is_empty = 1; is_empty >= 0; is_empty--) {
        read_sched(NULL, "expected at least one schedule, got an empty list");
    }
    is_empty = 0;
    for (size_t i = 0; i < LISTED; i++) {
        names[i][0] = 'n';
        names[i][1] = (char)('a' + i / 26);
        names[i][2] = (char)('a' + i % 26);
        many_scheds[i] = sound_sched();
        many_scheds[i].name = names[i];
    }
    for (size_t count = 1; count <= MODULE_CLASSES_MAX + 1; count++) {
        memset(scheds, 0, sizeof scheds);
        for (size_t i = 0; i < count; i++) {
            scheds[i] = &many_scheds[i];
        }
        const enum status status = count <= MODULE_CLASSES_MAX ? STATUS_OK : STATUS_INPUT;
        assert_int_equal(sched_module_read(&module, VALUES_MOST, &sched), status);
    }
    for (size_t a = 0; a < 3; a++) /* two of three with one name */
        for (size_t b = a + 1; b < 3; b++) {
            memset(scheds, 0, sizeof scheds);
            for (size_t i = 0; i < 3; i++) {
                many_scheds[i].name = names[i == b ? a : i];
                scheds[i] = &many_scheds[i];
            }
            assert_int_equal(sched_module_read(&module, VALUES_MOST, &sched), STATUS_INPUT);
            assert_non_null(strstr(status_text(), "two schedules are named "));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_texts_and_sizes),
        cmocka_unit_test(validate_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
