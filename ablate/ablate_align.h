/* SPDX-License-Identifier: Apache-2.0
 * Holds the words of two command lines against each other: which are options with their values,
 * which set a key ("optim.lr=0.1"), which stand for themselves, and which of one line belong to
 * which of the other. Reads no file and makes no text.
 *
 * How many values an option takes is written nowhere, so it is read from both lines. Invariant: the
 * units of a line hold each of its words once, in order; those that are `gone` hold none. */
#ifndef TWINSTEP_ABLATE_ABLATE_ALIGN_H
#define TWINSTEP_ABLATE_ABLATE_ALIGN_H

#include "ablate/ablate_file.h"

#define ALIGN_WORDS_MAX 2000 /* of a command; the work grows as its square */
#define ALIGN_NONE SIZE_MAX

/* An option with its values, a key with its value, or a word that stands for itself. */
struct align_unit {
    const char *name;  /* by which units are paired: "--lr", "optim.lr"; "" of a word for itself */
    const char *shown; /* what a factor of it is called; "" of a word for itself */
    size_t from, count;
    size_t partner; /* the unit of the other line that it belongs to, or ALIGN_NONE */
    /* How many words that stand for themselves in both lines come before it. */
    size_t segment;
    /* Of a unit of the second line without partner: the unit of the first line that it would stand
     * before, or their number. */
    size_t before;
    int anchor;     /* it is a word that stands for itself in both lines */
    int adheres;    /* an option whose value may be the anchor behind it */
    int holds_keys; /* its value sets a key, and may not be its value */
    int gone;       /* its words are those of a unit before it */
};

struct align_line {
    struct ablate_words words;
    struct align_unit *units;
    size_t count;
};

/* Says whether a word is an option: "-x", "--lr=1", and no negative number. */
int align_is_option(const char *word);

/* The length of the part of a word before its value: "--lr=" of an option, "optim.lr=" of what sets
 * a key, both of "--set=optim.lr=1" with `inner`. 0: it has none. */
size_t align_head(const char *word, int inner);

/* Cuts the words of both lines into units and pairs them. STATUS_INPUT: too many words. */
TWINSTEP_MUST_USE enum status ablate_align(struct align_line lines[2], struct arena *arena);

#endif
