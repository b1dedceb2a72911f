#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/check_main.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/queue.h"

struct message {
    struct queue_node node;
    int producer;
    int number;
};

static struct queue_node *message_new(int producer, int number)
{
    struct message *message = xcalloc(1, sizeof *message);
    message->producer = producer;
    message->number = number;
    return &message->node;
}

static void message_free(struct queue_node *node)
{
    free(node);
}

/* Frees the list; how many messages it had.  Their numbers must be first, first + 1, ... */
static int check_list(struct queue_node *node, int first)
{
    int n = 0;
    while (node) {
        struct queue_node *next = node->next;
        ck_assert_int_eq(((struct message *)node)->number, first + n);
        free(node);
        node = next;
        n++;
    }
    return n;
}

static void count_wake(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

START_TEST(messages_come_out_in_order)
{
    struct queue *queue = queue_new(0, NULL, NULL);
    ck_assert_ptr_null(queue_drain(queue));
    for (int i = 0; i < 10; i++)
        ck_assert(queue_push(queue, message_new(0, i)));
    ck_assert_uint_eq(queue_length(queue), 10);
    ck_assert_int_eq(check_list(queue_drain(queue), 0), 10);
    ck_assert_uint_eq(queue_length(queue), 0);
    ck_assert(queue_push(queue, message_new(0, 5)));
    ck_assert_int_eq(check_list(queue_wait(queue, UINT64_MAX), 5), 1);
    queue_free(queue, message_free);
}
END_TEST

START_TEST(a_full_queue_refuses_and_the_caller_keeps)
{
    struct queue *queue = queue_new(2, NULL, NULL);
    struct queue_node *third = message_new(0, 2);
    ck_assert(queue_push(queue, message_new(0, 0)));
    ck_assert(queue_push(queue, message_new(0, 1)));
    ck_assert(!queue_push(queue, third));
    ck_assert_int_eq(check_list(queue_drain(queue), 0), 2);
    ck_assert(queue_push(queue, third));
    queue_free(queue, message_free);
}
END_TEST

START_TEST(a_list_ignores_the_bound_and_wakes_once)
{
    atomic_int wakes = 0;
    struct queue *queue = queue_new(1, count_wake, &wakes);
    struct queue_node *list = message_new(0, 0);
    list->next = message_new(0, 1);
    list->next->next = message_new(0, 2);
    queue_push_list(queue, NULL);
    ck_assert_int_eq(wakes, 0);
    queue_push_list(queue, list);
    ck_assert_int_eq(wakes, 1);
    queue_push_list(queue, message_new(0, 3));
    ck_assert_int_eq(wakes, 1);
    ck_assert_uint_eq(queue_length(queue), 4);
    ck_assert_int_eq(check_list(queue_drain(queue), 0), 4);
    queue_free(queue, message_free);
}
END_TEST

START_TEST(wake_ups_coalesce_until_drained)
{
    atomic_int wakes = 0;
    struct queue *queue = queue_new(0, count_wake, &wakes);
    for (int i = 0; i < 5; i++)
        queue_push(queue, message_new(0, i));
    ck_assert_int_eq(wakes, 1);
    check_list(queue_drain(queue), 0);
    queue_push(queue, message_new(0, 9));
    ck_assert_int_eq(wakes, 2);
    queue_free(queue, message_free);
}
END_TEST

START_TEST(a_closed_queue_refuses_but_gives_what_it_has)
{
    struct queue *queue = queue_new(0, NULL, NULL);
    struct queue_node *late = message_new(0, 1);
    queue_push(queue, message_new(0, 0));
    queue_close(queue);
    ck_assert(!queue_push(queue, late));
    free(late);
    ck_assert_int_eq(check_list(queue_wait(queue, UINT64_MAX), 0), 1);
    ck_assert_ptr_null(queue_wait(queue, UINT64_MAX));
    queue_push_list(queue, message_new(0, 7)); /* final events still find their way */
    ck_assert_int_eq(check_list(queue_drain(queue), 7), 1);
    queue_free(queue, message_free);
}
END_TEST

START_TEST(waiting_ends_after_its_time)
{
    struct queue *queue = queue_new(0, NULL, NULL);
    ck_assert_ptr_null(queue_wait(queue, 0));
    ck_assert_ptr_null(queue_wait(queue, 1000000));
    queue_free(queue, message_free);
}
END_TEST

START_TEST(what_is_left_is_freed_with_the_queue)
{
    struct queue *queue = queue_new(0, NULL, NULL);
    for (int i = 0; i < 3; i++)
        queue_push(queue, message_new(0, i));
    queue_free(queue, message_free);
    queue_free(NULL, message_free);
}
END_TEST

enum { N_PRODUCERS = 4, N_MESSAGES = 3000 };

struct producer {
    pthread_t thread;
    struct queue *queue;
    int number;
};

static void *produce(void *ctx)
{
    struct producer *self = ctx;
    for (int i = 0; i < N_MESSAGES;) {
        struct queue_node *node = message_new(self->number, i);
        if (i % 7 == 0 && i + 1 < N_MESSAGES) {
            node->next = message_new(self->number, i + 1);
            queue_push_list(self->queue, node);
            i += 2;
        } else if (queue_push(self->queue, node)) {
            i++;
        } else {
            free(node); /* full: try again */
            sched_yield();
        }
    }
    return NULL;
}

START_TEST(many_threads_push_and_none_is_lost_or_overtaken)
{
    atomic_int wakes = 0;
    struct queue *queue = queue_new(64, count_wake, &wakes);
    struct producer producers[N_PRODUCERS];
    int next[N_PRODUCERS] = {0}, n_seen = 0, n_batches = 0;
    for (int p = 0; p < N_PRODUCERS; p++) {
        producers[p] = (struct producer){.queue = queue, .number = p};
        ck_assert_int_eq(pthread_create(&producers[p].thread, NULL, produce, &producers[p]), 0);
    }
    while (n_seen < N_PRODUCERS * N_MESSAGES) {
        struct queue_node *node = queue_wait(queue, UINT64_MAX);
        ck_assert_ptr_nonnull(node);
        n_batches++;
        while (node) {
            struct message *message = (struct message *)node;
            ck_assert_int_eq(message->number, next[message->producer]++);
            node = node->next;
            free(message);
            n_seen++;
        }
    }
    for (int p = 0; p < N_PRODUCERS; p++)
        pthread_join(producers[p].thread, NULL);
    ck_assert_int_eq(wakes, n_batches);
    ck_assert_uint_eq(queue_length(queue), 0);
    queue_free(queue, message_free);
}
END_TEST

static void *close_it(void *queue)
{
    queue_close(queue);
    return NULL;
}

START_TEST(closing_wakes_the_waiter)
{
    struct queue *queue = queue_new(0, NULL, NULL);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, close_it, queue), 0);
    ck_assert_ptr_null(queue_wait(queue, UINT64_MAX));
    pthread_join(thread, NULL);
    queue_free(queue, message_free);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "one thread", messages_come_out_in_order,
              a_full_queue_refuses_and_the_caller_keeps, a_list_ignores_the_bound_and_wakes_once,
              wake_ups_coalesce_until_drained, a_closed_queue_refuses_but_gives_what_it_has,
              waiting_ends_after_its_time, what_is_left_is_freed_with_the_queue);
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, 60);
    tcase_add_test(threads, many_threads_push_and_none_is_lost_or_overtaken);
    tcase_add_test(threads, closing_wakes_the_waiter);
    suite_add_tcase(suite, threads);
}

CHECK_MAIN("queue", add_cases)
