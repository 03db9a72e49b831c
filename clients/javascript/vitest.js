import {afterAll, afterEach, beforeAll, beforeEach} from 'vitest';

import {makeUseServer} from './runner.js';

export const useServer = makeUseServer({beforeAll, afterAll, beforeEach, afterEach});
