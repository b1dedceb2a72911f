# black-box tests: each starts its own daemon
