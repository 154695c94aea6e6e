/* SPDX-License-Identifier: Apache-2.0
 * Collects the facts of build and machine for traces, and prints them (twinstep env). Invariant: a
 * fact that cannot be found out is said to be unknown and never left out, so that the list always
 * has the same names. */
#include "cli/environment.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "cli/build_id.h"
#include "cli/cores.h"
#include "cli/json.h"
#include "determinism/libraries.h"
#include "experiment/backend_record.h"
#include "kernels/backend_module.h"
#include "kernels/blas.h"
#include "kernels/op.h"
#include "scenarios/yaml.h"

#define FACTS_MAX (32 + BACKEND_FACTS_MAX)
#define LINE_SIZE 256
#define LIBRARY_SIZE 1100 /* a version and a path */

struct fact {
    const char *name; /* "cpu_model" */
    const char *text;
};

struct facts {
    struct arena *arena;
    struct fact *list;
    uint32_t count;
};

static enum status add(struct facts *facts, const char *name, const char *text) {
    char *kept;
    TRY(arena_format(facts->arena, &kept, "%s", text[0] == '\0' ? "unknown" : text));
    facts->list[facts->count++] = (struct fact){name, kept};
    return STATUS_OK;
}

/* Adds what the machine does not have, for the reason of status_text(). */
static enum status add_none(struct facts *facts, const char *name) {
    char *text;
    TRY(arena_format(facts->arena, &text, "none (%s)", status_text()));
    return add(facts, name, text);
}

static enum status open_facts(struct facts *facts, struct arena *arena) {
    facts->arena = arena;
    facts->count = 0;
    return arena_take(arena, FACTS_MAX, sizeof *facts->list, "environment", &facts->list);
}

static const char *compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "";
#endif
}

static enum status add_libraries(struct facts *facts) {
    struct library libraries[LIBRARIES_COUNT];
    libraries_versions(libraries);
    for (int i = 0; i < LIBRARIES_COUNT; i++)
        TRY(add(facts, libraries[i].name, libraries[i].version));
    TRY(add(facts, "libfyaml", yaml_version()));
    return add(facts, "jansson", jansson_version_str());
}

/* Adds what two builds of one source may differ in, each of which may decide a bit. */
static enum status add_build(struct facts *facts) {
    char control[128], id[DIGEST_HEX];
    fpenv_describe(control, sizeof control);
    TRY(add(facts, "version", TWINSTEP_VERSION));
    TRY(build_id(id));
    TRY(add(facts, "build_id", id));
    TRY(add(facts, "compiler", compiler()));
    TRY(add(facts, "build_type", TWINSTEP_BUILD_TYPE));
    TRY(add(facts, "flags", TWINSTEP_BUILD_FLAGS));
    TRY(add(facts, "isa", isa_name(backend_bf16(ISA_AUTO) ? ISA_V4_BF16 : backend_isa(ISA_AUTO))));
    TRY(add(facts, "floating_point", control));
    return add_libraries(facts);
}

static void cpu_model(char out[LINE_SIZE]) {
    char line[LINE_SIZE];
    FILE *file = fopen("/proc/cpuinfo", "r");
    out[0] = '\0';
    if (file == NULL) return;
    while (out[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        const char *text = colon + 1 + strspn(colon + 1, " \t");
        snprintf(out, LINE_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    }
    fclose(file);
}

static enum status add_isa_list(struct facts *facts) {
    char text[64] = "";
    for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
        const struct op_table *table;
        if (backend_ops((enum isa)isa, DTYPE_F32, DTYPE_F32, &table) != STATUS_OK) continue;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used == 0 ? "" : " ",
                 isa_name((enum isa)isa));
    }
    return add(facts, "isa_available", text);
}

/* Names the library that mode fast sends linear layers to. */
static enum status add_blas(struct facts *facts) {
    struct blas blas;
    char line[LINE_SIZE + sizeof blas.config];
    if (blas_open(&blas) != STATUS_OK) return add_none(facts, "openblas");
    snprintf(line, sizeof line, "%s; kernels %s", blas.config, blas.core);
    return add(facts, "openblas", line);
}

/* Names what numerics.backend cuda would run on, or what is missing for it. */
static enum status add_cuda(struct facts *facts) {
    struct backend_site site;
    char *text;
    if (backends_site(BACKEND_MODULE_AUTO, &site) != STATUS_OK) return add_none(facts, "cuda");
    for (uint32_t i = 0; i < site.count; i++) {
        TRY(arena_format(facts->arena, &text, "cuda_%s", site.facts[i].name));
        TRY(add(facts, i == 0 ? "cuda" : text, site.facts[i].text));
    }
    TRY(add(facts, "cuda_module", site.path));
    return add(facts, "cuda_sha256", site.sha256);
}

/* Names the libraries that numerics.backend cuda opens: the one that modes fast and deterministic
 * send linear layers to, and the one that knows driver and clocks. */
static enum status add_cuda_libraries(struct facts *facts) {
    char line[LIBRARY_SIZE];
    const int multiplies = blas_cublas_version(line, sizeof line) == STATUS_OK;
    TRY(multiplies ? add(facts, "cublas", line) : add_none(facts, "cublas"));
    const int manages = blas_nvml_file(line, sizeof line) == STATUS_OK;
    return manages ? add(facts, "nvml", line) : add_none(facts, "nvml");
}

static enum status add_machine(struct facts *facts) {
    char line[LINE_SIZE];
    cpu_model(line);
    TRY(add(facts, "cpu_model", line));
    TRY(add_isa_list(facts));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(line, sizeof line, "%ld", cores);
    return add(facts, "cores", cores > 0 ? line : "");
}

/* The cores that affinity and control groups leave the process, of those that the machine has:
 * `suite` and `run` fill them unless --jobs says otherwise. */
static enum status add_usable_cores(struct facts *facts) {
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "%ju", (uintmax_t)cores_usable());
    return add(facts, "usable_cores", line);
}

/* Lists the facts that env prints; a NULL name ends the list. Two equal builds on two machines
 * agree in all that comes before "cpu_model". */
static enum status all_facts(struct arena *arena, const struct fact **out) {
    struct facts facts;
    TRY(open_facts(&facts, arena));
    TRY(add_build(&facts));
    TRY(add_machine(&facts));
    TRY(add_blas(&facts));
    TRY(add(&facts, "threads", "1 unless numerics.threads of a scenario says more"));
    TRY(add_usable_cores(&facts));
    TRY(add_cuda(&facts));
    TRY(add_cuda_libraries(&facts));
    *out = facts.list;
    return STATUS_OK;
}

/* Facts that decide no bit, and are left out of reproducible traces; /env holds those that may. */
static enum status add_volatile(struct facts *facts, const struct cli *cli) {
    char host[LINE_SIZE] = "", folder[4096] = "", date[32] = "", *command;
    struct timespec now;
    struct tm parts;
    TRY(add_machine(facts));
    TRY(add_usable_cores(facts));
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    TRY(add(facts, "host", host));
    if (getcwd(folder, sizeof folder) == NULL) folder[0] = '\0';
    TRY(add(facts, "folder", folder));
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 && gmtime_r(&now.tv_sec, &parts) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    TRY(add(facts, "date", date));
    TRY(arena_format(facts->arena, &command, "%s", cli->argc > 0 ? cli->argv[0] : ""));
    for (int i = 1; i < cli->argc; i++)
        TRY(arena_format(facts->arena, &command, "%s %s", command, cli->argv[i]));
    return add(facts, "command", command);
}

enum status environment_attributes(const struct cli *cli, int blas, struct arena *arena,
                                   const struct trace_attribute **out, uint32_t *out_count) {
    struct facts facts;
    struct trace_attribute *list;
    TRY(open_facts(&facts, arena));
    TRY(add_build(&facts));
    if (blas) TRY(add_blas(&facts));
    uint32_t steady = facts.count;
    TRY(add_volatile(&facts, cli));
    TRY(arena_take(arena, facts.count, sizeof *list, "environment", &list));
    for (uint32_t i = 0; i < facts.count; i++)
        list[i] = (struct trace_attribute){i < steady ? "env" : "env/volatile", facts.list[i].name,
                                           facts.list[i].text};
    *out = list;
    *out_count = facts.count;
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const struct fact *facts;
    TRY(all_facts(&cli->arena, &facts));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) {
        json_t *object = json_object();
        for (; facts->name != NULL; facts++)
            json_object_set_new(object, facts->name, json_string(facts->text));
        return json_print(object);
    }
    int width = 15;
    for (const struct fact *fact = facts; fact->name != NULL; fact++)
        if ((int)strlen(fact->name) > width) width = (int)strlen(fact->name);
    for (; facts->name != NULL; facts++)
        printf("%-*s %s\n", width, facts->name, facts->text);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {OPTION_JSON, OPTIONS_END};

const struct verb verb_env = {
    .name = "env",
    .brief = "this build and this machine",
    .arguments = "",
    .text = "Prints version, compiler, flags, instruction sets, libraries and "
            "floating-point environment: what a bug report needs.\v"
            "Example: twinstep env --json",
    .options = option_rows,
    .run = run,
};
