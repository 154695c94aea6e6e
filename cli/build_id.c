/* SPDX-License-Identifier: Apache-2.0
 * Reads the notes of the program in memory, as ELF has them (System V ABI, program headers and note
 * sections), so that no file has to be opened. Invariant: what is not a note that fits is passed
 * over, never read beyond. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "cli/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

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

struct search {
    char *out;
    int found;
};

/* The first object of the walk is the program itself, and the walk ends with it. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *const search = (struct search *)data;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && !search->found; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_NOTE)
            search->found = find_id((const unsigned char *)(info->dlpi_addr + part->p_vaddr),
                                    part->p_memsz, search->out);
    }
    return 1;
}

enum status build_id(char out[DIGEST_HEX]) {
    struct search search = {out, 0};
    out[0] = '\0';
    dl_iterate_phdr(look_at_program, &search);
    return search.found ? STATUS_OK : digest_file("/proc/self/exe", out);
}
