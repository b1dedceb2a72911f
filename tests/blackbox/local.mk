# black-box tests: each starts its own daemon
dist_check_SCRIPTS += tests/blackbox/test_units.sh tests/blackbox/test_command_line.sh
