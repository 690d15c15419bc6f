import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { base32, bodyDigest, deliveryId, endpointKey, hashOfParts, newSecret, newSubscriptionId } from '../../shared/domain/ids.ts'
import { checkSecret } from '../../shared/domain/secrets.ts'

const parts = { tenant: null, source: 'orders', eventId: 'evt_1', subscriptionId: 'sub_1' }

test('base32 gives the vectors of RFC 4648 section 10, in lower case and unpadded', () => {
  const vectors = { '': '', f: 'my', fo: 'mzxq', foo: 'mzxw6', foob: 'mzxw6yq', fooba: 'mzxw6ytb', foobar: 'mzxw6ytboi' }
  for (const [text, expected] of Object.entries(vectors)) assert.equal(base32(Buffer.from(text)), expected)
})

test('base32 can be read back, so no two inputs of a length share a text', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const bits = base32(bytes).split('').map((char) => 'abcdefghijklmnopqrstuvwxyz234567'.indexOf(char).toString(2).padStart(5, '0')).join('')
      const read = Uint8Array.from({ length: bytes.length }, (_, index) => Number.parseInt(bits.slice(index * 8, index * 8 + 8), 2))
      assert.deepEqual(read, bytes)
    }),
  )
})

// Computed apart from this code, in another language.
test('ids do not change between versions: they are in topics and at receivers', () => {
  assert.equal(endpointKey('https://hook.example/in'), 'ep_auy5zpoq7pdhbzmaboir5ijq5sv5r6fs')
  assert.equal(deliveryId(parts), 'del_qml6pbrpjimshbtg4yn7wv63nxs725ps')
})

test('ids have only letters and digits after the prefix', () => {
  assert.match(endpointKey('https://hook.example/ü'), /^ep_[a-z2-7]{32}$/)
  assert.match(deliveryId(parts), /^del_[a-z2-7]{32}$/)
  assert.match(newSubscriptionId(), /^sub_[a-z2-7]{26}$/)
  assert.notEqual(newSubscriptionId(), newSubscriptionId())
})

test('every part counts: no two different deliveries share an id', () => {
  const variants = [
    parts, { ...parts, tenant: '' }, { ...parts, tenant: 'null' }, { ...parts, source: 'order', eventId: 'sevt_1' }, { ...parts, source: '', eventId: 'ordersevt_1' },
    { ...parts, eventId: 'evt_2' }, { ...parts, subscriptionId: 'sub_2' }, { ...parts, eventId: '\ud800' }, { ...parts, eventId: '\ud801' }, { ...parts, eventId: '\ufffd' },
  ]
  assert.equal(new Set(variants.map(deliveryId)).size, variants.length)
})

test('hashes of parts are equal only for equal lists', () => {
  const part = fc.option(fc.string({ unit: 'binary', maxLength: 4 }))
  const list = fc.array(part, { maxLength: 4 })
  fc.assert(
    fc.property(list, list, (a, b) => hashOfParts(a).equals(hashOfParts(b)) === (JSON.stringify(a) === JSON.stringify(b))),
    { examples: [[['a', 'bc'], ['ab', 'c']], [[null], ['']], [[], [null]], [['', ''], ['']]] },
  )
})

test('a new secret is good for both schemes and never the same', () => {
  const secret = newSecret()
  assert.equal(Buffer.from(secret.slice('whsec_'.length), 'base64').length, 32)
  assert.equal(checkSecret('stripe', secret), null)
  assert.equal(checkSecret('standard', secret), null)
  assert.notEqual(newSecret(), secret)
})

test('a body digest is 128 bits of SHA-256 in hex', () => {
  assert.equal(bodyDigest(Buffer.from('abc')), 'ba7816bf8f01cfea414140de5dae2223')
  assert.notEqual(bodyDigest(Buffer.from('{"a":1}')), bodyDigest(Buffer.from('{"a":1} ')))
})
