/* SPDX-License-Identifier: Apache-2.0
 * The judgement of two dumps as one JSON object; docs/OPS.md has its members. */
#include "cli/json.h"
#include "cli/ops_print.h"

static json_t *op_json(const struct dump_judgement *j, const struct dump_op *op) {
    return json_pack("{ss so ss ss so si}", "op", ops_word(j, op->op), "module",
                     json_text(ops_word(j, op->module)), "arguments", ops_word(j, op->args),
                     "shapes", ops_word(j, op->shapes), "location",
                     json_text(ops_word(j, op->location)), "entry", (int)op->place);
}

/* In `literals` this event's dump comes first, A or B as `in` says. They are null where no op of
 * the other dump stands at its place, and where their literals are one. */
static json_t *event_json(const struct dump_judgement *j, const struct dump_event *event) {
    const struct dump *here = j->dump[event->side], *there = j->dump[!event->side];
    const struct dump_op *op = &here->ops[event->op];
    const double relative = ops_relative(j, event);
    json_t *object = json_pack("{ss ss}", "kind", event->kind == DUMP_BIRTH ? "birth" : "outside",
                               "in", event->side == 0 ? "a" : "b");
    json_join(object, op_json(j, op));
    json_object_set_new(object, "input",
                        event->kind == DUMP_OUTSIDE ? json_integer(event->input + 1) : json_null());
    json_object_set_new(object, "both_sides", json_boolean(event->site));
    json_object_set_new(object, "like_it",
                        event->counterpart == UINT32_MAX
                            ? json_null()
                            : op_json(j, &there->ops[event->counterpart]));
    json_object_set_new(object, "relative_difference",
                        relative < 0 ? json_null() : json_real(relative));
    const int64_t other = event->kind == DUMP_BIRTH && event->counterpart != UINT32_MAX
                              ? dump_other_input(j, event)
                              : -1;
    json_object_set_new(object, "other_input", other < 0 ? json_null() : json_integer(other + 1));
    struct dump_change change = {{"", ""}, {0, 0}};
    if (event->kind == DUMP_BIRTH && event->counterpart != UINT32_MAX &&
        there->ops[event->counterpart].literals != op->literals)
        dump_changed(ops_word(j, op->literals),
                     ops_word(j, there->ops[event->counterpart].literals), &change);
    json_object_set_new(object, "literals",
                        change.length[0] + change.length[1] == 0
                            ? json_null()
                            : json_pack("[s%s%]", change.text[0], change.length[0], change.text[1],
                                        change.length[1]));
    return object;
}

static json_t *dump_json(const struct dump *dump, uint64_t births, uint64_t outside) {
    return json_pack("{ss ss sI sI sI sI sI sI}", "path", dump->path, "format", dump->format, "ops",
                     (json_int_t)dump->count, "ops_without_hash", (json_int_t)dump->without,
                     "hashes_of_a_tensor", (json_int_t)dump->hashes, "nan_hashes",
                     (json_int_t)dump->nan, "births", (json_int_t)births, "outside",
                     (json_int_t)outside);
}

static json_t *list_json(const struct dump_judgement *j, int noise) {
    json_t *list = json_array();
    for (size_t i = 0; i < j->event_count; i++)
        if (j->events[i].noise == noise) json_array_append_new(list, event_json(j, &j->events[i]));
    return list;
}

json_t *ops_json(const struct dump_judgement *j, const char *first_line) {
    const char *blind = ops_blind(j);
    json_t *object = json_pack(
        "{ss ss so so so sI}", "verdict", ops_verdicts[j->verdict], "first_line", first_line, "a",
        dump_json(j->dump[0], j->births[0], j->outside[0]), "b",
        dump_json(j->dump[1], j->births[1], j->outside[1]), "first",
        j->first == NULL ? json_null() : event_json(j, j->first), "floors", (json_int_t)j->floors);
    json_t *rest = json_pack("{sb sI sI sI sI so so so}", "is_aligned", j->is_aligned, "aligned",
                             (json_int_t)j->aligned, "differing", (json_int_t)j->differing,
                             "inherited", (json_int_t)j->inherited, "blank", (json_int_t)j->blank,
                             "events", list_json(j, 0), "noise", list_json(j, 1), "blind_to",
                             json_text(blind == NULL ? "" : blind));
    return json_join(object, rest);
}
