import {Server} from './index.js';

// makeUseServer returns useServer for the hooks of a test runner.
export function makeUseServer({beforeAll, afterAll, beforeEach, afterEach}) {
  // useServer starts a server for the tests of a file, and makes a namespace for each test. With shared: true the tests
  // use the server of bowsprit/global-setup.
  return function useServer({shared = false, ...options} = {}) {
    const used = {server: undefined, namespace: undefined};
    beforeAll(async () => {
      used.server = shared ? Server.shared() : await Server.start(options);
    }, options.timeout ?? 60_000);
    beforeEach(async () => {
      used.namespace = await used.server.namespace();
    });
    afterEach(async () => {
      await used.namespace?.delete();
      used.namespace = undefined;
    });
    afterAll(async () => {
      await used.server?.stop();
    }, options.timeout ?? 60_000);
    return used;
  };
}
