/* SPDX-License-Identifier: Apache-2.0
 * Inputs of the fuzz targets that read HDF5: not a file, but edits of one of a few committed
 * traces.
 *
 * A file of 500 KB whose every object carries a checksum gives a fuzzer nothing: whatever it
 * changes is refused at the first look. So an input names a trace and what is changed in it, most
 * of it in HDF5's own structures, and the checksums of these are made anew afterwards. Byte 0 is
 * the trace, byte 1 its flags, then records of 8 bytes (edited.c). Inputs are short, so corpora
 * are, too. */
#ifndef TWINSTEP_TESTS_FUZZ_EDITED_H
#define TWINSTEP_TESTS_FUZZ_EDITED_H

#include <stddef.h>
#include <stdint.h>

#define EDITED_LIVE 1 /* a flag: a writer has the file open for live readers */

/* Makes the file that an input stands for; the path is valid until the next call. NULL: the input
 * is too short to stand for one. */
const char *edited_file(const uint8_t *data, size_t size);

/* Puts bytes into a file of their own; the path is valid until the next call with that index. */
const char *edited_plain(int index, const void *data, size_t size);

#endif
