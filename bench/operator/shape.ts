/** How a fleet of fleets is made up: services, pods in each, and the namespaces that they lie in. Computes only. */

export interface Shape {
  services: number;
  /** Of each service. */
  pods: number;
  namespaces: number;
}

const PATTERN = /^([1-9]\d*)x([1-9]\d*)(?:\/([1-9]\d*))?$/;
/** Addresses of 127.1.0.0/16, of which some are of pods that are on their way out. */
const PODS_MAX = 40_000;

/**
 * Reads `1000x10/20`: a thousand services of ten pods, in twenty namespaces (one unless given).
 * @throws Error for anything else, and for more pods than there are addresses
 */
export function parseShape(text: string): Shape {
  const [, services, pods, namespaces = '1'] = PATTERN.exec(text) ?? [];
  if (services === undefined)
    throw new Error(`SHAPES: "${text}" is none; one is 1000x10/20, services x pods / namespaces`);
  const shape = { services: Number(services), pods: Number(pods), namespaces: Number(namespaces) };
  if (podsOf(shape) > PODS_MAX) throw new Error(`SHAPES: ${text} has more than ${PODS_MAX} pods`);
  if (shape.namespaces > shape.services) throw new Error(`SHAPES: ${text} has namespaces without a service`);
  return shape;
}

/** The shapes that the environment asks for: SHAPES, or SERVICES, PODS and NAMESPACES for one. */
export function shapesOf(env: NodeJS.ProcessEnv, unlessGiven: string): Shape[] {
  const { SERVICES, PODS, NAMESPACES, SHAPES } = env;
  if (!SERVICES && !PODS && !NAMESPACES) return (SHAPES || unlessGiven).split(',').map(parseShape);
  return [parseShape(`${SERVICES || 1000}x${PODS || 10}/${NAMESPACES || 1}`)];
}

export function podsOf({ services, pods }: Shape): number {
  return services * pods;
}

export function shapeText({ services, pods, namespaces }: Shape): string {
  return `${services}x${pods}/${namespaces}`;
}

export function namespacesOf({ namespaces }: Shape): string[] {
  return Array.from({ length: namespaces }, (_unused, index) => `b${index}`);
}

/** Names of the services, each once in all namespaces; none has a hyphen, so that a pod's name tells its service. */
export function servicesOf({ services, namespaces }: Shape): { name: string; namespace: string }[] {
  return Array.from({ length: services }, (_unused, index) => ({
    name: `s${index}`,
    namespace: `b${index % namespaces}`,
  }));
}
