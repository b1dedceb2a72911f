# measurements: built on demand ("make bench/step"), never part of check
EXTRA_PROGRAMS += bench/step
bench_step_SOURCES = bench/step.c
bench_step_LDADD = $(TELLERD_LIBS)
CLEANFILES += bench/step
