# fuzz targets of layer model
fuzz_programs += tests/fuzz/fuzz_tokenizer
tests_fuzz_fuzz_tokenizer_SOURCES = tests/fuzz/fuzz_tokenizer.c $(FUZZ_MAIN)
tests_fuzz_fuzz_tokenizer_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_tokenizer_LDADD = $(TELLERD_LIBS)
fuzz_programs += tests/fuzz/fuzz_vocab
tests_fuzz_fuzz_vocab_SOURCES = tests/fuzz/fuzz_vocab.c $(FUZZ_MAIN)
tests_fuzz_fuzz_vocab_LDFLAGS = $(FUZZ_FLAGS)
tests_fuzz_fuzz_vocab_LDADD = $(TELLERD_LIBS)
