/* The objective of DPCP and its subgradient in one pass over the rows, for one processor family.

   total_j     = sum_i w_i |x_i . b_j|
   product_j,: = sum_i w_i sign(x_i . b_j) x_i          sign(0) = 0

   This file is compiled once for every family: the compiler's flags choose the instructions, and
   VARIANT is the name that the functions end in. Everything is plain C with the vector extensions
   of GCC and Clang; Python calls it by ctypes. BASELINE marks the variant that every processor of
   this kind can run; it also holds what is needed only once. */

#include <float.h>
#include <stddef.h>
#include <string.h>

#if defined(__AVX512F__)
#define WIDTH 64 /* bytes in a vector */
#define REGISTERS 32
#elif defined(__AVX__)
#define WIDTH 32
#define REGISTERS 16
#elif defined(__aarch64__)
#define WIDTH 16
#define REGISTERS 32
#else
#define WIDTH 16
#define REGISTERS 16
#endif

#define LINE 64            /* bytes in a cache line */
#define CHUNK_BYTES 256    /* directions in one go: 32 doubles or 64 floats */
#define SIGN_BYTES 24576   /* signs of one block of rows stay in a first-level cache of 32 KiB, */
#define BLOCK_BYTES 393216 /* its entries and the next block's in a second-level one of 1 MiB */
#define SEGMENT 512        /* features in one go: so much of B stays in the second-level cache */
#define ROWS_UNIT 48       /* every tile height divides it */
#define ROWS_MOST 384

#define JOIN(a, b, c) a##_##b##_##c
#define JOIN3(a, b, c) JOIN(a, b, c)

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))

#define REAL double
#define INTEGER long long
#define SMALLEST DBL_MIN
#define MANTISSA DBL_MANT_DIG
#define NAME(name) JOIN3(name, VARIANT, f64)
#include "l1_tiles.h"
#include "l1_rows.h"
#undef REAL
#undef INTEGER
#undef SMALLEST
#undef MANTISSA
#undef NAME

#define REAL float
#define INTEGER int
#define SMALLEST FLT_MIN
#define MANTISSA FLT_MANT_DIG
#define NAME(name) JOIN3(name, VARIANT, f32)
#include "l1_tiles.h"
#include "l1_rows.h"

#ifdef BASELINE

/* To be raised whenever a signature below changes; Python refuses a library with another one. */
int perpend_abi(void) { return 1; }

/* 0: baseline, 1: AVX2 and FMA, 2: AVX-512. */
int perpend_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") ? 2 : 1;
#else
    return 0;
#endif
}

#endif
