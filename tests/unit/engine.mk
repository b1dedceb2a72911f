# unit tests of layer engine
unit_programs += tests/unit/test_kv_pool
tests_unit_test_kv_pool_SOURCES = tests/unit/test_kv_pool.c tests/support/check_main.h
tests_unit_test_kv_pool_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_kv_pool_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_prefix_cache
tests_unit_test_prefix_cache_SOURCES = tests/unit/test_prefix_cache.c tests/support/check_main.h
tests_unit_test_prefix_cache_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_prefix_cache_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_sequence
tests_unit_test_sequence_SOURCES = tests/unit/test_sequence.c tests/support/check_main.h
tests_unit_test_sequence_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_sequence_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_scheduler
tests_unit_test_scheduler_SOURCES = tests/unit/test_scheduler.c tests/support/check_main.h
tests_unit_test_scheduler_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_scheduler_LDADD = $(UNIT_LIBS)
