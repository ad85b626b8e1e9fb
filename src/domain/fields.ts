/** The fields of whatever came; of what is no object, none. */
export function fieldsOf(value: unknown): { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null
    ? (value as { readonly [key: string]: unknown })
    : {};
}
