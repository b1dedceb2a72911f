# unit tests of layer api
unit_programs += tests/unit/test_text_stream tests/unit/test_generate_request
tests_unit_test_text_stream_SOURCES = tests/unit/test_text_stream.c
tests_unit_test_text_stream_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_text_stream_LDADD = $(UNIT_LIBS)
tests_unit_test_generate_request_SOURCES = tests/unit/test_generate_request.c
tests_unit_test_generate_request_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_generate_request_LDADD = $(UNIT_LIBS)
