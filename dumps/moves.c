/* SPDX-License-Identifier: Apache-2.0
 * Which ops only move values, and which write over a tensor without reading it.
 *
 * Whatever is in neither table is an op that computes. So a new kind of view, which no table knows,
 * can be called a birth that it is not; a computation is never taken for a move. */
#include <string.h>

#include "dumps/dump_private.h"
#include "logs/lines.h"

/* Without the overload behind the dot. An index that is itself a tensor (gather, embedding) is
 * data: such an op chooses values, and another choice is a birth. */
static const char *const movers[] = {
    "view",
    "_unsafe_view",
    "reshape",
    "_reshape_alias",
    "t",
    "transpose",
    "permute",
    "unsqueeze",
    "squeeze",
    "expand",
    "slice",
    "select",
    "narrow",
    "split",
    "split_with_sizes",
    "chunk",
    "unbind",
    "alias",
    "detach",
    "detach_",
    "clone",
    "contiguous",
    "copy_",
    "_to_copy",
    "to",
    "lift_fresh",
    "lift_fresh_copy",
    "as_strided",
    "cat",
    "stack",
    "repeat",
    "flip",
    "roll",
    "unfold",
    "diagonal",
    "movedim",
    "view_as_real",
    "view_as_complex",
    "transpose_",
    "t_",
    "squeeze_",
    "unsqueeze_",
    "copy",
    "_pin_memory",
    "view_copy",
    "unsafe_split",
    "unsafe_chunk",
    "swapaxes",
    "mT",
    "numpy_T",
};

static const char *const writers[] = {
    "copy_",      "fill_", "zero_",        "normal_",     "uniform_",   "random_",
    "bernoulli_", "set_",  "exponential_", "log_normal_", "geometric_", "cauchy_",
};

static int is_among(struct log_span op, const char *const *names, size_t count) {
    static const char prefix[] = "aten::";
    const size_t skip = sizeof prefix - 1;
    if (!log_span_starts(op, prefix)) return 0;
    const char *text = op.text + skip;
    const void *dot = memchr(text, '.', op.length - skip);
    const size_t length = dot == NULL ? op.length - skip : (size_t)((const char *)dot - text);
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return 1;
    return 0;
}

/* Every value of `from` is one of `to`: mantissa and exponent of the one fit into the other. */
static const struct {
    const char *from, *to;
} wider[] = {
    {"f16", "f32"},    {"f16", "f64"},      {"bf16", "f32"},      {"bf16", "f64"},
    {"f32", "f64"},    {"f8e4m3fn", "f16"}, {"f8e4m3fn", "bf16"}, {"f8e4m3fn", "f32"},
    {"f8e5m2", "f16"}, {"f8e5m2", "bf16"},  {"f8e5m2", "f32"},    {"i8", "i16"},
    {"i8", "i32"},     {"i8", "i64"},       {"u8", "i16"},        {"u8", "i32"},
    {"u8", "i64"},     {"i16", "i32"},      {"i16", "i64"},       {"i32", "i64"},
    {"i32", "f64"},    {"i16", "f32"},      {"i8", "f32"},        {"u8", "f32"},
    {"b8", "f32"},     {"b8", "i64"},       {"b8", "f16"},        {"b8", "bf16"},
    {"c64", "c128"},
};

static struct log_span dtype_of(struct log_span tensor) {
    const void *bracket = tensor.length == 0 ? NULL : memchr(tensor.text, '[', tensor.length);
    if (bracket != NULL) tensor.length = (size_t)((const char *)bracket - tensor.text);
    return tensor;
}

static int is_text(struct log_span span, const char *text) {
    return span.length == strlen(text) && memcmp(span.text, text, span.length) == 0;
}

int dump_moves(struct log_span op, struct log_span from, struct log_span to) {
    if (!is_among(op, movers, COUNT_OF(movers))) return 0;
    const struct log_span a = dtype_of(from), b = dtype_of(to);
    if (a.length == b.length && (a.length == 0 || memcmp(a.text, b.text, a.length) == 0)) return 1;
    for (size_t i = 0; i < COUNT_OF(wider); i++)
        if (is_text(a, wider[i].from) && is_text(b, wider[i].to)) return 1;
    return 0;
}

int dump_overwrites(struct log_span op) {
    return is_among(op, writers, COUNT_OF(writers));
}

int dump_is_collective(struct log_span op) {
    return log_span_starts(op, "c10d::") || log_span_starts(op, "_c10d_functional::");
}
