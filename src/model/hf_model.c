/*
 * A Hugging Face model directory.
 */
#include "config.h"

#include "checkpoint_priv.h"

enum status hf_model_read(struct checkpoint *cp, struct error *err)
{
    (void)cp;
    return error_set(err, STATUS_BAD_FILE, "directories are not read yet; give a GGUF file");
}
