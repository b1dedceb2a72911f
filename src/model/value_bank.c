#include "config.h"

/*
 * Bank-of-Values tables: value id -> value rows of one or more layers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tellerd/base/mem.h"
#include "value_bank_priv.h"

struct bank {
    struct backend_weight *table; /* NULL: this layer owns no bank */
    void *converted;              /* NULL: the table reads the mapped file */
    size_t bytes;                 /* of the rows, here or in the file */
};

struct value_banks {
    struct backend *be;
    uint32_t n_layers;
    struct bank *banks; /* [n_layers], by owner */
    uint32_t *owner_of; /* [n_layers], HPARAMS_NO_ROW: reads none */
};

void value_banks_free(struct value_banks *banks)
{
    if (!banks)
        return;
    const struct backend_ops *ops = backend_ops_of(banks->be);
    for (uint32_t i = 0; i < banks->n_layers; i++) {
        ops->weight_free(banks->be, banks->banks[i].table);
        big_free(banks->banks[i].converted, banks->banks[i].bytes);
    }
    free(banks->banks);
    free(banks->owner_of);
    free(banks);
}

/* Rows of `from` in another type, in memory of their own. */
static enum status convert(const struct tensor *from, enum tensor_type type, struct bank *bank,
                           struct tensor *ret, struct error *err)
{
    size_t row_bytes, bytes, from_bytes;
    if (!tensor_row_bytes(type, from->columns, &row_bytes) ||
        !tensor_row_bytes(from->type, from->columns, &from_bytes) ||
        !size_mul(row_bytes, (size_t)from->rows, &bytes))
        return error_set(err, STATUS_BAD_CONFIG, "rows of %llu numbers cannot be kept as %s",
                         (unsigned long long)from->columns, tensor_type_name(type));
    uint8_t *rows = big_alloc(bytes, false);
    float *row = malloc((size_t)from->columns * sizeof(float));
    if (!rows || !row) {
        big_free(rows, bytes);
        free(row);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a bank of %zu bytes", bytes);
    }
    for (size_t i = 0; i < from->rows; i++) {
        tensor_dequantize(from->type, (const uint8_t *)from->data + i * from_bytes, row,
                          (size_t)from->columns);
        tensor_quantize(type, row, rows + i * row_bytes, (size_t)from->columns);
    }
    free(row);
    bank->converted = rows;
    *ret = *from;
    ret->data = rows;
    ret->type = type;
    ret->size_bytes = bytes;
    return STATUS_OK;
}

static enum status bind(const struct checkpoint *cp, struct value_banks *banks, uint32_t layer,
                        enum tensor_type type, struct error *err)
{
    const struct hparams *hp = checkpoint_hparams(cp);
    struct bank *bank = &banks->banks[layer];
    char name[64];
    struct tensor tensor;
    if (bank->table)
        return STATUS_OK;
    snprintf(name, sizeof(name), "blk.%u.attn_v_bank.weight", layer);
    if (!checkpoint_tensor(cp, name, &tensor))
        return error_set(err, STATUS_BAD_FILE, "the model has no tensor %s", name);
    if (tensor.columns != (uint64_t)hp->n_kv_heads * hp->head_size || tensor.rows != hp->bank_rows)
        return error_set(err, STATUS_BAD_FILE, "%s is %llu x %llu, not %u x %u", name,
                         (unsigned long long)tensor.rows, (unsigned long long)tensor.columns,
                         hp->bank_rows, hp->n_kv_heads * hp->head_size);
    enum status status = STATUS_OK;
    if (type != TENSOR_TYPE_LIMIT && type != tensor.type)
        status = convert(&tensor, type, bank, &tensor, err);
    bank->bytes = tensor.size_bytes;
    if (!status)
        status = backend_ops_of(banks->be)->weight_new(banks->be, &tensor, BACKEND_TABLE,
                                                       &bank->table, err);
    if (status)
        error_prefix(err, "%s", name);
    return status;
}

enum status value_banks_new(const struct checkpoint *cp, struct backend *be, enum tensor_type type,
                            struct value_banks **ret, struct error *err)
{
    const struct hparams *hp = checkpoint_hparams(cp);
    struct value_banks *banks = xcalloc(1, sizeof(*banks));
    banks->be = be;
    banks->n_layers = hp->n_layers;
    banks->banks = xcalloc(hp->n_layers, sizeof(*banks->banks));
    banks->owner_of = xcalloc(hp->n_layers, sizeof(*banks->owner_of));
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        bool reads = hp->layers[i].source != VALUE_RESIDUAL;
        banks->owner_of[i] = reads ? hp->layers[i].bank_layer : HPARAMS_NO_ROW;
        if (!reads)
            continue;
        enum status status = banks->owner_of[i] >= hp->n_layers
                                 ? error_set(err, STATUS_BAD_FILE, "layer %u reads the bank of %u",
                                             i, banks->owner_of[i])
                                 : bind(cp, banks, banks->owner_of[i], type, err);
        if (status) {
            value_banks_free(banks);
            return status;
        }
    }
    *ret = banks;
    return STATUS_OK;
}

const struct backend_weight *value_banks_of(const struct value_banks *banks, uint32_t layer)
{
    uint32_t owner = banks->owner_of[layer];
    return owner == HPARAMS_NO_ROW ? NULL : banks->banks[owner].table;
}

size_t value_banks_bytes(const struct value_banks *banks)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < banks->n_layers; i++)
        sum += banks->banks[i].bytes;
    return sum;
}
