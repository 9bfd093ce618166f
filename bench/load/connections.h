// Connections: how they begin, are tried again, and end.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "script.h"
#include "measure.h"

enum { IDLE, CONNECTING, UPGRADING, FOLLOWING, READY };
static const uint64_t RETRY = SECOND / 50, HANDSHAKE = 10 * SECOND;

typedef struct {
    int fd, state;
    uint32_t group, step, awaited;
    uint64_t started, units, hash, answer_bytes;
    uint8_t *kept;
    size_t kept_length;
} Connection;

static struct sockaddr_in address;
static Connection *connections;
static uint32_t connection_count, next_to_open, at_once, in_handshake, ready, retry_count, *retries;
static uint64_t retry_at, retried;
static int epoll_fd;
static char trouble[256];

static void fail(const char *format, ...) {
    if (trouble[0]) return; // the first one is the cause
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trouble, sizeof trouble, format, arguments);
    va_end(arguments);
    for (char *c = trouble; *c; c++)
        if (*c < ' ' || *c == '"' || *c == '\\') *c = '?';
}

static void drop(Connection *connection) {
    struct linger reset = {1, 0};
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(connection->fd);
    free(connection->kept);
    if (connection->state == READY) ready--;
    else if (connection->state != IDLE) in_handshake--;
    *connection = (Connection){.fd = -1, .group = connection->group};
}

static void try_again(Connection *connection) {
    drop(connection);
    retries[retry_count++] = (uint32_t)(connection - connections);
    retried++;
    retry_at = now() + RETRY;
}

static bool deliver(Connection *connection, const uint8_t *data, size_t length) {
    if (send(connection->fd, data, length, MSG_NOSIGNAL) == (ssize_t)length) return true;
    fail("a connection does not take what the script sends: %s", strerror(errno));
    return false;
}

static void start(Connection *connection) {
    int one = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0) die("socket");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connection->state = CONNECTING;
    connection->started = now();
    connection->hash = FNV;
    in_handshake++;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = connection};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) < 0) die("epoll_ctl");
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS)
        try_again(connection);
}

static void connected(Connection *connection) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) {
        try_again(connection);
        return;
    }
    char request[2048];
    Script *script = &scripts[connection->group];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
                        script->path, ntohs(address.sin_port), script->headers);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
    connection->state = UPGRADING;
    deliver(connection, (uint8_t *)request, (size_t)size);
}

// Try again what takes too long to open.
static void hurry(uint64_t time) {
    for (uint32_t i = 0; i < connection_count; i++) {
        int state = connections[i].state;
        if ((state == CONNECTING || state == UPGRADING) && time > connections[i].started + HANDSHAKE)
            try_again(&connections[i]);
    }
}
