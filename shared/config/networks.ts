import ipaddr from 'ipaddr.js'
import type { Parser } from './parsers.ts'

/** A network that deliveries may reach although it is not public. `ports` null: every port. */
export type AllowedNetwork = {
  /** Lowest address of the network, in its canonical spelling. */
  readonly address: string
  readonly prefixLength: number
  readonly ports: { readonly from: number; readonly to: number } | null
}

const expected = 'an address or a CIDR, with a port or a range of ports behind it if wanted, ' +
  'such as 10.1.0.0/16, 10.1.2.3:8080, 10.1.0.0/16:8000-8999 or [fd00::/8]:443'

// Either bare, or IPv4 with :ports, or IPv6 in brackets with :ports.
const form = /^(?:\[(?=[^\]]*:)([0-9a-f:.]+(?:\/\d{1,3})?)\]|([0-9.]+(?:\/\d{1,2})?))(?::(\d{1,5})(?:-(\d{1,5}))?)?$/i

const splitPorts = (text: string): { network: string; ports: AllowedNetwork['ports'] } | null => {
  if (/^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*(?:\/\d{1,3})?$/i.test(text)) return { network: text, ports: null }
  const match = form.exec(text)
  if (match === null) return null
  const network = (match[1] ?? match[2])!
  if (match[3] === undefined) return { network, ports: null }
  const from = Number(match[3])
  const to = Number(match[4] ?? match[3])
  return from >= 1 && from <= to && to <= 65_535 ? { network, ports: { from, to } } : null
}

/**
 * One entry of the allow-list. Refused are host bits set below the prefix (`10.1.2.3/8` is more often a slip than a wish), `/0`
 * (it would switch the address check off), and IPv4 in IPv6's clothes (the check compares after unwrapping, so the entry would never match).
 */
export const allowedNetwork: Parser<AllowedNetwork> = (text) => {
  const split = splitPorts(text)
  if (split === null) return { expected }
  const [addressText, prefixText] = split.network.split('/') as [string, string | undefined]
  // ipaddr.js also takes 10.1 and 0x7f.1: only the four-part decimal form is unambiguous to people.
  const isValid = addressText.includes(':') ? ipaddr.IPv6.isValid(addressText) : ipaddr.IPv4.isValidFourPartDecimal(addressText)
  if (!isValid) return { expected }
  const address = ipaddr.parse(addressText)
  const bits = address.kind() === 'ipv4' ? 32 : 128
  const prefixLength = Number(prefixText ?? bits)
  if (prefixLength > bits) return { expected }
  if (prefixLength === 0) return { expected: 'a network smaller than everything: /0 would switch the address check off' }
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) return { expected: 'IPv4 networks in their own form, such as 10.0.0.0/8' }
  const networkAddress = (address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6)
    .networkAddressFromCIDR(`${addressText}/${prefixLength}`).toString()
  if (networkAddress !== address.toString()) return { expected: `a network without host bits (did you mean ${networkAddress}/${prefixLength}?)` }
  return { value: { address: networkAddress, prefixLength, ports: split.ports } }
}
