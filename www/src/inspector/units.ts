// Amounts as the inspector writes them.

export function milliseconds(time: number): string {
  return time < 1_000 ? `${Math.round(time)} ms` : `${(time / 1_000).toFixed(2)} s`;
}

/** US dollars: cents and parts of a cent are what single runs cost. */
export function dollars(amount: number): string {
  return `$${amount >= 1 ? amount.toFixed(2) : amount.toPrecision(2)}`;
}

export function count(amount: number): string {
  return amount.toLocaleString("en");
}
