import type { NetConnectOpts, Socket } from 'node:net';

export interface Frame {
  type: number;
  flags: number;
  id: number;
  payload: Buffer;
}
export type Field = Buffer | readonly [name: string, value: string];
/** What has come of a connection so far. */
export interface Came {
  socket: Socket;
  frames: Frame[];
  ended: boolean;
  send(...parts: Buffer[]): boolean;
  of(type: number, id?: number): Frame[];
  status(id: number): number | undefined;
  body(id: number): string;
  reset(id: number): number | undefined;
  goaway(): number | undefined;
  whole(id: number): boolean;
}
type Type =
  | 'data'
  | 'headers'
  | 'priority'
  | 'reset'
  | 'settings'
  | 'push'
  | 'ping'
  | 'goaway'
  | 'window'
  | 'continuation';
export const TYPE: Record<Type, number>;
export const END_STREAM: number;
export const END_HEADERS: number;
export function frame(type: number, flags: number, id: number, payload?: Buffer): Buffer;
export function field(name: string, value: string, kept?: boolean): Buffer;
export function indexed(index: number): Buffer;
export function block(fields: Field[]): Buffer;
export function request(path: string, method?: string, more?: Field[]): Field[];
export function settings(pairs?: [name: number, value: number][]): Buffer;
export function headers(id: number, fields: Field[], flags?: number): Buffer;
export function data(id: number, payload: string | Buffer, flags?: number): Buffer;
export function reset(id: number): Buffer;
export function ping(text?: string): Buffer;
export function windowUpdate(id: number, bytes: number): Buffer;
export function open(
  options: { port: number; host?: string; first?: Buffer[]; before?: string } & Partial<NetConnectOpts>,
): Came;
