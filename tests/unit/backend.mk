# unit tests of layer backend
unit_programs += tests/unit/test_cpu_product
tests_unit_test_cpu_product_SOURCES = tests/unit/test_cpu_product.c tests/support/check_main.h tests/support/cpu_fixture.h
tests_unit_test_cpu_product_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_cpu_product_LDADD = $(UNIT_LIBS)
unit_programs += tests/unit/test_cpu_attention
tests_unit_test_cpu_attention_SOURCES = tests/unit/test_cpu_attention.c tests/support/check_main.h tests/support/cpu_fixture.h
tests_unit_test_cpu_attention_CFLAGS = $(UNIT_CFLAGS)
tests_unit_test_cpu_attention_LDADD = $(UNIT_LIBS)
