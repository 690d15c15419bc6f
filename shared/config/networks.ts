import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { numberWithin } from './parsers.ts'

/** A network that deliveries may reach although it is not public. `ports` null: every port. */
export type AllowedNetwork = {
  /** Lowest address of the network, in its canonical spelling. */
  readonly address: string
  readonly prefixLength: number
  readonly ports: { readonly from: number; readonly to: number } | null
}

const expected = 'an address or a CIDR, with a port or a range of ports behind it if wanted, ' +
  'such as 10.1.0.0/16, 10.1.2.3:8080, 10.1.0.0/16:8000-8999 or [fd00::/8]:443'

/** A network and its ports apart: IPv6 in brackets, or without colons, and `:ports` behind. All else must be IPv6 without ports. */
const split = (text: string) => {
  const [, inBrackets, bare, from, to = from] = /^(?:\[([^\]]*:[^\]]*)\]|([^:[\]]*))(?::(\d{1,5})(?:-(\d{1,5}))?)?$/.exec(text) ?? []
  const network = inBrackets ?? bare ?? text
  const cidr = network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`
  return { cidr, ports: from === undefined ? null : { from: Number(from), to: Number(to) } }
}

const port = numberWithin(1, 65_535, expected)

const lowestAddress = (cidr: string): string =>
  (cidr.includes(':') ? ipaddr.IPv6 : ipaddr.IPv4).networkAddressFromCIDR(cidr).toString()

/**
 * One entry of the allow-list. Refused are host bits set below the prefix (`10.1.2.3/8` is more often a slip than a wish), `/0`
 * (it would switch the address check off), and IPv4 in IPv6's clothes (the check compares after unwrapping, so the entry would never match).
 */
export const allowedNetwork = z.string().transform(split).pipe(z.object({
  cidr: z.union([z.cidrv4(), z.cidrv6()], expected),
  ports: z.object({ from: port, to: port }).refine(({ from, to }) => from <= to, expected).nullable(),
})).transform(({ cidr, ports }, { addIssue }): AllowedNetwork => {
  const [address, prefixLength] = ipaddr.parseCIDR(cidr)
  const lowest = lowestAddress(cidr)
  if (prefixLength === 0) addIssue('a network smaller than everything: /0 would switch the address check off')
  else if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) addIssue('IPv4 networks in their own form, such as 10.0.0.0/8')
  else if (lowest !== address.toString()) addIssue(`a network without host bits (did you mean ${lowest}/${prefixLength}?)`)
  return { address: lowest, prefixLength, ports }
})
