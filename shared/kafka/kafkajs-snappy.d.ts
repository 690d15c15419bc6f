/** The package carries no types of its own. The factory kafkajs asks for at its first use of the codec. */
declare module 'kafkajs-snappy' {
  type Codec = { compress(encoder: { readonly buffer: Buffer }): Promise<Buffer>; decompress(packed: Buffer): Promise<Buffer> }
  const createCodec: () => Codec
  export default createCodec
}
