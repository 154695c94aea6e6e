/* SPDX-License-Identifier: Apache-2.0
 * The table of ops of this variant (number pair and instruction set). */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels_cpu.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

#define ROW(op, with) .op = VARIANT(op),
const struct op_table VARIANT(op_table) = {.name = TEXT(TWINSTEP_VARIANT), OP_LIST(ROW, )};
