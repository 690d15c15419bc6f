import type { FailureClass } from './classify.ts'

/** One way an attempt fails without a status: its class when nothing had been sent yet, and once the request was out. */
export type ErrorRow = {
  readonly error: string
  readonly before_send: FailureClass
  readonly sent: FailureClass
  /** For people, and the beginning of an outcome's `detail`. */
  readonly meaning: string
  /** Why this class, where one could think otherwise. */
  readonly reason: string | null
}

/** Every code this version writes. Released codes keep their meaning: they are in records, metrics and alerts. */
export const errorTable = [
  { error: 'connect_refused', before_send: 'retriable', sent: 'retriable', meaning: 'connection refused', reason: null },
  { error: 'connect_unreachable', before_send: 'retriable', sent: 'retriable', meaning: 'no route to the endpoint', reason: null },
  { error: 'connect_timeout', before_send: 'retriable', sent: 'retriable', meaning: 'no connection in time', reason: null },
  {
    error: 'dns_not_found', before_send: 'retriable', sent: 'retriable', meaning: 'the host name has no address',
    reason: 'a zone change in progress looks the same as a dead name',
  },
  { error: 'dns_failed', before_send: 'retriable', sent: 'retriable', meaning: 'the name servers did not answer', reason: null },
  {
    error: 'tls_certificate', before_send: 'ambiguous', sent: 'ambiguous', meaning: 'the certificate was not accepted',
    reason: 'the receiver can renew it within the retry window; verification is never switched off',
  },
  {
    error: 'tls_protocol', before_send: 'ambiguous', sent: 'ambiguous', meaning: 'TLS could not be agreed on',
    reason: 'may be a half-finished deploy of the receiver',
  },
  {
    error: 'reset', before_send: 'retriable', sent: 'ambiguous', meaning: 'the connection was closed before a status came',
    reason: 'once the request was out the receiver may have handled it',
  },
  {
    error: 'timeout', before_send: 'retriable', sent: 'ambiguous', meaning: 'no status within the time allowed',
    reason: 'once the request was out the receiver may have handled it',
  },
  {
    error: 'protocol', before_send: 'ambiguous', sent: 'ambiguous', meaning: 'the answer was not valid HTTP',
    reason: 'the receiver or a proxy is broken, which can be mended; it may have handled the event',
  },
  { error: 'blocked_address', before_send: 'permanent', sent: 'permanent', meaning: 'the address is not allowed', reason: null },
  { error: 'invalid_url', before_send: 'permanent', sent: 'permanent', meaning: 'the URL cannot be requested', reason: null },
  { error: 'no_file_descriptors', before_send: 'local', sent: 'local', meaning: 'this process may open no more sockets', reason: null },
  { error: 'no_local_resources', before_send: 'local', sent: 'local', meaning: 'this machine has no ports or memory left', reason: null },
  { error: 'shutting_down', before_send: 'local', sent: 'local', meaning: 'the attempt was ended by this process', reason: null },
  { error: 'internal', before_send: 'local', sent: 'local', meaning: 'a fault of posthouse itself', reason: null },
  {
    error: 'unknown', before_send: 'ambiguous', sent: 'ambiguous', meaning: 'an error that is not in the table',
    reason: 'a lost event is worse than a repeated one',
  },
] as const satisfies readonly ErrorRow[]

export type ErrorCode = (typeof errorTable)[number]['error']

/** The `code` an address guard gives the error it ends a connection with. */
export const blockedAddressCode = 'EGRESS_BLOCKED'

/**
 * Codes of Node, libuv, c-ares, OpenSSL and undici by what they mean here; names of errors where there is no code.
 * Besides these: `ERR_SSL_*` and `ERR_OSSL_*` are `tls_protocol`, `HPE_*` is `protocol`. `contract` prints it as it stands.
 */
export const systemCodes = {
  connect_refused: ['ECONNREFUSED'],
  connect_unreachable: ['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'ENONET', 'EAFNOSUPPORT', 'EACCES', 'EPERM'],
  connect_timeout: ['UND_ERR_CONNECT_TIMEOUT'],
  dns_not_found: ['ENOTFOUND', 'ENODATA', 'ENONAME', 'EBADNAME', 'EAI_NONAME', 'EAI_NODATA', 'EAI_ADDRFAMILY'],
  dns_failed: [
    'EAI_AGAIN', 'EAI_FAIL', 'EAI_CANCELED', 'EAI_OVERFLOW', 'EAI_PROTOCOL', 'ESERVFAIL', 'ETIMEOUT', 'EREFUSED', 'EFORMERR', 'ENOTIMP', 'EBADRESP',
    'EBADQUERY', 'EBADSTR', 'EBADFAMILY', 'EFILE', 'ECANCELLED', 'EDESTRUCTION', 'ENOTINITIALIZED', 'ELOADIPHLPAPI', 'EADDRGETNETWORKPARAMS',
  ],
  tls_certificate: [
    'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'CERT_REVOKED', 'CERT_REJECTED', 'CERT_UNTRUSTED', 'CERT_SIGNATURE_FAILURE', 'CERT_CHAIN_TOO_LONG',
    'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_DECRYPT_CERT_SIGNATURE', 'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY', 'UNABLE_TO_GET_CRL',
    'CRL_HAS_EXPIRED', 'CRL_NOT_YET_VALID', 'ERROR_IN_CERT_NOT_BEFORE_FIELD', 'ERROR_IN_CERT_NOT_AFTER_FIELD', 'HOSTNAME_MISMATCH',
    'INVALID_CA', 'INVALID_PURPOSE', 'PATH_LENGTH_EXCEEDED', 'ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_TLS_CERT_ALTNAME_FORMAT',
  ],
  tls_protocol: ['EPROTO', 'ERR_TLS_HANDSHAKE_TIMEOUT', 'ERR_TLS_DH_PARAM_SIZE'],
  reset: [
    'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ENOTCONN', 'ESHUTDOWN', 'EOF', 'UND_ERR_SOCKET', 'UND_ERR_INFO',
    'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ERR_SOCKET_CLOSED', 'ERR_SOCKET_CLOSED_BEFORE_CONNECTION',
  ],
  timeout: ['ETIMEDOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'TimeoutError'],
  protocol: ['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'UND_ERR_RES_EXCEEDED_MAX_SIZE', 'HTTPParserError'],
  blocked_address: [blockedAddressCode],
  invalid_url: ['ERR_INVALID_URL', 'ERR_INVALID_URL_SCHEME', 'ERR_INVALID_PROTOCOL'],
  no_file_descriptors: ['EMFILE', 'ENFILE'],
  no_local_resources: ['EADDRNOTAVAIL', 'EADDRINUSE', 'ENOBUFS', 'ENOMEM', 'EAI_MEMORY'],
  shutting_down: ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED', 'UND_ERR_ABORTED', 'UND_ERR_ABORT', 'ABORT_ERR', 'AbortError'],
  internal: [
    'UND_ERR_INVALID_ARG', 'UND_ERR_INVALID_RETURN_VALUE', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
    'UND_ERR_MAX_ORIGINS_REACHED', 'UND_ERR_PRX_TLS', 'UND_ERR_PRX_CONN', 'EBADFLAGS', 'EBADHINTS', 'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE',
    'ERR_INVALID_CHAR', 'ERR_INVALID_STATE', 'ERR_INVALID_HTTP_TOKEN', 'ERR_HTTP_INVALID_HEADER_VALUE', 'ERR_OUT_OF_RANGE', 'ERR_SOCKET_BAD_PORT',
    'ERR_ASSERTION', 'TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'AssertionError',
  ],
  unknown: [],
} as const satisfies Record<ErrorCode, readonly string[]>
