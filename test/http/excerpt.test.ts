import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { excerptOf } from '../../shared/http/excerpt.ts'

const maxBytes = 64

const inPieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, piece) => bytes.subarray(piece * size, (piece + 1) * size))

test('any bytes in any pieces: at most so many UTF-8 bytes, no NUL, well formed', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 1, max: 50 }), (bytes, size) => {
    const text = excerptOf(inPieces(Buffer.from(bytes), size), maxBytes)
    assert.ok(Buffer.byteLength(text) <= maxBytes)
    assert.ok(!text.includes('\0') && text.isWellFormed())
  }))
})

test('text: its beginning without NULs, cut between two characters and as late as can be', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 100 }), fc.integer({ min: 1, max: 50 }), (text, size) => {
    const whole = Buffer.from(text)
    const excerpt = excerptOf(inPieces(whole, size), maxBytes)
    const readable = Buffer.from(whole.subarray(0, maxBytes)).toString().replaceAll('\0', '')
    if (whole.length <= maxBytes) assert.equal(excerpt, text.replaceAll('\0', ''))
    else assert.ok(readable.startsWith(excerpt) && Buffer.byteLength(readable) - Buffer.byteLength(excerpt) <= 9)
  }))
})

test('a character cut in two is left out, bytes that are no text become U+FFFD', () => {
  assert.equal(excerptOf([Buffer.from('aé')], 2), 'a')
  assert.equal(excerptOf([Buffer.from([0x61, 0xff, 0x62])], 10), 'a\ufffdb')
  assert.equal(excerptOf([Buffer.alloc(64, 0xff)], 64), '\ufffd'.repeat(21))
  assert.equal(excerptOf([], 64), '')
})
