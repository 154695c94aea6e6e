/* SPDX-License-Identifier: Apache-2.0
 * Reads files below tests/ into memory. */
#include "tests/logs/helper_fixture.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

struct fixture fixture_read(struct arena *arena, const char *name) {
    struct fixture f;
    assert_int_equal(arena_format(arena, &f.path, "%s/tests/%s", TWINSTEP_SOURCE_DIR, name), 0);
    FILE *file = fopen(f.path, "rb");
    if (file == NULL) fail_msg("cannot read %s", f.path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    f.length = (size_t)ftell(file);
    rewind(file);
    assert_int_equal(arena_take(arena, f.length + 1, 1, "fixture", &f.bytes), 0);
    assert_int_equal(fread(f.bytes, 1, f.length, file), f.length);
    fclose(file);
    return f;
}
