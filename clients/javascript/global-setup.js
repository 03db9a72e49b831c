// The global setup of Vitest and Jest: one server for all workers, with the settings of the variables
// BOWSPRIT_TEST_SIMULATE (such as nodes=3) and BOWSPRIT_TEST_INSTALL (paths, separated as in PATH).

import path from 'node:path';

import {Server} from './index.js';

export default async function setup() {
  const server = await Server.start({
    simulate: process.env.BOWSPRIT_TEST_SIMULATE,
    install: (process.env.BOWSPRIT_TEST_INSTALL ?? '').split(path.delimiter).filter(Boolean),
  });
  server.share();
  globalThis[Symbol.for('bowsprit.shared')] = server; // for Jest's global teardown
  return () => server.stop(); // Vitest's
}
