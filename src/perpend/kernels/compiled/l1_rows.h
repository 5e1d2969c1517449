/* All rows, block by block, for one type REAL: what Python calls. Goes with `l1_tiles.h`.

   A block of rows is small enough to stay in the second-level cache between the two products. Rows
   are used where they lie. Those that are stored by columns, wait for a division, are shorter than
   a vector or would fight for the same lines of the cache are copied, one block at a time. */

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

/* Add up `rows` rows of X, which has `more` rows after them: those are likely to be asked for next.
   `packed` is what `perpend_l1_pack` made of B (D, k); `weight` and `divisor` may be null; strides
   count entries. Writes total (k,) and product (k, D). */
void NAME(perpend_l1)(ptrdiff_t rows, ptrdiff_t more, ptrdiff_t D, ptrdiff_t k, const REAL *X,
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
            ptrdiff_t vectors = NAME(vectors)(columns), v = 0, g = 0;
            ptrdiff_t ss = (columns + LANES - 1) / LANES * LANES;
            int half = NAME(has_half)(columns);
            memset(sum, 0, CHUNK * size);
            do {
                ptrdiff_t V = vectors ? NAME(part)(vectors, TILE_VECTORS, g++) : 0;
                int H = half && v + V == vectors;
                NAME(p_panel)(V, H, m, D, x, xs, B, w, sum + v * LANES, S + v * LANES, ss);
                B += D * (V * LANES + H * LANES / 2);
                v += V;
            } while (v < vectors);
            for (ptrdiff_t j = 0; j < columns; j++) total[c + j] += sum[j];
            fetch.next = next;
            fetch.mask = c == 0 && i + m < rows + more ? -1 : 0;
            NAME(g_block)(m, D, columns, x, xs, S, ss, &fetch, size * column_stride,
                          product + c * D);
        }
    }
}

#undef LANES
#undef CHUNK
#undef VEC
#undef UVEC
#undef IVEC
#undef HALF
#undef IHALF
#undef SIGN
#undef P_CASE
#undef P_ROWS
#undef G_TILE
#undef TILE_VECTORS
#undef TILE_COLUMNS
