/** The keys, in a dialog of the browser's own: it takes the focus, and gives it back. */
import { useEffect, useRef } from 'preact/hooks';

const KEYS: [string, string][] = [
  ['j, k, arrows', 'choose a worker'],
  ['Page Up, Page Down, Home, End', 'far in the list'],
  ['o', 'another order: stuck ones first, time, CPU, heap, requests, name'],
  ['/', 'find: a pod, a worker, a URL; Esc ends it'],
  ['p', 'a flame graph of the worker: a CPU profile of 10 s'],
  ['s', 'the last stack of the worker'],
  ['?', 'this'],
];

export function Help({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} onClose={onClose} aria-label="keys">
      <dl class="keys">
        {KEYS.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p class="dim">
        In a lane each sign is a look, the newest to the right: low is free, high is busy, red and whole is an event
        loop that stands still, an empty box is a worker that is down. A pod: ↗ requests that other pods render for it,
        ↘ those that it renders for others.
      </p>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </dialog>
  );
}
