/* SPDX-License-Identifier: Apache-2.0
 * Opens shared objects of users at run time. This file and soname.h are the only ones that know
 * dlopen.
 *
 * A module is code and runs with the rights of this program from the moment it is opened; nothing
 * here protects from a hostile one once it is. So a user is asked before: module_ask(). What is
 * checked besides protects from mistakes: another kind of file,
 * another machine, another version, other struct layouts, arithmetic that the compiler was allowed
 * to change, a changed floating-point environment. Each of these is STATUS_INPUT, with the file's
 * name, what was expected and what came, and the environment is put back.
 *
 * Invariant: a module that module_open() refused is unloaded; one that it accepted stays until the
 * process ends, because its tables and texts are read until then, unless module_close() is
 * called. */
#ifndef TWINSTEP_BASE_MODULE_H
#define TWINSTEP_BASE_MODULE_H

#include "base/module_abi.h"

struct module {
    const char *path; /* belongs to the caller */
    void *handle;
};

/* What a user agreed to load. */
struct module_consent {
    int all;                    /* every module that is named */
    const char *const *trusted; /* SHA-256 of files, in 64 lower-case hexadecimal digits */
    size_t trusted_count;
};

/* From now on module_open() loads what `consent` covers and refuses the rest before it runs. The
 * struct belongs to the caller and is read at each opening. The program asks first of all
 * (cli/main.c); one that links the library and never asks has decided for itself. */
void module_ask(const struct module_consent *consent);

/* A word instead of a digest: the file is this program's own, found in its own folder. */
#define MODULE_OURS "ours"

/* Writes the path of `file`, a module of ours, to `out`: beside the program, in .. or in
 * ../lib/twinstep. Returns 0 where there is none. */
int module_find_ours(const char *file, char *out, size_t size);

/* Opens the file `path` whose SHA-256 is `sha256`; library folders are never searched. Opening a
 * file that is open gives the same object. STATUS_INPUT: nobody agreed to load it, and what a user
 * does who trusts it; or the file is no module. */
TWINSTEP_MUST_USE enum status module_open(const char *path, const char *sha256, struct module *out);
void module_close(struct module *module);

/* Finds the object behind symbol twinstep_KIND_v1, where KIND is "optim" or "sched", and checks its
 * stamp against `sizes`. From then on the module can fail with a text of its own. */
TWINSTEP_MUST_USE enum status module_entry(const struct module *module, const char *kind,
                                           const struct module_sizes *sizes,
                                           const struct module_stamp **out);
/* Whether the module has that symbol. */
int module_has(const struct module *module, const char *kind);

/* Checks the key rows of a class that came from outside. `who` begins the text of an error:
 * "MODULE: optimizer NAME". Checked are paths (letters, digits, _; no two alike), texts, types and
 * sizes, that the values lie inside values_size without overlap, bounds, lists of names, and that
 * every row has the cause `cause`. */
struct module_rows {
    const char *who;
    const struct key_row *rows;
    size_t count, values_size;
    enum cause cause;
};
TWINSTEP_MUST_USE enum status module_check_rows(const struct module_rows *check);

/* Checks a class's name: at most 63 letters, digits, _ and -. */
TWINSTEP_MUST_USE enum status module_check_name(const char *path, const char *what,
                                                const char *name);

#endif
