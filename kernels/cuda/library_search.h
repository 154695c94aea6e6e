/* SPDX-License-Identifier: Apache-2.0
 * Opens a library of CUDA that is not linked (cuBLAS, NVML; cuRAND and CUPTI in tests): first where
 * the loader looks, then where toolkits and Python's packages put it, so that an installed PyTorch
 * is enough. For C and CUDA C++; whoever opens such a library does it here. C files define
 * _GNU_SOURCE.
 *
 * Invariant: a name that stands earlier among the names is taken from anywhere before a later one
 * is looked for. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_SEARCH_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_SEARCH_H

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY_PATH_SIZE 1024

/* What a search came to. `places` says where was looked, for an error text. */
struct library_search {
    size_t name;                  /* which of the names it was */
    char file[LIBRARY_PATH_SIZE]; /* what was opened */
    char places[2 * LIBRARY_PATH_SIZE];
};

/* Packages of Python under a prefix: pip's of a virtual environment or of Conda, and Debian's. In
 * `nvidia` every library has a folder, or, since CUDA 13, every release. */
#define LIBRARY_PACKAGES "lib/python3*/*-packages/nvidia/*/lib"

/* Folders, each under what a variable says, or as they are. A star stands for whatever is there;
 * of several, the last by name comes first, which of cuda-12.4 and cuda-13.0 is the newer. */
static const struct {
    const char *variable, *folder;
} library_places[] = {
    {"CUDA_PATH", "lib64"},
    {"CUDA_HOME", "lib64"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-*/lib64"},
    {NULL, "/usr/local/cuda/extras/CUPTI/lib64"},
    {NULL, "/usr/local/nvidia/lib64"}, /* where containers have the driver */
    {"VIRTUAL_ENV", LIBRARY_PACKAGES},
    {"CONDA_PREFIX", "lib"},
    {"CONDA_PREFIX", LIBRARY_PACKAGES},
    {"PATH", "../" LIBRARY_PACKAGES},
    {NULL, "/usr/local/" LIBRARY_PACKAGES},
};
#define LIBRARY_PLACES (sizeof library_places / sizeof library_places[0])

/* Adds to the list of places, which ends in "..." where it is full. */
static inline void library_note_place(struct library_search *out, const char *text) {
    const size_t used = strlen(out->places), left = sizeof out->places - used;
    const int wanted = snprintf(out->places + used, left, "%s%s", used == 0 ? "" : ", ", text);
    if (wanted < 0 || (size_t)wanted >= left)
        memcpy(out->places + sizeof out->places - 4, "...", 4);
}

static inline void *library_try(const char *file, struct library_search *out) {
    struct link_map *map = NULL;
    void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return NULL;
    const int known = dlinfo(library, RTLD_DI_LINKMAP, (void *)&map) == 0 && map != NULL;
    snprintf(out->file, sizeof out->file, "%s", known ? map->l_name : file);
    return library;
}

/* Tries `name` in each folder that `pattern` stands for. A file that is there and does not load is
 * noted with the loader's reason. */
static inline void *library_in(const char *pattern, const char *name, struct library_search *out) {
    char file[2 * LIBRARY_PATH_SIZE];
    glob_t found;
    void *library = NULL;
    const int used = snprintf(file, sizeof file, "%s/%s", pattern, name);
    if (used < 0 || (size_t)used >= sizeof file || glob(file, 0, NULL, &found) != 0) return NULL;
    for (size_t i = found.gl_pathc; i-- > 0 && library == NULL;) {
        library = library_try(found.gl_pathv[i], out);
        const char *const reason = library == NULL ? dlerror() : NULL;
        if (reason != NULL) library_note_place(out, reason);
    }
    globfree(&found);
    return library;
}

/* Writes the folder of the first program python3 on PATH; "": there is none. */
static inline void library_python(char *out, size_t size) {
    const char *at = getenv("PATH");
    char file[LIBRARY_PATH_SIZE];
    out[0] = '\0';
    while (at != NULL && *at != '\0') {
        const int length = (int)strcspn(at, ":");
        const int used = snprintf(file, sizeof file, "%.*s/python3", length, at);
        if (used > 0 && (size_t)used < sizeof file && access(file, X_OK) == 0) {
            snprintf(out, size, "%.*s", length, at);
            return;
        }
        at += length + (at[length] == ':');
    }
}

/* Writes the pattern of a place, "" where its variable says nothing. */
static inline void library_pattern(size_t place, char *out, size_t size) {
    const char *const variable = library_places[place].variable;
    const char *const folder = library_places[place].folder;
    char prefix[LIBRARY_PATH_SIZE] = "";
    out[0] = '\0';
    if (variable == NULL)
        snprintf(out, size, "%s", folder);
    else if (strcmp(variable, "PATH") == 0)
        library_python(prefix, sizeof prefix);
    else if (getenv(variable) != NULL)
        snprintf(prefix, sizeof prefix, "%s", getenv(variable));
    if (prefix[0] != '\0') snprintf(out, size, "%s/%s", prefix, folder);
}

/* Opens the first of `names` that there is. `beside` is a file whose folder comes first, or NULL:
 * two libraries of one release belong together. NULL: none is there, and `out->places` says where
 * was looked. The library stays open until the caller closes it. */
static inline void *library_search(const char *const *names, size_t count, const char *beside,
                                   struct library_search *out) {
    char pattern[2 * LIBRARY_PATH_SIZE];
    const char *const slash = beside == NULL ? NULL : strrchr(beside, '/');
    memset(out, 0, sizeof *out);
    for (; out->name < count; out->name++) {
        const char *const name = names[out->name];
        void *library = NULL;
        if (slash != NULL) {
            snprintf(pattern, sizeof pattern, "%.*s", (int)(slash - beside), beside);
            library = library_in(pattern, name, out);
        }
        if (library == NULL) library = library_try(name, out);
        for (size_t i = 0; library == NULL && i < LIBRARY_PLACES; i++) {
            library_pattern(i, pattern, sizeof pattern);
            if (pattern[0] != '\0') library = library_in(pattern, name, out);
        }
        if (library != NULL) return library;
    }
    library_note_place(out, "the loader's places (LD_LIBRARY_PATH, ldconfig)");
    for (size_t i = 0; i < LIBRARY_PLACES; i++) {
        library_pattern(i, pattern, sizeof pattern);
        if (pattern[0] != '\0' && strstr(out->places, pattern) == NULL)
            library_note_place(out, pattern);
    }
    return NULL;
}

#endif
