#ifndef TELLERD_BACKEND_CPU_KERNELS_IMPL_H
#define TELLERD_BACKEND_CPU_KERNELS_IMPL_H

/*
 * One kernel set.  Included by cpu_kernels_<path>.c, which is compiled with the flags of its
 * instruction set and defines KERNELS, the name of the table.  Nothing here may be called on a
 * machine that lacks those instructions, so nothing but the table is visible outside.
 */
#include "cpu_attention_impl.h"
#include "cpu_kernels.h"
#include "cpu_ops_impl.h"
#include "cpu_product_impl.h"
#include "cpu_product_int8_impl.h"
#include "cpu_simd.h"

static uint32_t kernel_pack_tiles(enum cpu_rows rows, uint32_t n_rows)
{
    return tile_count(n_rows, rows == CPU_ROWS_INT8 ? INT8_ROWS : SIMD_MAX_ROW);
}

static void kernel_pack(enum cpu_rows rows, const float *x, uint32_t n_k, uint32_t n_rows,
                        uint32_t first_tile, uint32_t n_tiles, void *out)
{
    if (rows == CPU_ROWS_INT8)
        pack_int8(x, n_k, n_rows, first_tile, n_tiles, out);
    else
        pack_f32(x, n_k, n_rows, first_tile, n_tiles, out);
}

static void kernel_product(const struct cpu_product *p, uint32_t first, uint32_t n, float *scratch)
{
    if (p->rows == CPU_ROWS_INT8)
        product_int8(p, first, n, scratch);
    else
        product_f32(p, first, n, scratch);
}

const struct cpu_kernels KERNELS = {
    .name = SIMD_PATH,
    .pack_tiles = kernel_pack_tiles,
    .pack = kernel_pack,
    .product = kernel_product,
    .attend = kernel_attend,
    .attend_chunk = kernel_attend_chunk,
    .attend_combine = kernel_attend_combine,
    .attend_slots = kernel_attend_slots,
    .norm = kernel_norm,
    .expand = kernel_expand,
    .round = kernel_round,
    .rotate = kernel_rotate,
    .dot = kernel_dot,
    .add_scaled = kernel_add_scaled,
    .swiglu = kernel_swiglu,
    .relu_squared = kernel_relu_squared,
    .softcap = kernel_softcap,
};

#endif
