# unit tests of layer http
unit_programs += tests/unit/test_request_parser
tests_unit_test_request_parser_SOURCES = tests/unit/test_request_parser.c
tests_unit_test_request_parser_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_request_parser_LDADD = $(UNIT_LIBS)
