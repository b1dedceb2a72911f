# unit tests of layer model
unit_programs += tests/unit/test_tokenizer_split
tests_unit_test_tokenizer_split_SOURCES = tests/unit/test_tokenizer_split.c tests/support/check_main.h
tests_unit_test_tokenizer_split_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_tokenizer_split_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_sampler
tests_unit_test_sampler_SOURCES = tests/unit/test_sampler.c tests/support/check_main.h
tests_unit_test_sampler_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_sampler_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_tokenizer
tests_unit_test_tokenizer_SOURCES = tests/unit/test_tokenizer.c tests/support/vocab_builder.c tests/support/vocab_builder.h \
	tests/support/check_main.h
tests_unit_test_tokenizer_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_tokenizer_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_tokenizer_kinds
tests_unit_test_tokenizer_kinds_SOURCES = tests/unit/test_tokenizer_kinds.c tests/support/vocab_builder.c tests/support/vocab_builder.h \
	tests/support/check_main.h
tests_unit_test_tokenizer_kinds_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_tokenizer_kinds_LDADD = $(UNIT_LIBS)
