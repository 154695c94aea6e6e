/* SPDX-License-Identifier: Apache-2.0
 * twinstep pages: writes manual pages and completion for the build, which installs them
 * (cmake/pages.cmake). Not listed: nobody calls it by hand. */
#include "cli/output.h"
#include "cli/pages.h"

static enum status open_page(struct arena *arena, const char *folder, const char *name,
                             const char *end, struct output *output) {
    char *path;
    TRY(arena_format(arena, &path, "%s/%s%s", folder, name, end));
    return output_open(path, 1, output);
}

static enum status write_verbs(struct cli *cli, const char *folder) {
    const struct verb *verb;
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        char name[PAGE_NAME], *file;
        struct output page;
        if (verb->brief == NULL) continue;
        page_name(verb, name);
        TRY(arena_format(&cli->arena, &file, "twinstep-%s", name));
        TRY(open_page(&cli->arena, folder, file, ".1", &page));
        page_manual_verb(verb, page.file);
        TRY(output_close(&page, STATUS_OK));
    }
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *folder = options->arguments[0];
    struct page_source *sources;
    struct output page;
    size_t count;
    TRY(page_sources(cli, &sources, &count));
    TRY(page_offers_check(sources, count));
    TRY(write_verbs(cli, folder));
    TRY(open_page(&cli->arena, folder, "twinstep", ".1", &page));
    page_manual(page.file);
    TRY(output_close(&page, STATUS_OK));
    TRY(open_page(&cli->arena, folder, "twinstep", ".bash", &page));
    page_bash(sources, count, page.file);
    TRY(output_close(&page, STATUS_OK));
    TRY(open_page(&cli->arena, folder, "_twinstep", "", &page));
    page_zsh(sources, count, page.file);
    *out_exit = EXIT_AS_EXPECTED;
    return output_close(&page, STATUS_OK);
}

static const struct argp_option option_rows[] = {OPTIONS_END};

const struct verb verb_pages = {
    .name = "pages",
    .brief = NULL,
    .arguments = "FOLDER",
    .text = "Writes manual pages and completion for bash and zsh to FOLDER; used by the build.",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};
