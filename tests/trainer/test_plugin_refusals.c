/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short plugin
 * Every reason for which a module is not loaded, with its status, the file's name, what was
 * expected and what was found. Afterwards the floating-point environment must be what it was. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fpenv.h"
#include "trainer/plugins/plugin.h"

#if defined(__x86_64__)
#define SETS_CONTROL 1
#else
#define SETS_CONTROL 0
#endif

struct refusal {
    const char *file, *kind, *text;
};

static const struct refusal refusals[] = {
    /* not a module of this version */
    {"no_entry", "optimizer", "expected symbol twinstep_optim_v1, found none"},
    {"no_entry", "schedule", "expected symbol twinstep_sched_v1, found none"},
    {"no_entry", NULL, "expected symbol twinstep_optim_v1, found none"},
    {"other_entry", "optimizer", "expected symbol twinstep_optim_v1, got twinstep_optim_v2"},
    {"signum", "schedule", "got twinstep_optim_v1: it holds optimizers, no schedule"},
    {"trapezoid", "optimizer", "got twinstep_sched_v1: it holds schedules, no optimizer"},
    {"missing", "optimizer", "undefined symbol: function_that_nothing_has"},
    {"optim_tag", "optimizer", "twinstep_optim_v1 is no entry of a module"},
    {"optim_stamp_version", "optimizer", "expected a module of version 1, got version 7"},
    {"optim_stamp_empty", "optimizer", "its stamp is not filled in"},
    /* other headers */
    {"optim_stamp_size", "optimizer", "expected a struct module_stamp of "},
    {"optim_row_size", "optimizer", "expected a struct key_row of "},
    {"optim_class_size", "optimizer", "expected a struct class of "},
    {"optim_call_size", "optimizer", "expected a struct call of "},
    {"optim_tensor_size", "optimizer", "expected a struct optim_tensor of "},
    {"optim_group_size", "optimizer", "expected a struct optim_group of 16 bytes, got 8"},
    {"optim_small", "optimizer", "(sizeof(struct optim_class)), got "},
    {"sched_small", "schedule", "(sizeof(struct sched_class)), got "},
    /* arithmetic */
    {"optim_inexact", "optimizer", "built with -ffast-math or a part of it"},
    {"finite", "optimizer", "built with -ffast-math or a part of it"},
    {"fast", "optimizer", "-ffast-math"},
    {"optim_fuses", "optimizer", "expected -ffp-contract=off"},
    {"optim_drops", "optimizer", "expected -fno-tree-slp-vectorize"},
    /* a class without what it needs */
    {"optim_no_classes", "optimizer", "expected at least one optimizer, got an empty list"},
    {"optim_no_step", "optimizer", "optimizer broken: expected a step function, got none"},
    {"optim_no_name", "optimizer", "optimizer without a name"},
    {"optim_bad_name", "optimizer", "letters, digits, _ and -, got \"my broken\""},
    {"optim_built_in", "optimizer", "optimizer sgd: expected a name of its own, got that of a"},
    {"optim_name_twice", "optimizer", "two optimizers are named broken"},
    {"optim_no_help", "optimizer", "expected a help text, got none"},
    {"optim_slots", "optimizer", "optimizer broken: expected at most 4 slots, got 5"},
    {"optim_slot_names", "optimizer", "expected names of its 2 slots, got none"},
    {"optim_slot_twice", "optimizer", "two slots are named a"},
    {"optim_slot_unnamed", "optimizer", "slot 1 has no name"},
    {"optim_many", "optimizer", "expected at most 16 optimizers"},
    {"sched_many", "schedule", "expected at most 16 schedules"},
    {"sched_no_classes", "schedule", "expected at least one schedule, got an empty list"},
    {"sched_name_twice", "schedule", "two schedules are named broken"},
    {"sched_no_help", "schedule", "expected a help text, got none"},
    {"optim_values", "optimizer", "expected values_size of at most 256 bytes, got 257"},
    {"optim_flags", "optimizer", "OPTIM_NEEDS_WHOLE_TENSOR, got none"},
    {"optim_flags_both", "optimizer", "OPTIM_NEEDS_WHOLE_TENSOR, got both"},
    {"optim_flags_unknown", "optimizer", "expected flags of enum optim_flag, got 41"},
    {"sched_no_value", "schedule", "expected functions value and minimum, got no value"},
    {"sched_no_minimum", "schedule", "expected functions value and minimum, got no minimum"},
    {"sched_state", "schedule", "expected state_size of at most 4096 bytes, got 4097"},
    {"sched_feedback", "schedule", "expected a function of the counter"},
    {"sched_values", "schedule", "expected values_size of at most 256 bytes, got 257"},
    {"sched_built_in", "schedule", "schedule cosine: expected a name of its own"},
    {"sched_dotted", "schedule", "letters, digits, _ and -, got \"my.broken\""},
    /* key rows */
    {"optim_keys_null", "optimizer", "expected 2 key rows, got none"},
    {"optim_key_twice", "optimizer", "key rate is given twice"},
    {"optim_key_outside", "optimizer", "expected a place inside values_size (16), got 8 bytes at"},
    {"optim_key_overlap", "optimizer", "keys rate and other share bytes"},
    {"optim_key_unaligned", "optimizer", "key rate: offset 4 is not aligned for its type"},
    {"optim_key_size", "optimizer", "key rate: expected 8 bytes for its type (3), got 4"},
    {"optim_key_cause", "optimizer", "key rate: expected cause optimizer, got data-order"},
    {"sched_key_cause", "schedule", "key share: expected cause schedule, got optimizer"},
    {"optim_key_bounds", "optimizer", "key rate: expected bounds low <= high, got 2 and 1"},
    {"optim_key_names", "optimizer", "key rate: expected no list of names"},
    {"optim_key_names_empty", "optimizer", "key rate: its list of names is empty"},
    {"optim_key_texts", "optimizer", "key rate: expected a unit, a default and a help text"},
    {"optim_keys_many", "optimizer", "expected at most 64 keys, got 65"},
    {"optim_key_dot", "optimizer", "letters, digits and _, got \"ra.te\""},
};

static void path_of(const char *name, char out[512]) {
    snprintf(out, 512, "%s/%s.so", TWINSTEP_PLUGINS, name);
}

static void refuse(const char *path, const char *kind, const char *text) {
    struct plugin plugin;
    struct fpenv_kept kept;
    fpenv_keep(&kept);
    const enum status status = plugin_open(path, kind, NULL, &plugin);
    if (status != STATUS_INPUT)
        fail_msg("%s: status %d: %s", path, (int)status, status == 0 ? "" : status_text());
    if (strncmp(status_text(), path, strlen(path)) != 0 || strstr(status_text(), text) == NULL)
        fail_msg("%s: expected \"%s\" in: %s", path, text, status_text());
    if (fpenv_changed(&kept)) fail_msg("%s: left the environment changed", path);
}

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        char path[512];
        path_of(refusals[i].file, path);
        refuse(path, refusals[i].kind, refusals[i].text);
        refuse(path, refusals[i].kind, refusals[i].text); /* it was unloaded, or says so again */
    }
}

/* A module that flushes subnormals sets the processor to do so when it is loaded, before anything
 * can be asked. */
static void validate_environment(void **state) {
    (void)state;
    char path[512];
    if (!SETS_CONTROL) skip();
    path_of("optim_load_flush", path);
    refuse(path, "optimizer", "got round to nearest, subnormals flushed (MXCSR control 9fc0)");
    path_of("optim_load_round", path);
    refuse(path, "optimizer", "got round down, subnormals kept (MXCSR control 3f80)");
    volatile float tiny = 0x1p-140f; /* arithmetic itself shows the same */
    assert_true(tiny * 0.5f == 0x1p-141f);
}

/* The sound modules, built from the same sources, must load; so nothing above is refused for
 * another reason. */
static void validate_sound(void **state) {
    (void)state;
    static const char *const names[] = {"signum", "trapezoid", "signum_again", "optim_nothing",
                                        "sched_nothing"};
    struct plugin plugins[2];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[512];
        path_of(names[i], path);
        for (int k = 0; k < 2; k++)
            if (plugin_open(path, NULL, NULL, &plugins[k]) != STATUS_OK)
                fail_msg("%s", status_text());
        assert_ptr_equal(plugins[0].optimizers, plugins[1].optimizers);
        assert_ptr_equal(plugins[0].schedules, plugins[1].schedules);
        assert_string_equal(plugins[0].sha256, plugins[1].sha256);
        assert_true((plugins[0].optimizers == NULL) != (plugins[0].schedules == NULL));
    }
}

static void write_bytes(const char *path, const unsigned char *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static size_t read_bytes(const char *path, unsigned char *bytes, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t length = fread(bytes, 1, room, file);
    fclose(file);
    assert_in_range(length, 64, room - 1);
    return length;
}

/* Other kinds of file, most of them a sound module with a few bytes of its head changed. */
static void validate_files(void **state) {
    (void)state;
    static const struct {
        size_t at, length, keep; /* bytes from `at` on become `bytes`; the file is cut to `keep` */
        unsigned char bytes[2];
        const char *text;
    } heads[] = {
        {0, 0, 0, {0}, "expected a shared object (ELF), got an empty file"},
        {0, 1, 9999999, {'M'}, "expected a shared object (ELF), got another kind of file"},
        {0, 0, 19, {0}, "expected a shared object (ELF), got another kind of file"},
        {0, 0, 20, {0}, "cannot load the module: "},
        {0, 0, 4096, {0}, "expected a shared object, got a part of one"},
        {0, 0, 100, {0}, "expected a shared object, got a part of one"},
        {18, 2, 9999999, {243, 0}, "got one for RISC-V"},
        {18, 2, 9999999, {3, 0}, "got one for 32-bit x86"},
        {18, 2, 9999999, {77, 77}, "got one for ELF machine 19789"},
        {4, 1, 9999999, {1}, "32-bit"},
        {16, 1, 9999999, {1}, "got an object file; link with -shared"},
        {16, 1, 9999999, {2}, "got a program; link with -shared"},
        {16, 1, 9999999, {4}, "got another kind of ELF file; link with -shared"},
    };
    static unsigned char sound[8 << 20], changed[8 << 20];
    char folder[] = "/tmp/twinstep-module-XXXXXX";
    char path[512], source[512];
    assert_non_null(mkdtemp(folder));
    path_of("signum", source);
    const size_t length = read_bytes(source, sound, sizeof sound);
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        snprintf(path, sizeof path, "%s/m%zu.so", folder, i);
        memcpy(changed, sound, length);
        memcpy(changed + heads[i].at, heads[i].bytes, heads[i].length);
        write_bytes(path, changed, heads[i].keep < length ? heads[i].keep : length);
        refuse(path, "optimizer", heads[i].text);
        unlink(path);
    }
    refuse(folder, "optimizer", "expected a regular file");
    snprintf(path, sizeof path, "%s/nothing.so", folder);
    refuse(path, NULL, "nothing.so: cannot open: No such file or directory");
    rmdir(folder);
    refuse("libm.so.6", NULL, "libm.so.6: cannot open: "); /* never searched for */
    struct plugin plugin;
    memset(changed, 'a', 5000);
    changed[5000] = '\0';
    assert_int_equal(plugin_open((const char *)changed, NULL, NULL, &plugin), STATUS_INPUT);
    assert_int_equal(strncmp(status_text(), "aaaa", 4), 0); /* the text is cut, not overrun */
    assert_int_equal(plugin_open("-", NULL, NULL, &plugin), STATUS_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_environment),
        cmocka_unit_test(validate_sound),
        cmocka_unit_test(validate_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
