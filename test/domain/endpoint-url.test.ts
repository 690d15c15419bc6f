import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { maxUrlLength, normaliseUrl } from '../../shared/domain/endpoint-url.ts'

const anyScheme = { allowHttp: true }
const accepted: [string, string, string][] = [
  [' https://hook.example/in ', 'https://hook.example/in', 'hook.example'],
  ['https://hook.example/in\n', 'https://hook.example/in', 'hook.example'],
  ['\u00a0https://hook.example', 'https://hook.example/', 'hook.example'],
  ['https://bücher.example/ü?q=é', 'https://xn--bcher-kva.example/%C3%BC?q=%C3%A9', 'xn--bcher-kva.example'],
  ['https://hook.example:443/a//b/%2Ft?sp=%2Fm&sig=6V_x-y', 'https://hook.example/a//b/%2Ft?sp=%2Fm&sig=6V_x-y', 'hook.example'],
  ['http://[2001:db8::5]:8080/in', 'http://[2001:db8::5]:8080/in', '[2001:db8::5]:8080'],
  ['HTTPS://Hook.Example/In', 'https://hook.example/In', 'hook.example'],
  ['https://hook.example/in#frag', 'https://hook.example/in', 'hook.example'],
  ['https://hook.example?', 'https://hook.example/?', 'hook.example'],
  ['https://hook.example/a?b=../c&d=\\', 'https://hook.example/a?b=../c&d=\\', 'hook.example'],
  ['https://hook.example/...', 'https://hook.example/...', 'hook.example'],
  ['https://hook.example/%41%ff', 'https://hook.example/%41%ff', 'hook.example'],
  ['https://hook.example/a@b:c', 'https://hook.example/a@b:c', 'hook.example'],
  ['http://2130706433:81/', 'http://127.0.0.1:81/', '127.0.0.1:81'],
]

test('an accepted URL has one form', () => {
  for (const [text, url, host] of accepted) assert.deepEqual(normaliseUrl(text, anyScheme), { ok: true, url, host }, text)
})

test('normalising twice changes nothing', () => {
  for (const [, url, host] of accepted) assert.deepEqual(normaliseUrl(url, anyScheme), { ok: true, url, host })
})

test('what would be sent otherwise than written is refused with a reason', () => {
  const refused: [string, RegExp][] = [
    ['', /empty/], ['   ', /empty/],
    ['https://hook.example/a\nb', /line break/], ['https://hook.example/a\tb', /control/], ['https://ho\rok.example/', /line break/], ['https://hook.example/\u0000', /control/],
    ['https://hook.example/\u0085x', /control/], ['https://hook.example/\ud800', /surrogate/],
    ['ftp://h/', /scheme/], ['javascript:alert(1)', /absolute/], ['file:///etc/passwd', /absolute/], ['ws://h/', /scheme/],
    ['//hook.example/in', /absolute/], ['hook.example/in', /absolute/], ['https:hook.example/in', /absolute/], ['https:///hook.example/in', /absolute/],
    ['https:/hook.example', /absolute/], ['https:\\\\hook.example\\in', /absolute/], ['https://', /absolute/], ['https://?q', /absolute/],
    ['https://user:p%40ss@hook.example/in#frag', /user name/], ['https://user@hook.example/', /user name/], ['https://@hook.example/', /user name/],
    ['https://hook.example\\@evil.example/', /backslash/], ['https://hook.example/a\\b', /backslash/],
    ['https://hook.example/a/../b', /\.\. segment/], ['https://hook.example/.', /segment/], ['https://hook.example/%2e%2E/b', /segment/], ['https://hook.example/.%2e', /segment/],
    ['https://hook.example:65536/', /host or port/], ['https://hook.example:0/', /port/], ['https://hook.example:x/', /host or port/], ['https://a b/', /host or port/],
    ['https://[::1/', /host or port/], ['https://1.2.3.256/', /host or port/],
    [`https://hook.example/${'a'.repeat(maxUrlLength)}`, /longer than 2048/], [`https://hook.example/${'ü'.repeat(1000)}`, /longer than 2048/],
  ]
  for (const [text, reason] of refused) {
    const result = normaliseUrl(text, anyScheme)
    assert.ok(!result.ok, text)
    assert.match(result.reason, reason, text)
  }
})

test('http is taken only where it is allowed', () => {
  assert.equal(normaliseUrl('http://hook.example/', { allowHttp: true }).ok, true)
  const refused = normaliseUrl('http://hook.example/', { allowHttp: false })
  assert.ok(!refused.ok && /use https/.test(refused.reason))
  assert.equal(normaliseUrl('https://hook.example/', { allowHttp: false }).ok, true)
})

test('no reason repeats what was in the URL', () => {
  for (const text of ['https://u:tok3n@h/', 'ftp://h/tok3n', 'https://h:0/tok3n', 'https://h/../tok3n', 'http://h/tok3n', 'https://h/\ntok3n']) {
    const result = normaliseUrl(text, { allowHttp: false })
    assert.ok(!result.ok && !result.reason.includes('tok3n'), text)
  }
})

test('path and query stay byte for byte as written', () => {
  const char = fc.constantFrom(...'abzABZ019-._~!$&()*+,;=:@/'.split(''), '%2F', '%41', '%c3', '%7e', "'")
  const path = fc.array(char, { maxLength: 20 }).map((chars) => `/${chars.join('')}`)
  const query = fc.option(fc.array(fc.oneof(char.filter((c) => c !== "'"), fc.constantFrom('?', '\\', '|', '[', ']', '..')), { maxLength: 20 }).map((chars) => `?${chars.join('')}`))
  fc.assert(
    fc.property(path, query, (path, query) => {
      const target = path + (query ?? '')
      fc.pre(path.split('/').every((segment) => segment !== '.' && segment !== '..'))
      assert.deepEqual(normaliseUrl(`https://hook.example${target}`, anyScheme), { ok: true, url: `https://hook.example${target}`, host: 'hook.example' })
    }),
  )
})

test('any text is refused or gives a form that stays', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl({ withFragments: true, withQueryParameters: true })), (text) => {
      const once = normaliseUrl(text, anyScheme)
      if (once.ok) assert.deepEqual(normaliseUrl(once.url, anyScheme), once)
    }),
  )
})
