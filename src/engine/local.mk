# layer engine: cache, scheduler, the one engine thread
libtellerd_a_SOURCES += \
	src/engine/request.c include/tellerd/engine/request.h \
	src/engine/kv_pool.c include/tellerd/engine/kv_pool.h \
	src/engine/prefix_cache.c include/tellerd/engine/prefix_cache.h \
	src/engine/sequence.c include/tellerd/engine/sequence.h \
	src/engine/scheduler.c include/tellerd/engine/scheduler.h \
	src/engine/engine.c include/tellerd/engine/engine.h src/engine/engine_priv.h \
	src/engine/engine_commands.c src/engine/engine_requests.c src/engine/engine_metrics.c \
	src/engine/step.c \
	src/engine/step_budget.c include/tellerd/engine/step_budget.h \
	src/engine/forward_gpt.c include/tellerd/engine/forward_gpt.h \
	src/engine/forward_script.c include/tellerd/engine/forward_script.h include/tellerd/engine/forward.h
