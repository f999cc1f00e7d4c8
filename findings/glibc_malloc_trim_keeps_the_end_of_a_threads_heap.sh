#!/bin/sh
# By its manual page, malloc_trim(0) returns to the system the free memory of all arenas, since glibc 2.8. glibc 2.36
# returns the free pages between allocations, and the end of the heap of the main thread. The end of any other thread's
# heap stays, however large: here 40 MiB that a thread has freed. The usual way there is one large block: freeing it
# makes glibc keep twice its size at the end of each heap.
#
# Needs root, Debian's apt-get and gcc. Packages: libc6 2.36 (Debian 12). Seen on 2026-11-30.
set -eu
dpkg-query -W -f '${Version}\n' libc6 | grep '^2\.36-' || apt-get install -y -q --no-install-recommends 'libc6=2.36-*'
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
cat > heaps.c <<'C'
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 400, BYTES = 100 * 1024 };

static long resident_mib(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "RssAnon: %ld", &kib);
    fclose(status);
    return kib / 1024;
}

static void *use_and_free(void *unused) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = BLOCKS; i-- > 0;)
        free(blocks[i]);
    return unused;
}

static void show(const char *who, long before) {
    long freed = resident_mib() - before;
    malloc_trim(0);
    long kept = resident_mib() - before;
    printf("%s: %s stays after free, %s after malloc_trim\n", who, freed > 30 ? "most" : "nothing", kept > 30 ? "most" : "nothing");
}

int main(void) {
    /* From the system, as it is large. */
    free(memset(malloc(25 << 20), 1, 25 << 20));
    long before = resident_mib();
    use_and_free(NULL);
    show("the main thread", before);
    pthread_t thread;
    before = resident_mib();
    pthread_create(&thread, NULL, use_and_free, NULL);
    pthread_join(thread, NULL);
    show("another thread", before);
}
C
gcc -O0 -pthread -o heaps heaps.c
./heaps > seen
cat seen
cat > expected <<'TEXT'
the main thread: most stays after free, nothing after malloc_trim
another thread: most stays after free, most after malloc_trim
TEXT
diff expected seen && echo "as before"
