/** The names that an environment variable lists, or all of them. */
export function chosen(variable: string, all: string[]): string[] {
  const names = (process.env[variable] ?? '').split(',').filter(Boolean);
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new Error(`${variable}: no ${unknown.join(', ')}; there are ${all.join(', ')}`);
  return names.length > 0 ? names : all;
}
