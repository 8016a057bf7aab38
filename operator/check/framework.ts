/** C022: what `framework` stands for, so that nobody has to look it up. */
import { presetPhrases } from '../src/api/presets.ts';
import type { Rule } from './workload.ts';

export const frameworkRule: Rule = {
  codes: ['C022'],
  find({ spec, object }) {
    const phrases = presetPhrases(spec);
    if (phrases.length === 0) return [];
    return [
      {
        code: 'C022',
        level: 'info',
        object,
        path: 'spec.framework',
        what: phrases.join('; '),
        why: `framework: ${spec.framework} stands for it`,
        wayOut:
          'Nothing to do, if the application is built so. A field of yours takes the place of what the preset says; basePath is for an application below a path.',
      },
    ];
  },
};
