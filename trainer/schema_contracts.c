/* SPDX-License-Identifier: Apache-2.0
 * Turns the fields of a contract into a loop. There are three shapes: the schedule runs after the
 * optimizer, before it, or at the end of an epoch. A shift moves each of them. */
#include "trainer/schema_contracts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ranks/tree.h"
#include "trainer/loop.h"

static void imply(struct schema_contract *out, const char *path, const char *text,
                  const char *shown) {
    out->implied[out->implied_count++] = (struct schema_implied){path, text, shown};
}

static int advances(const struct contract *contract) {
    return contract->on_skip == CONTRACT_SKIP_ADVANCE;
}

/* Words of a contract's numbers, by enum; a word that is missing is NULL. */
static const char *const start_text[] = {[CONTRACT_START_F0] = "f0",
                                         [CONTRACT_START_BASE] = "base",
                                         [CONTRACT_START_ZERO] = "zero",
                                         [CONTRACT_START_MIN] = "min",
                                         [CONTRACT_START_NONE] = "f0"};
static const char *const rounding_text[] = {[CONTRACT_ROUND_NONE] = "none",
                                            [CONTRACT_ROUND_FLOOR] = "floor",
                                            [CONTRACT_ROUND_CEIL] = "ceil",
                                            [CONTRACT_ROUND_HALF_EVEN] = "half-even"};
/* What one update is worth in units of the counter; NULL where that is 1. */
static const char *const unit_words[] = {[CONTRACT_UNIT_PROCESS] = "schedule.processes",
                                         [CONTRACT_UNIT_SAMPLE] = "batch.size",
                                         [CONTRACT_UNIT_TOKEN] = "the tokens of an update",
                                         [CONTRACT_UNIT_MICRO] = "batch.size / batch.micro",
                                         [CONTRACT_UNIT_EPOCH] = NULL};

/* Returns 1 when update k applies f(k - 2), which a shift of one update says. */
static int lags(const struct contract *contract) {
    return contract->offset == -1;
}

static void imply_counters(const struct contract *contract, struct schema_contract *out) {
    const char *const unit = unit_words[contract->unit];
    imply(out, "schedule.start", start_text[contract->start], NULL);
    imply(out, "schedule.origin", "0", NULL);
    imply(out, "schedule.increment", "1", unit);
    imply(out, "schedule.shift", lags(contract) ? "-1" : "0",
          lags(contract) && unit != NULL ? "-schedule.increment" : NULL);
    imply(out, "schedule.logged", "current", NULL);
    imply(out, "schedule.logged_shift", "0", NULL);
    imply(out, "schedule.warmup_rounding", rounding_text[contract->warmup_rule], NULL);
    if (contract->unit != CONTRACT_UNIT_PROCESS) imply(out, "schedule.processes", "1", NULL);
    if (!contract->scaled && contract->unit != CONTRACT_UNIT_EPOCH)
        imply(out, "schedule.rescaled", "contract", NULL);
    if (contract->unit != CONTRACT_UNIT_EPOCH) imply(out, "schedule.updates_per_epoch", "0", NULL);
}

static int sets_before(const struct contract *contract) {
    return contract->offset == 1 || contract->start == CONTRACT_START_NONE;
}

static const char *refusal_of(const struct contract *contract) {
    if (contract->unit == CONTRACT_UNIT_TOKEN)
        return "it counts tokens, and updates here have unequal numbers of them";
    if (contract->unit == CONTRACT_UNIT_EPOCH &&
        (contract->offset != 0 || contract->start == CONTRACT_START_NONE || !advances(contract) ||
         contract->logged == CONTRACT_LOGGED_NEXT))
        return "its schedule moves at the end of an epoch in a way that list epoch cannot say";
    if (contract->offset < -1 || contract->offset > 1)
        return "no order of phases moves the schedule by that many updates";
    if (sets_before(contract) && !advances(contract))
        return "it sets the LR before each step, and a skipped update would have to take it back";
    if (sets_before(contract) && contract->logged == CONTRACT_LOGGED_NEXT)
        return "it sets the LR before each step and logs the next one";
    return NULL;
}

static void imply_loop(const struct contract *contract, struct schema_contract *out) {
    const int epochs = contract->unit == CONTRACT_UNIT_EPOCH;
    const int next = contract->logged == CONTRACT_LOGGED_NEXT;
    /* PyTorch's order: update k applies what the schedule set after update k - 1. */
    const char *update = next ? "[clip, optimize, count, schedule, log, zero]"
                              : "[clip, optimize, log, count, schedule, zero]";
    const char *on_skip = advances(contract) ? "[log, count, schedule, zero]" : "[log, zero]";
    if (epochs) {
        update = "[clip, optimize, log, zero]";
        on_skip = "[log, zero]";
    } else if (contract->offset == 1) {
        /* OLMo-core's order: the counter is advanced first, also by a skipped update. */
        update = "[count, clip, schedule, optimize, log, zero]";
        on_skip = "[count, schedule, log, zero]";
    } else if (sets_before(contract)) {
        /* llm.c's order: the schedule runs before the optimizer, with the counter of the updates
         * before. */
        update = "[clip, schedule, optimize, log, count, zero]";
        on_skip = "[schedule, log, count, zero]";
    }
    imply(out, "loop.micro", "[fetch, forward, backward]", NULL);
    imply(out, "loop.update", update, NULL);
    imply(out, "loop.on_skip", on_skip, NULL);
    imply(out, "loop.epoch", epochs ? "[count, schedule]" : "[]", NULL);
    imply(out, "loop.eval", "[]", NULL);
}

static const char *find_schedule(const struct schema_contract *contract, const char *schedule) {
    const struct contract *found = contract_find(contract->name);
    const struct sched_class *class_here =
        found == NULL ? NULL : sched_find_in(found->family, schedule);
    return class_here == NULL ? NULL : class_here->name;
}

/* The micro-batches of a rank. Each rank of a framework steps a scheduler of its own, so where a
 * contract counts micro-batches, ranks with unequal numbers of them would apply unequal LRs, and
 * there is one LR here. Contracts that count something else read no number of micro-batches. A rank
 * without samples is what config_check refuses later, in its own words. */
static enum status micros_of_rank(const struct contract *contract, const struct config *config,
                                  uint64_t *out) {
    const uint64_t size = config->batch.size, micro = config->batch.micro;
    const uint32_t shards = (uint32_t)config_dealt_shards(config);
    const uint32_t ranks = (uint32_t)config->parallel.ranks;
    const uint64_t micros = tree_rank_micros(0, size, micro, shards, ranks);
    uint32_t other = 0;
    uint64_t of_other = micros;
    *out = micros;
    if (contract->unit != CONTRACT_UNIT_MICRO) return STATUS_OK;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint64_t of_rank = tree_rank_micros(r, size, micro, shards, ranks);
        if (of_rank == 0) return STATUS_OK;
        if (of_other != micros || of_rank == micros) continue;
        other = r;
        of_other = of_rank;
    }
    if (of_other == micros) return STATUS_OK;
    char of_shards[64] = ""; /* of one shard, every sample may go to another rank */
    if (config->numerics.shards > 1)
        snprintf(of_shards, sizeof of_shards, "numerics.shards (%" PRIu32 ") and of ", shards);
    FAIL(STATUS_INPUT,
         "parallel.ranks: contract %s counts the micro-batches of one rank, so expected ranks that "
         "have equally many, as a divisor of %sbatch.size (%" PRIu64 ") gives, got %" PRIu32
         ", whose rank 0 has %" PRIu64 " micro-batches and rank %" PRIu32 " has %" PRIu64,
         contract->name, of_shards, size, ranks, micros, other, of_other);
}

/* Resolves the numbers of a contract for one arm, from warmup, warmup_ratio and total of `config`,
 * which count updates. */
static enum status plan_contract(const struct contract *contract, const struct schema_value *values,
                                 size_t value_count, const struct config *config,
                                 struct arena *arena, struct contract_plan *out) {
    static const int32_t rescaled[] = {[RESCALED_CONTRACT] = CONTRACT_RESCALED_DEFAULT,
                                       [RESCALED_NONE] = CONTRACT_RESCALED_NONE,
                                       [RESCALED_TOTAL] = CONTRACT_RESCALED_TOTAL,
                                       [RESCALED_WARMUP] = CONTRACT_RESCALED_WARMUP};
    struct contract_request request;
    contract_request_init(&request);
    request.contract = contract;
    /* A class without a family is Hugging Face's; a bare name would mean the contract's own family.
     */
    char schedule[CONFIG_NAME_SIZE + 4];
    const char *name = config->schedule.which.name;
    snprintf(schedule, sizeof schedule, "%s%s", strchr(name, '.') == NULL ? "hf." : "", name);
    request.schedule = schedule;
    request.lr = config->optimizer.lr;
    request.steps = config->schedule.total;
    if (config->schedule.warmup_ratio == KEY_WORD_REAL)
        request.warmup = config->schedule.warmup;
    else
        request.warmup_ratio = config->schedule.warmup_ratio;
    request.batch = config->batch.micro;
    TRY(micros_of_rank(contract, config, &request.accumulate));
    request.processes = config->schedule.processes;
    request.rescaled = rescaled[config->schedule.rescaled];
    request.global_batch = config->batch.size;
    request.updates_per_epoch = config->schedule.updates_per_epoch;
    if (value_count > CONTRACT_VALUES)
        FAIL(STATUS_INPUT, "schedule.name: expected at most %d parameters of a schedule, got %zu",
             CONTRACT_VALUES, value_count);
    for (size_t i = 0; i < value_count; i++) {
        request.values[i].key = values[i].key;
        request.values[i].text = values[i].text;
    }
    request.value_count = value_count;
    return contract_resolve(&request, arena, out);
}

/* Returns by how many units one run of `count` moves the counter. For a contract that counts epochs
 * that is 1, because list epoch runs once per epoch. */
static double increment_of(const struct contract_plan *plan) {
    return plan->contract->unit == CONTRACT_UNIT_EPOCH ? 1.0 : plan->increment;
}

static enum status check_numbers(const struct contract_plan *plan, uint64_t steps) {
    const struct contract *contract = plan->contract;
    double most = plan->call.total + increment_of(plan) * (double)steps;
    if (contract->past_end == CONTRACT_PAST_ABORT && steps > plan->steps)
        FAIL(STATUS_INPUT,
             "schedule.total: contract %s aborts after its last update, %ju; the scenario trains "
             "%ju",
             contract->name, (uintmax_t)plan->steps, (uintmax_t)steps);
    /* Beyond 2^53 an f64 counter no longer holds every whole number. */
    if (!(most <= 0x1p53))
        FAIL(STATUS_INPUT, "schedule.total: the counter of contract %s passes 2^53",
             contract->name);
    return STATUS_OK;
}

static enum status adopt(const struct contract_plan *plan, uint64_t steps, struct config *config) {
    TRY(check_numbers(plan, steps));
    int64_t increment = (int64_t)increment_of(plan);
    config->schedule.warmup = plan->call.warmup;
    config->schedule.total = (uint64_t)plan->call.total;
    config->schedule.increment = (uint64_t)increment;
    config->schedule.shift = lags(plan->contract) ? -increment : 0;
    if (plan->schedule->values_size > 0)
        memcpy(config->schedule.which.values, plan->call.values, plan->schedule->values_size);
    if ((double)increment != increment_of(plan) ||
        (double)config->schedule.total != plan->call.total ||
        plan->call.base_lr != config->optimizer.lr)
        FAIL(STATUS_INTERNAL, "contract %s: its numbers do not fit a loop", plan->contract->name);
    return STATUS_OK;
}

/* Puts the keys of scenarios into an error of contract_resolve, which names the options of `lr
 * table`: "--steps" becomes schedule.total. */
static enum status in_keys(enum status status) {
    char in[512], out[640];
    size_t used = 0;
    snprintf(in, sizeof in, "%s", status_text());
    for (const char *at = in; *at != '\0' && used + 64 < sizeof out;) {
        if (strncmp(at, "--", 2) != 0 || at[2] < 'a' || at[2] > 'z') {
            out[used++] = *at++;
            continue;
        }
        char word[32];
        size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        snprintf(word, sizeof word, "%.*s", (int)length, at + 2);
        at += 2 + length;
        for (char *dash = word; *dash != '\0'; dash++)
            if (*dash == '-') *dash = '_';
        const char *key = strcmp(word, "steps") == 0      ? "total"
                          : strcmp(word, "schedule") == 0 ? "name"
                                                          : word;
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%s",
                                 strcmp(word, "lr") == 0 ? "optimizer." : "schedule.", key);
    }
    out[used] = '\0';
    FAIL(status, "%s", out);
}

static enum status resolve(const struct schema_contract *contract,
                           const struct schema_value *values, size_t value_count, uint64_t steps,
                           struct config *config) {
    struct arena arena = ARENA_EMPTY;
    struct contract_plan plan;
    const struct contract *found = contract_find(contract->name);
    enum status status = found == NULL
                             ? status_fail(STATUS_INTERNAL, "contract %s is gone", contract->name)
                             : plan_contract(found, values, value_count, config, &arena, &plan);
    if (status == STATUS_INPUT) status = in_keys(status);
    if (status == STATUS_OK) status = adopt(&plan, steps, config);
    arena_close(&arena);
    return status;
}

/* Lists the bare names of the family's schedules. */
static enum status list_schedules(const struct contract *contract, struct arena *arena,
                                  const char **out) {
    char *text;
    TRY(arena_format(arena, &text, "%s", ""));
    for (const struct sched_class *const *c = sched_classes(); *c != NULL; c++) {
        if (!sched_in_family(*c, contract->family)) continue;
        TRY(arena_format(arena, &text, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                         sched_bare_name(*c)));
    }
    *out = text;
    return STATUS_OK;
}

static enum status describe(const struct contract *contract, struct arena *arena,
                            struct schema_contract *out) {
    out->name = contract->name;
    out->alias = contract->alias;
    out->help = contract->help;
    out->family = contract->family;
    out->standard = contract->default_schedule;
    out->refusal = refusal_of(contract);
    out->find = find_schedule;
    out->resolve = resolve;
    imply_loop(contract, out);
    imply_counters(contract, out);
    return list_schedules(contract, arena, &out->schedules);
}

enum status schema_contracts_open(struct arena *arena, struct schema *schema) {
    size_t count = 0;
    struct schema_contract *list;
    const struct contract *contracts = contract_list(&count);
    TRY(arena_take(arena, count, sizeof *list, "contracts", &list));
    for (size_t i = 0; i < count; i++)
        TRY(describe(&contracts[i], arena, &list[i]));
    schema->contracts = list;
    schema->contract_count = count;
    return STATUS_OK;
}
