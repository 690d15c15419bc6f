import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, errorFromException, failureCode, failureClasses, type FailureClass } from '../../shared/domain/classify.ts'
import { errorTable } from '../../shared/domain/error-codes.ts'
import type { AttemptPhase, Outcome } from '../../shared/domain/outcome.ts'
import { statusTable } from '../../shared/domain/status-table.ts'

const none = new Map<number, FailureClass>()
const response = (status: number): Outcome => ({ kind: 'response', status, retryAfter: [], date: null, excerpt: null })
const failure = (error: string, phase: AttemptPhase): Outcome => ({ kind: 'failure', error, phase, detail: '' })

/** The published table, written out by hand: every status that is not in one of these lists is in none of ours. */
const retriable = [
  408, 409, 421, 423, 424, 425, 429, 500, 502, 503, 504, 506, 507, 508, 509, 510, 511, 512, 513, 514, 515, 516, 517, 518, 519, 520, 521, 522, 523, 524, 525,
  526, 527, 528, 529, 530, 531, 532, 533, 534, 535, 536, 537, 538, 539, 540, 541, 542, 543, 544, 545, 546, 547, 548, 549, 550, 551, 552, 553, 554, 555, 556,
  557, 558, 559, 560, 561, 562, 563, 564, 565, 566, 567, 568, 569, 570, 571, 572, 573, 574, 575, 576, 577, 578, 579, 580, 581, 582, 583, 584, 585, 586, 587,
  588, 589, 590, 591, 592, 593, 594, 595, 596, 597, 598, 599,
]
const permanent = [
  400, 401, 402, 403, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 418, 419, 420, 422, 426, 427, 428, 430, 431, 432, 433, 434, 435, 436, 437, 438, 439,
  440, 441, 442, 443, 444, 445, 446, 447, 448, 449, 450, 452, 453, 454, 455, 456, 457, 458, 459, 460, 461, 462, 463, 464, 465, 466, 467, 468, 469, 470, 471,
  472, 473, 474, 475, 476, 477, 478, 479, 480, 481, 482, 483, 484, 485, 486, 487, 488, 489, 490, 491, 492, 493, 494, 495, 496, 497, 498, 499, 501, 505,
]
const ambiguous4xx = [404, 407, 451]

function expectedClass(status: number): 'delivered' | FailureClass {
  if (status >= 200 && status < 300) return 'delivered'
  const lists = { retriable: retriable.includes(status), permanent: permanent.includes(status), ambiguous: ambiguous4xx.includes(status) }
  const hits = Object.entries(lists).filter(([, isIn]) => isIn).map(([name]) => name as FailureClass)
  if (status >= 400 && status <= 599) assert.equal(hits.length, 1, `this test has ${status} in ${hits.length} lists`)
  return hits[0] ?? 'ambiguous'
}

test('every status has the class of the published table', () => {
  for (let status = 100; status <= 599; status += 1) assert.equal(classify(response(status), none), expectedClass(status), String(status))
  for (const status of [0, 99, 600, 999]) assert.equal(classify(response(status), none), 'ambiguous', String(status))
})

test('the printed table covers every failing status and gives a reason for each', () => {
  for (let status = 100; status <= 599; status += 1) {
    const isCovered = statusTable.some(({ from, to }) => from <= status && status <= to)
    assert.equal(isCovered, status < 200 || status > 299, String(status))
  }
  for (const row of statusTable) assert.ok(row.reason.length > 10 && row.from <= row.to)
})

test('a subscription may change the class of a failing status, never make a failure of a success', () => {
  const own = new Map<number, FailureClass>([[404, 'permanent'], [410, 'retriable'], [200, 'permanent']])
  assert.equal(classify(response(404), own), 'permanent')
  assert.equal(classify(response(410), own), 'retriable')
  assert.equal(classify(response(200), own), 'delivered')
  assert.equal(classify(response(403), own), 'permanent')
})

const classByError: Record<string, [beforeSend: FailureClass, sent: FailureClass]> = {
  connect_refused: ['retriable', 'retriable'],
  connect_unreachable: ['retriable', 'retriable'],
  connect_timeout: ['retriable', 'retriable'],
  dns_not_found: ['retriable', 'retriable'],
  dns_failed: ['retriable', 'retriable'],
  tls_certificate: ['ambiguous', 'ambiguous'],
  tls_protocol: ['ambiguous', 'ambiguous'],
  reset: ['retriable', 'ambiguous'],
  timeout: ['retriable', 'ambiguous'],
  protocol: ['ambiguous', 'ambiguous'],
  blocked_address: ['permanent', 'permanent'],
  invalid_url: ['permanent', 'permanent'],
  no_file_descriptors: ['local', 'local'],
  no_local_resources: ['local', 'local'],
  shutting_down: ['local', 'local'],
  internal: ['local', 'local'],
  unknown: ['ambiguous', 'ambiguous'],
}

test('every error code has the class of the published table, by whether the request was out', () => {
  assert.deepEqual(errorTable.map((row) => row.error).sort(), Object.keys(classByError).sort())
  for (const [error, [beforeSend, sent]] of Object.entries(classByError)) {
    assert.equal(classify(failure(error, 'before_send'), none), beforeSend, error)
    assert.equal(classify(failure(error, 'sent'), none), sent, error)
  }
})

test('a code this version does not know loses nothing', () => {
  for (const error of ['quic_version', '', 'constructor', '__proto__']) assert.equal(classify(failure(error, 'sent'), none), 'ambiguous')
})

test('ambiguous codes say why they are retried', () => {
  for (const row of errorTable) {
    if (row.before_send === 'ambiguous' || row.sent === 'ambiguous') assert.ok(row.reason !== null && row.reason.length > 10, row.error)
    assert.ok(failureClasses.includes(row.sent))
  }
})

test('an outcome has one short code', () => {
  assert.equal(failureCode(response(503)), 'http_503')
  assert.equal(failureCode(failure('connect_timeout', 'before_send')), 'connect_timeout')
})

test('the phase of a failed outcome follows what was sent', () => {
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  assert.deepEqual(errorFromException(reset, false), { error: 'reset', phase: 'before_send', detail: 'the connection was closed before a status came (ECONNRESET)' })
  assert.equal(errorFromException(reset, true).phase, 'sent')
})
