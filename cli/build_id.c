/* SPDX-License-Identifier: Apache-2.0
 * Reads the notes of the program's own file, as ELF has them (System V ABI, program headers and
 * note sections). Invariant: what is not a note that fits is passed over, never read beyond. */
#include "cli/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"

#define SELF "/proc/self/exe"
#define NOTES 4096 /* the linker's notes take some hundred bytes */

static size_t padded(size_t length) {
    return (length + 3) & ~(size_t)3;
}

static int find_id(const unsigned char *notes, size_t length, char out[DIGEST_HEX]) {
    ElfW(Nhdr) head;
    for (size_t at = 0; length - at >= sizeof head;) {
        memcpy(&head, notes + at, sizeof head);
        at += sizeof head;
        if (head.n_namesz > length - at || head.n_descsz > length - at - head.n_namesz) return 0;
        const size_t name = padded(head.n_namesz), next = at + name + padded(head.n_descsz);
        const int is_id = head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
                          memcmp(notes + at, "GNU", 4) == 0;
        if (next > length) return 0;
        if (is_id && head.n_descsz > 0 && head.n_descsz < DIGEST_HEX / 2) {
            for (size_t i = 0; i < head.n_descsz; i++)
                snprintf(out + 2 * i, 3, "%02x", notes[at + name + i]);
            return 1;
        }
        at = next;
    }
    return 0;
}

static int read_id(int handle, char out[DIGEST_HEX]) {
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    unsigned char notes[NOTES];
    if (pread(handle, &head, sizeof head, 0) != (ssize_t)sizeof head) return 0;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof part) return 0;
    for (int i = 0; i < head.e_phnum; i++) {
        const off_t at = (off_t)(head.e_phoff + (size_t)i * sizeof part);
        if (pread(handle, &part, sizeof part, at) != (ssize_t)sizeof part) return 0;
        if (part.p_type != PT_NOTE || part.p_filesz > sizeof notes) continue;
        if (pread(handle, notes, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
            return 0;
        if (find_id(notes, part.p_filesz, out)) return 1;
    }
    return 0;
}

void build_id(char out[DIGEST_HEX]) {
    struct input input;
    out[0] = '\0';
    if (input_open(SELF, INPUT_FILE, SELF, "a program", &input) != STATUS_OK) return;
    const int found = read_id(input.descriptor, out);
    close(input.descriptor);
    if (!found && digest_file(SELF, out) != STATUS_OK) out[0] = '\0';
}
