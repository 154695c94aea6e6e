/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Files of torch.save that no torch wrote: every rule of the zip and of the pickle broken once, a
 * planted os.system, values that hold themselves, a file of 10 GB that is mostly a hole, and
 * seeded mutations of real files, each of which is refused or read, never a crash. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/macro.h"
#include "tests/base/helper_size.h"
#include "tests/checkpoints/helper_checkpoint.h"
#include "tests/checkpoints/helper_torch.h"

static struct helper_zip zip;

static enum status open_zip(enum torch_names names) {
    struct arena arena = ARENA_EMPTY;
    struct torch_file file;
    const enum status status =
        torch_file_open_bytes("x.pt", zip.bytes, zip.length, names, &arena, &file);
    if (status == STATUS_OK) torch_file_close(&file);
    arena_close(&arena);
    return status;
}

static void refuse_zip(const char *needle) {
    helper_require(open_zip(TORCH_STRICT), STATUS_INPUT, needle);
}

#define PROTO "\x80\x02"
/* ('storage', torch.FloatStorage, '0', 'cpu', 4) as a persistent id, and a tensor of it. */
#define TEXT(size, text) "X" size "\0\0\0" text
#define STORAGE_OF(key, count)                                                                     \
    "(" TEXT("\7", "storage") "ctorch\nFloatStorage\n" TEXT("\1", key) TEXT("\3", "cpu") "K" count \
                                                                                         "tQ"
#define TENSOR_OF(storage, offset, size, stride)                                                   \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage "K" offset "K" size "\x85K" stride "\x85\x89"   \
    "ccollections\nOrderedDict\n)RtR"

struct pickle_case {
    const char *bytes;
    size_t length;
    const char *needle; /* NULL: it is read */
};

#define CASE(text, needle)                                                                         \
    { text, sizeof(text) - 1, needle }

static void run_cases(const struct pickle_case *cases, size_t count, enum torch_names names) {
    for (size_t i = 0; i < count; i++) {
        helper_torch_make(&zip, cases[i].bytes, cases[i].length, 1);
        const enum status status = open_zip(names);
        if (cases[i].needle == NULL && status != STATUS_OK)
            fail_msg("case %zu: %s", i, status_text());
        if (cases[i].needle == NULL) continue;
        if (status == STATUS_OK) fail_msg("case %zu was read: %s", i, cases[i].needle);
        helper_require(status, STATUS_INPUT, cases[i].needle);
    }
}

static void validate_pickles(void **state) {
    (void)state;
    static const struct pickle_case cases[] = {
        CASE(PROTO "N.", NULL),
        CASE(PROTO "N", "expected the opcode STOP, got the end"),
        CASE("", "expected 2 more bytes, got 0"),
        CASE("N.", "expected the opcode PROTO first"),
        CASE("\x80\x04N.", "expected protocol 2, torch.save's default, got 4: load the file"),
        CASE(PROTO "NN.", "expected one value at the end, got 2"),
        CASE(PROTO ".", "expected one value at the end, got 0"),
        CASE(PROTO "(N.", "expected one value at the end"),
        CASE(PROTO "N.N", "expected the end of the pickle, got 1 bytes more"),
        CASE(PROTO "\xff.", "expected an opcode, got the byte 0xff"),
        CASE(PROTO "N0.", "offset 3 (POP): expected an opcode that torch.save writes"),
        CASE(PROTO "cos\nsystem\nS'true'\n\x85R.", "global \"os.system\": torch.load with"),
        CASE(PROTO "\x8c\2os\x8c\6system\x93.", "offset 2 (SHORT_BINUNICODE)"),
        CASE(PROTO "(ios\nsystem\n.", "offset 3 (INST): expected an opcode"),
        CASE(PROTO "I1\n.", "(INT)"),
        CASE(PROTO "\x8b\0\0\0\0.", "(LONG4)"),
        CASE(PROTO "cbuiltins\neval\n.", "global \"builtins.eval\""),
        CASE(PROTO "cargparse\nNamespace\n)\x81.",
             "global \"argparse.Namespace\": expected a name"),
        CASE(PROTO "cos\nsystem", "expected the end of a name"),
        CASE(PROTO "c\n\n.", "expected a name of 1 to 255 bytes, got 0"),
        CASE(PROTO "X\5\0\0\0ab.", "expected 5 more bytes, got 3"),
        CASE(PROTO "X\xff\xff\xff\xff.", "expected 4294967295 more bytes"),
        CASE(PROTO "X\2\0\0\0\xc3(.", "expected UTF-8, got other bytes at 0"),
        CASE(PROTO "X\3\0\0\0\xed\xa0\x80.", "expected UTF-8"),
        CASE(PROTO "X\3\0\0\0\xed\x9f\xbf.", NULL),
        CASE(PROTO "X\3\0\0\0\xe0\xa0\x80.", NULL),
        CASE(PROTO "X\3\0\0\0\xe0\x9f\x80.", "expected UTF-8"),
        CASE(PROTO "X\4\0\0\0\xf0\x90\x80\x80.", NULL),
        CASE(PROTO "X\4\0\0\0\xf0\x8f\x80\x80.", "expected UTF-8"),
        CASE(PROTO "X\4\0\0\0\xf4\x8f\xbf\xbf.", NULL),
        CASE(PROTO "X\4\0\0\0\xf4\x90\x80\x80.", "expected UTF-8"),
        CASE(PROTO "X\1\0\0\0\xff.", "expected UTF-8"),
        CASE(PROTO "\x8a\xff\1.", "expected 255 more bytes, got 2"),
        CASE(PROTO "a.", "expected a value on the stack, got none"),
        CASE(PROTO "K\1K\2a.", "expected a list below its members, got the whole number 1"),
        CASE(PROTO "](a.", "expected a value on the stack, got none"),
        CASE(PROTO "]t.", "expected a MARK before it, got none"),
        CASE(PROTO "}(K\1u.", "expected pairs of key and value, got 1 values"),
        CASE(PROTO "](K\1K\2u.", "expected a dict below its members, got a list"),
        CASE(PROTO "}(K\1NK\1Nu.", "each key of a dict once, got the whole number 1 twice"),
        CASE(PROTO "h\0.", "expected a memo number that was stored before, got 0"),
        CASE(PROTO "Nr\0\0\0\x7f.", "expected a memo number below the 2 opcodes so far"),
        CASE(PROTO "]q\0h\0a.", "one that grows: it could hold itself"),
        CASE(PROTO "]q\0]q\1h\0ah\1a.", "one that grows: it could hold itself"),
        CASE(PROTO "}q\0K\1h\0s.", "one that grows: it could hold itself"),
        CASE(PROTO "cnumpy\ndtype\n)Rq\0h\0\x85"
                   "b.",
             "expected the state of opaque \"numpy.dtype\" before it is stored"),
        CASE(PROTO "K\1)R.", "expected the name of what is made, got the whole number 1"),
        CASE(PROTO "ccollections\nOrderedDict\nNR.", "expected a tuple of arguments"),
        CASE(PROTO "ccollections\nOrderedDict\nN\x85R.",
             "expected nothing as argument 1, got None"),
        CASE(PROTO "ccollections\nOrderedDict\n)\x81.",
             "expected a class of the user's for NEWOBJ, got opaque \"collections.OrderedDict\""),
        CASE(PROTO "K\1)\x81.", "expected the name of what is made, got the whole number 1"),
        CASE(PROTO "ctorch\nFloatStorage\n)R.", "the name of a function or a class"),
        CASE(PROTO "K\1Nb.", "expected an object that has a state"),
        CASE(PROTO "NQ.", "expected ('storage', type, key, location"),
        CASE(PROTO STORAGE_OF("0", "\4") ".", NULL),
        CASE(PROTO STORAGE_OF("9", "\4") ".", "expected the member data/\"9\""),
        CASE(PROTO STORAGE_OF("0", "\5") ".", "expected 5 elements of 4 bytes, got 16 bytes"),
        CASE(PROTO TENSOR_OF(STORAGE_OF("0", "\4"), "\0", "\4", "\1") ".", NULL),
        CASE(PROTO TENSOR_OF(STORAGE_OF("0", "\4"), "\1", "\4", "\1") ".", "one that leaves it"),
        CASE(PROTO TENSOR_OF(STORAGE_OF("0", "\4"), "\0", "\2", "\4") ".", "one that leaves it"),
        CASE(PROTO TENSOR_OF(STORAGE_OF("0", "\4"), "\xff", "\0", "\1") ".", NULL),
        CASE(PROTO TENSOR_OF("N", "\0", "\4", "\1") ".", "expected a storage as argument 1, got N"),
        CASE(PROTO "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE_OF(
                 "0", "\4") "K\0K\4\x85K\1\x85"
                            "\x89N}" TEXT("\3", "neg") "\x88stR.",
             "expected no conjugate or negative bit as argument 7, got a dict"),
        CASE(PROTO
             "ctorch._utils\n_rebuild_tensor_v3\n(" STORAGE_OF("0", "\4") "K\0K\4\x85K\1\x85"
                                                                          "\x89Nctorch\nSize\ntR.",
             "expected a dtype as argument 7, got opaque \"torch.Size\""),
        CASE(PROTO "ctorch._utils\n_rebuild_tensor_v3\n(" STORAGE_OF(
                 "0", "\4") "K\0K\4\x85K\1\x85"
                            "\x89Nctorch\nuint16\ntR.",
             "expected an untyped storage as argument 1, got a storage"),
        CASE(PROTO "(" TEXT("\7", "storage") "ctorch\nFloatStorage\n" TEXT("\1", "0")
                 TEXT("\3", "cpu") "J\xff\xff\xff\xfftQ.",
             "expected ('storage', type, key, location"),
        CASE(PROTO "c_codecs\nencode\n" TEXT("\2", "\xc4\x80") TEXT("\6", "latin1") "\x86R.",
             "characters of one byte in latin1"),
        CASE(PROTO "c_codecs\nencode\n" TEXT("\1", "a") TEXT("\4", "zlib") "\x86R.",
             "the codec latin1"),
    };
    run_cases(cases, COUNT_OF(cases), TORCH_STRICT);
}

/* What is opaque for Lightning's sake is never called, and what reaches the system is refused. */
static void validate_opaque(void **state) {
    (void)state;
    static const struct pickle_case cases[] = {
        CASE(PROTO "cargparse\nNamespace\n)\x81}K\1K\2sb.", NULL),
        CASE(PROTO "cmine\nDict\n)R(K\1K\2uK\1a.", NULL),
        CASE(PROTO "cmine\nSelf\n)\x81q\0}K\1h\0sb.", NULL),
        CASE(PROTO "cos\nsystem\nX\4\0\0\0true\x85R.", "global \"os.system\": torch.load with"),
        CASE(PROTO "cos.path\njoin\n.", "global \"os.path.join\""),
        CASE(PROTO "c__builtin__\ngetattr\n.", "global \"__builtin__.getattr\""),
        CASE(PROTO "csubprocess\nPopen\n)\x81.", "global \"subprocess.Popen\""),
    };
    struct arena arena = ARENA_EMPTY;
    struct torch_file file;
    char shown[TORCH_SHOWN_SIZE];
    run_cases(cases, COUNT_OF(cases), TORCH_OPAQUE_NAMES);
    helper_torch_make(&zip, cases[0].bytes, cases[0].length, 0);
    assert_int_equal(
        torch_file_open_bytes("x.pt", zip.bytes, zip.length, TORCH_OPAQUE_NAMES, &arena, &file),
        STATUS_OK);
    torch_show(&file.root, shown);
    assert_string_equal(shown, "opaque \"argparse.Namespace\"");
    assert_int_equal(file.root.as.opaque->is_data, 0);
    arena_close(&arena);
}

static void validate_depth(void **state) {
    (void)state;
    unsigned char pickle[2 + 200 + 1] = {0x80, 2, ')'};
    for (size_t depth = 63; depth <= 64; depth++) {
        memset(pickle + 3, 0x85, depth);
        pickle[3 + depth] = '.';
        helper_torch_make(&zip, pickle, 4 + depth, 0);
        if (depth < 64)
            assert_int_equal(open_zip(TORCH_STRICT), STATUS_OK);
        else
            refuse_zip("expected at most 64 containers in each other");
    }
}

/* 4 million opcodes and one more. */
static void validate_steps(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    const size_t length = ((size_t)4 << 20) + 3;
    static struct helper_zip small;
    unsigned char *bytes = (unsigned char *)malloc(length + 4096);
    struct arena arena = ARENA_EMPTY;
    struct torch_file file;
    assert_non_null(bytes);
    memset(bytes, 'N', length + 4096);
    /* The pickle stands first in the file, so the header of an empty one is stretched. */
    helper_torch_make(&small, PROTO, 2, 0);
    const size_t begin = small.headers[0] + 30 + strlen("a/data.pkl");
    memcpy(bytes, small.bytes, begin + 2);
    memcpy(bytes + begin + length, small.bytes + begin + 2, small.length - begin - 2);
    const uint64_t more = length - 2;
    struct helper_zip *as = &small; /* patched in place, then copied behind the long pickle */
    const uint32_t sum = (uint32_t)crc32_z(0, bytes + begin, length);
    helper_zip_put(as, as->entries[0] + 16, 4, sum);
    helper_zip_put(as, as->entries[0] + 20, 4, length);
    helper_zip_put(as, as->entries[0] + 24, 4, length);
    helper_zip_put(as, as->entries[1] + 42, 4, as->headers[1] + more);
    const size_t wide = as->end - 76;
    helper_zip_put(as, wide + 48, 8, as->entries[0] + more);
    helper_zip_put(as, wide + 64, 8, wide + more);
    memcpy(bytes + begin + length, small.bytes + begin + 2, small.length - begin - 2);
    helper_require(
        torch_file_open_bytes("x.pt", bytes, small.length + more, TORCH_STRICT, &arena, &file),
        STATUS_INPUT, "expected at most 4194304 opcodes, got more");
    arena_close(&arena);
    free(bytes);
}

static void make_plain(int is_wide) {
    zip.length = zip.count = 0;
    helper_zip_add(&zip, "a/data.pkl", PROTO "N.", 4);
    helper_zip_add(&zip, "a/data/0", "0123456789abcdef", 16);
    helper_zip_add(&zip, "a/byteorder", "little", 6);
    helper_zip_end(&zip, is_wide);
}

struct zip_case {
    int is_wide;
    char base; /* h: local header, e: entry, z: zip64's end, n: the end */
    size_t member, at, width;
    uint64_t value;
    const char *needle;
};

static void validate_zips(void **state) {
    (void)state;
    static const struct zip_case cases[] = {
        {0, 'e', 1, 10, 2, 8,
         "member \"a/data/0\": expected a stored member, as torch.save writes"},
        {0, 'e', 1, 8, 2, 1, "got an encrypted member"},
        {0, 'e', 1, 20, 4, 15, "got 15 bytes for 16"},
        {0, 'e', 1, 42, 4, 0, "expected its own header to say what the directory says"},
        {0, 'e', 1, 42, 4, 0x7FFFFFFF, "before the directory at"},
        {0, 'e', 1, 42, 4, 0xFFFFFFFF, "before the directory at"},
        {0, 'e', 1, 0, 4, 0, "expected entry 2 of the directory"},
        {0, 'e', 1, 28, 2, 0xFFFF, "entry 2 of the directory leaves it"},
        {0, 'e', 1, 47, 1, 0, "expected a name without a NUL"},
        {0, 'h', 1, 8, 2, 8, "got another name or method"},
        {0, 'h', 1, 6, 2, 1, "got another name or method"},
        {0, 'h', 1, 31, 1, 'x', "got another name or method"},
        {0, 'h', 1, 28, 2, 0xFFFF, "bytes between its header and the directory, got 0"},
        {0, 'h', 0, 40, 1, 'x', "member data.pkl: expected the checksum"},
        {0, 'h', 2, 41, 6, 0x676962, "member byteorder: expected little-endian numbers"},
        {0, 'n', 0, 0, 4, 0, "got none of its end in the last"},
        {0, 'n', 0, 4, 2, 1, "expected a zip in one part"},
        {0, 'n', 0, 8, 4, 0x00040004, "expected at most 3 members in a directory"},
        {0, 'n', 0, 8, 4, 0x00020002, "got bytes of more behind them"},
        {0, 'n', 0, 8, 4, 0xFFFEFFFE, "expected at most"},
        {0, 'n', 0, 16, 4, 1, "that ends where the end record begins"},
        {0, 'n', 0, 20, 2, 1, "got none of its end"},
        {1, 'n', 0, 10, 2, 2, "expected two ends of a zip that agree"},
        {1, 'z', 0, 32, 8, 1, "expected two ends of a zip that agree"},
        {1, 'z', 0, 40, 8, 1, "that ends where the end record begins"},
        {1, 'z', 0, 48, 8, UINT64_MAX, "that ends where the end record begins"},
        {1, 'z', 0, 64, 8, UINT64_MAX,
         "expected a zip64 end record at offset 18446744073709551615"},
        {0, 'h', 0, 0, 4, 0, "expected a file of torch.save (a zip, which begins with PK)"},
        {0, 'h', 0, 0, 2, 0x0280, "got a bare pickle of protocol 2"},
        {0, 'h', 0, 0, 8, 0x9CFC6C0A8A0280, "got a bare pickle of protocol 2"},
    };
    for (int wide = 0; wide < 2; wide++) {
        make_plain(wide);
        if (open_zip(TORCH_STRICT) != STATUS_OK) fail_msg("%s", status_text());
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct zip_case *c = &cases[i];
        make_plain(c->is_wide);
        const size_t base = c->base == 'h'   ? zip.headers[c->member]
                            : c->base == 'e' ? zip.entries[c->member]
                            : c->base == 'z' ? zip.end - 76
                                             : zip.end;
        helper_zip_put(&zip, base + c->at, c->width, c->value);
        if (open_zip(TORCH_STRICT) == STATUS_OK) fail_msg("case %zu: %s", i, c->needle);
        refuse_zip(c->needle);
    }
}

static void start(const char *first, const char *second) {
    zip.length = zip.count = 0;
    helper_zip_add(&zip, first, PROTO "N.", 4);
    helper_zip_add(&zip, second, "0123", 4);
    helper_zip_end(&zip, 0);
}

static void validate_members(void **state) {
    (void)state;
    start("a/data.pkl", "a/data.pkl");
    refuse_zip("member \"a/data.pkl\": expected a name once, got it twice");
    start("a/data.pkl", "b/data/0");
    refuse_zip("expected a name in the folder \"a/\" of the others");
    start("data.pkl", "byteorder");
    refuse_zip("whose members stand in a folder, got another zip");
    start("a/x.npy", "a/y.npy");
    refuse_zip("got a zip without data.pkl");
    start("a/data.pkl", "a/constants.pkl");
    refuse_zip("got one of torch.jit.save: save the state_dict()");
    /* A directory in another order than the members is fine. */
    zip.length = zip.count = 0;
    helper_zip_add(&zip, "a/data.pkl", PROTO "N.", 4);
    helper_zip_add(&zip, "a/data/0", "0123", 4);
    helper_zip_add(&zip, "a/data/1", "0123", 4);
    helper_zip_end(&zip, 0);
    unsigned char entry[54];
    memcpy(entry, zip.bytes + zip.entries[1], sizeof entry);
    memcpy(zip.bytes + zip.entries[1], zip.bytes + zip.entries[2], sizeof entry);
    memcpy(zip.bytes + zip.entries[2], entry, sizeof entry);
    assert_int_equal(open_zip(TORCH_STRICT), STATUS_OK);
    /* A header inside another member's bytes: both lie in the file, and they overlap. */
    zip.length = zip.count = 0;
    helper_zip_add(&zip, "a/data.pkl", PROTO "N.", 4);
    const size_t outer = zip.length;
    helper_zip_add(&zip, "a/data/0", "", 0);
    helper_zip_add(&zip, "a/data/1", "0123", 4);
    helper_zip_end(&zip, 0);
    helper_zip_put(&zip, zip.entries[1] + 20, 8, (uint64_t)42 << 32 | 42);
    refuse_zip("member \"a/data/1\": expected bytes of its own");
    assert_true(outer > 0);
    /* Two zips one behind the other, as DCP writes them. */
    make_plain(1);
    const size_t one = zip.length;
    memcpy(zip.bytes + one, zip.bytes, one);
    zip.length = 2 * one;
    refuse_zip("one of several zips in one file (DCP's .distcp)");
    static const unsigned char legacy[] = {0x80, 2, 0x8A, 10, 0x6C, 0xFC, 0x9C, 0x46, 0xF9, 0x20};
    memcpy(zip.bytes, legacy, sizeof legacy);
    zip.length = sizeof legacy;
    refuse_zip("got its legacy format: load it with torch.load and save it again");
    zip.length = 0;
    refuse_zip("got no bytes");
    /* Cut short anywhere. */
    for (make_plain(1); zip.length-- > 0;)
        assert_int_equal(open_zip(TORCH_STRICT), STATUS_INPUT);
}

static size_t peak_kib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss;
}

#define HOLE ((uint64_t)10 << 30)

/* data/0 has 10 GB that stand on no disk; data/1 lies behind it. */
static void write_large(const char *path) {
    static const char pickle[] =
        PROTO "}" TEXT("\1", "t") TENSOR_OF(STORAGE_OF("1", "\4"), "\0", "\4", "\1") "s.";
    unsigned char wide[20] = {1, 0, 16, 0}, *extra = wide + 4;
    zip.length = zip.count = 0;
    helper_zip_add(&zip, "a/data.pkl", pickle, sizeof pickle - 1);
    helper_zip_add(&zip, "a/data/0", "", 0);
    const size_t before = zip.length;
    helper_zip_add(&zip, "a/data/1", "\0\0\x80?\0\0\0@\0\0@@\0\0\x80@", 16);
    const size_t directory = zip.length;
    const int descriptor = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, zip.bytes, before, 0), before);
    assert_int_equal(
        pwrite(descriptor, zip.bytes + before, directory - before, (off_t)(before + HOLE)),
        directory - before);
    helper_zip_end(&zip, 1);
    /* The second entry's size goes into a zip64 field, and so does the third entry's offset. */
    unsigned char out[1024];
    size_t length = 0;
    for (size_t i = 0; i < 3; i++) {
        const size_t at = zip.entries[i], end = i == 2 ? zip.end - 76 : zip.entries[i + 1];
        if (i == 1) helper_zip_put(&zip, at + 20, 8, UINT64_MAX);
        if (i == 2) helper_zip_put(&zip, at + 42, 4, 0xFFFFFFFFu);
        helper_zip_put(&zip, at + 30, 2, i == 0 ? 0 : i == 1 ? 20 : 12);
        memcpy(out + length, zip.bytes + at, end - at);
        length += end - at;
        if (i == 0) continue;
        wide[2] = i == 1 ? 16 : 8;
        for (size_t k = 0; k < 16; k++)
            extra[k] = (unsigned char)((i == 1 ? HOLE : zip.headers[2] + HOLE) >> (8 * (k % 8)));
        memcpy(out + length, wide, i == 1 ? 20 : 12);
        length += i == 1 ? 20 : 12;
    }
    const size_t end = zip.end - 76, size = length;
    helper_zip_put(&zip, end + 40, 8, size);
    helper_zip_put(&zip, end + 48, 8, directory + HOLE);
    helper_zip_put(&zip, end + 64, 8, directory + HOLE + size);
    memcpy(out + length, zip.bytes + end, zip.length - end);
    length += zip.length - end;
    assert_int_equal(pwrite(descriptor, out, length, (off_t)(directory + HOLE)), length);
    assert_int_equal(close(descriptor), 0);
}

static void verify_large_file(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct torch_file file;
    struct torch_place root, t;
    const struct torch_tensor *tensor;
    struct safetensors_tensor rows;
    struct stat info;
    float numbers[4];
    write_large("large.pt");
    assert_int_equal(stat("large.pt", &info), 0);
    if ((uint64_t)info.st_blocks * 512 > ((uint64_t)1 << 20)) skip(); /* no sparse files here */
    const size_t before = peak_kib();
    if (torch_file_open("large.pt", TORCH_STRICT, &arena, &file) != STATUS_OK)
        fail_msg("%s", status_text());
    root = torch_root(&file);
    assert_int_equal(torch_key(&root, "t", &t), STATUS_OK);
    assert_int_equal(torch_tensor_of(&t, &tensor), STATUS_OK);
    assert_int_equal(torch_tensor_rows(&file, tensor, "t", &arena, &rows), STATUS_OK);
    assert_int_equal(safetensors_numbers(&rows, 0, 4, numbers), STATUS_OK);
    assert_true(numbers[0] == 1.0f && numbers[1] == 2.0f && numbers[3] == 4.0f);
    assert_true(file.mapped.length > HOLE);
    assert_true(peak_kib() - before < 4096);
    torch_file_close(&file);
    arena_close(&arena);
    assert_int_equal(unlink("large.pt"), 0);
}

/* 10,000 in the nightly run, some hundred else: each is refused with a text or read to the end. */
static void verify_mutations(void **state) {
    (void)state;
    static const char *const names[] = {"plain_adamw_float32", "views", "rng_state", "numbers",
                                        "torch_things"};
    const size_t count = helper_size(200, 400, 10000);
    size_t refused = 0;
    FILE *null = fopen("/dev/null", "w");
    assert_non_null(null);
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_EMPTY;
        struct torch_file file;
        char path[1024];
        size_t length;
        snprintf(path, sizeof path, TWINSTEP_SOURCE_DIR "/tests/golden/foreign/torch/%s.pt",
                 names[i % COUNT_OF(names)]);
        unsigned char *bytes = helper_read(path, &length);
        helper_torch_mutate(bytes, length, i);
        const enum torch_names which = i % 2 ? TORCH_STRICT : TORCH_OPAQUE_NAMES;
        if (torch_file_open_bytes("m", bytes, length, which, &arena, &file) == STATUS_OK) {
            helper_torch_list(&file, null);
        } else {
            refused++;
            assert_true(strncmp(status_text(), "m: ", 3) == 0);
        }
        arena_close(&arena);
        free(bytes);
    }
    fclose(null);
    print_message("%zu mutations, %zu refused\n", count, refused);
    assert_true(refused > count / 4 && refused < count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_pickles),  cmocka_unit_test(validate_opaque),
        cmocka_unit_test(validate_depth),    cmocka_unit_test(validate_steps),
        cmocka_unit_test(validate_zips),     cmocka_unit_test(validate_members),
        cmocka_unit_test(verify_large_file), cmocka_unit_test(verify_mutations),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
