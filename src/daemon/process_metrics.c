#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "process_metrics_priv.h"
#include "tellerd/base/clock.h"

/* The process_* set that every Prometheus client library offers, read at exposition. */

static double cpu_seconds(void *ctx)
{
    struct rusage usage;
    (void)ctx;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Linux gives the number as the folder's size from 6.2 on; ten thousand entries take milliseconds
 * to read, in which the loop answers nobody. */
static double open_fds(void *ctx)
{
    (void)ctx;
    struct stat info;
    if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
        return (double)info.st_size;
    DIR *folder = opendir("/proc/self/fd");
    double n = 0;
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

static double max_fds(void *ctx)
{
    struct rlimit limit = {0};
    (void)ctx;
    getrlimit(RLIMIT_NOFILE, &limit);
    return (double)limit.rlim_cur;
}

/* Field of /proc/self/statm, in bytes. */
static double statm(int field)
{
    unsigned long long pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%llu %llu", &pages[0], &pages[1]) != 2)
        pages[0] = pages[1] = 0;
    if (file)
        fclose(file);
    return (double)pages[field] * (double)sysconf(_SC_PAGESIZE);
}

static double resident_bytes(void *ctx)
{
    (void)ctx;
    return statm(1);
}

static double virtual_bytes(void *ctx)
{
    (void)ctx;
    return statm(0);
}

static double threads(void *ctx)
{
    (void)ctx;
    DIR *folder = opendir("/proc/self/task");
    double n = 0;
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n > 2 ? n - 2 : 0;
}

void process_metrics_create(struct metrics *metrics)
{
    metrics_callback(metrics, "process_cpu_seconds_total", "Processor time spent, user and system.",
                     "", true, cpu_seconds, NULL);
    metrics_callback(metrics, "process_open_fds", "Open file descriptors.", "", false, open_fds,
                     NULL);
    metrics_callback(metrics, "process_max_fds", "Most file descriptors that may be open.", "",
                     false, max_fds, NULL);
    metrics_callback(metrics, "process_resident_memory_bytes", "Resident memory.", "", false,
                     resident_bytes, NULL);
    metrics_callback(metrics, "process_virtual_memory_bytes", "Virtual memory.", "", false,
                     virtual_bytes, NULL);
    metrics_callback(metrics, "process_threads", "Threads.", "", false, threads, NULL);
    metric_set(metrics_gauge(metrics, "process_start_time_seconds",
                             "Start of the process, seconds since 1970.", ""),
               clock_wall());
}
