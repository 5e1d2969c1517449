/* The kernel itself, for one type REAL. `l1.c` includes it for double and for float.

   Rows come in blocks. Of a block, tiles of R rows and V vectors of directions are formed in
   registers (P = X B); they leave |p| in `sum` and the weighted sign in a buffer that stays in the
   first-level cache. Then tiles of C directions and two vectors of features collect sign(P).T X over
   all rows of the block, while the next block is fetched: without that, memory and arithmetic
   would wait for each other. Block sums are added up in double precision. */

#define LANES ((ptrdiff_t)(WIDTH / sizeof(REAL)))
#define CHUNK ((ptrdiff_t)(CHUNK_BYTES / sizeof(REAL)))
#define VEC NAME(vec)
#define UVEC NAME(uvec)
#define IVEC NAME(ivec)

typedef REAL VEC __attribute__((vector_size(WIDTH), may_alias));
typedef REAL UVEC __attribute__((vector_size(WIDTH), may_alias, aligned(sizeof(REAL))));
typedef INTEGER IVEC __attribute__((vector_size(WIDTH), may_alias));

INLINE VEC NAME(splat)(REAL x) { return x - (VEC){0}; }

/* -- how directions are cut --------------------------------------------------------------------- */

/* The size of part `j` when `whole` is cut into as few equal parts of at most `most` as possible. */
INLINE ptrdiff_t NAME(part)(ptrdiff_t whole, ptrdiff_t most, ptrdiff_t j) {
    ptrdiff_t parts = (whole + most - 1) / most;
    return whole / parts + (j < whole % parts);
}

/* Vectors of directions side by side in one tile, and directions in one tile of the product. */
#if REGISTERS == 32
#define TILE_VECTORS 4
#define TILE_COLUMNS 12
#else
#define TILE_VECTORS 3
#define TILE_COLUMNS 6
#endif

/* Copy B (D, k) into panels as wide as the tiles that read them, with zeros beyond column k. */
void NAME(perpend_l1_pack)(ptrdiff_t D, ptrdiff_t k, const REAL *B, REAL *packed) {
    for (ptrdiff_t c = 0; c < k; c += CHUNK) {
        ptrdiff_t columns = k - c < CHUNK ? k - c : CHUNK;
        ptrdiff_t vectors = (columns + LANES - 1) / LANES, first = c;
        for (ptrdiff_t v = 0, g = 0; v < vectors; g++) {
            ptrdiff_t V = NAME(part)(vectors, TILE_VECTORS, g), wide = V * LANES;
            for (ptrdiff_t d = 0; d < D; d++)
                for (ptrdiff_t j = 0; j < wide; j++)
                    *packed++ = first + j < k ? B[d * k + first + j] : 0;
            first += wide;
            v += V;
        }
    }
}

/* -- P = X B: tiles of R rows and V vectors ------------------------------------------------------ */

/* One tile, for `D` features of a segment. Between segments P waits where the signs will be. */
INLINE void NAME(p_tile)(const int R, const int V, int first, int last, ptrdiff_t D, const REAL *x,
                         ptrdiff_t xs, const REAL *B, const REAL *w, REAL *sum, REAL *S,
                         ptrdiff_t ss) {
    VEC acc[16][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) acc[r][v] = (VEC){0};
    if (!first)
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) acc[r][v] =
            *(VEC *)(S + r * ss + v * LANES);
    for (ptrdiff_t d = 0; d < D; d++) {
        VEC b[4];
        UNROLL for (int v = 0; v < V; v++) b[v] = ((const VEC *)B)[d * V + v];
        UNROLL for (int r = 0; r < R; r++) {
            VEC xd = NAME(splat)(x[r * xs + d]);
            UNROLL for (int v = 0; v < V; v++) acc[r][v] += xd * b[v];
        }
    }
    if (!last) {
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++)
            *(VEC *)(S + r * ss + v * LANES) = acc[r][v];
        return;
    }
    UNROLL for (int v = 0; v < V; v++) {
        VEC f = ((VEC *)sum)[v];
        UNROLL for (int r = 0; r < R; r++) {
            VEC p = acc[r][v], wide = NAME(splat)(w[r]);
            IVEC positive = (IVEC)wide & (IVEC)(p > 0), negative = (IVEC)wide & (IVEC)(p < 0);
            VEC s = (VEC)positive - (VEC)negative; /* w sign(p) */
            f += s * p;                            /* w |p| */
            *(VEC *)(S + r * ss + v * LANES) = s;
        }
        ((VEC *)sum)[v] = f;
    }
}

#define P_ROWS(R, V)                                                                              \
    APART void NAME(p_rows_##V)(ptrdiff_t rows, int first, int last, ptrdiff_t D, const REAL *x,  \
                                ptrdiff_t xs, const REAL *B, const REAL *w, REAL *sum, REAL *S,   \
                                ptrdiff_t ss) {                                                   \
        ptrdiff_t i = 0;                                                                          \
        for (; i + R <= rows; i += R)                                                             \
            NAME(p_tile)(R, V, first, last, D, x + i * xs, xs, B, w + i, sum, S + i * ss, ss);    \
        for (; i < rows; i++)                                                                     \
            NAME(p_tile)(1, V, first, last, D, x + i * xs, xs, B, w + i, sum, S + i * ss, ss);    \
    }

#if REGISTERS == 32
P_ROWS(16, 1)
P_ROWS(12, 2)
P_ROWS(8, 3)
P_ROWS(6, 4)
#else
P_ROWS(8, 1)
P_ROWS(6, 2)
P_ROWS(4, 3)
#endif

/* One panel of V vectors, for all rows of a block and all features. */
INLINE void NAME(p_panel)(ptrdiff_t V, ptrdiff_t rows, ptrdiff_t D, const REAL *x, ptrdiff_t xs,
                          const REAL *B, const REAL *w, REAL *sum, REAL *S, ptrdiff_t ss) {
    for (ptrdiff_t d = 0; d < D; d += SEGMENT) {
        int first = d == 0, last = d + SEGMENT >= D;
        ptrdiff_t size = last ? D - d : SEGMENT;
        const REAL *b = B + d * V * LANES;
        switch (V) {
            case 1: NAME(p_rows_1)(rows, first, last, size, x + d, xs, b, w, sum, S, ss); break;
            case 2: NAME(p_rows_2)(rows, first, last, size, x + d, xs, b, w, sum, S, ss); break;
            case 3: NAME(p_rows_3)(rows, first, last, size, x + d, xs, b, w, sum, S, ss); break;
#if REGISTERS == 32
            case 4: NAME(p_rows_4)(rows, first, last, size, x + d, xs, b, w, sum, S, ss); break;
#endif
        }
    }
}

/* -- product += S.T X: tiles of C directions and V vectors of features --------------------------- */

/* What to fetch while a block is worked on: at row i a line at `next + ahead[i]` bytes, and another
   `beside` it. A mask of 0 keeps to the first line: a cheap way of fetching nothing. */
typedef struct {
    const char *next;
    ptrdiff_t beside, mask, ahead[ROWS_MOST];
} NAME(fetch);

/* Where a tile reads: vector v begins at feature start[v], and its lanes from `fresh[v]` on are new.
   The last vector of a row overlaps the one before it, so that nothing is read beyond the row. */
typedef struct {
    ptrdiff_t start[2], fresh[2];
} NAME(features);

INLINE void NAME(g_tile)(const int C, const int V, ptrdiff_t rows, const REAL *x, ptrdiff_t xs,
                         const REAL *S, ptrdiff_t ss, const NAME(features) * f,
                         const NAME(fetch) * fetch, VEC *tile) {
    VEC acc[TILE_COLUMNS][2];
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int v = 0; v < V; v++) acc[c][v] = (VEC){0};
    const REAL *x0 = x + f->start[0], *x1 = x + f->start[1];
    for (ptrdiff_t i = 0; i < rows; i++) {
        VEC xv[2];
        xv[0] = *(const UVEC *)(x0 + i * xs);
        if (V == 2) xv[1] = *(const UVEC *)(x1 + i * xs);
        const char *line = fetch->next + (fetch->ahead[i] & fetch->mask);
        UNROLL for (int l = 0; l * LINE < V * WIDTH; l++)
            __builtin_prefetch(line + l * fetch->beside, 0, 2);
        UNROLL for (int c = 0; c < C; c++) {
            VEC s = NAME(splat)(S[i * ss + c]);
            UNROLL for (int v = 0; v < V; v++) acc[c][v] += s * xv[v];
        }
    }
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int v = 0; v < V; v++) tile[2 * c + v] = acc[c][v];
}

#define G_TILE(C)                                                                                 \
    case C:                                                                                       \
        if (V == 2) NAME(g_tile)(C, 2, rows, x, xs, S, ss, f, fetch, tile);                       \
        else NAME(g_tile)(C, 1, rows, x, xs, S, ss, f, fetch, tile);                              \
        break;

APART void NAME(g_columns)(ptrdiff_t C, int V, ptrdiff_t rows, ptrdiff_t D, const REAL *x,
                           ptrdiff_t xs, const REAL *S, ptrdiff_t ss, const NAME(features) * f,
                           const NAME(fetch) * fetch, double *product) {
    VEC tile[2 * TILE_COLUMNS];
    switch (C) {
        G_TILE(1) G_TILE(2) G_TILE(3) G_TILE(4) G_TILE(5) G_TILE(6)
#if REGISTERS == 32
        G_TILE(7) G_TILE(8) G_TILE(9) G_TILE(10) G_TILE(11) G_TILE(12)
#endif
    }
    for (ptrdiff_t c = 0; c < C; c++)
        for (int v = 0; v < V; v++) {
            double *out = product + c * D + f->start[v];
            const REAL *in = (const REAL *)(tile + 2 * c + v);
            if (f->fresh[v] == 0 && D >= LANES)
                for (int j = 0; j < LANES; j++) out[j] += in[j];
            else
                for (ptrdiff_t j = f->fresh[v]; j < LANES && j < D; j++) out[j] += in[j];
        }
}

/* All features of a block. */
INLINE void NAME(g_block)(ptrdiff_t rows, ptrdiff_t D, ptrdiff_t columns, const REAL *x,
                          ptrdiff_t xs, const REAL *S, ptrdiff_t ss, NAME(fetch) * fetch,
                          ptrdiff_t fetch_step, double *product) {
    ptrdiff_t last = D < LANES ? 0 : D - LANES; /* where the last vector begins */
    const char *next = fetch->next;
    ptrdiff_t mask = fetch->mask;
    for (ptrdiff_t d = 0; d < D; d += 2 * LANES) {
        int V = d + LANES < D ? 2 : 1;
        NAME(features) f = {{d < last ? d : last, d + LANES < last ? d + LANES : last}, {0, 0}};
        f.fresh[0] = d - f.start[0];
        f.fresh[1] = d + LANES - f.start[1];
        fetch->next = next + d * fetch_step;
        fetch->mask = mask;
        for (ptrdiff_t c = 0, g = 0; c < columns; g++) {
            ptrdiff_t C = NAME(part)(columns, TILE_COLUMNS, g);
            NAME(g_columns)(C, V, rows, D, x, xs, S + c, ss, &f, fetch, product + c * D);
            fetch->mask = 0; /* once is enough */
            c += C;
        }
    }
}

/* -- blocks of rows ------------------------------------------------------------------------------ */

/* Copy columns side by side into rows, few at a time, so that their lines stay in the cache. */
APART void NAME(turn)(ptrdiff_t rows, ptrdiff_t D, const REAL *x, ptrdiff_t row_stride,
                      ptrdiff_t column_stride, REAL *to, ptrdiff_t stride) {
    for (ptrdiff_t d = 0; d < D; d += LANES) {
        const REAL *from = x + d * column_stride;
        REAL *out = to + d;
        for (ptrdiff_t i = 0; i < rows; i++, from += row_stride, out += stride)
            if (D - d >= LANES)
                UNROLL for (int j = 0; j < LANES; j++) out[j] = from[j * column_stride];
            else
                for (ptrdiff_t j = 0; j < D - d; j++) out[j] = from[j * column_stride];
    }
}

/* Whether x / by and x * (1 / by) are the same number for every x: `by` is a power of two, and not
   so far from 1 that its reciprocal is none. */
INLINE int NAME(is_power_of_two)(REAL by) {
    INTEGER bits, mantissa = ((INTEGER)1 << (MANTISSA - 1)) - 1;
    memcpy(&bits, &by, sizeof by);
    return (bits & mantissa) == 0 && by >= SMALLEST && 1 / by >= SMALLEST;
}

/* Copy rows side by side, divided by their divisors; features beyond D are zero. */
APART void NAME(gather)(ptrdiff_t rows, ptrdiff_t D, const REAL *x, ptrdiff_t row_stride,
                        ptrdiff_t column_stride, const REAL *divisor, REAL *to, ptrdiff_t stride) {
    int turned = column_stride != 1;
    if (turned) NAME(turn)(rows, D, x, row_stride, column_stride, to, stride);
    for (ptrdiff_t i = 0; i < rows; i++) {
        REAL *out = to + i * stride, by = divisor ? divisor[i] : 1, scale = 1 / by;
        const REAL *from = turned ? out : x + i * row_stride;
        for (ptrdiff_t d = D; d < stride; d++) out[d] = 0;
        if (turned && !divisor) continue;
        if (NAME(is_power_of_two)(by)) /* products take less time than quotients */
            for (ptrdiff_t d = 0; d < D; d++) out[d] = from[d] * scale;
        else
            for (ptrdiff_t d = 0; d < D; d++) out[d] = from[d] / by;
    }
}

INLINE ptrdiff_t NAME(least)(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* Distance of gathered rows: whole vectors, and not all rows in the same few sets of a cache. */
INLINE ptrdiff_t NAME(stride)(ptrdiff_t D) {
    ptrdiff_t stride = (D + LANES - 1) / LANES * LANES;
    return stride * sizeof(REAL) % 512 ? stride : stride + LINE / (ptrdiff_t)sizeof(REAL);
}

/* Rows in one block: a multiple of ROWS_UNIT within the bounds that the caches set. */
INLINE ptrdiff_t NAME(block_rows)(ptrdiff_t D, ptrdiff_t k) {
    ptrdiff_t columns = (NAME(least)(k, CHUNK) + LANES - 1) / LANES * LANES, size = sizeof(REAL);
    ptrdiff_t rows = NAME(least)(SIGN_BYTES / (columns * size), BLOCK_BYTES / (D * size));
    rows = NAME(least)(rows, ROWS_MOST) / ROWS_UNIT * ROWS_UNIT;
    return rows ? rows : ROWS_UNIT;
}

/* Bytes that `perpend_l1` needs for itself. */
size_t NAME(perpend_l1_scratch)(ptrdiff_t D, ptrdiff_t k) {
    return sizeof(REAL) * (CHUNK + NAME(block_rows)(D, k) * (1 + CHUNK + NAME(stride)(D)));
}

/* Add up `rows` rows of X. `packed` is what `perpend_l1_pack` made of B (D, k); `weight` and
   `divisor` may be null; strides count entries. Writes total (k,) and product (k, D). */
void NAME(perpend_l1)(ptrdiff_t rows, ptrdiff_t D, ptrdiff_t k, const REAL *X,
                      ptrdiff_t row_stride, ptrdiff_t column_stride, const REAL *weight,
                      const REAL *divisor, const REAL *packed, double *total, double *product,
                      REAL *scratch) {
    ptrdiff_t most = NAME(block_rows)(D, k), stride = NAME(stride)(D), size = sizeof(REAL);
    REAL *sum = scratch, *S = sum + CHUNK, *gathered = S + most * CHUNK;
    REAL *ones = gathered + most * stride;
    int gather = column_stride != 1 || divisor || D < LANES || row_stride * size % 512 == 0;
    /* Lines lie along the features, or along the rows; then a line holds several of them. */
    int along_rows = row_stride == 1 && column_stride != 1;
    ptrdiff_t held = LINE / size, lines = 2 * WIDTH > LINE ? 2 * WIDTH / LINE : 1;
    NAME(fetch) fetch = {.beside = along_rows ? column_stride * size : LINE};
    for (ptrdiff_t i = 0; i < most; i++) {
        ones[i] = 1;
        fetch.ahead[i] = size * (along_rows ? i - i % held + i % held * lines * column_stride
                                            : i * row_stride);
    }
    memset(total, 0, k * sizeof(double));
    memset(product, 0, k * D * sizeof(double));
    for (ptrdiff_t i = 0; i < rows; i += most) {
        ptrdiff_t m = NAME(least)(most, rows - i), xs = row_stride;
        const REAL *x = X + i * row_stride, *w = weight ? weight + i : ones, *B = packed;
        const char *next = (const char *)(x + m * row_stride);
        if (gather) {
            NAME(gather)(m, D, x, row_stride, column_stride, divisor ? divisor + i : NULL, gathered,
                         stride);
            x = gathered, xs = stride;
        }
        for (ptrdiff_t c = 0; c < k; c += CHUNK) {
            ptrdiff_t columns = NAME(least)(CHUNK, k - c);
            ptrdiff_t vectors = (columns + LANES - 1) / LANES, ss = vectors * LANES;
            memset(sum, 0, CHUNK * size);
            for (ptrdiff_t v = 0, g = 0; v < vectors; g++) {
                ptrdiff_t V = NAME(part)(vectors, TILE_VECTORS, g);
                NAME(p_panel)(V, m, D, x, xs, B, w, sum + v * LANES, S + v * LANES, ss);
                B += D * V * LANES;
                v += V;
            }
            for (ptrdiff_t j = 0; j < columns; j++) total[c + j] += sum[j];
            fetch.next = next;
            fetch.mask = c == 0 && i + m < rows ? -1 : 0;
            NAME(g_block)(m, D, columns, x, xs, S, ss, &fetch, size * column_stride, product + c * D);
        }
    }
}

#undef LANES
#undef CHUNK
#undef VEC
#undef UVEC
#undef IVEC
#undef P_ROWS
#undef G_TILE
#undef TILE_VECTORS
#undef TILE_COLUMNS
