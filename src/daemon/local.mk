# layer daemon: options, start, signals, service manager
