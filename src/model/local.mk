# layer model: files, tokenizer, templates, forward pass, sampler
libtellerd_a_SOURCES += \
	include/tellerd/model/hparams.h include/tellerd/model/checkpoint.h \
	src/model/hparams.c src/model/hparams_priv.h \
	src/model/checkpoint.c src/model/checkpoint_priv.h \
	src/model/name_table.c src/model/name_table_priv.h \
	src/model/gguf.c src/model/gguf_priv.h src/model/gguf_model.c \
	src/model/hf_model.c
