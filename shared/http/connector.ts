import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { buildConnector } from 'undici'
import { blockedAddressCode } from '../domain/error-codes.ts'

/** Finds every address of a host name; `dns.lookup` with `all: true` is one. */
export type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Says whether a connection to this address may be made; asked after DNS, for every address that is about to be dialled. */
export type CheckAddress = (address: string, port: number) => boolean

export type ConnectorOptions = {
  /** TCP and TLS together, ms. */
  readonly connectTimeoutMs: number
  readonly lookup: Lookup
  readonly checkAddress: CheckAddress | null
  readonly secureContext: SecureContext | undefined
}

type ConnectOptions = Parameters<buildConnector.connector>[0]
type ConnectCallback = (error: Error | null, socket: Socket | null) => void

/** Opens one socket. Returns it at once, still connecting, so that who waits no longer can destroy it; null when refused outright. */
export type Connector = (options: ConnectOptions, callback: ConnectCallback) => Socket | null

const refusal = (): Error => Object.assign(new Error('the address is not allowed'), { code: blockedAddressCode })

/**
 * Makes the connector of one origin. The address is judged where it cannot change any more between check and use: names in
 * the lookup that feeds the dial, literals (for which Node asks no lookup) before it, and the peer once more when connected.
 * Refused addresses are left out rather than fatal: on a DNS64 network every name also has an address that is not allowed.
 */
export function createConnector(port: number, { connectTimeoutMs, lookup, checkAddress, secureContext }: ConnectorOptions): Connector {
  const checkedLookup = (hostname: string, options: LookupAllOptions, callback: Parameters<LookupFunction>[2]): void => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, [])
      const allowed = checkAddress === null ? addresses : addresses.filter(({ address }) => checkAddress(address, port))
      const [first] = allowed
      if (first === undefined) return callback(addresses.length === 0 ? noAddress() : refusal(), [])
      if (options.all) return callback(null, allowed)
      callback(null, first.address, first.family)
    })
  }
  // The declaration leaves out what undici returns: the socket.
  const open = buildConnector({
    allowH2: false, timeout: connectTimeoutMs, lookup: checkedLookup as LookupFunction, ...(secureContext ? { secureContext } : {}),
    // Said here, as NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would switch verification off for the whole process.
    rejectUnauthorized: true,
    // Where a name has several addresses Node gives each but the last this long. Its own 250 ms are less than a round trip can be.
    autoSelectFamilyAttemptTimeout: 1000,
  }) as unknown as (options: ConnectOptions, callback: ConnectCallback) => Socket

  if (checkAddress === null) return open
  return (options, callback) => {
    if (isIP(options.hostname) !== 0 && !checkAddress(options.hostname, port)) {
      queueMicrotask(() => callback(refusal(), null))
      return null
    }
    return open(options, (error, socket) => {
      if (error || socket === null) return callback(error, socket)
      if (checkAddress(socket.remoteAddress ?? '', port)) return callback(null, socket)
      socket.destroy()
      callback(refusal(), null)
    })
  }
}

const noAddress = (): Error => Object.assign(new Error('the host name has no address'), { code: 'ENODATA' })

/**
 * Lets all who want the addresses of one name wait for one look-up. The system's resolver blocks a thread of the four that
 * libuv has by default: without this, the connections to a single host with a hanging name server would take them all.
 */
export function shareLookups(lookup: Lookup = systemLookup): Lookup {
  const waiting = new Map<string, Parameters<Lookup>[2][]>()
  return (hostname, options, callback) => {
    const others = waiting.get(hostname)
    if (others !== undefined) {
      others.push(callback)
      return
    }
    const callbacks = [callback]
    waiting.set(hostname, callbacks)
    lookup(hostname, options, (error, addresses) => {
      waiting.delete(hostname)
      for (const callback of callbacks) callback(error, addresses)
    })
  }
}
