/** What happened, the newest first, with the reason in the words of who says so; and which revisions there are. */
import type { PageFrame } from '../live/page-frame.ts';
import type { Entry } from '../live/timeline.ts';

/** The page keeps more, for the curves. */
const SHOWN = 60;

export function TimeLine({ entries, notes }: { entries: Entry[]; notes: string[] }) {
  const shown = entries.toSorted((one, other) => other.atMs - one.atMs).slice(0, SHOWN);
  return (
    <section aria-label="time line">
      <h2>Time line</h2>
      {notes.map((note) => (
        <p class="dim" key={note}>
          {note}
        </p>
      ))}
      {shown.length === 0 && <p class="dim">Nothing has happened since this page looks.</p>}
      <ol class="entries">
        {shown.map(({ atMs, kind, what, why }) => (
          <li key={`${atMs} ${what} ${why}`} class={`kind-${kind}`}>
            <time>{new Date(atMs).toLocaleTimeString()}</time>
            <span class="kind">{kind}</span>
            <span>
              <b>{what}</b> {why}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** A service has one revision, unless a rollout is on its way. */
export function Revisions({ revisions }: { revisions: PageFrame['revisions'] }) {
  const shown = revisions.filter(({ revision }) => revision !== '');
  if (shown.length === 0) return null;
  return (
    <p class={shown.length > 1 ? 'rollout' : 'dim'}>
      {shown.length > 1 ? 'Rollout: ' : 'Revision: '}
      {shown.map(({ revision, pods, ready }) => `${revision} ${ready} of ${pods} pods ready`).join(' · ')}
    </p>
  );
}
