/* SPDX-License-Identifier: Apache-2.0
 * How a row of the two tables of keys is written: field, unit, default and cause in this order,
 * then by name what not every key has (.low, .high, .word) and .help. A number has a unit ("1" for
 * none); flags, texts and names have not. A path is the field's place in the struct; where it is
 * another, a row ends in _AT and begins with it.
 *
 * The including file says whose fields they are (OWNER). Invariant: a KEY_ENUM and a KEY_LIST have
 * names, and no other key has. */
#ifndef TWINSTEP_SCENARIOS_ROWS_H
#define TWINSTEP_SCENARIOS_ROWS_H

#include <stddef.h>

#include "base/key.h"

#define NUMBER_AT(name, kind, field, units, value, why, ...)                                       \
    KEY_ROW(name, kind, OWNER, field, .unit = (units), .standard = (value), .cause = (why),        \
            __VA_ARGS__)
#define UINT_AT(name, field, ...) NUMBER_AT(name, KEY_UINT, field, __VA_ARGS__)
#define INT_AT(name, field, ...) NUMBER_AT(name, KEY_INT, field, __VA_ARGS__)
#define TEXT_AT(name, field, ...) NUMBER_AT(name, KEY_TEXT, field, "", __VA_ARGS__)
#define NAMED_AT(name, kind, field, value, why, list, ...)                                         \
    NUMBER_AT(name, kind, field, "", value, why, .names = (list), __VA_ARGS__)
#define ENUM_AT(name, field, ...) NAMED_AT(name, KEY_ENUM, field, __VA_ARGS__)
#define UINT(field, ...) UINT_AT(#field, field, __VA_ARGS__)
#define INT(field, ...) INT_AT(#field, field, __VA_ARGS__)
#define REAL(field, ...) NUMBER_AT(#field, KEY_REAL, field, __VA_ARGS__)
#define BOOL(field, ...) NUMBER_AT(#field, KEY_BOOL, field, "", __VA_ARGS__)
#define TEXT(field, ...) TEXT_AT(#field, field, __VA_ARGS__)
#define ENUM(field, ...) ENUM_AT(#field, field, __VA_ARGS__)
#define LIST(field, ...) NAMED_AT(#field, KEY_LIST, field, __VA_ARGS__)

/* The names of one key, in the order of its enum. */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
