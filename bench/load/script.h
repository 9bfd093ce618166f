// What a connection does before it is ready, and which messages are not counted: see load.c for the lines.
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIXES = 8, HEADER = 14 };

typedef struct { bool sends; uint32_t count; uint8_t *bytes; size_t length; } Step;
typedef struct { char path[512], headers[1024]; Step *steps; size_t count; uint32_t first; } Script;
typedef struct { uint8_t bytes[32]; size_t length; } Prefix;

static Script *scripts, all;
static size_t script_count;
static Prefix skips[PREFIXES], ping, pong, refusal;
static size_t skip_count;
static bool deltas;
static uint64_t refusal_delay; // ms

static void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *room(void *old, size_t size) {
    void *memory = realloc(old, size ? size : 1);
    if (!memory) die("memory");
    return memory;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static size_t from_hex(const char *text, uint8_t *out) {
    size_t length = 0;
    for (; digit(text[0]) >= 0 && digit(text[1]) >= 0; text += 2)
        out[length++] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
    return length;
}

static void add_message(Script *script, uint8_t opcode, const uint8_t *payload, size_t length) {
    static const uint8_t mask[4] = {0x5a, 0xc3, 0x17, 0x88};
    Step step = {.sends = true, .bytes = room(NULL, length + HEADER)};
    step.bytes[step.length++] = 0x80 | opcode;
    if (length < 126) {
        step.bytes[step.length++] = (uint8_t)(0x80 | length);
    } else {
        step.bytes[step.length++] = 0x80 | 126;
        step.bytes[step.length++] = (uint8_t)(length >> 8);
        step.bytes[step.length++] = (uint8_t)length;
    }
    memcpy(step.bytes + step.length, mask, 4);
    step.length += 4;
    for (size_t i = 0; i < length; i++) step.bytes[step.length++] = payload[i] ^ mask[i % 4];
    script->steps = room(script->steps, (script->count + 1) * sizeof step);
    script->steps[script->count++] = step;
}

static Script *add_group(void) {
    scripts = room(scripts, (script_count + 1) * sizeof *scripts);
    Script *script = &scripts[script_count++];
    *script = all;
    script->steps = room(NULL, (all.count + 1) * sizeof *all.steps);
    if (all.count) memcpy(script->steps, all.steps, all.count * sizeof *all.steps);
    script->first = UINT32_MAX;
    return script;
}

static void read_script(const char *name) {
    FILE *file = fopen(name, "r");
    if (!file) die(name);
    Script *script = &all;
    strcpy(all.path, "/");
    char *line = NULL;
    size_t size = 0;
    for (ssize_t length; (length = getline(&line, &size, file)) > 0;) {
        line[strcspn(line, "\r\n")] = 0;
        char *rest = strchr(line, ' ');
        if (rest) *rest++ = 0;
        else rest = line + strlen(line);
        size_t used = script->count;
        uint8_t *decoded = room(NULL, strlen(rest) + 1);
        if (!strcmp(line, "group")) script = add_group();
        else if (!strcmp(line, "path")) snprintf(script->path, sizeof script->path, "%s", rest);
        else if (!strcmp(line, "header"))
            snprintf(script->headers + strlen(script->headers), sizeof script->headers - strlen(script->headers),
                     "%s\r\n", rest);
        else if (!strcmp(line, "send")) add_message(script, 2, decoded, from_hex(rest, decoded));
        else if (!strcmp(line, "text")) add_message(script, 1, (uint8_t *)rest, strlen(rest));
        else if (!strcmp(line, "await")) {
            script->steps = room(script->steps, (used + 1) * sizeof *script->steps);
            script->steps[script->count++] = (Step){.count = (uint32_t)atoi(rest)};
        } else if (!strcmp(line, "skip") && skip_count < PREFIXES && strlen(rest) <= 64) {
            skips[skip_count].length = from_hex(rest, skips[skip_count].bytes);
            skip_count++;
        } else if (!strcmp(line, "ping") && strlen(rest) <= 64) {
            ping.length = from_hex(rest, ping.bytes);
            pong.length = from_hex(strchr(rest, ' ') + 1, pong.bytes);
        } else if (!strcmp(line, "again") && strlen(rest) <= 64) {
            refusal.length = from_hex(rest, refusal.bytes);
            refusal_delay = strtoul(strchr(rest, ' ') + 1, NULL, 10);
        } else if (!strcmp(line, "deltas")) deltas = true;
        else if (line[0]) {
            fprintf(stderr, "load: the script has an unknown line: %s %s\n", line, rest);
            exit(1);
        }
        free(decoded);
    }
    free(line);
    fclose(file);
    if (!script_count) add_group();
}
