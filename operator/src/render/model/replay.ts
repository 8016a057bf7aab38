/** Which requests a second worker gets when the first one has died with them. */
import { SAFE_METHODS } from '../../api/handler-timeout.ts';
import { SIGN_IN_ENDING, SIGN_IN_PATHS, SIGN_IN_SEGMENTS } from '../../api/spec/replay.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';

export interface Replay {
  /** Methods whose requests are rendered again whatever the first worker did with them; undefined: all methods. */
  methods?: string[];
  /**
   * Paths whose requests are rendered once, unless no worker has begun them: how they begin, and what else they have in
   * them. For a path with a slash at its end.
   */
  except: { prefixes: string[]; parts: string[] };
}

const METHODS: Record<RenderServiceSpec['replay'], Replay['methods']> = {
  Safe: SAFE_METHODS,
  Always: undefined,
  Never: [],
};

/** The second tries of a defaulted spec. */
export function replay({ replay, replayExcept }: RenderServiceSpec): Replay {
  return {
    methods: METHODS[replay],
    except: {
      prefixes: [...SIGN_IN_PATHS, ...replayExcept].map((path) => path.replace(/\/?$/, '/')),
      parts: [`${SIGN_IN_ENDING}/`, ...SIGN_IN_SEGMENTS.map((segment) => `/${segment}/`)],
    },
  };
}
