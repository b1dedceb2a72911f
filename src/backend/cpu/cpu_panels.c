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

/* Row o of a panel whose elements are numbers by themselves: [k][16]. */
static void pack_plain(enum tensor_type type, const uint8_t *from, uint32_t n_k, uint8_t *out,
                       uint32_t o)
{
    if (type == TENSOR_F32) {
        for (size_t k = 0; k < n_k; k++)
            memcpy(out + (k * CPU_PANEL + o) * 4, from + k * 4, 4);
    } else {
        for (size_t k = 0; k < n_k; k++)
            memcpy(out + (k * CPU_PANEL + o) * 2, from + k * 2, 2);
    }
}

void cpu_panel_pack(const struct tensor *source, uint32_t panel, uint8_t *out)
{
    enum tensor_type type = source->type;
    uint32_t n_k = (uint32_t)source->columns, elements = tensor_block_elements(type);
    size_t unit = tensor_block_bytes(type), row_bytes = n_k / elements * unit;
    uint8_t *scales = out;
    if (cpu_type_quantised(type))
        scales += n_k / CPU_GROUP * cpu_group_codes(type);
    memset(out, 0, cpu_panel_bytes(type, n_k));
    for (uint32_t o = 0; o < CPU_PANEL; o++) {
        uint64_t row = (uint64_t)panel * CPU_PANEL + o;
        if (row >= source->rows)
            break;
        const uint8_t *from = (const uint8_t *)source->data + row * row_bytes;
        if (!cpu_type_quantised(type)) {
            pack_plain(type, from, n_k, out, o);
            continue;
        }
        for (uint32_t i = 0; i < n_k / elements; i++) {
            struct tensor_block b;
            tensor_block_read(type, from + i * unit, &b);
            for (uint32_t g = 0, n = elements / CPU_GROUP; g < n; g++)
                pack_codes(type, b.codes + g * CPU_GROUP,
                           out + ((size_t)i * n + g) * cpu_group_codes(type), o);
            pack_scales(type, &b, scales + i * cpu_block_scales(type), o);
        }
    }
}
