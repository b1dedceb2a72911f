# layer daemon: options, start, signals, service manager
libtellerd_a_SOURCES += \
	src/daemon/config.c include/tellerd/daemon/config.h include/tellerd/daemon/options.def \
	src/daemon/config_value.c src/daemon/config_priv.h \
	src/daemon/config_ini.c include/tellerd/daemon/ini.h \
	src/daemon/config_check.c \
	src/daemon/config_doc.c \
	src/daemon/keys.c include/tellerd/daemon/keys.h include/tellerd/api/key.h \
	src/daemon/listen_address.c include/tellerd/daemon/listen_address.h \
	src/daemon/notify.c include/tellerd/daemon/notify.h \
	src/daemon/activation.c include/tellerd/daemon/activation.h \
	src/daemon/daemon.c src/daemon/daemon_priv.h include/tellerd/daemon/daemon.h \
	include/tellerd/daemon/model_load.h \
	src/daemon/model_load.c \
	src/daemon/load.c \
	src/daemon/reload.c \
	src/daemon/drain.c \
	src/daemon/process_metrics.c src/daemon/process_metrics_priv.h
sbin_PROGRAMS += tellerd
tellerd_SOURCES = src/daemon/main.c
tellerd_LDADD = $(TELLERD_LIBS)
