# layer model: files, tokenizer, templates, forward pass, sampler
libtellerd_a_SOURCES += \
	include/tellerd/model/hparams.h include/tellerd/model/checkpoint.h \
	src/model/hparams.c src/model/hparams_priv.h \
	src/model/checkpoint.c src/model/checkpoint_priv.h \
	src/model/name_table.c src/model/name_table_priv.h \
	src/model/gguf.c src/model/gguf_priv.h src/model/gguf_model.c \
	src/model/hf_model.c \
	include/tellerd/model/tokenizer.h src/model/tokenizer_priv.h \
	src/model/tokenizer.c src/model/tokenizer_vocab.c src/model/tokenizer_index.c \
	src/model/tokenizer_merge.c src/model/tokenizer_bpe.c src/model/tokenizer_spm.c \
	src/model/tokenizer_unigram.c src/model/tokenizer_split.c src/model/tokenizer_nfc.c

# sampler
libtellerd_a_SOURCES += \
	src/model/sampler.c include/tellerd/model/sampler.h src/model/sampler_priv.h \
	src/model/sampler_math.c src/model/sampler_logprobs.c src/model/sampler_logprobs_priv.h
