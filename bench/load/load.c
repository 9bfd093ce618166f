// The load client: holds thousands of WebSocket connections and counts what comes on them.
//
//   load HOST PORT CONNECTIONS SCRIPT
//
// SCRIPT says what a connection does before it is ready, a line each. Connection i follows group i % groups.
//   group G                begins the script of group G; lines before the first one begin every group's
//   path TEXT              what the HTTP handshake asks for
//   header NAME: VALUE     a header of it
//   send HEX, text STRING  a message to send
//   await N                messages to receive before the next line
// and, for all groups alike,
//   skip HEX               messages that begin so are not counted
//   ping HEX HEX           a message that begins so is answered by the second one, and not counted
//   again HEX MS           a message that begins so refuses the last one sent, which is sent again after MS ms
//   deltas                 midstream: only deltas may come, and each counts as the tokens that its text has
//
// Commands on the input, each answered by a line of JSON:
//   open N                 connect all, at most N handshakes at a time
//   begin UNITS [BYTES]    from now on each connection is to receive so many messages, or tokens of BYTES bytes
//   wait                   answers when they have
//   close                  reset all connections
//   quit
#define _GNU_SOURCE
#include <sys/resource.h>

#include "connections.h"

enum { EVENTS = 1024, BUFFER = 4 << 20, READ = 256 << 10 };

typedef struct { Connection *connection; uint64_t due; } Later;

static uint8_t buffer[BUFFER];
static enum { NOTHING, OPENING, COUNTING, WAITING } doing;
static uint64_t began, first_at, last_at, wanted, unit_bytes, frames, units, bytes, reads, surplus, behind;
static Later *delayed; // a ring: what is to be sent again
static uint32_t delayed_first, delayed_count;
static uint64_t refused;

static void follow(Connection *connection) {
    Script *script = &scripts[connection->group];
    for (; connection->step < script->count; connection->step++, connection->awaited = 0) {
        Step *step = &script->steps[connection->step];
        if (step->sends) {
            connection->hash = FNV; // of what comes after the last message that was sent
            connection->answer_bytes = 0;
            if (!deliver(connection, step->bytes, step->length)) return;
        } else if (connection->awaited < step->count) return;
    }
    connection->state = READY;
    in_handshake--;
    ready++;
    record(now() - began);
}

// Go back to the last message that was sent, to send it again later.
static void postpone(Connection *connection, uint64_t time) {
    Script *script = &scripts[connection->group];
    connection->awaited = 0;
    while (connection->step && !script->steps[connection->step].sends) connection->step--;
    delayed[(delayed_first + delayed_count++) % connection_count] =
        (Later){connection, time + refusal_delay * (SECOND / 1000)};
    refused++;
}

static void count(Connection *connection, const uint8_t *data, size_t length, uint64_t time) {
    uint64_t worth = 1;
    connection->hash = hashed(connection->hash, data, length);
    if (deltas) {
        size_t size;
        const uint8_t *text = delta_text(data, data + length, &size);
        if (!text || !unit_bytes || size % unit_bytes) {
            fail("an unexpected message came, of %zu bytes: %.*s", length, (int)(length < 80 ? length : 80), data);
            return;
        }
        worth = size / unit_bytes;
        for (size_t end = unit_bytes; unit_bytes >= 16 && end <= size; end += unit_bytes) note_age(text + end, time);
    } else if (length >= 16) note_age(data + length, time);
    if (!frames++) first_at = time;
    units += worth;
    bytes += length;
    bool lacked = connection->units < wanted;
    connection->units += worth;
    if (connection->units > wanted) surplus++;
    else if (lacked && connection->units == wanted) {
        behind--;
        last_at = time;
    }
}

static void on_message(Connection *connection, uint8_t opcode, const uint8_t *data, size_t length, uint64_t time) {
    if (opcode == 8) {
        int code = length > 1 ? data[0] << 8 | data[1] : 0;
        fail("the server closed a connection: %d %.*s", code, length > 2 ? (int)(length - 2) : 0, data + 2);
    } else if (opcode == 9 || begins(data, length, &ping)) {
        Script once = {0};
        if (opcode == 9) add_message(&once, 10, data, length);
        else add_message(&once, opcode, pong.bytes, pong.length);
        deliver(connection, once.steps[0].bytes, once.steps[0].length);
        free(once.steps[0].bytes);
        free(once.steps);
    } else if (opcode != 10) {
        for (size_t i = 0; i < skip_count; i++)
            if (begins(data, length, &skips[i])) return;
        if (connection->state == READY) {
            count(connection, data, length, time);
            return;
        }
        if (begins(data, length, &refusal)) {
            postpone(connection, time);
            return;
        }
        connection->hash = hashed(connection->hash, data, length);
        connection->answer_bytes += length;
        connection->awaited++;
        follow(connection);
    }
}

// Take whole messages out of what came; return how many bytes they had.
static size_t take(Connection *connection, uint8_t *data, size_t length, uint64_t time) {
    size_t used = 0;
    if (connection->state == UPGRADING) {
        uint8_t *end = memmem(data, length, "\r\n\r\n", 4);
        if (!end) return 0;
        *end = 0;
        if (strncmp((char *)data, "HTTP/1.1 101", 12) || !strstr((char *)data, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")) {
            fail("the handshake was refused: %.60s", data);
            return length;
        }
        used = (size_t)(end + 4 - data);
        connection->state = FOLLOWING;
        follow(connection);
    }
    while (length - used >= 2 && !trouble[0]) {
        const uint8_t *frame = data + used;
        size_t header = 2, size = frame[1] & 127;
        int width = size == 126 ? 2 : size == 127 ? 8 : 0;
        if (length - used < header + (size_t)width) break;
        if (width) size = 0;
        for (; width; width--) size = size << 8 | frame[header++];
        if (!(frame[0] & 0x80) || frame[0] & 0x70 || size > BUFFER - READ - HEADER) {
            fail("a frame came that is no whole, plain message: %02x, %zu bytes", frame[0], size);
            break;
        }
        if (length - used < header + size) break;
        on_message(connection, frame[0] & 15, frame + header, size, time);
        used += header + size;
    }
    return used;
}

static void receive(Connection *connection) {
    size_t kept = connection->kept_length;
    if (kept) memcpy(buffer, connection->kept, kept);
    ssize_t got = recv(connection->fd, buffer + kept, READ, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        if (connection->state == UPGRADING) try_again(connection);
        else {
            fail("a connection was lost: %s", got ? strerror(errno) : "closed");
            drop(connection);
        }
        return;
    }
    reads++;
    size_t length = kept + (size_t)got, used = take(connection, buffer, length, now());
    connection->kept_length = length - used;
    if (used < length) {
        connection->kept = room(connection->kept, length - used);
        memcpy(connection->kept, buffer + used, length - used);
    } else {
        free(connection->kept);
        connection->kept = NULL;
    }
}

// Commands

static bool groups_agree(void) {
    for (size_t i = 0; i < script_count; i++) scripts[i].first = UINT32_MAX;
    for (uint32_t i = 0; i < connection_count; i++) {
        Script *script = &scripts[connections[i].group];
        if (script->first == UINT32_MAX) script->first = i;
        else if (connections[script->first].hash != connections[i].hash) return false;
    }
    return true;
}

static void answer_trouble(void) {
    printf("{\"error\":\"%s\",\"ready\":%u,\"behind\":%lu,\"frames\":%lu}\n", trouble, ready, behind, frames);
    trouble[0] = 0;
    doing = NOTHING;
}

static void answer(uint64_t seconds_end) {
    if (surplus) fail("%lu messages came that were not expected", surplus);
    if (trouble[0]) {
        answer_trouble();
        return;
    }
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < connection_count; i++) {
        if (connections[i].answer_bytes < least) least = connections[i].answer_bytes;
        if (connections[i].answer_bytes > most) most = connections[i].answer_bytes;
    }
    qsort(samples, sample_count, sizeof *samples, ascending);
    printf("{\"seconds\":%.6f,\"first\":%.6f,\"ready\":%u,\"retries\":%lu,\"refused\":%lu,\"equal\":%s,\"answer_bytes\":[%lu,%lu],",
           (double)(seconds_end - began) / 1e9, first_at ? (double)(first_at - began) / 1e9 : 0, ready, retried, refused,
           groups_agree() ? "true" : "false", least, most);
    printf("\"frames\":%lu,\"units\":%lu,\"bytes\":%lu,\"reads\":%lu,\"samples\":%zu,", frames, units, bytes, reads,
           sample_count);
    printf("\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f}\n", quantile(0.5), quantile(0.99),
           quantile(0.999), quantile(1));
    doing = NOTHING;
}

static void reset_counts(void) {
    began = now();
    first_at = last_at = frames = units = bytes = reads = sample_count = 0;
}

static void obey(char *line) {
    unsigned long number = 0, size = 0;
    if (sscanf(line, "open %lu", &number) == 1 && number) {
        reset_counts();
        at_once = (uint32_t)number;
        next_to_open = retry_count = 0;
        retried = refused = surplus = 0;
        delayed_count = 0;
        doing = OPENING;
    } else if (sscanf(line, "begin %lu %lu", &number, &size) >= 1) {
        if (surplus) fail("%lu messages came that were not expected", surplus);
        if (ready < connection_count) fail("only %u connections are there", ready);
        if (trouble[0]) {
            answer_trouble();
            return;
        }
        reset_counts();
        wanted = number;
        unit_bytes = size;
        behind = connection_count;
        for (uint32_t i = 0; i < connection_count; i++) {
            connections[i].units = 0;
            connections[i].hash = FNV;
        }
        doing = COUNTING;
        puts("{\"ok\":true}");
    } else if (!strcmp(line, "wait")) {
        doing = WAITING;
    } else if (!strcmp(line, "close")) {
        for (uint32_t i = 0; i < connection_count; i++)
            if (connections[i].fd >= 0) drop(&connections[i]);
        wanted = 0;
        doing = NOTHING;
        if (surplus) fail("%lu messages came that were not expected", surplus);
        surplus = 0;
        if (trouble[0]) answer_trouble();
        else puts("{\"ok\":true}");
    } else {
        exit(strcmp(line, "quit") != 0);
    }
}

static void read_commands(void) {
    static char line[256];
    static size_t length;
    ssize_t got = read(0, line + length, sizeof line - 1 - length);
    if (got <= 0) exit(0);
    length += (size_t)got;
    line[length] = 0;
    for (char *end; (end = strchr(line, '\n')) != NULL;) {
        *end = 0;
        obey(line);
        length -= (size_t)(end + 1 - line);
        memmove(line, end + 1, length + 1);
    }
}

static void go_on(void) {
    static uint64_t looked_at;
    uint64_t time = now();
    if (doing == OPENING) {
        for (; delayed_count && delayed[delayed_first].due <= time; delayed_count--) {
            follow(delayed[delayed_first].connection);
            delayed_first = (delayed_first + 1) % connection_count;
        }
        if (time > looked_at + SECOND) {
            hurry(time);
            looked_at = time;
        }
        if (retry_count && time >= retry_at)
            for (uint32_t left = retry_count; left && in_handshake < at_once; left--)
                start(&connections[retries[--retry_count]]);
        while (in_handshake < at_once && next_to_open < connection_count) start(&connections[next_to_open++]);
        if (ready == connection_count) answer(time);
    } else if (doing == WAITING && !behind) answer(last_at);
    bool late = (doing == OPENING || doing == WAITING) && time > began + PATIENCE;
    if (late) fail("nothing more came within 60 s");
    if (trouble[0] && (doing == OPENING || doing == WAITING)) answer_trouble();
}

int main(int count, char **words) {
    if (count != 5) {
        fputs("usage: load HOST PORT CONNECTIONS SCRIPT\n", stderr);
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    setvbuf(stdout, NULL, _IOLBF, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[2]))};
    if (!inet_aton(words[1], &address.sin_addr)) die(words[1]);
    read_script(words[4]);
    connection_count = (uint32_t)atoi(words[3]);
    connections = room(NULL, connection_count * sizeof *connections);
    retries = room(NULL, connection_count * sizeof *retries);
    delayed = room(NULL, connection_count * sizeof *delayed);
    for (uint32_t i = 0; i < connection_count; i++)
        connections[i] = (Connection){.fd = -1, .group = i % (uint32_t)script_count};
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, 0, &input) < 0) die("input");
    for (;;) {
        int got = epoll_wait(epoll_fd, events, EVENTS, doing == OPENING ? 5 : doing == WAITING ? 1000 : -1);
        bool commands = false;
        for (int i = 0; i < got; i++) {
            Connection *connection = events[i].data.ptr;
            if (!connection) commands = true; // afterwards: what it closes may still be in this list
            else if (connection->fd < 0) continue;
            else if (connection->state == CONNECTING) connected(connection);
            else receive(connection);
        }
        if (commands) read_commands();
        go_on();
    }
}
