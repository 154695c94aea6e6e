/* SPDX-License-Identifier: Apache-2.0
 * What a module and this program tell each other about how they were built (docs/PLUGINS.md).
 *
 * Every entry symbol (twinstep_optim_v1, twinstep_sched_v1) is an object that begins with a
 * module_stamp. The version stands in the symbol's name. The sizes of the structs that both sides
 * read stand in the stamp and must be equal. The loader reads the tag first, and nothing behind it
 * if the tag is wrong. Modules include base/module_kit.h, which fills the stamp in. */
#ifndef TWINSTEP_BASE_MODULE_ABI_H
#define TWINSTEP_BASE_MODULE_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "base/key.h"
#include "base/status.h"

#define MODULE_VERSION 1
#define MODULE_CLASSES_MAX 16        /* most classes of one kind in one module */
#define MODULE_ROWS_MAX 64           /* most key rows of one class */
#define MODULE_TAG "twinstep module" /* 16 bytes with the NUL */

/* What a module may call: modules link nothing of this program. */
struct module_host {
    size_t size; /* sizeof(struct module_host) */
    /* status_fail() of base/status.h, which stores the text of FAIL */
    enum status (*fail)(enum status code, const char *format, ...) TWINSTEP_PRINTF(2, 3);
};

/* The sizes of structs that one side puts into arrays or that one side writes and the other reads;
 * 0 where a kind of module does not use a struct. */
struct module_sizes {
    uint32_t stamp, row, class_, call, tensor, group;
};

/* What the compiler of a module did to its arithmetic, as module_probe() observes it. Bits of one
 * int. */
enum module_arithmetic {
    MODULE_FUSES = 1, /* a product and a sum become one fma */
    MODULE_DROPS = 2  /* (double)(float)x becomes x */
};

struct module_stamp {
    char tag[16]; /* MODULE_TAG */
    uint32_t version;
    struct module_sizes sizes;
    uint32_t inexact_math; /* compiled with -ffast-math or a part of it */
    uint32_t zero;
    int (*probe)(void);              /* returns bits of enum module_arithmetic */
    const char *compiler;            /* "gcc 12.2.0" */
    const struct module_host **host; /* the loader sets it before it calls anything */
};

#endif
