/* SPDX-License-Identifier: Apache-2.0
 * Writes the schema as docs/SCENARIOS.md: `twinstep keys --markdown`. */
#include "scenarios/schema_pen.h"

#include <string.h>

#include "scenarios/row_value.h"
#include "scenarios/synonyms.h"

/* Writes a cell of a table, in which no bar may end it early. */
static void cell(FILE *out, const char *text, int as_code) {
    const char *tick = as_code && text[0] != '\0' ? "`" : "";
    fprintf(out, " %s", tick);
    for (; *text != '\0'; text++) {
        if (*text == '|') fputc('\\', out);
        fputc(*text, out);
    }
    fprintf(out, "%s |", tick);
}

/* Writes a paragraph, wrapped at 100 columns. No line begins with a sign, which would make it an
 * item of a list. */
static void paragraph(FILE *out, const char *text) {
    size_t column = 0;
    while (*text != '\0') {
        const size_t word = strcspn(text, " ");
        const int fits = column + 1 + word < 100 || (word == 1 && strchr("+-*", *text) != NULL);
        fprintf(out, "%s%.*s", column == 0 ? "" : fits ? " " : "\n", (int)word, text);
        column = fits && column != 0 ? column + 1 + word : word;
        text += word + (text[word] == ' ');
    }
    fputs(".\n\n", out);
}

static void markdown_open(FILE *out, const struct schema_table *table, int index) {
    (void)index;
    fprintf(out, "\n## %s\n\n", table->title);
    if (table->help[0] != '\0') paragraph(out, table->help);
    if (table->count == 0) {
        fprintf(out, "No keys of its own.\n");
        return;
    }
    fprintf(out, "| key | default | values | unit |%s meaning |\n",
            table->has_cause ? " cause |" : "");
    fprintf(out, "|---|---|---|---|%s---|\n", table->has_cause ? "---|" : "");
}

static void markdown_row(FILE *out, const struct schema_table *table, const struct key_row *row,
                         int index) {
    char path[128];
    char expected[ROW_EXPECTED_SIZE];
    (void)index;
    snprintf(path, sizeof path, "%s%s", table->prefix, row->path);
    fputc('|', out);
    cell(out, path, 1);
    cell(out, row->standard, 1);
    cell(out, row_limits(row, expected), 0);
    cell(out, row->unit, 0);
    if (table->has_cause) cell(out, cause_name(row->cause), 0);
    cell(out, row->help, 0);
    fputc('\n', out);
}

static const char about_contracts[] =
    "\n## schedule.contract\n"
    "\n"
    "`schedule: {contract: olmo-core, name: linear, warmup: 3, total: 10}` gives an arm the loop "
    "of\n"
    "that framework: which LR update k applies, which one it prints, what a skipped update does,\n"
    "which schedules a bare name means. `warmup` and `total` are in updates, whatever the\n"
    "framework counts; the resolved configuration holds them in units of the counter, with\n"
    "`increment`. Processes (`schedule.processes`) are the ranks that train (`parallel.ranks`);\n"
    "beside one rank another number acts on the schedule alone. Where ranks train, phase `reduce`\n"
    "is put in front of the contract's list `update`, in both arms. A contract that counts\n"
    "micro-batches counts those of one rank, so all ranks need equally many.\n"
    "\n"
    "A scenario gives a contract or a loop, not both. These keys follow from a contract, and are "
    "an\n"
    "error in an arm that has one: the lists of `loop`, and of `schedule` `start`, `origin`,\n"
    "`increment`, `shift`, `logged`, `logged_shift`, `warmup_rounding`; `processes`, `rescaled` "
    "and\n"
    "`updates_per_epoch` where the contract does not read them. The table shows what is not the\n"
    "default. `loop.skip` is the scenario's: a contract says what a skipped update does, not\n"
    "whether there are any.\n"
    "\n"
    "| contract | schedules | without `name` | meaning | what follows |\n"
    "|---|---|---|---|---|\n";

static void markdown_contracts(FILE *out, const struct schema *schema) {
    if (schema->contract_count > 0) fputs(about_contracts, out);
    for (size_t i = 0; i < schema->contract_count; i++) {
        const struct schema_contract *here = &schema->contracts[i];
        const char *comma = " ";
        fputc('|', out);
        cell(out, here->name, 1);
        cell(out, here->family, 1);
        cell(out, here->standard, 1);
        cell(out, here->help, 0);
        if (here->refusal != NULL) fprintf(out, " not trained: %s", here->refusal);
        for (size_t k = 0; here->refusal == NULL && k < here->implied_count; k++) {
            if (!schema_is_told(&here->implied[k])) continue;
            fprintf(out, "%s`%s: %s`", comma, here->implied[k].path,
                    schema_implied_text(&here->implied[k]));
            comma = ", ";
        }
        fprintf(out, " |\n");
    }
}

static const char about_synonyms[] =
    "\n## Names of other programs\n"
    "\n"
    "What TrainingArguments, DPOConfig, SFTConfig, torch, `config.json`, Megatron-LM and "
    "open-instruct\n"
    "call these keys and values. A scenario takes ours only; whoever writes one of theirs is told "
    "ours,\n"
    "or that there is none and why. Every field of the first three (transformers 5.24, TRL 1.16) "
    "is here.\n"
    "\n"
    "| theirs | ours | what differs |\n"
    "|---|---|---|\n";

static void markdown_synonyms(FILE *out) {
    size_t count;
    const struct synonym *list = synonyms(&count);
    fputs(about_synonyms, out);
    for (size_t i = 0; i < count; i++) {
        char ours[128];
        if (list[i].key != NULL)
            snprintf(ours, sizeof ours, "%s%s%s", list[i].key, list[i].value == NULL ? "" : ": ",
                     list[i].value == NULL ? "" : list[i].value);
        fputc('|', out);
        cell(out, list[i].name, 1);
        if (list[i].key != NULL)
            cell(out, ours, 1);
        else
            cell(out, "none", 0);
        cell(out, list[i].how, 0);
        fputc('\n', out);
    }
}

static const char introduction[] =
    "# Scenario files\n"
    "\n"
    "<!-- Generated by `twinstep keys --markdown` from the schema table (scenarios/schema.c,\n"
    "     scenarios/head.c) and the rows of each optimizer and schedule. Do not edit. -->\n"
    "\n"
    "A scenario is a YAML file about two trainings (arms) that should agree. `common` holds what\n"
    "both share, each entry of `arms` what differs. Every key has a default.\n"
    "\n"
    "<!-- file: lr-set-before-step.yaml -->\n"
    "```yaml\n"
    "twinstep: 1\n"
    "name: lr-set-before-step\n"
    "steps: 5\n"
    "common:\n"
    "  optimizer: {lr: 5e-7}\n"
    "arms:\n"
    "  baseline: {}\n"
    "  test: {loop: {update: [count, clip, schedule, optimize, log, zero]}}\n"
    "expect: {verdict: outside-floor, cause: schedule, first_step: 1, first_phase: optimize}\n"
    "```\n"
    "\n"
    "`twinstep check` resolves both arms and says, without training, in what they differ, what "
    "their\n"
    "loops mean and how much a run would train:\n"
    "\n"
    "```sh\n"
    "twinstep check lr-set-before-step.yaml\n"
    "```\n"
    "<!-- output: lines 6-16 -->\n"
    "```\n"
    "...\n"
    "  factor   schedule\n"
    "           loop.update: [clip, optimize, log, count, schedule, zero] -> [count, clip, "
    "schedule, optimize, log, zero]\n"
    "  loop     baseline: update k applies f(k-1), logs f(k-1)\n"
    "           micro    fetch forward backward\n"
    "           update   clip optimize log count schedule zero\n"
    "           note: optimize reads an LR that schedule wrote one update earlier\n"
    "  loop     test: update k applies f(k), logs f(k)\n"
    "           micro    fetch forward backward\n"
    "           update   count clip schedule optimize log zero\n"
    "           warning: count and schedule run before optimize: update k applies f(k), 1 update "
    "ahead of f(k-1)\n"
    "  floor    exact: baseline once more, and one arm in a process started anew\n"
    "...\n"
    "```\n"
    "<!-- end -->\n"
    "\n"
    "* There are two arms. One called `baseline` is the baseline, else the first; without `arms`\n"
    "  they are `baseline` and `test` and do not differ.\n"
    "* Maps of an arm merge over `common`, lists replace. `--set common.optimizer.lr=1e-6` "
    "changes\n"
    "  `common`, `--set arms.test.batch.micro=4` an arm, `--set steps=3` the scenario.\n"
    "* `scheduler_step` in a list of phases is `count, schedule`: PyTorch's `scheduler.step()`\n"
    "  ([LOOPS.md](LOOPS.md) writes the usual loops down).\n"
    "* Where an arm names another optimizer or schedule, a key in `common` holds for it if the\n"
    "  other one has a key of that name, too (`optimizer.beta2` of adamw and adam); else it is\n"
    "  left out.\n"
    "* `auto` takes its value from other keys after all layers are merged, for each arm.\n"
    "  `schedule.warmup` and `schedule.warmup_ratio` say the same thing: the later layer counts.\n"
    "* Unknown keys, keys given twice, wrong types, quoted numbers, tags and a newer `twinstep`\n"
    "  number are errors, each with file, line and column. Integers are written in digits, reals\n"
    "  also as `5e-7`. Anchors, aliases and merge keys (`<<`) work.\n"
    "* The cause of a key is what a difference in it is attributed to. A key that nothing reads "
    "in\n"
    "  either arm (`dpo.beta` of an sft task) is no difference, and `twinstep check` names it. "
    "One\n"
    "  that a single arm reads (`parallel.feeds`, where one arm alone has ranks) is a difference "
    "if\n"
    "  it was written for that arm and not in `common`: the other arm has `(none)`.\n";

static const struct schema_pen pen = {markdown_open, markdown_row, NULL, markdown_contracts};

void schema_print_markdown(const struct schema *schema, FILE *out) {
    fputs(introduction, out);
    schema_draw_all(schema, out, &pen);
    markdown_synonyms(out);
}
