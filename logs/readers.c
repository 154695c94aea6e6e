/* SPDX-License-Identifier: Apache-2.0
 * Both tables that LOG_READERS makes. */
#include "logs/readers.h"

#define FORMAT(symbol, name, title) {name, title},
#define READER(symbol, name, title) &log_reader_##symbol,

const struct log_format *log_formats(void) {
    static const struct log_format formats[] = {LOG_READERS(FORMAT){NULL, NULL}};
    return formats;
}

const struct log_reader *const *log_readers(void) {
    static const struct log_reader *const readers[] = {LOG_READERS(READER) NULL};
    return readers;
}
