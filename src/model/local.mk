# layer model: files, tokenizer, templates, forward pass, sampler
libtellerd_a_SOURCES += \
	include/tellerd/model/hparams.h include/tellerd/model/checkpoint.h \
	src/model/hparams.c src/model/hparams_priv.h \
	src/model/checkpoint.c src/model/checkpoint_priv.h \
	src/model/name_table.c src/model/name_table_priv.h \
	src/model/gguf.c src/model/gguf_priv.h src/model/gguf_model.c \
	include/tellerd/model/tokenizer.h src/model/tokenizer_priv.h \
	src/model/tokenizer.c src/model/tokenizer_vocab.c src/model/tokenizer_index.c \
	src/model/tokenizer_merge.c src/model/tokenizer_bpe.c src/model/tokenizer_spm.c \
	src/model/tokenizer_unigram.c src/model/tokenizer_split.c src/model/tokenizer_nfc.c

# sampler
libtellerd_a_SOURCES += \
	src/model/sampler.c include/tellerd/model/sampler.h src/model/sampler_priv.h \
	src/model/sampler_math.c src/model/sampler_logprobs.c src/model/sampler_logprobs_priv.h

# chat templates
libtellerd_a_SOURCES += \
	include/tellerd/model/text_run.h include/tellerd/model/jinja.h \
	src/model/jinja_priv.h src/model/jinja_node_priv.h src/model/jinja_parse_priv.h \
	src/model/jinja_ops_priv.h src/model/jinja_exec_priv.h \
	src/model/jinja_lex.c src/model/jinja_parse.c src/model/jinja_parse_expr.c \
	src/model/jinja_parse_call.c src/model/jinja_parse_stmt.c \
	src/model/jinja_value.c src/model/jinja_string.c src/model/jinja_text.c \
	src/model/jinja_print.c src/model/jinja_json.c src/model/jinja_ops.c src/model/jinja_member.c \
	src/model/jinja_number.c src/model/jinja_format.c src/model/jinja_time.c \
	src/model/jinja_eval.c src/model/jinja_call.c src/model/jinja_exec.c \
	src/model/jinja_filters.c src/model/jinja_filters_seq.c src/model/jinja_tests.c \
	src/model/jinja_methods.c src/model/jinja_methods_str.c \
	include/tellerd/model/chat.h src/model/chat_priv.h src/model/chat.c src/model/chat_messages.c \
	src/model/chat_probe.c

# Hugging Face directories
libtellerd_a_SOURCES += \
	src/model/hf_model.c src/model/hf_priv.h src/model/hf_config.c src/model/hf_tensors.c \
	src/model/hf_tokenizer.c src/model/hf_pipeline.c src/model/hf_settings.c \
	src/model/safetensors.c src/model/safetensors_priv.h \
	src/model/model_json.c src/model/model_json_priv.h

# forward pass
libtellerd_a_SOURCES += \
	include/tellerd/model/gpt.h src/model/gpt_priv.h src/model/gpt.c src/model/gpt_layers.c \
	src/model/gpt_weights.c src/model/value_bank.c src/model/value_bank_priv.h
