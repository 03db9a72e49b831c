import {after, afterEach, before, beforeEach} from 'node:test';

import {makeUseServer} from './runner.js';

const withTimeout = (hook) => (action, timeout) => hook(action, {timeout});

export const useServer = makeUseServer({
  beforeAll: withTimeout(before),
  afterAll: withTimeout(after),
  beforeEach: (action) => beforeEach(action),
  afterEach: (action) => afterEach(action),
});
