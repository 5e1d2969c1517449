// What one warp can do that plain C++ cannot say: PTX instructions under readable names.
//
// Fragments: a warp holds a small matrix in its registers. With g = lane / 4 and t = lane % 4,
//   left   (16 x 16 bf16)  4 registers: rows g, g + 8; columns 2t, 2t + 1 and the same + 8
//   right  (16 x 8 bf16)   2 registers: rows 2t, 2t + 1 and the same + 8; column g
//   sum    (16 x 8)        4 values: rows g, g, g + 8, g + 8; columns 2t, 2t + 1, 2t, 2t + 1
// A sum's layout is a left's layout: the signs of one product enter the next without moving.

#define DEVICE __device__ __forceinline__
typedef unsigned int word;
typedef unsigned long long wide;

DEVICE word shared_address(const void* p) { return (word)__cvta_generic_to_shared(p); }

// --- bulk copies into shared memory, each counted by a barrier ----------------------------------

DEVICE void barrier_init(word barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

// Makes the initial stores (barriers, zeros) visible to the copy engine.
DEVICE void barrier_publish() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

DEVICE void barrier_expect(word barrier, word bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

DEVICE void barrier_wait(word barrier, word parity) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(barrier), "r"(parity)
      : "memory");
}

DEVICE void copy_bulk(word target, const void* source, word bytes, word barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target), "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

// Waits for the `threads` threads that meet at this number (1 to 15).
DEVICE void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// --- 8 x 8 matrices of 16-bit values from shared memory; lane i gives the address of row i ------

DEVICE void load4(word r[4], word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}

DEVICE void load4_transposed(word r[4], word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}

DEVICE void load2(word r[2], word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(address));
}

DEVICE void load2_transposed(word r[2], word address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(address));
}

// --- sum += left right --------------------------------------------------------------------------

DEVICE void multiply16(float s[4], const word a[4], word b0, word b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same with 8 instead of 16 columns on the left: its first two registers.
DEVICE void multiply8(float s[4], const word a[4], word b0) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
               : "r"(a[0]), "r"(a[1]), "r"(b0));
}

// float64, left 16 x 8: rows g, g + 8, g, g + 8; columns t, t, t + 4, t + 4;
// right 8 x 8: rows t, t + 4; column g.
DEVICE void multiply8(double s[4], const double a[4], double b0, double b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+d"(s[0]), "+d"(s[1]), "+d"(s[2]), "+d"(s[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
}

// --- bf16 ---------------------------------------------------------------------------------------

// Two bf16 values in one word, the first in the lower half.
DEVICE word pack(float first, float second) {
  word r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}

DEVICE float first_of(word pair) { return __uint_as_float(pair << 16); }
DEVICE float second_of(word pair) { return __uint_as_float(pair & 0xffff0000u); }
