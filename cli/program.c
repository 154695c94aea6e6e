/* SPDX-License-Identifier: Apache-2.0
 * The file of this program, by /proc or by the name that the kernel passes to it (AT_EXECFN). The
 * working folder never changes, so a relative name stays right. */
#include "cli/program.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static const char by_proc[] = "/proc/self/exe";

/* What was seen when the program started. */
struct started {
    struct stat file; /* the file that AT_EXECFN named */
    int is_known;     /* there was one */
    int is_loaded;    /* /proc/self/exe is the dynamic linker, told to load this program */
};

static struct started started;

static const char *name_given(void) {
    return (const char *)getauxval(AT_EXECFN); /* NULL where the kernel passed none */
}

static int same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* "ld.so PROGRAM" has no interpreter, so the kernel says AT_BASE 0; glibc then puts PROGRAM into
 * AT_EXECFN, as tests/cli/circumstances.py sees with 2.36. A program that is linked statically has
 * AT_BASE 0, too, but it is the file of its name. */
void program_remember(void) {
    const char *name = name_given();
    struct stat running;
    started.is_known = name != NULL && stat(name, &started.file) == 0;
    started.is_loaded = started.is_known && getauxval(AT_BASE) == 0 &&
                        stat(by_proc, &running) == 0 && !same_file(&running, &started.file);
}

const char *program_file(void) {
    struct stat now;
    if (!started.is_loaded && access(by_proc, X_OK) == 0) return by_proc;
    if (!started.is_known || stat(name_given(), &now) != 0 || !same_file(&now, &started.file))
        return by_proc;
    return name_given();
}
