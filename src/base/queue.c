/*
 * Many-to-one queue: a list under a mutex.  A push into an empty queue wakes the consumer, by the
 * condition and by the callback; later pushes need not, since the consumer takes everything.
 */
#include "config.h"

#include "tellerd/base/queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tellerd/base/clock.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/status.h"

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled; /* waits by the monotonic clock */
    struct queue_node *first;
    struct queue_node *last;
    size_t length;
    size_t max; /* 0: no bound */
    bool closed;
    queue_wake_fn wake;
    void *wake_ctx;
};

struct queue *queue_new(size_t max, queue_wake_fn wake, void *wake_ctx)
{
    struct queue *queue = xcalloc(1, sizeof *queue);
    pthread_condattr_t attr;
    queue->max = max;
    queue->wake = wake;
    queue->wake_ctx = wake_ctx;
    REQUIRE(pthread_mutex_init(&queue->mutex, NULL) == 0);
    REQUIRE(pthread_condattr_init(&attr) == 0);
    REQUIRE(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    REQUIRE(pthread_cond_init(&queue->filled, &attr) == 0);
    pthread_condattr_destroy(&attr);
    return queue;
}

void queue_free(struct queue *queue, void (*free_message)(struct queue_node *))
{
    if (!queue)
        return;
    struct queue_node *node = queue_drain(queue);
    while (node) {
        struct queue_node *next = node->next;
        if (free_message)
            free_message(node);
        node = next;
    }
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

/* Puts the list at the end; whether the queue was empty before.  Locked. */
static bool append(struct queue *queue, struct queue_node *first, struct queue_node *last, size_t n)
{
    bool was_empty = queue->first == NULL;
    if (was_empty)
        queue->first = first;
    else
        queue->last->next = first;
    queue->last = last;
    queue->length += n;
    if (was_empty)
        pthread_cond_signal(&queue->filled);
    return was_empty;
}

bool queue_push(struct queue *queue, struct queue_node *message)
{
    /* read before the push: afterwards the consumer may already have freed the queue */
    queue_wake_fn wake = queue->wake;
    void *wake_ctx = queue->wake_ctx;
    bool was_empty = false;
    pthread_mutex_lock(&queue->mutex);
    bool taken = !queue->closed && (queue->max == 0 || queue->length < queue->max);
    if (taken) {
        message->next = NULL;
        was_empty = append(queue, message, message, 1);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (was_empty && wake)
        wake(wake_ctx);
    return taken;
}

void queue_push_list(struct queue *queue, struct queue_node *first)
{
    if (!first)
        return;
    queue_wake_fn wake = queue->wake;
    void *wake_ctx = queue->wake_ctx;
    struct queue_node *last = first;
    size_t n = 1;
    for (; last->next; last = last->next)
        n++;
    pthread_mutex_lock(&queue->mutex);
    bool was_empty = append(queue, first, last, n);
    pthread_mutex_unlock(&queue->mutex);
    if (was_empty && wake)
        wake(wake_ctx);
}

/* Takes everything.  Locked. */
static struct queue_node *take_all(struct queue *queue)
{
    struct queue_node *first = queue->first;
    queue->first = NULL;
    queue->last = NULL;
    queue->length = 0;
    return first;
}

struct queue_node *queue_drain(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    struct queue_node *first = take_all(queue);
    pthread_mutex_unlock(&queue->mutex);
    return first;
}

static struct timespec deadline_after(uint64_t timeout_ns)
{
    uint64_t second = 1000000000u, end;
    if (__builtin_add_overflow(clock_ns(), timeout_ns, &end))
        end = UINT64_MAX;
    return (struct timespec){.tv_sec = (time_t)(end / second), .tv_nsec = (long)(end % second)};
}

struct queue_node *queue_wait(struct queue *queue, uint64_t timeout_ns)
{
    struct timespec deadline = deadline_after(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->closed && in_time) {
        if (timeout_ns == UINT64_MAX)
            pthread_cond_wait(&queue->filled, &queue->mutex);
        else
            in_time = pthread_cond_timedwait(&queue->filled, &queue->mutex, &deadline) == 0;
    }
    struct queue_node *first = take_all(queue);
    pthread_mutex_unlock(&queue->mutex);
    return first;
}

void queue_close(struct queue *queue)
{
    queue_wake_fn wake = queue->wake;
    void *wake_ctx = queue->wake_ctx;
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
    if (wake)
        wake(wake_ctx);
}

size_t queue_length(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    size_t length = queue->length;
    pthread_mutex_unlock(&queue->mutex);
    return length;
}
