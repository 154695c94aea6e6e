/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Where a library of CUDA is looked for (kernels/cuda/library_search.h): one that lies in a single
 * place must be found there, whichever place of a toolkit or of Python's packages it is; of two
 * places the first counts, of two names the first; a file that does not load and a library that is
 * nowhere are told. The library is one of this test, under a name that no machine has. */
#define _GNU_SOURCE /* dlinfo */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "kernels/cuda/library_search.h"

#define NAME "libtwinstep_searched.so.13"
#define OLDER "libtwinstep_searched.so.12"

static char root[] = "/tmp/search-XXXXXX";

static void path_of(char out[512], const char *folder, const char *name) {
    const int used = snprintf(out, 512, "%s/%s/%s", root, folder, name);
    assert_true(used > 0 && used < 512);
}

/* Makes the folders on the way to a file. */
static void make_folders(char *path) {
    for (char *at = path + strlen(root) + 1; *at != '\0'; at++) {
        if (*at != '/') continue;
        *at = '\0';
        mkdir(path, 0777); /* it may be there */
        *at = '/';
    }
}

static void put(const char *folder, const char *name, const char *from) {
    char path[512], buffer[4096];
    size_t got;
    path_of(path, folder, name);
    make_folders(path);
    FILE *const in = fopen(from, "rb"), *const out = fopen(path, "wb");
    assert_non_null(in);
    assert_non_null(out);
    while ((got = fread(buffer, 1, sizeof buffer, in)) > 0)
        assert_int_equal(fwrite(buffer, 1, got, out), got);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static void drop(const char *folder, const char *name) {
    char path[512];
    path_of(path, folder, name);
    assert_int_equal(unlink(path), 0);
}

/* Lets every variable that is looked at say nothing, but `variable`, which names a folder. */
static void set_only(const char *variable, const char *folder) {
    static const char *const all[] = {"CUDA_PATH", "CUDA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"};
    char path[512];
    for (size_t i = 0; i < COUNT_OF(all); i++)
        unsetenv(all[i]);
    setenv("PATH", "/nowhere", 1);
    if (variable == NULL) return;
    path_of(path, folder, "");
    path[strlen(path) - 1] = '\0';
    setenv(variable, path, 1);
}

/* Searches NAME and then OLDER; returns the number that the library found returns, 0 for none. */
static int search(const char *beside, struct library_search *out) {
    static const char *const names[] = {NAME, OLDER};
    int (*number)(void);
    void *const library = library_search(names, COUNT_OF(names), beside, out);
    if (library == NULL) return 0;
    void *const symbol = dlsym(library, "searched_number");
    assert_non_null(symbol);
    memcpy(&number, &symbol, sizeof number);
    const int value = number();
    assert_int_equal(dlclose(library), 0);
    return value;
}

static void expect_found(const char *folder, const char *name, const char *beside) {
    struct library_search found;
    char path[512], real[512];
    path_of(path, folder, name);
    assert_int_equal(search(beside, &found), 42);
    assert_true(realpath(found.file, real) != NULL);
    assert_string_equal(real, path);
}

static void verify_each_place(void **state) {
    (void)state;
    static const struct {
        const char *variable, *set_to, *folder;
    } cases[] = {
        {"CUDA_PATH", "toolkit", "toolkit/lib64"},
        {"CUDA_HOME", "toolkit", "toolkit/lib64"},
        {"VIRTUAL_ENV", "venv", "venv/lib/python3.12/site-packages/nvidia/cu13/lib"},
        {"CONDA_PREFIX", "conda", "conda/lib"},
        {"CONDA_PREFIX", "conda", "conda/lib/python3.10/site-packages/nvidia/cublas/lib"},
        {"PATH", "venv/bin", "venv/lib/python3.12/site-packages/nvidia/cu13/lib"},
        {"PATH", "usr/bin", "usr/lib/python3.11/dist-packages/nvidia/cublas/lib"},
    };
    struct library_search found;
    put("venv/bin", "python3", SEARCHED); /* any file that could be started */
    put("usr/bin", "python3", SEARCHED);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set_only(cases[i].variable, cases[i].set_to);
        assert_int_equal(search(NULL, &found), 0);
        put(cases[i].folder, NAME, SEARCHED);
        expect_found(cases[i].folder, NAME, NULL);
        set_only(NULL, NULL);
        assert_int_equal(search(NULL, &found), 0);
        drop(cases[i].folder, NAME);
    }
}

static void verify_order(void **state) {
    (void)state;
    char beside[512];
    set_only("CUDA_PATH", "toolkit");
    put("toolkit/lib64", OLDER, SEARCHED);
    expect_found("toolkit/lib64", OLDER, NULL);
    setenv("CONDA_PREFIX", root, 1);
    put("lib", NAME, SEARCHED);
    expect_found("lib", NAME, NULL); /* the name counts more than the place */
    put("toolkit/lib64", NAME, SEARCHED);
    expect_found("toolkit/lib64", NAME, NULL);
    put("other", NAME, SEARCHED);
    path_of(beside, "other", "its sibling");
    expect_found("other", NAME, beside);
    drop("toolkit/lib64", NAME);
    drop("toolkit/lib64", OLDER);
    drop("lib", NAME);
    put("lib/python3.9/site-packages/nvidia/cu12/lib", NAME, SEARCHED);
    put("lib/python3.9/site-packages/nvidia/cu13/lib", NAME, SEARCHED);
    expect_found("lib/python3.9/site-packages/nvidia/cu13/lib", NAME, NULL);
}

static void verify_text(void **state) {
    (void)state;
    struct library_search found;
    char folder[512];
    set_only("CUDA_PATH", "empty");
    assert_int_equal(search(NULL, &found), 0);
    path_of(folder, "empty", "lib64");
    assert_non_null(strstr(found.places, "LD_LIBRARY_PATH"));
    assert_non_null(strstr(found.places, folder));
    assert_non_null(strstr(found.places, "/usr/local/cuda-*/lib64"));
    assert_null(strstr(found.places, "site-packages")); /* no variable names an environment */
    put("empty/lib64", NAME, "/dev/null");
    assert_int_equal(search(NULL, &found), 0);
    path_of(folder, "empty/lib64", NAME);
    assert_non_null(strstr(found.places, folder)); /* the loader's words begin with the file */
    char *const longest = found.places + sizeof found.places - 1;
    for (size_t i = 0; i < 200; i++)
        library_note_place(&found, "a place with a rather long name");
    assert_int_equal(*longest, '\0');
    assert_string_equal(longest - 3, "...");
}

static int open_root(void **state) {
    (void)state;
    return mkdtemp(root) == NULL;
}

static int close_root(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "/bin/rm -r %s", root);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_each_place),
                                       cmocka_unit_test(verify_order),
                                       cmocka_unit_test(verify_text)};
    return cmocka_run_group_tests(tests, open_root, close_root);
}
