#include "config.h"

/*
 * Packs weights into panels when a model is loaded.  Pure functions of their arguments; the pool
 * runs one panel a task.
 */
#include <string.h>

#include "../tensor_priv.h"
#include "cpu_kernels.h"
#include "cpu_panels.h"
#include "tellerd/base/status.h"

size_t cpu_panel_bytes(enum tensor_type type, uint32_t n_k)
{
    if (!cpu_type_quantised(type))
        return (size_t)n_k * CPU_PANEL * tensor_block_bytes(type);
    size_t bytes = n_k / CPU_GROUP * cpu_group_codes(type) +
                   n_k / tensor_block_elements(type) * cpu_block_scales(type);
    return (bytes + CPU_PANEL_ALIGN - 1) / CPU_PANEL_ALIGN * CPU_PANEL_ALIGN;
}

static void put_u16(uint8_t *out, uint16_t value)
{
    memcpy(out, &value, 2);
}

/* Four codes, a byte each; shifts that keep to their bytes treat all four at once. */
static uint32_t read_quad(const uint8_t *bytes)
{
    uint32_t quad;
    memcpy(&quad, bytes, sizeof(quad));
    return quad;
}

static void add_quad(uint8_t *out, uint32_t quad)
{
    quad |= read_quad(out);
    memcpy(out, &quad, sizeof(quad));
}

/* The codes of output o in one group (zero before the first output). */
static void pack_codes(enum tensor_type type, const uint8_t *codes, uint8_t *out, uint32_t o)
{
    uint8_t *high = out + 256 + o * 4;
    out += o * 4;
    for (uint32_t q = 0; q < CPU_GROUP / 4; q++) {
        uint32_t quad = read_quad(codes + 4 * q);
        if (type == TENSOR_Q8_0) {
            add_quad(out + q * 64, quad ^ 0x80808080); /* from two's complement to plus 128 */
            continue;
        }
        add_quad(out + q / 2 * 64, (quad & 0x0f0f0f0f) << 4 * (q % 2));
        if (type == TENSOR_Q6_K)
            add_quad(high + q / 4 * 64, (quad >> 4 & 0x03030303) << 2 * (q % 4));
        else if (cpu_group_codes(type) > 256)
            add_quad(high, (quad >> 4 & 0x01010101) << q);
    }
}

/* The scales of output o in one block. */
static void pack_scales(enum tensor_type type, const struct tensor_block *b, uint8_t *out,
                        uint32_t o)
{
    put_u16(out + 2 * o, b->d);
    if (type == TENSOR_Q6_K) {
        for (uint32_t i = 0; i < 16; i++)
            out[32 + i * CPU_PANEL + o] = b->scales[i];
        return;
    }
    if (cpu_block_scales(type) > 32)
        put_u16(out + 32 + 2 * o, b->m);
    if (cpu_block_scales(type) > 64) {
        for (uint32_t i = 0; i < 8; i++) {
            out[64 + i * CPU_PANEL + o] = b->scales[i];
            out[64 + 128 + i * CPU_PANEL + o] = b->mins[i];
        }
    }
}

enum { TILE = 8 };
typedef uint16_t tile_row __attribute__((vector_size(TILE * sizeof(uint16_t))));

/* 8 rows of 8 elements of 2 bytes become columns: to zip rows i and i + 4, three times, is to
 * transpose. */
static void transpose_tile(const uint8_t *from, size_t row_bytes, uint8_t *out)
{
    tile_row a[TILE], b[TILE];
    for (int i = 0; i < TILE; i++)
        memcpy(&a[i], from + (size_t)i * row_bytes, sizeof(a[i]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TILE / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof(a));
    }
    for (int i = 0; i < TILE; i++)
        memcpy(out + (size_t)i * CPU_PANEL * 2, &a[i], sizeof(a[i]));
}

/* A panel whose elements are numbers by themselves: [k][16]. */
static void pack_plain(size_t unit, const uint8_t *from, size_t row_bytes, uint32_t n_rows,
                       uint32_t n_k, uint8_t *out)
{
    uint32_t o = 0;
    for (; unit == 2 && n_k % TILE == 0 && o + TILE <= n_rows; o += TILE) {
        for (size_t k = 0; k < n_k; k += TILE)
            transpose_tile(from + o * row_bytes + k * 2, row_bytes, out + (k * CPU_PANEL + o) * 2);
    }
    for (; o < n_rows; o++) {
        for (size_t k = 0; k < n_k; k++) {
            if (unit == 4)
                memcpy(out + (k * CPU_PANEL + o) * 4, from + o * row_bytes + k * 4, 4);
            else
                memcpy(out + (k * CPU_PANEL + o) * 2, from + o * row_bytes + k * 2, 2);
        }
    }
}

/* Row o of a panel of a quantised type (zero before the first row). */
static void pack_quantised(enum tensor_type type, const uint8_t *from, uint32_t n_k, uint8_t *out,
                           uint32_t o)
{
    uint32_t elements = tensor_block_elements(type), n_groups = elements / CPU_GROUP;
    uint8_t *scales = out + n_k / CPU_GROUP * cpu_group_codes(type);
    for (uint32_t i = 0; i < n_k / elements; i++) {
        struct tensor_block b;
        tensor_block_read(type, from + (size_t)i * tensor_block_bytes(type), &b);
        for (uint32_t g = 0; g < n_groups; g++)
            pack_codes(type, b.codes + g * CPU_GROUP,
                       out + ((size_t)i * n_groups + g) * cpu_group_codes(type), o);
        pack_scales(type, &b, scales + i * cpu_block_scales(type), o);
    }
}

void cpu_panel_pack(const struct tensor *source, uint32_t panel, uint8_t *out)
{
    enum tensor_type type = source->type;
    uint32_t n_k = (uint32_t)source->columns;
    size_t unit = tensor_block_bytes(type), row_bytes = n_k / tensor_block_elements(type) * unit;
    uint64_t first = (uint64_t)panel * CPU_PANEL;
    uint64_t left = first < source->rows ? source->rows - first : 0;
    uint32_t n_rows = left < CPU_PANEL ? (uint32_t)left : CPU_PANEL;
    const uint8_t *from = (const uint8_t *)source->data + first * row_bytes;
    if (cpu_type_quantised(type) || n_rows < CPU_PANEL)
        memset(out, 0, cpu_panel_bytes(type, n_k));
    if (!cpu_type_quantised(type)) {
        pack_plain(unit, from, row_bytes, n_rows, n_k, out);
        return;
    }
    for (uint32_t o = 0; o < n_rows; o++)
        pack_quantised(type, from + o * row_bytes, n_k, out, o);
}
