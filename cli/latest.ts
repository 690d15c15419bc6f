/** Keeps the latest of many: about twice `most` are in memory. `timeOf`: epoch ms. */
export type Latest<Item> = { add(item: Item): void; newestFirst(): readonly Item[] }

export function createLatest<Item>(most: number, timeOf: (item: Item) => number): Latest<Item> {
  let items: Item[] = []
  const cut = (): void => { items = items.sort((a, b) => timeOf(b) - timeOf(a)).slice(0, most) }
  return {
    add(item) {
      items.push(item)
      if (items.length >= most * 2) cut()
    },
    newestFirst() {
      cut()
      return items
    },
  }
}
