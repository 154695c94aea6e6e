/* SPDX-License-Identifier: Apache-2.0
 * The headline of an ablation: the sentences that name its verdict, and what rows of
 * ablate_print.c say in the same words. Computes nothing but percentages. */
#ifndef TWINSTEP_CLI_ABLATE_ABLATE_HEADLINE_H
#define TWINSTEP_CLI_ABLATE_ABLATE_HEADLINE_H

#include "ablate/ablate_judge.h"

/* Prints "name: VERDICT. ..." as one line. */
void ablate_print_headline(const struct ablate_plan *plan, const struct ablate_verdict *verdict);

/* Returns the name that the user's file gives a judged factor. */
const char *ablate_factor_name(const struct ablate_plan *plan, const struct ablate_judged *of);

/* Says whether it stands for several factors, in a joined game. */
int ablate_is_group(const struct ablate_judged *of);

/* Whether factors have shares; without, only `left` and `alone` are known. */
int ablate_has_shares(const struct ablate_verdict *verdict);

/* Whether one arm left a tensor that the other did not. */
int ablate_differ_in_names(const struct ablate_verdict *verdict);

/* Prints which tensors one arm alone left: "only baseline left head and 2 more". */
void ablate_print_only_left(const struct ablate_verdict *verdict);

/* Prints the factors that, alone, change which tensors there are, between `before` and `behind`;
 * nothing where there are none. */
void ablate_print_renaming(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                           const char *before, const char *behind);

#endif
