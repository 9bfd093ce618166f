// Time, ages of messages, and what a message is worth.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static const uint64_t SECOND = 1000000000, PATIENCE = 60 * SECOND;
static const uint64_t FNV = 14695981039346656037u;

static uint32_t *samples; // 100 ns each
static size_t sample_count, sample_room;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static uint64_t hashed(uint64_t hash, const uint8_t *data, size_t length) {
    for (size_t i = 0; i < length; i++) hash = (hash ^ data[i]) * 1099511628211u;
    return hash;
}

static void record(uint64_t nanoseconds) {
    if (sample_count == sample_room) {
        sample_room = sample_room ? 2 * sample_room : 1 << 16;
        samples = room(samples, sample_room * sizeof *samples);
    }
    samples[sample_count++] = (uint32_t)(nanoseconds / 100);
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile(double part) {
    size_t index = (size_t)(part * (double)sample_count);
    return sample_count ? samples[index < sample_count ? index : sample_count - 1] / 10.0 : 0;
}

static bool begins(const uint8_t *data, size_t length, const Prefix *prefix) {
    return prefix->length && length >= prefix->length && !memcmp(data, prefix->bytes, prefix->length);
}

// Return the text of a midstream delta in msgpack: [3 unsigned integers, text] or ["d", 5 of them, text].
static const uint8_t *delta_text(const uint8_t *data, const uint8_t *end, size_t *length) {
    static const Prefix brief = {{0x94}, 1}, full = {{0x97, 0xa1, 'd'}, 3};
    size_t there = (size_t)(end - data);
    int numbers = begins(data, there, &full) ? 5 : begins(data, there, &brief) ? 3 : 0;
    if (!numbers) return NULL;
    for (data += numbers == 5 ? 3 : 1; numbers && data < end; numbers--) {
        if (*data >= 0x80 && (*data < 0xcc || *data > 0xcf)) return NULL;
        data += *data < 0x80 ? 1 : 1 + (1 << (*data & 3));
    }
    if (data >= end) return NULL;
    uint8_t kind = *data++;
    int width = kind == 0xd9 ? 1 : kind == 0xda ? 2 : kind == 0xdb ? 4 : 0;
    size_t size = width ? 0 : kind & 31;
    for (; width && data < end; width--) size = size << 8 | *data++;
    *length = size;
    return data + size == end ? data : NULL;
}

// Note the age of a payload whose last 16 bytes are a time.
static void note_age(const uint8_t *end, uint64_t time) {
    uint64_t stamp = 0;
    for (const uint8_t *c = end - 16; c < end; c++) {
        int value = digit((char)*c);
        if (value < 0) return;
        stamp = stamp << 4 | (uint64_t)value;
    }
    if (stamp <= time && time - stamp < PATIENCE) record(time - stamp);
}
