#ifndef TELLERD_BASE_QUEUE_H
#define TELLERD_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Many-to-one queue of messages that carry a struct queue_node first.  Mutex and condition inside;
 * the consumer either waits (engine) or is woken by the callback (loop; wake-ups coalesce, so it
 * must drain everything).  The queue owns what is in it; messages still queued at queue_done are
 * handed to free_message.
 */
struct queue_node {
    struct queue_node *next;
};

struct queue;
typedef void (*queue_wake_fn)(void *ctx);

/* max 0 = no bound (for messages whose number is bounded elsewhere). wake may be NULL. */
struct queue *queue_new(size_t max, queue_wake_fn wake, void *wake_ctx);
void queue_free(struct queue *queue, void (*free_message)(struct queue_node *));
/* Takes the message; false (and the caller keeps it) when the queue is full or closed.  Any thread.
 */
bool queue_push(struct queue *queue, struct queue_node *message);
/* Takes a whole list (linked by next, in order) under one lock and one wake-up.  Ignores the bound,
 * and takes the list also when closed (final events).  Any thread. */
void queue_push_list(struct queue *queue, struct queue_node *first);
/* All messages now queued, oldest first, as a list; NULL when none.  Consumer thread; never waits.
 */
struct queue_node *queue_drain(struct queue *queue);
/* As queue_drain, but waits up to timeout_ns (UINT64_MAX: for ever) for the first.  NULL after the
 * time, or when closed and empty. */
struct queue_node *queue_wait(struct queue *queue, uint64_t timeout_ns);
/* Refuses further messages and wakes the waiter. */
void queue_close(struct queue *queue);
size_t queue_length(struct queue *queue);

#endif
