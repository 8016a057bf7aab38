/** Colours for what is drawn: those of the style sheet, light or dark as the user's system is. */

export interface Theme {
  text: string;
  dim: string;
  line: string;
  free: string;
  busy: string;
  silent: string;
  away: string;
  total: string;
  queue: string;
  render: string;
}

const NAMES = ['text', 'dim', 'line', 'free', 'busy', 'silent', 'away', 'total', 'queue', 'render'] as const;

let known: Theme | undefined;

/** Read once, and again when the system changes: it makes the browser compute styles. */
export function theme(): Theme {
  if (!known) {
    const style = getComputedStyle(document.documentElement);
    known = Object.fromEntries(
      NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    ) as unknown as Theme;
  }
  return known;
}

/** Calls it when the colours are others. */
export function onTheme(changed: () => void): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const listener = () => {
    known = undefined;
    changed();
  };
  dark.addEventListener('change', listener);
  return () => dark.removeEventListener('change', listener);
}
