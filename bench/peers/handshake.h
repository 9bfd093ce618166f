// Sec-WebSocket-Accept: the base64 of the SHA-1 of the key and a fixed id (RFC 6455, 4.2.2).
#include <stdint.h>
#include <string.h>

static uint32_t rotated(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

static void sha1_block(uint32_t state[5], const uint8_t *block) {
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rotated(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 ? b ^ c ^ d : i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
        uint32_t next = rotated(a, 5) + f + e + k + w[i];
        e = d, d = c, c = rotated(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

// Write the 28 characters that answer a key of 24 characters, and a zero.
static void accept_key(const char *key, char out[29]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t blocks[128] = {0}, hash[21] = {0};
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    memcpy(blocks, key, 24);
    memcpy(blocks + 24, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11", 36);
    blocks[60] = 0x80;
    blocks[126] = 60 * 8 >> 8, blocks[127] = 60 * 8 & 255;
    sha1_block(state, blocks);
    sha1_block(state, blocks + 64);
    for (int i = 0; i < 20; i++) hash[i] = (uint8_t)(state[i / 4] >> (24 - i % 4 * 8));
    for (int i = 0; i < 28; i++) {
        int bit = 6 * i, word = hash[bit / 8] << 8 | (bit / 8 < 20 ? hash[bit / 8 + 1] : 0);
        out[i] = i == 27 ? '=' : digits[word >> (10 - bit % 8) & 63];
    }
    out[28] = 0;
}
