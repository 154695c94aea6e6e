/* SPDX-License-Identifier: Apache-2.0
 * The names that a pickle may hold, and those of its opcodes.
 *
 * Safety does not rest on these tables: no name is ever called, whatever it is. A name outside them
 * is an error because a value that it would have made cannot be read, and so that a file which
 * would run something in torch.load(weights_only=False) is called what it is. */
#include "checkpoints/torch_private.h"

#include "checkpoints/strict_json.h"

#include <string.h>

struct known_name {
    const char *module, *name;
    enum torch_callee callee;
    enum safetensors_dtype dtype;
};

#define NONE SAFETENSORS_DTYPES

static const struct known_name known[] = {
    {"torch._utils", "_rebuild_tensor_v2", CALLEE_TENSOR, NONE},
    {"torch._utils", "_rebuild_tensor_v3", CALLEE_TENSOR_V3, NONE},
    {"torch._utils", "_rebuild_parameter", CALLEE_PARAMETER, NONE},
    {"torch._utils", "_rebuild_parameter_with_state", CALLEE_PARAMETER, NONE},
    {"torch._tensor", "_rebuild_from_type_v2", CALLEE_FROM_TYPE, NONE},
    {"torch._utils", "_rebuild_wrapper_subclass", CALLEE_USER, NONE},
    {"torch", "Tensor", CALLEE_TENSOR_TYPE, NONE},
    {"torch.nn.parameter", "Parameter", CALLEE_TENSOR_TYPE, NONE},
    {"torch.nn.parameter", "Buffer", CALLEE_TENSOR_TYPE, NONE},
    {"collections", "OrderedDict", CALLEE_ORDERED_DICT, NONE},
    {"torch", "Size", CALLEE_SIZE, NONE},
    {"collections", "Counter", CALLEE_COUNTER, NONE},
    {"_codecs", "encode", CALLEE_ENCODE, NONE},
    {"__builtin__", "bytes", CALLEE_BYTES, NONE},
    {"torch", "FloatStorage", CALLEE_STORAGE, SAFETENSORS_F32},
    {"torch", "DoubleStorage", CALLEE_STORAGE, SAFETENSORS_F64},
    {"torch", "HalfStorage", CALLEE_STORAGE, SAFETENSORS_F16},
    {"torch", "BFloat16Storage", CALLEE_STORAGE, SAFETENSORS_BF16},
    {"torch", "LongStorage", CALLEE_STORAGE, SAFETENSORS_I64},
    {"torch", "IntStorage", CALLEE_STORAGE, SAFETENSORS_I32},
    {"torch", "ShortStorage", CALLEE_STORAGE, SAFETENSORS_I16},
    {"torch", "CharStorage", CALLEE_STORAGE, SAFETENSORS_I8},
    {"torch", "ByteStorage", CALLEE_STORAGE, SAFETENSORS_U8},
    {"torch", "BoolStorage", CALLEE_STORAGE, SAFETENSORS_BOOL},
    {"torch", "ComplexFloatStorage", CALLEE_STORAGE, SAFETENSORS_C64},
    {"torch.storage", "UntypedStorage", CALLEE_UNTYPED_STORAGE, NONE},
    {"torch", "float32", CALLEE_DTYPE, SAFETENSORS_F32},
    {"torch", "float64", CALLEE_DTYPE, SAFETENSORS_F64},
    {"torch", "float16", CALLEE_DTYPE, SAFETENSORS_F16},
    {"torch", "bfloat16", CALLEE_DTYPE, SAFETENSORS_BF16},
    {"torch", "float8_e4m3fn", CALLEE_DTYPE, SAFETENSORS_F8_E4M3},
    {"torch", "float8_e5m2", CALLEE_DTYPE, SAFETENSORS_F8_E5M2},
    {"torch", "int64", CALLEE_DTYPE, SAFETENSORS_I64},
    {"torch", "int32", CALLEE_DTYPE, SAFETENSORS_I32},
    {"torch", "int16", CALLEE_DTYPE, SAFETENSORS_I16},
    {"torch", "int8", CALLEE_DTYPE, SAFETENSORS_I8},
    {"torch", "uint64", CALLEE_DTYPE, SAFETENSORS_U64},
    {"torch", "uint32", CALLEE_DTYPE, SAFETENSORS_U32},
    {"torch", "uint16", CALLEE_DTYPE, SAFETENSORS_U16},
    {"torch", "uint8", CALLEE_DTYPE, SAFETENSORS_U8},
    {"torch", "bool", CALLEE_DTYPE, SAFETENSORS_BOOL},
    {"torch", "complex64", CALLEE_DTYPE, SAFETENSORS_C64},
    /* Plain data that generators' states hold, beside a tensor: arguments and state are kept. */
    {"torch", "device", CALLEE_DATA, NONE},
    {"__builtin__", "set", CALLEE_DATA, NONE},
    {"__builtin__", "frozenset", CALLEE_DATA, NONE},
    {"__builtin__", "complex", CALLEE_DATA, NONE},
    {"__builtin__", "xrange", CALLEE_DATA, NONE},
    {"__builtin__", "slice", CALLEE_DATA, NONE},
    {"__builtin__", "bytearray", CALLEE_DATA, NONE},
    {"__builtin__", "dict", CALLEE_DATA, NONE}, /* what a defaultdict makes */
    {"__builtin__", "list", CALLEE_DATA, NONE},
    {"__builtin__", "tuple", CALLEE_DATA, NONE},
    {"__builtin__", "object", CALLEE_DATA, NONE},
    {"__builtin__", "str", CALLEE_DATA, NONE},
    {"__builtin__", "int", CALLEE_DATA, NONE},
    {"__builtin__", "long", CALLEE_DATA, NONE},
    {"__builtin__", "float", CALLEE_DATA, NONE},
    {"__builtin__", "bool", CALLEE_DATA, NONE},
    {"numpy", "ndarray", CALLEE_DATA, NONE},
    {"numpy", "dtype", CALLEE_DATA, NONE},
    {"numpy.core.multiarray", "_reconstruct", CALLEE_DATA, NONE},
    {"numpy.core.multiarray", "scalar", CALLEE_DATA, NONE},
    {"numpy._core.multiarray", "_reconstruct", CALLEE_DATA, NONE},
    {"numpy._core.multiarray", "scalar", CALLEE_DATA, NONE},
};

/* Modules whose names have no business in a checkpoint: what they make can run a command, open a
 * file or load code. Names of the builtins that make data stand in `known`. */
static const char *const reaching[] = {
    "os",         "posix",           "nt",       "subprocess",
    "sys",        "__builtin__",     "builtins", "pty",
    "importlib",  "runpy",           "code",     "codeop",
    "shutil",     "socket",          "ctypes",   "pickle",
    "cPickle",    "_pickle",         "operator", "commands",
    "webbrowser", "platform",        "timeit",   "pdb",
    "bdb",        "multiprocessing", "asyncio",  "threading",
};

static int reaches_system(const char *module) {
    const size_t length = strcspn(module, ".");
    for (size_t i = 0; i < COUNT_OF(reaching); i++)
        if (strlen(reaching[i]) == length && strncmp(module, reaching[i], length) == 0) return 1;
    return 0;
}

/* Classes of tensors that hold a part of one, or other numbers than they stand for. */
static const struct {
    const char *part, *advice;
} tensor_classes[] = {
    {"DTensor", TORCH_SHARDED_ADVICE},
    {"ShardedTensor", TORCH_SHARDED_ADVICE},
    {"torchao.", "its numbers are quantised, so nothing can be read back from them: train with "
                 "the optimizer in 32 bits"},
};

const char *torch_class_advice(const char *name) {
    for (size_t i = 0; i < COUNT_OF(tensor_classes); i++)
        if (strstr(name, tensor_classes[i].part) != NULL) return tensor_classes[i].advice;
    return NULL;
}

static enum status refuse(const struct torch_machine *machine, const char *whole,
                          const char *module) {
    if (reaches_system(module))
        MACHINE_FAIL(machine,
                     "global %s: torch.load with weights_only=False would call it, and it can run "
                     "anything: do not load this file unless you trust who wrote it (nothing of "
                     "it was executed here)",
                     whole);
    const char *advice = torch_class_advice(whole);
    if (advice != NULL)
        MACHINE_FAIL(machine, "global %s: expected a whole tensor, got this class: %s", whole,
                     advice);
    MACHINE_FAIL(machine,
                 "global %s: expected a name that makes a tensor, a container or a number: load "
                 "the file with torch.load, and save the state dicts in it alone (nothing of it "
                 "was executed here)",
                 whole);
}

enum status torch_global(const struct torch_machine *machine, const char *module, const char *name,
                         struct torch_value *out) {
    struct torch_opaque *opaque;
    char *whole;
    size_t i = 0;
    while (i < COUNT_OF(known) &&
           (strcmp(known[i].module, module) != 0 || strcmp(known[i].name, name) != 0))
        i++;
    TRY(arena_format(machine->arena, &whole, "%s.%s", module, name));
    if (i == COUNT_OF(known) && (machine->names == TORCH_STRICT || reaches_system(module)))
        return refuse(machine, strict_quote(whole).text, module);
    TRY(arena_take(machine->arena, 1, sizeof *opaque, "name", &opaque));
    opaque->name = whole;
    opaque->callee = (int)(i == COUNT_OF(known) ? CALLEE_USER : known[i].callee);
    opaque->dtype = i == COUNT_OF(known) ? NONE : known[i].dtype;
    *out = (struct torch_value){.kind = TORCH_OPAQUE, .as.opaque = opaque};
    return STATUS_OK;
}

struct opcode_name {
    unsigned char opcode;
    const char *name;
};

/* Every opcode of protocols 0 to 5, since an error names those that are refused, too. */
static const struct opcode_name opcodes[] = {
    {'(', "MARK"},
    {'.', "STOP"},
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'J', "BININT"},
    {'K', "BININT1"},
    {'L', "LONG"},
    {'M', "BININT2"},
    {'N', "NONE"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {'R', "REDUCE"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'X', "BINUNICODE"},
    {'a', "APPEND"},
    {'b', "BUILD"},
    {'c', "GLOBAL"},
    {'d', "DICT"},
    {'}', "EMPTY_DICT"},
    {'e', "APPENDS"},
    {'g', "GET"},
    {'h', "BINGET"},
    {'i', "INST"},
    {'j', "LONG_BINGET"},
    {'l', "LIST"},
    {']', "EMPTY_LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {'q', "BINPUT"},
    {'r', "LONG_BINPUT"},
    {'s', "SETITEM"},
    {'t', "TUPLE"},
    {')', "EMPTY_TUPLE"},
    {'u', "SETITEMS"},
    {'G', "BINFLOAT"},
    {0x80, "PROTO"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x85, "TUPLE1"},
    {0x86, "TUPLE2"},
    {0x87, "TUPLE3"},
    {0x88, "NEWTRUE"},
    {0x89, "NEWFALSE"},
    {0x8A, "LONG1"},
    {0x8B, "LONG4"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {0x8C, "SHORT_BINUNICODE"},
    {0x8D, "BINUNICODE8"},
    {0x8E, "BINBYTES8"},
    {0x8F, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x94, "MEMOIZE"},
    {0x95, "FRAME"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

const char *torch_opcode_name(unsigned char opcode) {
    for (size_t i = 0; i < COUNT_OF(opcodes); i++)
        if (opcodes[i].opcode == opcode) return opcodes[i].name;
    return NULL;
}
