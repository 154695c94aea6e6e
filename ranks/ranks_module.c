/* SPDX-License-Identifier: Apache-2.0
 * Finds, checks and opens a module of ranks. The stamp is checked by base/module.c; here, that
 * every function of the table is there, and that joining the group changed no rounding. */
#include "ranks/ranks_module.h"

#include <stdio.h>

#include "base/fpenv.h"
#include "base/module.h"

#define PATH_SIZE 4096

static enum status check(const char *path, const struct ranks_class *which) {
    if (which->name == NULL || which->open == NULL || which->send == NULL ||
        which->receive == NULL || which->broadcast == NULL || which->gather == NULL ||
        which->barrier == NULL || which->give_up == NULL || which->close == NULL)
        FAIL(STATUS_INPUT, "%s: its table of ranks is not filled in", path);
    return STATUS_OK;
}

static enum status join(const char *path, const struct ranks_class *which, double wait,
                        struct ranks *out) {
    struct fpenv_kept kept;
    *out = (struct ranks){.which = which, .wait = wait};
    fpenv_keep(&kept);
    TRY(which->open(out));
    if (fpenv_changed(&kept)) {
        fpenv_restore(&kept);
        FAIL(
            STATUS_UNSUPPORTED,
            "%s: joining the group changed the floating-point environment of the process, on which "
            "every bit rests",
            path);
    }
    if (out->size == 0 || out->rank >= out->size)
        FAIL(STATUS_INTERNAL, "%s: expected a rank below the number of ranks, got %u of %u", path,
             (unsigned)out->rank, (unsigned)out->size);
    return STATUS_OK;
}

enum status ranks_module_open(const char *name, double wait, struct ranks *out) {
    const struct module_sizes sizes = {.stamp = sizeof(struct module_stamp),
                                       .row = sizeof(struct key_row),
                                       .class_ = sizeof(struct ranks_class),
                                       .call = sizeof(struct ranks)};
    char file[64], path[PATH_SIZE];
    struct module module;
    const struct module_stamp *stamp = NULL;
    snprintf(file, sizeof file, "twinstep_%s.so", name);
    if (!module_find_ours(file, path, sizeof path))
        FAIL(STATUS_UNSUPPORTED,
             "expected %s beside the program, in .. or in ../lib/twinstep, found none; the build "
             "makes it where it finds MPI (docs/INSTALL.md)",
             file);
    TRY(module_open(path, MODULE_OURS, &module));
    enum status status = module_entry(&module, "ranks", &sizes, &stamp);
    const struct ranks_class *const which = (const struct ranks_class *)(const void *)stamp;
    if (status == STATUS_OK) status = check(file, which);
    if (status != STATUS_OK) {
        module_close(&module);
        return status;
    }
    return join(file, which, wait, out);
}
