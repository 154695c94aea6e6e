/* SPDX-License-Identifier: Apache-2.0
 * The directory of a zip that torch.save wrote. Two programs that read one zip differently are how
 * a file shows one face to a scanner and another to a reader, so everything that could be read in
 * two ways is refused: overlapping members, a name twice, two ends that disagree, bytes before the
 * zip.
 *
 * Invariant: every member of an open zip lies inside the bytes. */
#include "checkpoints/torch_private.h"

#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"

#include <zlib.h>

#include <inttypes.h>
#include <string.h>

#define END_SIZE 22u
#define END64_SIZE 56u
#define LOCATOR_SIZE 20u
#define ENTRY_SIZE 46u
#define LOCAL_SIZE 30u
#define SAVED_BY_JIT                                                                               \
    "expected a file of torch.save, got one of torch.jit.save: save the state_dict() of its "      \
    "module"
#define SAVE_AGAIN "load it with torch.load and save it again with torch.save"

struct directory {
    struct torch_zip *zip;
    struct arena *arena;
    uint64_t begin, size, count;
    struct torch_member *members; /* in the order of the directory */
};

static uint64_t little(const unsigned char *bytes, size_t width) {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static int signed_as(const unsigned char *bytes, unsigned char third, unsigned char fourth) {
    return bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == third && bytes[3] == fourth;
}

int torch_file_is_zip(const unsigned char *bytes, size_t length) {
    return length >= 4 && signed_as(bytes, 3, 4);
}

int torch_file_is_legacy(const unsigned char *bytes, size_t length) {
    static const unsigned char magic[] = {0x80, 2, 0x8A, 10, 0x6C, 0xFC, 0x9C, 0x46, 0xF9};
    return length >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

/* Says what a file is that is no zip. */
static enum status refuse_other(const struct torch_zip *zip) {
    if (torch_file_is_legacy(zip->bytes, zip->length))
        FAIL(STATUS_INPUT,
             "%s: expected a file of torch.save as it is since torch 1.6 (a zip), got its legacy "
             "format: " SAVE_AGAIN,
             zip->path);
    if (zip->length >= 2 && zip->bytes[0] == 0x80 && zip->bytes[1] <= 5)
        FAIL(STATUS_INPUT,
             "%s: expected a file of torch.save (a zip), got a bare pickle of protocol %u: load it "
             "as its writer does and save it with torch.save",
             zip->path, (unsigned)zip->bytes[1]);
    FAIL(STATUS_INPUT, "%s: expected a file of torch.save (a zip, which begins with PK), got %s",
         zip->path, zip->length == 0 ? "no bytes" : "other bytes");
}

/* Finds the record at the end: the last one whose comment reaches the end of the file. */
static enum status find_end(const struct torch_zip *zip, size_t *out) {
    const size_t most = zip->length < END_SIZE + 65535 ? zip->length : END_SIZE + 65535;
    for (size_t back = END_SIZE; back <= most; back++) {
        const unsigned char *at = zip->bytes + zip->length - back;
        if (!signed_as(at, 5, 6) || little(at + 20, 2) != back - END_SIZE) continue;
        *out = zip->length - back;
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT,
         "%s: expected a zip, got none of its end in the last %zu of %zu bytes: is the file cut "
         "short?",
         zip->path, most, zip->length);
}

/* Whether a field of 16 or 32 bits agrees with that of 64, or says that it left it the word. */
static int agrees(uint64_t narrow, size_t width, uint64_t wide) {
    return narrow == wide || narrow == (width == 2 ? 0xFFFFu : 0xFFFFFFFFu);
}

/* torch writes this record right before its locator. A locator that leads elsewhere may lead into
 * another zip in the same file. */
static enum status read_end64(struct directory *directory, size_t end, size_t *out_stop) {
    const struct torch_zip *zip = directory->zip;
    const unsigned char *bytes = zip->bytes, *narrow = bytes + end;
    const uint64_t at = little(bytes + end - LOCATOR_SIZE + 8, 8);
    if (end < LOCATOR_SIZE + END64_SIZE || at != end - LOCATOR_SIZE - END64_SIZE ||
        !signed_as(bytes + at, 6, 6))
        FAIL(STATUS_INPUT,
             "%s: expected a zip64 end record at offset %" PRIu64 ", which its locator names: is "
             "the file cut short, or one of several zips in one file (DCP's .distcp)?",
             zip->path, at);
    const unsigned char *wide = bytes + at;
    directory->count = little(wide + 32, 8);
    directory->size = little(wide + 40, 8);
    directory->begin = little(wide + 48, 8);
    if (!agrees(little(narrow + 10, 2), 2, directory->count) ||
        !agrees(little(narrow + 12, 4), 4, directory->size) ||
        !agrees(little(narrow + 16, 4), 4, directory->begin) ||
        little(wide + 24, 8) != directory->count || little(wide + 16, 8) != 0)
        FAIL(STATUS_INPUT, "%s: expected two ends of a zip that agree, got others: " SAVE_AGAIN,
             zip->path);
    *out_stop = (size_t)at;
    return STATUS_OK;
}

static enum status find_directory(struct directory *directory) {
    const struct torch_zip *zip = directory->zip;
    size_t end = 0, stop = 0;
    TRY(find_end(zip, &end));
    const unsigned char *at = zip->bytes + end;
    if (end >= LOCATOR_SIZE && signed_as(at - LOCATOR_SIZE, 6, 7)) {
        TRY(read_end64(directory, end, &stop));
    } else {
        directory->count = little(at + 10, 2);
        directory->size = little(at + 12, 4);
        directory->begin = little(at + 16, 4);
        stop = end;
        if (little(at + 4, 4) != 0 || little(at + 8, 2) != directory->count)
            FAIL(STATUS_INPUT, "%s: expected a zip in one part, got one of several", zip->path);
    }
    if (directory->begin > stop || directory->size != stop - directory->begin)
        FAIL(STATUS_INPUT,
             "%s: expected a central directory of %" PRIu64 " bytes at offset %" PRIu64
             " that ends where the end record begins, at %zu: is this one of several zips in one "
             "file (DCP's .distcp)?",
             zip->path, directory->size, directory->begin, stop);
    if (directory->count > directory->size / ENTRY_SIZE)
        FAIL(STATUS_INPUT,
             "%s: expected at most %" PRIu64 " members in a directory of %" PRIu64
             " bytes, got %" PRIu64,
             zip->path, directory->size / ENTRY_SIZE, directory->size, directory->count);
    return STATUS_OK;
}

#define MEMBER_FAIL(directory, member, ...)                                                        \
    return status_prefix(status_fail(STATUS_INPUT, __VA_ARGS__), "%s: member %s",                  \
                         (directory)->zip->path, strict_quote((member)->name).text)

/* Replaces the sizes and the offset that the 32-bit fields leave to the zip64 field. */
static enum status read_wide(const struct directory *directory, const struct torch_member *member,
                             const unsigned char *extra, size_t length, uint64_t sizes[3]) {
    while (length >= 4) {
        const size_t inside = (size_t)little(extra + 2, 2);
        if (inside > length - 4) break;
        if (little(extra, 2) == 1) {
            size_t at = 0;
            for (int i = 0; i < 3; i++) {
                if (sizes[i] != 0xFFFFFFFFu) continue;
                if (inside - at < 8)
                    MEMBER_FAIL(directory, member,
                                "expected a zip64 field with what is too large "
                                "for 32 bits, got one of %zu bytes",
                                inside);
                sizes[i] = little(extra + 4 + at, 8);
                at += 8;
            }
            return STATUS_OK;
        }
        extra += 4 + inside;
        length -= 4 + inside;
    }
    return STATUS_OK;
}

/* Finds the data behind the local header, whose name must be the directory's. */
static enum status find_data(const struct directory *directory, struct torch_member *member) {
    const struct torch_zip *zip = directory->zip;
    const size_t name_length = strlen(member->name);
    if (member->header > directory->begin || directory->begin - member->header < LOCAL_SIZE ||
        !signed_as(zip->bytes + member->header, 3, 4))
        MEMBER_FAIL(directory, member,
                    "expected its header at offset %" PRIu64 ", before the directory at %" PRIu64
                    ", got none",
                    member->header, directory->begin);
    const unsigned char *local = zip->bytes + member->header;
    const uint64_t room = directory->begin - member->header - LOCAL_SIZE;
    const uint64_t before = little(local + 26, 2) + little(local + 28, 2);
    if (little(local + 8, 2) != 0 || (little(local + 6, 2) & 1) != 0 ||
        little(local + 26, 2) != name_length || name_length > room ||
        memcmp(local + LOCAL_SIZE, member->name, name_length) != 0)
        MEMBER_FAIL(directory, member,
                    "expected its own header to say what the directory says, "
                    "got another name or method");
    if (before > room || member->length > room - before)
        MEMBER_FAIL(directory, member,
                    "expected %" PRIu64 " bytes between its header and the directory, got %" PRIu64
                    ": is the file cut short?",
                    member->length, before > room ? 0 : room - before);
    member->bytes = local + LOCAL_SIZE + before;
    return STATUS_OK;
}

static enum status check_entry(const struct directory *directory, const unsigned char *entry,
                               struct torch_member *member) {
    const uint64_t flags = little(entry + 8, 2), method = little(entry + 10, 2);
    const size_t name_length = (size_t)little(entry + 28, 2);
    uint64_t sizes[3] = {little(entry + 24, 4), little(entry + 20, 4), little(entry + 42, 4)};
    if (strlen(member->name) != name_length)
        MEMBER_FAIL(directory, member, "expected a name without a NUL");
    if ((flags & 1) != 0)
        MEMBER_FAIL(directory, member, "expected plain bytes, got an encrypted member");
    if (method != 0 && strstr(member->name, "/code/") != NULL)
        FAIL(STATUS_INPUT, "%s: " SAVED_BY_JIT, directory->zip->path);
    if (method != 0)
        MEMBER_FAIL(directory, member,
                    "expected a stored member, as torch.save writes it, got "
                    "%s: " SAVE_AGAIN,
                    method == 8 ? "a deflated one" : "a packed one");
    TRY(read_wide(directory, member, entry + ENTRY_SIZE + name_length,
                  (size_t)little(entry + 30, 2), sizes));
    if (sizes[0] != sizes[1])
        MEMBER_FAIL(directory, member,
                    "expected a stored member to be as long as it was, got %" PRIu64
                    " bytes for %" PRIu64,
                    sizes[1], sizes[0]);
    member->length = sizes[0];
    member->header = sizes[2];
    member->checksum = (uint32_t)little(entry + 16, 4);
    return find_data(directory, member);
}

static enum status read_entries(struct directory *directory) {
    const struct torch_zip *zip = directory->zip;
    uint64_t at = 0;
    for (uint64_t i = 0; i < directory->count; i++) {
        const unsigned char *entry = zip->bytes + directory->begin + at;
        const uint64_t room = directory->size - at;
        if (room < ENTRY_SIZE || !signed_as(entry, 1, 2))
            FAIL(STATUS_INPUT, "%s: expected entry %" PRIu64 " of the directory at offset %" PRIu64,
                 zip->path, i + 1, directory->begin + at);
        const uint64_t length =
            ENTRY_SIZE + little(entry + 28, 2) + little(entry + 30, 2) + little(entry + 32, 2);
        char *name;
        if (length > room)
            FAIL(STATUS_INPUT, "%s: entry %" PRIu64 " of the directory leaves it", zip->path,
                 i + 1);
        TRY(arena_text(directory->arena, (const char *)entry + ENTRY_SIZE,
                       (size_t)little(entry + 28, 2), &name));
        directory->members[i].name = name;
        TRY(check_entry(directory, entry, &directory->members[i]));
        at += length;
    }
    if (at != directory->size)
        FAIL(STATUS_INPUT,
             "%s: expected %" PRIu64 " members in the directory, got bytes of more behind them",
             zip->path, directory->count);
    return STATUS_OK;
}

static int compare_headers(const void *a, const void *b) {
    const uint64_t left = ((const struct torch_member *)a)->header;
    const uint64_t right = ((const struct torch_member *)b)->header;
    return left < right ? -1 : left > right;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct torch_member *)a)->name, ((const struct torch_member *)b)->name);
}

static enum status check_places(const struct directory *directory, const void **sorted) {
    TRY(order_pointers(sorted, directory->count, compare_headers, directory->arena));
    for (size_t i = 1; i < directory->count; i++) {
        const struct torch_member *before = (const struct torch_member *)sorted[i - 1];
        const struct torch_member *member = (const struct torch_member *)sorted[i];
        if (before->bytes + before->length > directory->zip->bytes + member->header)
            MEMBER_FAIL(directory, member,
                        "expected bytes of its own from offset %" PRIu64
                        " on, got some that belong to member %s, too",
                        member->header, strict_quote(before->name).text);
    }
    TRY(order_pointers(sorted, directory->count, compare_names, directory->arena));
    for (size_t i = 1; i < directory->count; i++) {
        const struct torch_member *member = (const struct torch_member *)sorted[i];
        if (compare_names(sorted[i - 1], member) == 0)
            MEMBER_FAIL(directory, member, "expected a name once, got it twice");
    }
    return STATUS_OK;
}

const struct torch_member *torch_zip_find(const struct torch_zip *zip, const char *name) {
    const size_t stem = strlen(zip->stem);
    size_t low = 0, high = zip->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int side = strcmp(name, zip->members[middle]->name + stem);
        if (side == 0) return zip->members[middle];
        if (side < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Finds the archive's name, which every member's name begins with. */
static enum status find_stem(const struct directory *directory) {
    struct torch_zip *zip = directory->zip;
    const char *slash = zip->count == 0 ? NULL : strchr(directory->members[0].name, '/');
    char *stem;
    if (slash == NULL)
        FAIL(STATUS_INPUT,
             "%s: expected a file of torch.save, whose members stand in a folder, got another zip",
             zip->path);
    const size_t length = (size_t)(slash - directory->members[0].name) + 1;
    TRY(arena_text(directory->arena, directory->members[0].name, length, &stem));
    zip->stem = stem;
    for (size_t i = 0; i < zip->count; i++)
        if (strncmp(zip->members[i]->name, stem, length) != 0)
            MEMBER_FAIL(directory, zip->members[i],
                        "expected a name in the folder %s of the others, got another",
                        strict_quote(stem).text);
    return STATUS_OK;
}

static enum status check_contents(const struct torch_zip *zip) {
    const struct torch_member *order = torch_zip_find(zip, "byteorder");
    const struct torch_member *pickle = torch_zip_find(zip, "data.pkl");
    if (pickle == NULL)
        FAIL(STATUS_INPUT, "%s: expected a file of torch.save, got a zip without data.pkl",
             zip->path);
    if (torch_zip_find(zip, "constants.pkl") != NULL)
        FAIL(STATUS_INPUT, "%s: " SAVED_BY_JIT, zip->path);
    if (order != NULL && (order->length != 6 || memcmp(order->bytes, "little", 6) != 0))
        FAIL(STATUS_INPUT,
             "%s: member byteorder: expected little-endian numbers, got others: " SAVE_AGAIN
             " on a little-endian machine",
             zip->path);
    if (crc32_z(0, pickle->bytes, (size_t)pickle->length) != pickle->checksum)
        FAIL(STATUS_INPUT,
             "%s: member data.pkl: expected the checksum %08" PRIx32
             " of the directory, got another: the file is damaged",
             zip->path, pickle->checksum);
    return STATUS_OK;
}

enum status torch_zip_open(const char *path, const unsigned char *bytes, size_t length,
                           struct arena *arena, struct torch_zip *out) {
    struct directory directory = {.zip = out, .arena = arena};
    const void **sorted;
    *out = (struct torch_zip){.path = path, .bytes = bytes, .length = length};
    if (!torch_file_is_zip(bytes, length)) return refuse_other(out);
    TRY(find_directory(&directory));
    TRY(arena_take(arena, directory.count, sizeof *directory.members, "members",
                   &directory.members));
    TRY(read_entries(&directory));
    out->count = (size_t)directory.count;
    TRY(arena_take(arena, out->count, sizeof *sorted, "members", &sorted));
    for (size_t i = 0; i < out->count; i++)
        sorted[i] = &directory.members[i];
    TRY(check_places(&directory, sorted));
    TRY(arena_take(arena, out->count, sizeof *out->members, "members", &out->members));
    for (size_t i = 0; i < out->count; i++)
        out->members[i] = (const struct torch_member *)sorted[i];
    TRY(find_stem(&directory));
    return check_contents(out);
}
