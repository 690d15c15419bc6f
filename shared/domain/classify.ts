export const failureClasses = ['retriable', 'ambiguous', 'permanent', 'local'] as const
export type FailureClass = (typeof failureClasses)[number]
