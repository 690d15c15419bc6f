type Given<Options> = { [Key in keyof Options]?: Exclude<Options[Key], undefined> }

/** Only what was given: an option that was left out is not there, instead of undefined. */
export function given<Options extends object>(options: Options): Given<Options> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<Options>
}
