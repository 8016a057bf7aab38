import { index, route } from '@react-router/dev/routes';

export default [
  index('routes/page.jsx'),
  route('about', 'routes/about.jsx'),
  route('order', 'routes/order.jsx'),
  route('member', 'routes/member.jsx'),
  route('prices', 'routes/prices.jsx'),
  route('draft', 'routes/draft.js'),
  route('auth/callback', 'routes/callback.js'),
  route('slow', 'routes/slow.jsx'),
  route('stuck', 'routes/stuck.jsx'),
  route('stream', 'routes/stream.js'),
  route('api/price', 'routes/price.js'),
];
