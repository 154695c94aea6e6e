/* SPDX-License-Identifier: Apache-2.0
 * Shared objects at run time: the only file that knows dlopen.
 *
 * A module is code and runs with the rights of this program from the moment it is opened; nothing
 * here protects from a hostile one. What is checked protects from mistakes: another kind of file,
 * another machine, another version, other struct layouts, arithmetic that the compiler was allowed
 * to change, a floating-point environment left changed. Each is STATUS_INPUT, with the file's name,
 * what was expected and what came; the environment is as before.
 * Invariant: what module_open() refused is unloaded; what it accepted stays until the process ends
 * (its tables and texts are read until then) unless module_close() is called. */
#ifndef TWINSTEP_BASE_MODULE_H
#define TWINSTEP_BASE_MODULE_H

#include "base/module_abi.h"

struct module {
    const char *path; /* the caller's */
    void *handle;
};

/* Opens `path`, a file (never searched for in library folders). Opening one that is open gives the
 * same object. */
TWINSTEP_MUST_USE enum status module_open(const char *path, struct module *out);
void module_close(struct module *module);

/* The object behind symbol twinstep_KIND_v1; KIND is "optim" or "sched". Its stamp is checked
 * against `sizes`; from then on the module may fail with a text. */
TWINSTEP_MUST_USE enum status module_entry(const struct module *module, const char *kind,
                                           const struct module_sizes *sizes,
                                           const struct module_stamp **out);
/* Whether there is such a symbol. */
int module_has(const struct module *module, const char *kind);

/* Key rows of a class that came from outside. `who`: "MODULE: optimizer NAME", begins the text.
 * Checks paths (letters, digits, _; no two alike), texts, types and sizes, that rows lie in
 * values_size without overlap, bounds, name lists, and the cause, which is `cause` for all. */
struct module_rows {
    const char *who;
    const struct key_row *rows;
    size_t count, values_size;
    enum cause cause;
};
TWINSTEP_MUST_USE enum status module_check_rows(const struct module_rows *check);

/* A class's name: letters, digits, _ and -, at most 63. */
TWINSTEP_MUST_USE enum status module_check_name(const char *path, const char *what,
                                                const char *name);

#endif
