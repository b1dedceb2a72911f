# unit tests of layer api
unit_programs += tests/unit/test_text_stream tests/unit/test_generate_request
tests_unit_test_text_stream_SOURCES = tests/unit/test_text_stream.c
tests_unit_test_text_stream_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_text_stream_LDADD = $(UNIT_LIBS)
tests_unit_test_generate_request_SOURCES = tests/unit/test_generate_request.c
tests_unit_test_generate_request_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_generate_request_LDADD = $(UNIT_LIBS)
# the API and the server without an engine; the linker puts the harness in the engine's place and counts allocations
api_harness = tests/support/api_harness.c tests/support/api_harness.h
api_harness_wrap = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=engine_submit,--wrap=engine_cancel,--wrap=engine_stop_choice,--wrap=engine_context,--wrap=engine_stats
unit_programs += tests/unit/test_stream
tests_unit_test_stream_SOURCES = tests/unit/test_stream.c $(api_harness) tests/support/vocab_builder.c tests/support/vocab_builder.h \
	tests/support/check_main.h
tests_unit_test_stream_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_stream_LDADD = $(UNIT_LIBS)
tests_unit_test_stream_LDFLAGS = $(api_harness_wrap)
