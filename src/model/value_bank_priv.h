#ifndef TELLERD_MODEL_VALUE_BANK_PRIV_H
#define TELLERD_MODEL_VALUE_BANK_PRIV_H

#include "tellerd/backend/backend.h"
#include "tellerd/model/checkpoint.h"

/*
 * The banks of a model: one table per layer that owns one, bound to the backend once however many
 * layers read it, in the file's type or converted to another when loaded.
 */
struct value_banks;

/* type: what the banks become, TENSOR_TYPE_LIMIT = as stored.  Errors: BAD_FILE, NO_MEMORY. */
enum status value_banks_new(const struct checkpoint *cp, struct backend *be, enum tensor_type type,
                            struct value_banks **ret, struct error *err) WARN_UNUSED;
void value_banks_free(struct value_banks *banks);

/* The table that `layer` reads; NULL when it reads none. */
const struct backend_weight *value_banks_of(const struct value_banks *banks, uint32_t layer);
size_t value_banks_bytes(const struct value_banks *banks);

#endif
