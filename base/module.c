/* SPDX-License-Identifier: Apache-2.0
 * Opens modules. The file's head is checked before dlopen is called, because dlopen's texts tell a
 * user little. RTLD_NOW makes a module that needs a missing symbol fail here instead of at its
 * first call. */
#include "base/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "base/input.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE /* not checked here; dlopen checks it */
#endif

static const struct module_host host = {sizeof host, status_fail};

/* What was agreed to is a fact of the process, as the modules are that it has open. */
static const struct module_consent *agreed;

static const char *machine_name(unsigned machine, char text[32]) {
    static const struct {
        unsigned number;
        const char *name;
    } names[] = {{EM_X86_64, "x86-64"},  {EM_386, "32-bit x86"}, {EM_AARCH64, "AArch64"},
                 {EM_ARM, "32-bit ARM"}, {EM_RISCV, "RISC-V"},   {EM_PPC64, "POWER"},
                 {EM_S390, "s390"}};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].number == machine) return names[i].name;
    snprintf(text, 32, "ELF machine %u", machine);
    return text;
}

/* Checks the kind of file, the machine and the file's type. e_type and e_machine stand at the same
 * place in the headers of both ELF classes. */
static enum status check_elf(const char *path, const unsigned char *head, size_t length) {
    char want[32];
    char got[32];
    const unsigned low = head[EI_DATA] == ELFDATA2MSB ? 1 : 0;
    const unsigned type = (unsigned)head[16 + low] | (unsigned)head[17 - low] << 8;
    const unsigned machine = (unsigned)head[18 + low] | (unsigned)head[19 - low] << 8;
    if (length < 20 || memcmp(head, ELFMAG, SELFMAG) != 0)
        FAIL(STATUS_INPUT, "%s: expected a shared object (ELF), got %s", path,
             length == 0 ? "an empty file" : "another kind of file");
    if (MACHINE != EM_NONE && (machine != MACHINE || head[EI_CLASS] != ELFCLASS64))
        FAIL(STATUS_INPUT, "%s: expected a shared object for %s, got one for %s%s", path,
             machine_name(MACHINE, want), machine_name(machine, got),
             machine == MACHINE ? ", 32-bit" : "");
    if (type != ET_DYN)
        FAIL(STATUS_INPUT, "%s: expected a shared object, got %s; link with -shared", path,
             type == ET_REL    ? "an object file"
             : type == ET_EXEC ? "a program"
                               : "another kind of ELF file");
    return STATUS_OK;
}

/* Whether the file ends before a segment that its program headers promise. The loader maps segments
 * without checking, so touching such a page would end the process with SIGBUS. */
static int ends_early(FILE *file, const unsigned char head[sizeof(Elf64_Ehdr)], uint64_t size) {
    Elf64_Ehdr elf;
    Elf64_Phdr part;
    memcpy(&elf, head, sizeof elf);
    if (MACHINE == EM_NONE || head[EI_DATA] != ELFDATA2LSB) return 0;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        const uint64_t at = elf.e_phoff + (uint64_t)i * sizeof part;
        if (at > size || fseek(file, (long)at, SEEK_SET) != 0) return 1;
        if (fread(&part, sizeof part, 1, file) != 1) return 1;
        if (part.p_offset > size || part.p_filesz > size - part.p_offset) return 1;
    }
    return 0;
}

static enum status check_file(const char *path, const char *file_name) {
    unsigned char head[sizeof(Elf64_Ehdr)] = {0};
    struct input input;
    int early = 0;
    FILE *file;
    if (input_open_stream(file_name, INPUT_FILE, path, "a shared object", &file, &input) !=
        STATUS_OK)
        return STATUS_INPUT; /* a key named it */
    const size_t length = fread(head, 1, sizeof head, file);
    if (length == sizeof head) early = ends_early(file, head, input.length);
    fclose(file);
    TRY(check_elf(path, head, length));
    if (early) FAIL(STATUS_INPUT, "%s: expected a shared object, got a part of one", path);
    return STATUS_OK;
}

/* dlerror() begins its text with the path; our own text has named it already. */
static const char *loader_text(const char *path) {
    const char *text = dlerror();
    const size_t length = strlen(path);
    if (text == NULL) return "no reason given";
    if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    return text;
}

static enum status fail_changed(const char *path, const struct fpenv_kept *kept) {
    char before[96];
    char after[96];
    fpenv_describe(after, sizeof after);
    fpenv_restore(kept);
    fpenv_describe(before, sizeof before);
    FAIL(STATUS_INPUT,
         "%s: loading it changed the floating-point environment of the whole process: expected %s, "
         "got %s; a module must not do this (linking with -ffast-math does)",
         path, before, after);
}

void module_ask(const struct module_consent *consent) {
    agreed = consent;
}

static enum status check_consent(const char *path, const char *sha256) {
    if (agreed == NULL || agreed->all || strcmp(sha256, MODULE_OURS) == 0) return STATUS_OK;
    for (size_t i = 0; i < agreed->trusted_count; i++)
        if (strcmp(agreed->trusted[i], sha256) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: not loaded: a module is code that runs with all your rights. If you trust whoever "
         "made this one, say --allow-modules, or --trusted-modules FILE with a line that holds its "
         "SHA-256, %s",
         path, sha256);
}

int module_find_ours(const char *file, char *out, size_t size) {
    static const char *const places[] = {"", "../", "../lib/twinstep/"};
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return 0;
    program[length] = '\0';
    char *const name = strrchr(program, '/');
    if (name == NULL) return 0;
    name[1] = '\0';
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const int used = snprintf(out, size, "%s%s%s", program, places[i], file);
        if (used > 0 && (size_t)used < size && access(out, R_OK) == 0) return 1;
    }
    return 0;
}

enum status module_open(const char *path, const char *sha256, struct module *out) {
    char file[4096 + 2];
    struct fpenv_kept kept;
    /* dlopen searches library folders for a name without a slash; "./" keeps it to the file
     * itself. */
    const int length = snprintf(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (length < 0 || (size_t)length >= sizeof file)
        FAIL(STATUS_INPUT, "module: expected a path of at most %zu bytes, got %zu", sizeof file - 3,
             strlen(path));
    TRY(check_file(path, file)); /* it only reads, so what is no module is told without asking */
    TRY(check_consent(path, sha256));
    fpenv_keep(&kept);
    out->path = path;
    out->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (fpenv_changed(&kept)) {
        const enum status status = fail_changed(path, &kept);
        module_close(out);
        fpenv_restore(&kept);
        return status;
    }
    if (out->handle == NULL)
        FAIL(STATUS_INPUT, "%s: cannot load the module: %s", path, loader_text(file));
    return STATUS_OK;
}

void module_close(struct module *module) {
    if (module->handle != NULL) dlclose(module->handle);
    module->handle = NULL;
}

static const void *find(const struct module *module, const char *kind, int version) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "twinstep_%s_v%d", kind, version);
    return dlsym(module->handle, symbol);
}

int module_has(const struct module *module, const char *kind) {
    return find(module, kind, MODULE_VERSION) != NULL;
}

static enum status fail_missing(const struct module *module, const char *kind) {
    const char *other = strcmp(kind, "optim") == 0 ? "sched" : "optim";
    for (int version = 0; version < 100; version++)
        if (find(module, kind, version) != NULL)
            FAIL(STATUS_INPUT,
                 "%s: expected symbol twinstep_%s_v%d, got twinstep_%s_v%d: the module was built "
                 "for another version; rebuild it with the headers of this one",
                 module->path, kind, MODULE_VERSION, kind, version);
    if (module_has(module, other))
        FAIL(STATUS_INPUT, "%s: expected symbol twinstep_%s_v%d, got twinstep_%s_v%d: it holds %s",
             module->path, kind, MODULE_VERSION, other, MODULE_VERSION,
             strcmp(other, "optim") == 0 ? "optimizers, no schedule" : "schedules, no optimizer");
    FAIL(STATUS_INPUT,
         "%s: expected symbol twinstep_%s_v%d, found none: it is no module of this program",
         module->path, kind, MODULE_VERSION);
}

static enum status check_sizes(const struct module *module, const struct module_sizes *want,
                               const struct module_sizes *got) {
    const struct {
        const char *name;
        uint32_t want, got;
    } pairs[] = {
        {"module_stamp", want->stamp, got->stamp},   {"key_row", want->row, got->row},
        {"class", want->class_, got->class_},        {"call", want->call, got->call},
        {"optim_tensor", want->tensor, got->tensor}, {"optim_group", want->group, got->group}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (pairs[i].want != pairs[i].got)
            FAIL(STATUS_INPUT,
                 "%s: expected a struct %s of %u bytes, got %u: the module was built with other "
                 "headers; rebuild it with those of this version",
                 module->path, pairs[i].name, (unsigned)pairs[i].want, (unsigned)pairs[i].got);
    return STATUS_OK;
}

static enum status check_arithmetic(const struct module *module, const struct module_stamp *stamp) {
    if (stamp->inexact_math)
        FAIL(STATUS_INPUT,
             "%s: built with -ffast-math or a part of it (by %s): the compiler may change its "
             "arithmetic; expected none of these flags",
             module->path, stamp->compiler);
    const int does = stamp->probe();
    if ((does & MODULE_DROPS) != 0)
        FAIL(STATUS_INPUT,
             "%s: its compiler (%s) leaves roundings to float out; expected "
             "-fno-tree-slp-vectorize, which keeps gcc 12 from it",
             module->path, stamp->compiler);
    if (does != 0)
        FAIL(STATUS_INPUT,
             "%s: its compiler (%s) fuses products with sums, so its bits depend on the machine "
             "it was built for; expected -ffp-contract=off",
             module->path, stamp->compiler);
    return STATUS_OK;
}

enum status module_entry(const struct module *module, const char *kind,
                         const struct module_sizes *sizes, const struct module_stamp **out) {
    const struct module_stamp *stamp =
        (const struct module_stamp *)find(module, kind, MODULE_VERSION);
    if (stamp == NULL) return fail_missing(module, kind);
    if (memcmp(stamp->tag, MODULE_TAG, sizeof stamp->tag) != 0)
        FAIL(STATUS_INPUT,
             "%s: twinstep_%s_v%d is no entry of a module; expected one made by the macro of "
             "%s/%s_module.h",
             module->path, kind, MODULE_VERSION, kind, kind);
    if (stamp->version != MODULE_VERSION)
        FAIL(STATUS_INPUT, "%s: expected a module of version %d, got version %u", module->path,
             MODULE_VERSION, (unsigned)stamp->version);
    TRY(check_sizes(module, sizes, &stamp->sizes));
    if (stamp->probe == NULL || stamp->compiler == NULL || stamp->host == NULL)
        FAIL(STATUS_INPUT, "%s: its stamp is not filled in", module->path);
    *stamp->host = &host;
    TRY(check_arithmetic(module, stamp));
    *out = stamp;
    return STATUS_OK;
}
