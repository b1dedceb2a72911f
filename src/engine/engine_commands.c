/*
 * Commands of the loop, carried out by the engine thread between two steps.
 */
#include "config.h"

#include <stdlib.h>

#include "engine_priv.h"
#include "tellerd/base/clock.h"

void engine_command_free(struct queue_node *node)
{
    struct engine_command *command = (struct engine_command *)node;

    if (command->live)
        live_request_free(command->live);
    free(command);
}

static void handle_submit(struct engine *engine, struct engine_command *command)
{
    struct live_request *live = command->live;

    command->live = NULL;
    engine_accept(engine, live);
    if (atomic_load(&engine->failed))
        engine_end_request(engine, live, FINISH_ERROR, &engine->failure);
}

static void handle_cancel(struct engine *engine, const struct engine_command *command)
{
    struct live_request *live = engine_find(engine, command->id);

    if (!live)
        return;
    engine_end_request(engine, live, FINISH_CANCELLED, NULL);
    metric_observe(engine->metrics.cancel_seconds, (double)(clock_ns() - command->time_ns) / 1e9);
}

static void handle_stop_choice(struct engine *engine, const struct engine_command *command)
{
    struct live_request *live = engine_find(engine, command->id);

    if (live && command->choice < live->gen->n_choices &&
        sequence_is_live(&live->sequences[command->choice]))
        engine_end_choice(engine, &live->sequences[command->choice], FINISH_STOP, NULL);
}

static void handle_drain(struct engine *engine, const struct engine_command *command)
{
    struct error error;

    if (!command->fail_waiting)
        return;
    error_set(&error, STATUS_SHUTTING_DOWN, "the server is shutting down");
    engine_end_all(engine, true, &error);
}

void engine_handle_commands(struct engine *engine, struct queue_node *list)
{
    engine->now_ns = clock_ns();
    while (list) {
        struct engine_command *command = (struct engine_command *)list;

        list = list->next;
        switch (command->kind) {
        case COMMAND_SUBMIT:
            handle_submit(engine, command);
            break;
        case COMMAND_CANCEL:
            handle_cancel(engine, command);
            break;
        case COMMAND_STOP_CHOICE:
            handle_stop_choice(engine, command);
            break;
        case COMMAND_DRAIN:
            handle_drain(engine, command);
            break;
        }
        engine_command_free(&command->node);
    }
    engine_bury(engine);
}
