/* The two products of one block of rows; `l1.c` includes it for REAL double and for REAL float.

   Tiles of R rows and V vectors of directions are formed in registers (P = X B). They leave |p| in
   `sum` and the weighted sign in a buffer that stays in the first-level cache. Then tiles of C
   directions and two vectors of features collect sign(P).T X over all rows of the block, while the
   next block is fetched: without that, memory and arithmetic would wait for each other. Block sums
   are added up in double precision. */

#define LANES ((ptrdiff_t)(WIDTH / sizeof(REAL)))
#define CHUNK ((ptrdiff_t)(CHUNK_BYTES / sizeof(REAL)))
#define VEC NAME(vec)
#define UVEC NAME(uvec)
#define IVEC NAME(ivec)
#define HALF NAME(half)
#define IHALF NAME(ihalf)

typedef REAL VEC __attribute__((vector_size(WIDTH), may_alias));
typedef REAL UVEC __attribute__((vector_size(WIDTH), may_alias, aligned(sizeof(REAL))));
typedef INTEGER IVEC __attribute__((vector_size(WIDTH), may_alias));

typedef REAL HALF __attribute__((vector_size(WIDTH / 2), may_alias));
typedef INTEGER IHALF __attribute__((vector_size(WIDTH / 2), may_alias));

INLINE VEC NAME(splat)(REAL x) { return x - (VEC){0}; }
INLINE HALF NAME(splat_half)(REAL x) { return x - (HALF){0}; }

/* -- how directions are cut -------------------------------------------------------------------- */

/* The size of part `j` if `whole` is cut into as few equal parts of at most `most` as possible. */
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

/* How `columns` directions of a chunk are held: in so many vectors, and in half a one if it does
   for the last of them. Half vectors are worth their code only where vectors are long. */
INLINE int NAME(has_half)(ptrdiff_t columns) {
    return WIDTH == 64 && columns % LANES > 0 && columns % LANES <= LANES / 2;
}
INLINE ptrdiff_t NAME(vectors)(ptrdiff_t columns) {
    return NAME(has_half)(columns) ? columns / LANES : (columns + LANES - 1) / LANES;
}

/* Copy B (D, k) into panels as wide as the tiles that read them, with zeros beyond column k. */
void NAME(perpend_l1_pack)(ptrdiff_t D, ptrdiff_t k, const REAL *B, REAL *packed) {
    for (ptrdiff_t c = 0; c < k; c += CHUNK) {
        ptrdiff_t columns = k - c < CHUNK ? k - c : CHUNK, first = c;
        ptrdiff_t vectors = NAME(vectors)(columns);
        for (ptrdiff_t g = 0; first < c + columns; g++) {
            int half = first == c + vectors * LANES;
            ptrdiff_t wide = half ? LANES / 2 : LANES * NAME(part)(vectors, TILE_VECTORS, g);
            ptrdiff_t given = k - first < wide ? k - first : wide;
            for (ptrdiff_t d = 0; d < D; d++, packed += wide) {
                for (ptrdiff_t j = 0; j < given; j++) packed[j] = B[d * k + first + j];
                for (ptrdiff_t j = given; j < wide; j++) packed[j] = 0;
            }
            first += wide;
        }
    }
}

/* -- P = X B: tiles of R rows, V vectors and H (0 or 1) half vectors --------------------------- */

/* Turn p into w sign(p), and add w |p| to f; T is a type of vectors, I the one of their bits. */
#define SIGN(T, I, p, w, f)                                                                       \
    do {                                                                                          \
        T positive = (T)((I)(w) & (I)((p) > (T){0}));                                             \
        T negative = (T)((I)(w) & (I)((p) < (T){0}));                                             \
        f += (positive - negative) * (p);                                                         \
        p = positive - negative;                                                                  \
    } while (0)

/* One tile, for `D` features of a segment. Between segments P waits where the signs will be. */
INLINE void NAME(p_tile)(const int R, const int V, const int H, int first, int last, ptrdiff_t D,
                         const REAL *x, ptrdiff_t xs, const REAL *B, const REAL *Bh, const REAL *w,
                         REAL *sum, REAL *S, ptrdiff_t ss) {
    VEC acc[16][4];
    HALF half[16];
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int v = 0; v < V; v++) acc[r][v] = (VEC){0};
        half[r] = (HALF){0};
    }
    if (!first)
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int v = 0; v < V; v++) acc[r][v] = *(VEC *)(S + r * ss + v * LANES);
            if (H) half[r] = *(HALF *)(S + r * ss + V * LANES);
        }
    for (ptrdiff_t d = 0; d < D; d++) {
        VEC b[4];
        UNROLL for (int v = 0; v < V; v++) b[v] = ((const VEC *)B)[d * V + v];
        UNROLL for (int r = 0; r < R; r++) {
            VEC xd = NAME(splat)(x[r * xs + d]);
            UNROLL for (int v = 0; v < V; v++) acc[r][v] += xd * b[v];
            if (H) half[r] += NAME(splat_half)(x[r * xs + d]) * ((const HALF *)Bh)[d];
        }
    }
    if (last) {
        UNROLL for (int v = 0; v < V; v++) {
            VEC f = ((VEC *)sum)[v];
            UNROLL for (int r = 0; r < R; r++) SIGN(VEC, IVEC, acc[r][v], NAME(splat)(w[r]), f);
            ((VEC *)sum)[v] = f;
        }
        if (H) {
            HALF f = *(HALF *)(sum + V * LANES);
            UNROLL for (int r = 0; r < R; r++)
                SIGN(HALF, IHALF, half[r], NAME(splat_half)(w[r]), f);
            *(HALF *)(sum + V * LANES) = f;
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int v = 0; v < V; v++) *(VEC *)(S + r * ss + v * LANES) = acc[r][v];
        if (H) *(HALF *)(S + r * ss + V * LANES) = half[r];
    }
}

/* All rows of a block: R at a time, then one by one. */
#define P_ROWS(R, V, H)                                                                           \
    APART void NAME(p_rows_##V##H)(ptrdiff_t rows, int first, int last, ptrdiff_t D,              \
                                   const REAL *x, ptrdiff_t xs, const REAL *B, const REAL *Bh,    \
                                   const REAL *w, REAL *sum, REAL *S, ptrdiff_t ss) {             \
        ptrdiff_t i = 0;                                                                          \
        for (; i + R <= rows; i += R, x += R * xs, S += R * ss)                                   \
            NAME(p_tile)(R, V, H, first, last, D, x, xs, B, Bh, w + i, sum, S, ss);               \
        for (; i < rows; i++, x += xs, S += ss)                                                   \
            NAME(p_tile)(1, V, H, first, last, D, x, xs, B, Bh, w + i, sum, S, ss);               \
    }
#define P_CASE(V, H)                                                                              \
    case 2 * V + H:                                                                               \
        NAME(p_rows_##V##H)(rows, first, last, size, x + d, xs, b, bh, w, sum, S, ss);            \
        break;

#if REGISTERS == 32
P_ROWS(16, 1, 0)
P_ROWS(12, 2, 0)
P_ROWS(8, 3, 0)
P_ROWS(6, 4, 0)
#if WIDTH == 64
P_ROWS(16, 0, 1)
P_ROWS(12, 1, 1)
P_ROWS(8, 2, 1)
P_ROWS(6, 3, 1)
#endif
#else
P_ROWS(8, 1, 0)
P_ROWS(6, 2, 0)
P_ROWS(4, 3, 0)
#endif

/* One panel of V vectors and H half ones, for all rows of a block and all features. */
INLINE void NAME(p_panel)(ptrdiff_t V, int H, ptrdiff_t rows, ptrdiff_t D, const REAL *x,
                          ptrdiff_t xs, const REAL *B, const REAL *w, REAL *sum, REAL *S,
                          ptrdiff_t ss) {
    for (ptrdiff_t d = 0; d < D; d += SEGMENT) {
        int first = d == 0, last = d + SEGMENT >= D;
        ptrdiff_t size = last ? D - d : SEGMENT;
        const REAL *b = B + d * V * LANES, *bh = B + D * V * LANES + d * LANES / 2;
        switch (2 * V + H) {
            P_CASE(1, 0) P_CASE(2, 0) P_CASE(3, 0)
#if REGISTERS == 32
            P_CASE(4, 0)
#endif
#if WIDTH == 64
            P_CASE(0, 1) P_CASE(1, 1) P_CASE(2, 1) P_CASE(3, 1)
#endif
        }
    }
}

/* -- product += S.T X: tiles of C directions and V vectors of features ------------------------- */

/* What to fetch while a block is worked on: at row i a line at `next + ahead[i]` bytes, and another
   `beside` it. A mask of 0 keeps to the first line: a cheap way of fetching nothing. */
typedef struct {
    const char *next;
    ptrdiff_t beside, mask, ahead[ROWS_MOST];
} NAME(fetch);

/* Where a tile reads: vector v begins at feature start[v], and its lanes from fresh[v] on are new.
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
    UNROLL for (int c = 0; c < C; c++)
        UNROLL for (int v = 0; v < V; v++) tile[2 * c + v] = acc[c][v];
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
