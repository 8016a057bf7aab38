/** The spec as it is checked: the fields of spec.ts with the rules between them. */
import { specRules } from './rules.ts';
import { type RenderServiceSpec, specShape } from './spec.ts';

/** The spec with all rules between fields, in zod for the operator and as CEL for the API server. */
export const renderServiceSpec = specShape
  .superRefine((spec, ctx) => {
    // A rule reads fields that their own checks have let through; on others it would throw.
    if (ctx.issues.length > 0) return;
    for (const rule of specRules) {
      const broken = !rule.holds(spec as RenderServiceSpec);
      if (broken) ctx.addIssue({ code: 'custom', path: rule.path, message: rule.message });
    }
  })
  .meta({
    'x-kubernetes-validations': specRules.map(({ cel, message, path }) => ({
      rule: cel,
      message,
      fieldPath: `.${path.join('.')}`,
    })),
    description: 'Desired state.',
  });
