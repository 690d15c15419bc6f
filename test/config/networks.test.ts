import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowedNetwork } from '../../shared/config/networks.ts'

const network = (text: string): unknown => {
  const { data } = allowedNetwork.safeParse(text)
  if (data === undefined) return null
  const { address, prefixLength, ports } = data
  return `${address}/${prefixLength}${ports === null ? '' : ` ${ports.from}-${ports.to}`}`
}

test('an entry of the allow-list is an address or a CIDR, with ports if wanted', () => {
  assert.equal(network('10.1.0.0/16'), '10.1.0.0/16')
  assert.equal(network('127.0.0.1'), '127.0.0.1/32')
  assert.equal(network('10.1.2.3:8080'), '10.1.2.3/32 8080-8080')
  assert.equal(network('10.1.0.0/16:8000-8999'), '10.1.0.0/16 8000-8999')
  assert.equal(network('::1'), '::1/128')
  assert.equal(network('FD00::/8'), 'fd00::/8')
  assert.equal(network('[fd00::/8]:443'), 'fd00::/8 443-443')
  assert.equal(network('[::1]'), '::1/128')
})

test('what could mean something else, or everything, is refused', () => {
  for (const text of [
    '', 'localhost', '10.1', '0x7f.0.0.1', '010.0.0.1/8x', '10.0.0.0/33', '10.1.2.3/8', '0.0.0.0/0', '::/0', 'fd00::1/8', 'fd00::/129',
    '::ffff:10.0.0.1', '10.0.0.1:0', '10.0.0.1:65536', '10.0.0.1:90-80', '10.0.0.1:', '10.0.0.1/8/8', '[10.0.0.1]:80', 'fe80::1%eth0', ':::1',
  ]) assert.equal(network(text), null, text)
})

test('host bits below the prefix are pointed out, with the network that was probably meant', () => {
  assert.match(allowedNetwork.safeParse('10.1.2.3/8').error?.issues[0]?.message ?? '', /did you mean 10\.0\.0\.0\/8\?/)
})
