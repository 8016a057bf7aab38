/**
 * Goes into the workers of `corelane run`, whose clients ask a port of the machine: a page that asks the host that its
 * client has asked for (`localhost:8080`) would look for that port in its own pod, where nothing listens on it.
 */
import { isReservedPort, PORTS } from '../src/api/names.ts';

/**
 * A module that a worker is to load: what is sent to `port` of loopback comes to the pod's own nginx. It does nothing
 * for a port that the pod has itself.
 */
export function sitePortModule(port: number): string {
  if (isReservedPort(port)) return '';
  return `'use strict';
const net = require('node:net');
const { connect } = net.Socket.prototype;
const LOOPBACK = /^(?:(?:.+[.])?localhost|127(?:[.][0-9]{1,3}){3}|::1)$/i;
net.Socket.prototype.connect = function connectToSite(...args) {
  // node:net itself gives one list, of options and a callback.
  const list = Array.isArray(args[0]) ? args[0] : args;
  const { host = 'localhost', port, path } = Object(list[0]);
  if (Number(port) === ${port} && !path && LOOPBACK.test(host)) list[0] = { ...list[0], host: '127.0.0.1', port: ${PORTS.http} };
  return connect.apply(this, args);
};
`;
}
