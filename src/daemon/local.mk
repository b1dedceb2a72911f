# layer daemon: options, start, signals, service manager
sbin_PROGRAMS += tellerd
tellerd_SOURCES = src/daemon/main.c
tellerd_LDADD = $(TELLERD_LIBS)
