/** The worker that was chosen: what it has, its last stack, its profiles. */
import type { PageLane } from '../live/page-frame.ts';
import { seconds } from '../live/text.ts';
import type { Profile, State } from './state.ts';

interface ChosenProps {
  lane: PageLane | undefined;
  state: Pick<State, 'message' | 'stack' | 'profiles'>;
  onStack: () => void;
  onProfile: () => void;
}

export function Chosen({ lane, state: { message, stack, profiles }, onStack, onProfile }: ChosenProps) {
  return (
    <section class="chosen-worker" aria-label="chosen worker">
      <h2>{lane ? `${lane.worker.name} of ${lane.pod}` : 'no worker'}</h2>
      <p>
        <button type="button" disabled={!lane} onClick={onProfile}>
          Flame graph <kbd>p</kbd>
        </button>{' '}
        <button type="button" disabled={!lane} onClick={onStack}>
          Last stack <kbd>s</kbd>
        </button>
      </p>
      <p role="status">{message}</p>
      {stack.length > 0 && <pre>{stack.join('\n')}</pre>}
      <Profiles profiles={profiles} />
      {lane && lane.requests.length > 0 && (
        <ul class="requests">
          {lane.requests
            .filter(({ what }) => what !== '')
            .map(({ id, what, ms }) => (
              <li key={id}>
                {seconds(ms)} {what} <span class="dim">{id}</span>
              </li>
            ))}
        </ul>
      )}
    </section>
  );
}

function Profiles({ profiles }: { profiles: Profile[] }) {
  return (
    <ul class="profiles">
      {profiles.map(({ id, title }) => (
        <li key={id}>
          <a href={`profiles/${id}.html`} target="_blank" rel="noopener noreferrer">
            Flame graph of {title}
          </a>{' '}
          <a href={`profiles/${id}.cpuprofile`} download>
            .cpuprofile
          </a>
        </li>
      ))}
    </ul>
  );
}
