/* SPDX-License-Identifier: Apache-2.0
 * Which characters a name in a trace may hold. It is a file of its own because the library that
 * writes traces reads them, too, and needs this and nothing else of what looks at strangers' files.
 */
#include "determinism/trace/trace_look.h"

size_t look_character(const char *text) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000}; /* else a shorter form exists */
    const uint8_t *byte = (const uint8_t *)text;
    const uint8_t first = byte[0];
    if (first < 0x80) return first >= 0x20 && first != 0x7f;
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    uint32_t value = first & (0x7fu >> length);
    if (first < 0xc0 || first > 0xf7) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (byte[i] & 0x3fu);
    }
    const int surrogate = value >= 0xd800 && value <= 0xdfff;
    return value < least[length] || value < 0xa0 || value > 0x10ffff || surrogate ? 0 : length;
}

enum status reader_check_name(const struct reader *reader, const char *what, const char *name) {
    size_t length;
    if (reader->file.foreign) return STATUS_OK;
    for (; *name != '\0'; name += length) {
        length = look_character(name);
        if (length == 0)
            FAIL(STATUS_INPUT,
                 "%s: damaged, or not a trace: %s: expected a name of printable characters, got "
                 "byte 0x%02x in it",
                 reader->file.name, what, (unsigned)(unsigned char)*name);
    }
    return STATUS_OK;
}
