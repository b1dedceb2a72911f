# unit tests of the clients
unit_programs += tests/unit/test_sse
tests_unit_test_sse_SOURCES = tests/unit/test_sse.c src/clients/ctl_sse.c tests/support/check_main.h
tests_unit_test_sse_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_sse_LDADD = $(UNIT_LIBS)
