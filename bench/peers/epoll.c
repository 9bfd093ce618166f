// The limit: a WebSocket server that is nothing but epoll and one send() for each subscriber and turn.
//
// It listens on a free port of 127.0.0.1, prints `ready URL`, and obeys lines on its input, as every peer does:
//   fan COUNT BYTES BATCH     publish so many messages to room 0, BATCH of them in one turn (joined in one send)
//   rooms ROOMS COUNT BYTES   publish so many to each room, one for each in a turn
//   pace ROOMS RATE COUNT     publish so many to each room, RATE a second in all, each ending in its time
//   cpu                       say how many seconds of CPU were used
// Each is answered by `done` (or the number) when everything is in the kernel. A client at `/?room=N` gets what
// is published to room N. What the kernel does not take is kept, and sent when it does.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "handshake.h"

enum { EVENTS = 1024, REQUEST = 2048, STAMPED = 20 };
static const uint64_t SECOND = 1000000000;

typedef struct {
    int fd;
    bool open;
    uint32_t room, place;
    size_t length; // of the request, while it is not open; else of what waits for the kernel
    uint8_t *bytes;
} Client;

typedef struct { Client **clients; uint32_t count, capacity; } Room;

static int epoll_fd, listener, timer;
static Room *rooms;
static uint32_t room_count;
static unsigned waiting; // clients that the kernel has not taken everything for
static bool commanded;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *resized(void *old, size_t size) {
    void *memory = realloc(old, size);
    if (!memory) die("memory");
    return memory;
}

static void watch(Client *client, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = client};
    if (epoll_ctl(epoll_fd, operation, client->fd, &event) < 0) die("epoll_ctl");
}

static void join(Client *client, uint32_t number) {
    if (number >= room_count) {
        rooms = resized(rooms, (number + 1) * sizeof *rooms);
        memset(rooms + room_count, 0, (number + 1 - room_count) * sizeof *rooms);
        room_count = number + 1;
    }
    Room *room = &rooms[number];
    if (room->count == room->capacity) {
        room->capacity = room->capacity ? 2 * room->capacity : 4;
        room->clients = resized(room->clients, room->capacity * sizeof *room->clients);
    }
    client->room = number;
    client->place = room->count;
    client->open = true;
    client->length = 0;
    room->clients[room->count++] = client;
}

static void leave(Client *client) {
    if (client->open) {
        Room *room = &rooms[client->room];
        room->clients[client->place] = room->clients[--room->count];
        room->clients[client->place]->place = client->place;
        waiting -= client->length > 0;
    }
    close(client->fd);
    free(client->bytes);
    free(client);
}

static void deliver(Client *client, const uint8_t *data, size_t length) {
    if (!client->length) {
        ssize_t sent = send(client->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent == (ssize_t)length) return;
        if (sent < 0 && errno != EAGAIN) return; // its end is told by epoll
        data += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
        waiting++;
        watch(client, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
    }
    client->bytes = resized(client->bytes, client->length + length);
    memcpy(client->bytes + client->length, data, length);
    client->length += length;
}

static void resume(Client *client) {
    ssize_t sent = send(client->fd, client->bytes, client->length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;
    client->length -= (size_t)sent;
    memmove(client->bytes, client->bytes + sent, client->length);
    if (client->length) return;
    free(client->bytes);
    client->bytes = NULL;
    waiting--;
    watch(client, EPOLLIN, EPOLL_CTL_MOD);
}

// Answer a handshake that is complete; return false where it is none.
static bool answer(Client *client) {
    char *request = (char *)client->bytes, *key = strcasestr(request, "\r\nsec-websocket-key: ");
    unsigned number = 0;
    if (!key || sscanf(request, "GET /?room=%u ", &number) != 1) return false;
    char accept[29], text[160];
    accept_key(key + 21, accept);
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: %s\r\n\r\n", accept);
    free(client->bytes);
    client->bytes = NULL;
    join(client, number);
    deliver(client, (uint8_t *)text, (size_t)length);
    return true;
}

static bool receive(Client *client) {
    if (client->open) {
        char ignored[4096];
        ssize_t got = recv(client->fd, ignored, sizeof ignored, MSG_DONTWAIT);
        return got > 0 || (got < 0 && errno == EAGAIN);
    }
    if (!client->bytes) client->bytes = resized(NULL, REQUEST);
    ssize_t got = recv(client->fd, client->bytes + client->length, REQUEST - 1 - client->length, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    client->length += (size_t)got;
    client->bytes[client->length] = 0;
    return strstr((char *)client->bytes, "\r\n\r\n") ? answer(client) : true;
}

static void take_in(void) {
    int one = 1;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Client *client = resized(NULL, sizeof *client);
        *client = (Client){.fd = fd};
        watch(client, EPOLLIN, EPOLL_CTL_ADD);
    }
}

// One turn of the event loop.
static void turn(int timeout_ms) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll_fd, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        void *source = events[i].data.ptr;
        uint64_t passed;
        if (source == &listener) take_in();
        else if (source == &commanded) commanded = true;
        else if (source == &timer) passed = (uint64_t)read(timer, &passed, sizeof passed);
        else {
            Client *client = source;
            if (events[i].events & EPOLLOUT && client->length && client->open) resume(client);
            if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !receive(client)) leave(client);
        }
    }
}

// The commands

static size_t framed(uint8_t *out, const char *payload, size_t length) {
    size_t header = 2;
    out[0] = 0x82;
    if (length < 126) {
        out[1] = (uint8_t)length;
    } else {
        out[1] = 126;
        out[2] = (uint8_t)(length >> 8);
        out[3] = (uint8_t)length;
        header = 4;
    }
    memcpy(out + header, payload, length);
    return header + length;
}

static void publish(uint32_t number, const uint8_t *data, size_t length) {
    if (number >= room_count) return;
    Room *room = &rooms[number];
    for (uint32_t i = 0; i < room->count; i++) deliver(room->clients[i], data, length);
}

static uint8_t *filler(size_t size, unsigned copies, size_t *length) {
    char *payload = resized(NULL, size + 1);
    uint8_t *data = resized(NULL, (size + 4) * copies);
    memset(payload, 'w', size);
    *length = 0;
    for (unsigned i = 0; i < copies; i++) *length += framed(data + *length, payload, size);
    free(payload);
    return data;
}

static void fan(unsigned count, unsigned size, unsigned batch) {
    size_t length;
    uint8_t *data = filler(size, batch, &length);
    for (unsigned i = 0; i < count; i += batch) {
        publish(0, data, length);
        turn(0);
    }
    free(data);
}

static void publish_rooms(unsigned number, unsigned count, unsigned size) {
    size_t length;
    uint8_t *data = filler(size, 1, &length);
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t room = 0; room < number; room++) publish(room, data, length);
        turn(0);
    }
    free(data);
}

static void pace(unsigned number, double rate, unsigned count) {
    uint64_t start = now(), total = (uint64_t)number * count;
    for (uint64_t i = 0; i < total;) {
        uint64_t due = start + (uint64_t)((double)i * 1e9 / rate), time = now();
        if (time >= due) {
            char payload[STAMPED + 1];
            uint8_t data[STAMPED + 4];
            snprintf(payload, sizeof payload, "word%016lx", time);
            publish((uint32_t)(i % number), data, framed(data, payload, STAMPED));
            i++;
            continue;
        }
        struct itimerspec at = {.it_value = {(time_t)(due / SECOND), (long)(due % SECOND)}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        turn(-1);
    }
}

static void obey(const char *line) {
    unsigned a, b, c;
    double rate;
    if (!strncmp(line, "cpu", 3)) {
        struct rusage used;
        getrusage(RUSAGE_SELF, &used);
        printf("%.6f\n", (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                             (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
        return;
    }
    if (sscanf(line, "fan %u %u %u", &a, &b, &c) == 3 && b < 65536 && c) fan(a, b, c);
    else if (sscanf(line, "rooms %u %u %u", &a, &b, &c) == 3 && c < 65536) publish_rooms(a, b, c);
    else if (sscanf(line, "pace %u %lf %u", &a, &rate, &c) == 3 && a && rate > 0) pace(a, rate, c);
    else {
        fprintf(stderr, "unknown command: %s\n", line);
        exit(1);
    }
    while (waiting) turn(-1);
    puts("done");
}

static void listen_for(int fd, void *source) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

int main(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 4096) < 0) die("listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    listen_for(listener, &listener);
    listen_for(timer, &timer);
    listen_for(0, &commanded);
    printf("ready ws://127.0.0.1:%d\n", ntohs(address.sin_port));
    char line[256];
    size_t used = 0;
    for (;;) {
        turn(-1);
        if (!commanded) continue;
        commanded = false;
        ssize_t got = read(0, line + used, sizeof line - 1 - used);
        if (got <= 0) return 0;
        used += (size_t)got;
        line[used] = 0;
        for (char *end; (end = strchr(line, '\n')) != NULL;) {
            *end = 0;
            obey(line);
            used -= (size_t)(end + 1 - line);
            memmove(line, end + 1, used + 1);
        }
    }
}
