/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a class of optimizers from a user's module must be, claim by claim and each end from both
 * sides. A list that this test makes takes the place of a module's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#define module_entry given_entry
#include "optim/optim_module.c" /* with entries of this test */

enum { VALUES_MOST = 64, LISTED = MODULE_CLASSES_MAX + 2 };

static const struct module module = {.path = "user.so"};
static const struct optim_class *optims[LISTED];
static int is_empty;

enum status given_entry(const struct module *from, const char *kind,
                        const struct module_sizes *sizes, const struct module_stamp **out) {
    static struct optim_module optim;
    assert_ptr_equal(from, &module);
    assert_non_null(sizes);
    optim.classes = is_empty ? NULL : optims;
    assert_string_equal(kind, "optim");
    *out = &optim.stamp;
    return STATUS_OK;
}

static enum status step(const struct optim_call *call) {
    (void)call;
    return STATUS_OK;
}

static const char *slots[] = {"a", "b", "c", "d", "e"};

static struct optim_class sound_optim(void) {
    return (struct optim_class){.size = sizeof(struct optim_class),
                                .name = "mine",
                                .help = "h",
                                .step = step,
                                .flags = OPTIM_ELEMENTWISE};
}

/* Reads a list of one class; `text`: what is said of it, or NULL where it is taken. */
static void read_optim(const struct optim_class *class_, const char *text) {
    const struct optim_class *const *read = NULL;
    memset(optims, 0, sizeof optims);
    optims[0] = class_;
    const enum status status = optim_module_read(&module, VALUES_MOST, &read);
    assert_int_equal(status, text == NULL ? STATUS_OK : STATUS_INPUT);
    if (text == NULL)
        assert_ptr_equal(read, optims);
    else if (strstr(status_text(), text) == NULL)
        fail_msg("%s, expected %s", status_text(), text);
}

static void validate_texts_and_sizes(void **state) {
    (void)state;
    for (int more = -1; more < 2; more++) {
        struct optim_class optim = sound_optim();
        optim.size += (size_t)more;
        read_optim(&optim, more == 0 ? NULL : "user.so: an optimizer: expected size ");
        optim = sound_optim();
        optim.values_size = (size_t)(VALUES_MOST + more);
        read_optim(&optim, more < 1 ? NULL : "expected values_size of at most 64 bytes, got 65");
    }
    static const char *const helps[] = {NULL, "", "x"};
    for (size_t i = 0; i < COUNT_OF(helps); i++) {
        struct optim_class optim = sound_optim();
        optim.help = helps[i];
        read_optim(&optim, i == 2 ? NULL : "optimizer mine: expected a help text, got none");
    }
    struct optim_class optim = sound_optim();
    optim.name = "sgd";
    read_optim(&optim, "got that of a built-in");
    optim.name = "";
    read_optim(&optim, "");
    optim = sound_optim();
    optim.step = NULL;
    read_optim(&optim, "expected a step function, got none");
}

static void validate_slots_and_flags(void **state) {
    (void)state;
    for (uint32_t count = 0; count <= OPTIM_SLOTS_MAX + 1; count++)
        for (int named = 0; named < 2; named++) {
            struct optim_class optim = sound_optim();
            optim.slot_count = count;
            optim.slot_names = named ? slots : NULL;
            read_optim(&optim, count > OPTIM_SLOTS_MAX ? "slots, got 5"
                               : count > 0 && !named   ? "expected names of its "
                                                       : NULL);
        }
    for (uint32_t at = 0; at < OPTIM_SLOTS_MAX; at++)
        for (int how = 0; how < 2 + (int)at; how++) {
            const char *names[OPTIM_SLOTS_MAX];
            struct optim_class optim = sound_optim();
            memcpy(names, slots, sizeof names);
            names[at] = how == 0 ? NULL : how == 1 ? "" : slots[how - 2];
            optim.slot_count = OPTIM_SLOTS_MAX;
            optim.slot_names = names;
            read_optim(&optim, how < 2 ? " has no name" : "two slots are named ");
            optim.slot_count = at; /* those before it are sound */
            read_optim(&optim, NULL);
        }
    for (uint32_t flags = 0; flags < 64; flags++) {
        struct optim_class optim = sound_optim();
        const uint32_t known = OPTIM_ELEMENTWISE | OPTIM_NEEDS_WHOLE_TENSOR | OPTIM_HOST_ONLY;
        const int one = (flags & OPTIM_ELEMENTWISE) != 0, all = (flags & 2u) != 0;
        optim.flags = flags;
        read_optim(&optim, (flags & ~known) != 0 ? "expected flags of enum optim_flag"
                           : one && all          ? "got both"
                           : !one && !all        ? "got none"
                                                 : NULL);
    }
}

static void validate_lists(void **state) {
    (void)state;
    static struct optim_class many_optims[LISTED];
    static char names[LISTED][8];
    const struct optim_class *const *optim;
    for (is_empty = 1; is_empty >= 0; is_empty--) {
        read_optim(NULL, "expected at least one optimizer, got an empty list");
    }
    is_empty = 0;
    for (size_t i = 0; i < LISTED; i++) {
        names[i][0] = 'n';
        names[i][1] = (char)('a' + i / 26);
        names[i][2] = (char)('a' + i % 26);
        many_optims[i] = sound_optim();
        many_optims[i].name = names[i];
    }
    for (size_t count = 1; count <= MODULE_CLASSES_MAX + 1; count++) {
        memset(optims, 0, sizeof optims);
        for (size_t i = 0; i < count; i++) {
            optims[i] = &many_optims[i];
        }
        const enum status status = count <= MODULE_CLASSES_MAX ? STATUS_OK : STATUS_INPUT;
        assert_int_equal(optim_module_read(&module, VALUES_MOST, &optim), status);
    }
    for (size_t a = 0; a < 3; a++) /* two of three with one name */
        for (size_t b = a + 1; b < 3; b++) {
            memset(optims, 0, sizeof optims);
            for (size_t i = 0; i < 3; i++) {
                many_optims[i].name = names[i == b ? a : i];
                optims[i] = &many_optims[i];
            }
            assert_int_equal(optim_module_read(&module, VALUES_MOST, &optim), STATUS_INPUT);
            assert_non_null(strstr(status_text(), "two optimizers are named "));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_texts_and_sizes),
        cmocka_unit_test(validate_slots_and_flags),
        cmocka_unit_test(validate_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
