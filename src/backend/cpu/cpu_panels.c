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

/* Bytes of 16 blocks as packed. */
static size_t packed_block(enum tensor_type type)
{
    switch (type) {
    case TENSOR_Q4_K:
        return 2368;
    case TENSOR_Q5_K:
        return 2880;
    default:
        return (size_t)CPU_PANEL * tensor_block_bytes(type);
    }
}

size_t cpu_panel_bytes(enum tensor_type type, uint32_t n_k)
{
    return n_k / tensor_block_elements(type) * packed_block(type);
}

static void put_u16(uint8_t *out, uint16_t value)
{
    memcpy(out, &value, 2);
}

/* Codes of 4 bits of output o: n of them from low, at nibbles [n / 2][16]. */
static void pack_nibbles(uint8_t *nibbles, const uint8_t *codes, int n, int o)
{
    for (int k = 0; k < n; k += 2)
        nibbles[k / 2 * CPU_PANEL + o] = (uint8_t)((codes[k] & 15) | (codes[k + 1] & 15) << 4);
}

static void pack_fifth_bits(uint8_t *words, const uint8_t *codes, int n, int o)
{
    for (int k = 0; k < n; k++) {
        uint8_t *byte = words + 2 * k + o / 8;
        *byte |= (uint8_t)((codes[k] >> 4 & 1) << o % 8);
    }
}

/* Puts the block of output o into the packed block (zero before the first output). */
static void pack_block(enum tensor_type type, const struct tensor_block *b, uint8_t *out, int o)
{
    put_u16(out + 2 * o, b->d);
    uint8_t *after_d = out + 32, *after_m = out + 64;
    if (type == TENSOR_Q4_1 || type == TENSOR_Q5_1 || type == TENSOR_Q4_K || type == TENSOR_Q5_K)
        put_u16(after_d + 2 * o, b->m);
    switch (type) {
    case TENSOR_Q8_0:
        for (int k = 0; k < 32; k++)
            after_d[k * CPU_PANEL + o] = b->codes[k];
        break;
    case TENSOR_Q4_0:
        pack_nibbles(after_d, b->codes, 32, o);
        break;
    case TENSOR_Q5_0:
        pack_nibbles(after_d, b->codes, 32, o);
        pack_fifth_bits(after_d + 256, b->codes, 32, o);
        break;
    case TENSOR_Q4_1:
        pack_nibbles(after_m, b->codes, 32, o);
        break;
    case TENSOR_Q5_1:
        pack_nibbles(after_m, b->codes, 32, o);
        pack_fifth_bits(after_m + 256, b->codes, 32, o);
        break;
    case TENSOR_Q6_K:
        for (int i = 0; i < 16; i++)
            after_d[i * CPU_PANEL + o] = b->scales[i];
        pack_nibbles(after_d + 256, b->codes, 256, o);
        for (int k = 0; k < 256; k++)
            after_d[2304 + k / 4 * CPU_PANEL + o] |= (uint8_t)(b->codes[k] >> 4 << 2 * (k % 4));
        break;
    default: /* Q4_K, Q5_K */
        for (int i = 0; i < 8; i++) {
            after_m[i * CPU_PANEL + o] = b->scales[i];
            after_m[128 + i * CPU_PANEL + o] = b->mins[i];
        }
        pack_nibbles(after_m + 256, b->codes, 256, o);
        if (type == TENSOR_Q5_K)
            pack_fifth_bits(after_m + 2304, b->codes, 256, o);
    }
}

void cpu_panel_pack(const struct tensor *source, uint32_t panel, uint8_t *out)
{
    enum tensor_type type = source->type;
    uint32_t n_k = (uint32_t)source->columns, elements = tensor_block_elements(type);
    size_t unit = tensor_block_bytes(type), row_bytes = n_k / elements * unit;
    size_t packed = packed_block(type);
    memset(out, 0, cpu_panel_bytes(type, n_k));
    for (uint32_t o = 0; o < CPU_PANEL; o++) {
        uint64_t row = (uint64_t)panel * CPU_PANEL + o;
        if (row >= source->rows)
            break;
        const uint8_t *from = (const uint8_t *)source->data + row * row_bytes;
        for (uint32_t i = 0; i < n_k / elements; i++) {
            if (elements == 1) {
                memcpy(out + ((size_t)i * CPU_PANEL + o) * unit, from + i * unit, unit);
            } else {
                struct tensor_block b;
                tensor_block_read(type, from + i * unit, &b);
                pack_block(type, &b, out + i * packed, (int)o);
            }
        }
    }
}
