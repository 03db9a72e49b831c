import {Namespace, Options, Server} from './index.js';

/**
 * Start a server for the tests of a file, and make a namespace for each test. With shared, use the server of
 * bowsprit/global-setup.
 */
export function useServer(options?: Options & {shared?: boolean}): {
  readonly server: Server;
  readonly namespace: Namespace;
};
