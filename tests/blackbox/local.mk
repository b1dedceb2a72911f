# black-box tests: each starts its own daemon (or, for tellerctl, a server that does what it is told)
dist_check_SCRIPTS += tests/blackbox/test_units.sh tests/blackbox/test_command_line.sh

# the daemon with a scripted model, for test_scripted.py
check_PROGRAMS += tests/support/scripted_tellerd
tests_support_scripted_tellerd_SOURCES = tests/support/scripted_tellerd.c
tests_support_scripted_tellerd_LDADD = $(TELLERD_LIBS)

blackbox_tests += tests/blackbox/test_http.py tests/blackbox/test_api.py tests/blackbox/test_scripted.py \
	tests/blackbox/test_generation.py tests/blackbox/test_tellerctl.py tests/blackbox/test_service.py \
	tests/blackbox/test_bench.py
# real models: too slow for the sanitizers
dist_check_SCRIPTS += tests/blackbox/test_models.py
dist_check_SCRIPTS += $(blackbox_tests)
EXTRA_DIST += tests/blackbox/harness.py
clean_folders += tests/tiny-models
